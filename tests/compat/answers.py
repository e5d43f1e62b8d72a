"""An answer in a form in which two servers can be compared; the ONE place that leaves things out.

What goes is what no two servers could share (times, ids, ARNs, how far they are with their work)
and where the envelope of DynamoDB Local is known to be another than that of the service. Both are
listed here, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]

VOLATILE = frozenset(
    (
        "Address",
        "CreationDateTime",
        "IndexArn",
        "KMSMasterKeyArn",
        "LastUpdateDateTime",
        "LastUpdateToPayPerRequestDateTime",
        "LatestStreamArn",
        "LatestStreamLabel",
        "TableArn",
        "TableId",
        # Of streams: DynamoDB Local has one shard, and says the minute of a change.
        "ApproximateCreationDateTime",
        "CreationRequestDateTime",
        "NextShardIterator",
        "SequenceNumber",
        "ShardIterator",
        "Shards",
        "StreamArn",
        "StreamLabel",
        "awsRegion",
        "eventID",
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
        """One line that says everything, the form that `differences.py` uses."""
        if self.type is None:
            return f"{self.status} {canonical(self.body)}"
        said = f"{self.status} {self.type}" + ("" if self.message is None else f": {self.message}")
        return f"{said} {canonical(self.body)}" if self.body else said


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def normalised(status: int, content: bytes, unordered: Iterable[str] = ()) -> Answer:
    """The answer without what is volatile, with lists that have no order in one order."""
    try:
        body = json.loads(content) if content else {}
    except ValueError:
        return Answer(status, content.decode(errors="replace"))
    if status != 200:
        return _refusal(status, body)
    body = _without_volatile(body)
    for name in ("Table", "TableDescription"):
        if name in body:
            body[name] = _description(body[name], finished=name == "Table")
    for path in unordered:
        _sort_list(body, path.split("."))
    return Answer(status, body)


def _refusal(status: int, body: Body) -> Answer:
    """`__type` without its namespace, which DynamoDB Local chooses otherwise for some errors."""
    members = dict(body)
    kind = members.pop("__type", "").rpartition("#")[2]
    # DynamoDB Local writes Message where the service writes message.
    texts = [members.pop(name, None) for name in ("message", "Message")]
    message = next((text for text in texts if text is not None), None)
    return Answer(status, _without_volatile(members), kind, message)


def _without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: member for name, member in value.items() if name not in VOLATILE}
        kept |= dict.fromkeys(kept.keys() & OPAQUE, "...")
        return {name: _without_volatile(member) for name, member in kept.items()}
    if isinstance(value, list):
        return [_without_volatile(member) for member in value]
    return value


def _description(table: Body, *, finished: bool) -> Body:
    """A table as CreateTable or DescribeTable tells of it."""
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
