"""Tables for the tests of shared storage."""

from __future__ import annotations

import itertools
from typing import Any

_numbers = itertools.count(1)


def create(client: Any, **more: Any) -> str:
    """A table with a string key `pk`, on demand."""
    name = f"shared_{next(_numbers)}"
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=more.pop(
            "AttributeDefinitions", [{"AttributeName": "pk", "AttributeType": "S"}]
        ),
        BillingMode="PAY_PER_REQUEST",
        **more,
    )
    return name


def item(key: str, **numbers: int) -> dict[str, Any]:
    return {"pk": {"S": key}, **{name: {"N": str(value)} for name, value in numbers.items()}}


def number(client: Any, table: str, key: str, name: str) -> int:
    found = client.get_item(TableName=table, Key=item(key), ConsistentRead=True)
    return int(found["Item"][name]["N"])
