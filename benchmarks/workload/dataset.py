"""The items, the same in every server: about 1 KB each, ten to a partition, ten to an index key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

READ_TABLE = "bench-reads"
WRITE_TABLE = "bench-writes"
"""A table without indexes, so that a put is the same storage work as in the bare loop."""
INDEX = "by-group"

READ_ITEMS = 4_000
WRITE_ITEMS = 2_000
PARTITION_ITEMS = 10
PARTITIONS = READ_ITEMS // PARTITION_ITEMS
BATCH_ITEMS = 25
# A page of 1,000 items has to stay below 1 MB, which DynamoDB counts without JSON syntax.
TEXT_CHARACTERS = 850

KEY_SCHEMA = [
    {"AttributeName": "pk", "KeyType": "HASH"},
    {"AttributeName": "sk", "KeyType": "RANGE"},
]


def tables() -> list[Json]:
    """Returns the CreateTable requests."""
    key_types = [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
    ]
    index_types = [
        {"AttributeName": "group", "AttributeType": "S"},
        {"AttributeName": "rank", "AttributeType": "N"},
    ]
    index = {
        "IndexName": INDEX,
        "KeySchema": [
            {"AttributeName": "group", "KeyType": "HASH"},
            {"AttributeName": "rank", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }
    plain = {"KeySchema": KEY_SCHEMA, "BillingMode": "PAY_PER_REQUEST"}
    return [
        {
            "TableName": READ_TABLE,
            "AttributeDefinitions": key_types + index_types,
            "GlobalSecondaryIndexes": [index],
            **plain,
        },
        {"TableName": WRITE_TABLE, "AttributeDefinitions": key_types, **plain},
    ]


def item(family: str, number: int, visits: int = 0) -> Json:
    """Returns an item of a family; with families, operations do not touch each other's items."""
    text = f"{family} {number} is an item of the benchmark. "
    return {
        **key(family, number),
        "group": {"S": group(number)},
        "rank": {"N": str(number)},
        "info": {
            "M": {
                "visits": {"N": str(visits)},
                "state": {"S": "open" if number % 2 else "closed"},
            }
        },
        "labels": {"SS": ["blue", "green"]},
        "active": {"BOOL": True},
        "text": {"S": (text * (TEXT_CHARACTERS // len(text) + 1))[:TEXT_CHARACTERS]},
    }


def key(family: str, number: int) -> Json:
    partition, place = divmod(number, PARTITION_ITEMS)
    return {"pk": {"S": partition_key(family, partition)}, "sk": {"S": f"place-{place:02}"}}


def partition_key(family: str, partition: int) -> str:
    return f"{family}-{partition:06}"


def group(number: int) -> str:
    """Returns an index key, which ten items of different partitions share."""
    return f"group-{number % PARTITIONS:06}"


def seed() -> Iterator[tuple[str, Json]]:
    """Yields the requests that create tables and items before anything is measured."""
    for number in range(READ_ITEMS):
        yield READ_TABLE, item("read", number)
    for number in range(WRITE_ITEMS):
        yield WRITE_TABLE, item("update", number)
        yield WRITE_TABLE, item("transact", number)
