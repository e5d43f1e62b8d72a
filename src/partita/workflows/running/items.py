"""Records as items of a table: JSON that people can read, compressed or in pieces when it is long.

    machines          / NAME             a machine
    activities        / NAME             an activity
    definition#DIGEST / definition       the text that executions run
    ARN               / execution        an execution, listed by the index of starts
    ARN               / history#00000001 its events from that one on
    ARN               / state            how far it is, listed by the index of running

A record that does not fit into one item goes on in SORT KEY + "#1", and so on.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from partita.limits import KB, MB

Item = dict[str, Any]
Action = dict[str, Any]
"""One write of a transaction."""

TABLE = "partita-workflows"
STARTS, RUNNING = "starts", "running"
"""The indexes: executions of a machine in the order of their start, and those that run."""
MACHINES, ACTIVITIES = "machines", "activities"
EXECUTION, STATE, HISTORY, DEFINITION = "execution", "state", "history#", "definition"
PLAIN_BYTES_MAX = 64 * KB
"""Longer records are compressed."""
PIECE_BYTES_MAX = 350 * KB
TRANSACTION_BYTES_MAX = 3 * MB
"""Less than the service's limit, which also counts names and keys."""


def table_definition(table: str) -> dict[str, Any]:
    """CreateTable's parameters."""
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"}
            for name in ("pk", "sk", "machine", "started", "running")
        ],
        "KeySchema": _schema("pk", "sk"),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": STARTS,
                "KeySchema": _schema("machine", "started"),
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["status", "listing"],
                },
            },
            {
                "IndexName": RUNNING,
                "KeySchema": _schema("running"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
    }


def _schema(*names: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def key(partition: str, sort: str) -> Item:
    return {"pk": {"S": partition}, "sk": {"S": sort}}


def history_sort(first_id: int) -> str:
    return f"{HISTORY}{first_id:08d}"


def started_sort(started_at: float, name: str) -> str:
    return f"{started_at:017.6f}#{name}"


def items(partition: str, sort: str, record: bytes, attributes: Item) -> list[Item]:
    """A record and what else its first item has."""
    if len(record) <= PLAIN_BYTES_MAX:
        return [{**key(partition, sort), **attributes, "record": {"S": record.decode()}}]
    packed = zlib.compress(record, 1)
    pieces = [
        packed[start : start + PIECE_BYTES_MAX] for start in range(0, len(packed), PIECE_BYTES_MAX)
    ]
    first, *others = [{"packed": {"B": base64.b64encode(piece).decode()}} for piece in pieces]
    more = {"pieces": {"N": str(len(pieces))}} if others else {}
    return [
        {**key(partition, sort), **attributes, **more, **first},
        *(
            {**key(partition, piece_sort(sort, number)), **other}
            for number, other in enumerate(others, 1)
        ),
    ]


def piece_sort(sort: str, number: int) -> str:
    return f"{sort}#{number}"


def pieces(item: Item) -> int:
    """How many items there are of a record; all but the first are to be fetched."""
    return int(item["pieces"]["N"]) if "pieces" in item else 1


def record(found: Sequence[Item]) -> bytes:
    """The record in its items, which are in order."""
    if "record" in found[0]:
        text: str = found[0]["record"]["S"]
        return text.encode()
    return zlib.decompress(b"".join(base64.b64decode(item["packed"]["B"]) for item in found))


def size(item: Item) -> int:
    content = item.get("record") or item.get("packed") or {}
    return sum(map(len, content.values())) + KB


def puts(table: str, found: Iterable[Item], condition: Item | None = None) -> Iterator[Action]:
    """Writes of items; the condition is that of the first."""
    for item in found:
        yield {"Put": {"TableName": table, "Item": item, **(condition or {})}}
        condition = None


def action_bytes(action: Action) -> int:
    return size(action["Put"]["Item"]) if "Put" in action else KB


ABSENT: Item = {"ConditionExpression": "attribute_not_exists(pk)"}


def at_revision(revision: int) -> Item:
    return {
        "ConditionExpression": "revision = :revision",
        "ExpressionAttributeValues": {":revision": {"N": str(revision)}},
    }
