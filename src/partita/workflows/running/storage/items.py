"""Records as items of a table: readable JSON, compressed or in pieces when it is long.

machines          / NAME             a machine
versions#MACHINE  / 0000000001       a version of a machine
aliases#MACHINE   / NAME             an alias of a machine
activities        / NAME             an activity
definition#DIGEST / definition       the text that executions run
ARN               / execution        an execution, listed by the index of starts
ARN               / history#00000001 its events from that one on
ARN               / state            its state, listed by the index of running; kept after a
                                     failure, so that it can be redriven
PARTITION         / rest#ID#0        a further item of a record that is too long for one
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from secrets import token_hex
from typing import Any

from partita.limits import KB, MB

Item = dict[str, Any]
Action = dict[str, Any]
"""One write of a transaction."""

TABLE = "partita-workflows"
STARTS, RUNNING = "starts", "running"
"""The indexes: executions of a machine in order of their start, and running executions."""
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


def versions_of(machine: str) -> str:
    return f"versions#{machine}"


def aliases_of(machine: str) -> str:
    return f"aliases#{machine}"


def version_sort(number: int) -> str:
    return f"{number:010d}"


def started_sort(started_at: float, name: str) -> str:
    return f"{started_at:017.6f}#{name}"


def pack(partition: str, sort: str, record: bytes, attributes: Item) -> tuple[Item, list[Item]]:
    """The item of a record, and further items for one that is too long.

    The further items have new, random keys: they can be written first, and nobody sees them until
    the item that names them is written.
    """
    named = {**key(partition, sort), **attributes}
    if len(record) <= PLAIN_BYTES_MAX:
        return {**named, "record": {"S": record.decode()}}, []
    packed = zlib.compress(record, 1)
    first, *others = (
        {"packed": {"B": base64.b64encode(packed[start : start + PIECE_BYTES_MAX]).decode()}}
        for start in range(0, len(packed), PIECE_BYTES_MAX)
    )
    if not others:
        return {**named, **first}, []
    name = f"rest#{token_hex(8)}"
    rest = {"rest": {"S": name}, "pieces": {"N": str(len(others))}}
    return {**named, **rest, **first}, [
        {**key(partition, f"{name}#{number}"), **other} for number, other in enumerate(others)
    ]


def rest_keys(item: Item) -> list[Item]:
    """The keys of the further items of a record."""
    if "rest" not in item:
        return []
    partition, name = item["pk"]["S"], item["rest"]["S"]
    return [key(partition, f"{name}#{number}") for number in range(int(item["pieces"]["N"]))]


def unpack(item: Item, rest: Sequence[Item]) -> bytes:
    """The record of an item and its further items, in order."""
    if "record" in item:
        text: str = item["record"]["S"]
        return text.encode()
    return zlib.decompress(b"".join(base64.b64decode(one["packed"]["B"]) for one in (item, *rest)))


def action_bytes(action: Action) -> int:
    """The approximate size of a write."""
    item = action["Put"]["Item"] if "Put" in action else {}
    content = item.get("record") or item.get("packed") or {}
    return sum(map(len, content.values())) + KB


ABSENT: Item = {"ConditionExpression": "attribute_not_exists(pk)"}


def at_revision(revision: int) -> Item:
    return {
        "ConditionExpression": "revision = :revision",
        "ExpressionAttributeValues": {":revision": {"N": str(revision)}},
    }
