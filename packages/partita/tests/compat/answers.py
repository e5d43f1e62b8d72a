"""Responses in a form that can be compared between two servers; the ONE place that omits anything.

What no two servers could share (times, ids, ARNs, shards) is compared by its shape. What only one
of them has goes, how far they are with their work, and where the envelope of DynamoDB Local is
known to be another than that of the service. All of it is listed here, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]

# What the values of these members look like; in place of one that does there is its shape, with the
# names of tables, indexes and streams that are in it.
ARN = r"arn:aws:dynamodb:(?:[\w-]+):(?:\d{12})"
LABEL = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}"
STREAM_ARN = rf"{ARN}(:table/[\w.-]+/stream/){LABEL}"
ITERATOR = rf"{STREAM_ARN}\|\d+\|[\w=-]+"
SEQUENCE_NUMBER = r"\d{21}"
SHARD_ID = r"shardId-\d{20}-[0-9a-f]{8}"
TIME = r"\d{10}(?:\.\d{1,3})?"
SHAPES = {
    name: re.compile(pattern)
    for name, pattern in {
        "ApproximateCreationDateTime": TIME,
        "CreationDateTime": TIME,
        "CreationRequestDateTime": TIME,
        "EndingSequenceNumber": SEQUENCE_NUMBER,
        "IndexArn": rf"{ARN}(:table/[\w.-]+/index/[\w.-]+)",
        "LatestStreamArn": STREAM_ARN,
        "LatestStreamLabel": LABEL,
        "NextShardIterator": ITERATOR,
        "ParentShardId": SHARD_ID,
        "SequenceNumber": SEQUENCE_NUMBER,
        "ShardId": SHARD_ID,
        "ShardIterator": ITERATOR,
        "StartingSequenceNumber": SEQUENCE_NUMBER,
        "StreamArn": STREAM_ARN,
        "StreamLabel": LABEL,
        "TableArn": rf"{ARN}(:table/[\w.-]+)",
        "awsRegion": r"[a-z]+(?:-[a-z]+-\d)?",
        # The service has no hyphens in it, DynamoDB Local has.
        "eventID": r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    }.items()
}

# Of these there may be any number, all of the same few forms: DynamoDB Local has one shard, the
# service one for each partition.
REPEATED = frozenset(("Shards",))

VOLATILE = frozenset(
    (
        "Address",
        "KMSMasterKeyArn",
        "LastUpdateDateTime",
        # The service has it when the change is done, DynamoDB Local at once.
        "LastUpdateToPayPerRequestDateTime",
        # DynamoDB Local does not know it.
        "TableId",
        # DynamoDB Local sends 0 for never; the service leaves the member out.
        "LastDecreaseDateTime",
        "LastIncreaseDateTime",
        # DynamoDB Local does not count, and has it only for tables.
        "NumberOfDecreasesToday",
        # DynamoDB Local does not know it (it is younger).
        "WarmThroughput",
    )
)

# Whether they are there is compared, not what they say.
OPAQUE = frozenset(("NextToken",))

# In the answers of CreateTable, UpdateTable and DeleteTable, whose work goes on afterwards:
# DynamoDB Local is mostly done when it answers. What comes of it is compared in DescribeTable.
UNFINISHED = frozenset(("TableStatus", "IndexStatus", "Backfilling", "IndexSizeBytes", "ItemCount"))

# Types come in no order, in the service's answers too.
TYPES = re.compile(r"\{[A-Z]+(?:,[A-Z]+)+\}")

# Where the names of errors come from; an error of another namespace is shown with it.
NAMESPACE = "com.amazonaws.dynamodb.v20120810"
NAMESPACES = {
    "SerializationException": "com.amazon.coral.service",
    "UnknownOperationException": "com.amazon.coral.service",
    "ValidationException": "com.amazon.coral.validate",
}

# The service gives the members of these in an order of its own.
UNORDERED = ("AttributeDefinitions", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


@dataclass(frozen=True)
class Answer:
    """A success has a body; a refusal a type, a message and perhaps more members (`body`)."""

    status: int
    body: Any = field(default_factory=dict)
    type: str | None = None
    message: str | None = None

    def __str__(self) -> str:
        """One line that says everything, the form that `table_diff.py` uses."""
        if self.type is None:
            return f"{self.status} {canonical(self.body)}"
        said = f"{self.status} {self.type}" + ("" if self.message is None else f": {self.message}")
        return f"{said} {canonical(self.body)}" if self.body else said


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def normalised(status: int, content: bytes, unordered: Iterable[str] = ()) -> Answer:
    """Returns a response without volatile members, and with unordered lists sorted."""
    try:
        body = json.loads(content) if content else {}
    except ValueError:
        return Answer(status, content.decode(errors="replace"))
    if status != 200:
        return _refusal(status, body)
    body = _comparable(body)
    for name in ("Table", "TableDescription"):
        if name in body:
            body[name] = _description(body[name], finished=name == "Table")
    for path in unordered:
        _sort_list(body, path.split("."))
    return Answer(status, body)


def _refusal(status: int, body: Body) -> Answer:
    """Returns `__type` without its namespace, if that is the service's."""
    members = dict(body)
    namespace, _, name = members.pop("__type", "").rpartition("#")
    kind = name if namespace == NAMESPACES.get(name, NAMESPACE) else f"{namespace}#{name}"
    # DynamoDB Local writes Message where the service writes message.
    texts = [members.pop(name, None) for name in ("message", "Message")]
    message = next((text for text in texts if text is not None), None)
    if message is not None:
        message = TYPES.sub(_in_order, message)
    return Answer(status, _comparable(members), kind, message)


def _in_order(types: re.Match[str]) -> str:
    return f"{{{','.join(sorted(types.group()[1:-1].split(',')))}}}"


def _comparable(value: Any) -> Any:
    """Returns a value without volatile members, with shapes in place of times, ids and the like."""
    if isinstance(value, dict):
        kept = {name: member for name, member in value.items() if name not in VOLATILE}
        kept |= dict.fromkeys(kept.keys() & OPAQUE, "...")
        return {name: _comparable_member(name, member) for name, member in kept.items()}
    if isinstance(value, list):
        return [_comparable(member) for member in value]
    return value


def _comparable_member(name: str, value: Any) -> Any:
    if name in REPEATED and isinstance(value, list):
        forms = {canonical(form): form for form in map(_comparable, value)}
        return [forms[text] for text in sorted(forms)]
    if name not in SHAPES or isinstance(value, (dict, list)):
        return _comparable(value)
    match = SHAPES[name].fullmatch(str(value))
    if match is None:
        return value
    named = "".join(match.groups())
    return f"<{name}{named}>"


def _description(table: Body, *, finished: bool) -> Body:
    """Normalizes a table description of CreateTable or DescribeTable."""
    if "StreamSpecification" not in table:
        # DynamoDB Local tells of the streams that tables of the same name have had.
        for name in ("LatestStreamArn", "LatestStreamLabel"):
            table.pop(name, None)
    for index in table.get("GlobalSecondaryIndexes", ()):
        # The service has zeros for an index on demand; DynamoDB Local has nothing, or no limits.
        if not any(index.get("ProvisionedThroughput", {}).values()):
            index.pop("ProvisionedThroughput", None)
        if set(index.get("OnDemandThroughput", {}).values()) == {-1}:
            del index["OnDemandThroughput"]
    if not finished:
        table = _without_unfinished(table)
    for name in UNORDERED:
        _sort_list(table, [name])
    return table


def _without_unfinished(table: Body) -> Body:
    kept = {name: member for name, member in table.items() if name not in UNFINISHED}
    for name in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if name in kept:
            kept[name] = [_without_unfinished(index) for index in kept[name]]
    return kept


def _sort_list(body: Any, path: list[str]) -> None:
    *parents, last = path
    for name in parents:
        body = body.get(name, {})
    if isinstance(body.get(last), list):
        body[last] = sorted(body[last], key=canonical)


def all_pages(pages: list[Answer], unordered: Iterable[str]) -> Answer:
    """Many pages as one answer: as they are, or, where items have no order, counted together."""
    refused = [page for page in pages if page.status != 200]
    if refused:
        return refused[0]
    if "Items" not in unordered:
        return Answer(200, {"Pages": [page.body for page in pages]})
    items = [item for page in pages for item in page.body.get("Items", ())]
    return Answer(
        200,
        {
            "Pages": len(pages),
            "Items": sorted(items, key=canonical),
            "Count": sum(page.body["Count"] for page in pages),
            "ScannedCount": sum(page.body["ScannedCount"] for page in pages),
        },
    )
