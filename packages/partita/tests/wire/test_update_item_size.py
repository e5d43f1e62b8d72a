"""UpdateItem's own limit: what its statement counts, measured to the byte by others.

Recorded in most regions of the service by the public conformance suite (October 2026): a
statement counts 3 bytes, and each clause 19 for SET and ADD, 1 for REMOVE and DELETE, with its
target, operators and operands. A transaction and the legacy parameters count the item alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

ITEM_BYTES_MAX = 409_600
PAD_CLAUSE = 3 + 19 + len("b")
TOO_LARGE = "Item size to update has exceeded the maximum allowed size"
TEN = {"S": "y" * 10}
ONE = {"N": "1"}

# The clause beside `SET b = :pad`, what must be there before, its values, and what it counts.
CLAUSES: dict[str, tuple[str, dict[str, Any], dict[str, Any], int]] = {
    "nothing else": ("", {}, {}, 0),
    "a second value": ("SET c = :v", {}, {":v": TEN}, 19 + 1 + 10),
    "a path": ("SET c = abc", {"abc": TEN}, {}, 19 + 1 + 1 + 14 + 3),
    "a nested path": ("SET c = m.z", {"m": {"M": {"z": TEN}}}, {}, 19 + 1 + 1 + 15 + 15),
    "an element": ("SET c = l[0]", {"l": {"L": [TEN]}}, {}, 19 + 1 + 1 + 15 + 15),
    "into a map": ("SET m.leaf = :v", {"m": {"M": {}}}, {":v": TEN}, 19 + 1 + 4 + 4 + 10),
    "into a list": ("SET l[0] = :v", {"l": {"L": [ONE]}}, {":v": TEN}, 19 + 1 + 4 + 1 + 10),
    "a sum": ("SET n = n + :v", {"n": ONE}, {":v": ONE}, 19 + 1 + 34 + 16 + 2),
    "a difference": ("SET n = n - :v", {"n": ONE}, {":v": ONE}, 19 + 1 + 37 + 16 + 2),
    "a default": ("SET c = if_not_exists(c, :v)", {}, {":v": TEN}, 19 + 1 + 39 + 16 + 10),
    "a longer list": (
        "SET l = list_append(l, :v)",
        {"l": {"L": [ONE]}},
        {":v": {"L": [TEN]}},
        19 + 1 + 37 + 16 + 3 + 1 + 10,
    ),
    "a number added": ("ADD n :v", {"n": ONE}, {":v": ONE}, 19 + 1 + 2),
    "members added": ("ADD s :v", {"s": {"SS": ["old"]}}, {":v": {"SS": ["y" * 10]}}, 19 + 1 + 10),
    "an attribute removed": ("REMOVE abc", {"abc": TEN}, {}, 1 + 3),
    "a member removed": ("REMOVE m.leaf", {"m": {"M": {"leaf": TEN}}}, {}, 1 + 1 + 4 + 4),
    "an element removed": ("REMOVE l[0]", {"l": {"L": [TEN, ONE]}}, {}, 1 + 1 + 4 + 1),
    "members deleted": ("DELETE s :v", {"s": {"SS": ["a", "b"]}}, {":v": {"SS": ["a"]}}, 1 + 1),
}


@pytest.fixture(scope="module")
def things(module_table: Any) -> str:
    return str(module_table())


def update(client: Any, table: str, name: str, pad_bytes: int) -> None:
    clause, before, values, _ = CLAUSES[name]
    joined = clause.replace("SET ", ", ") if clause.startswith("SET ") else f" {clause}"
    client.put_item(TableName=table, Item={"pk": {"S": "K"}, **before})
    client.update_item(
        TableName=table,
        Key={"pk": {"S": "K"}},
        UpdateExpression=f"SET b = :pad{joined}",
        ExpressionAttributeValues={":pad": {"S": "x" * pad_bytes}, **values},
    )


@pytest.mark.parametrize("name", CLAUSES)
def test_a_statement_counts_to_the_byte(client: Any, things: str, name: str) -> None:
    room = ITEM_BYTES_MAX - PAD_CLAUSE - CLAUSES[name][3]
    update(client, things, name, room)
    with pytest.raises(ClientError) as refused:
        update(client, things, name, room + 1)
    assert refused.value.response["Error"]["Message"].endswith(TOO_LARGE)


def test_a_failing_condition_is_not_looked_at(client: Any, things: str) -> None:
    with pytest.raises(ClientError) as refused:
        client.update_item(
            TableName=things,
            Key={"pk": {"S": "none"}},
            UpdateExpression="SET b = :pad",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":pad": {"S": "x" * (ITEM_BYTES_MAX - PAD_CLAUSE + 1)}},
        )
    assert refused.value.response["Error"]["Message"].endswith(TOO_LARGE)


def test_a_transaction_and_the_legacy_parameters_count_the_item(client: Any, things: str) -> None:
    key = {"pk": {"S": "L"}}
    pad = {"S": "x" * (ITEM_BYTES_MAX - len("pk") - len("L") - len("b"))}
    client.transact_write_items(
        TransactItems=[
            {
                "Update": {
                    "TableName": things,
                    "Key": key,
                    "UpdateExpression": "SET b = :pad",
                    "ExpressionAttributeValues": {":pad": pad},
                }
            }
        ]
    )
    client.delete_item(TableName=things, Key=key)
    client.update_item(
        TableName=things, Key=key, AttributeUpdates={"b": {"Action": "PUT", "Value": pad}}
    )
