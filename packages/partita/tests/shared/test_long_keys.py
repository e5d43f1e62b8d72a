"""Sort keys of any bytes, also if they are too long for an index of PostgreSQL."""

from __future__ import annotations

import random
from typing import Any

from testkit.servers import processes

SORT_KEY_BYTES_MAX = 1024
INDEX = {
    "IndexName": "by-other",
    "KeySchema": [
        {"AttributeName": "group", "KeyType": "HASH"},
        {"AttributeName": "other", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


def test_sort_keys_full_of_zero_bytes_keep_their_order_in_tables_and_indexes(
    clients: list[Any], storage: str
) -> None:
    clients[0].create_table(
        TableName="long",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("pk", "S"), ("sk", "B"), ("group", "S"), ("other", "B"))
        ],
        GlobalSecondaryIndexes=[INDEX],
        BillingMode="PAY_PER_REQUEST",
    )
    # Keys that differ only after the part that PostgreSQL could index, and shorter ones between.
    sort_keys = sorted(
        [bytes(SORT_KEY_BYTES_MAX - 1) + bytes([last]) for last in range(1, 40)]
        + [bytes(length) for length in (1, 500, 1000)]
    )
    shuffled = random.Random(7).sample(sort_keys, len(sort_keys))
    for place, sort_key in enumerate(shuffled):
        clients[place % 3].put_item(TableName="long", Item=_item(sort_key))
    for client in clients:
        assert _sort_keys(client, "pk", "sk") == sort_keys
        assert _sort_keys(client, "group", "other", IndexName="by-other") == sort_keys
        backward = _sort_keys(
            client, "group", "other", IndexName="by-other", ScanIndexForward=False
        )
        assert backward == sort_keys[::-1]
        pages = _sort_keys(client, "group", "other", IndexName="by-other", Limit=3)
        assert pages == sort_keys
    for sort_key in sort_keys[::2]:
        clients[1].delete_item(TableName="long", Key={"pk": {"S": "p"}, "sk": {"B": sort_key}})
    left = _sort_keys(clients[2], "group", "other", IndexName="by-other")
    assert left == sort_keys[1::2]
    checked = processes.run("storage", "check", storage)
    assert checked.returncode == 0, checked.stdout


def _item(sort_key: bytes) -> dict[str, Any]:
    other = {"group": {"S": "g"}, "other": {"B": sort_key}}
    return {"pk": {"S": "p"}, "sk": {"B": sort_key}, **other}


def _sort_keys(client: Any, partition: str, sort: str, **more: Any) -> list[bytes]:
    value = "p" if partition == "pk" else "g"
    pages = client.get_paginator("query").paginate(
        TableName="long",
        KeyConditionExpression="#p = :p",
        ExpressionAttributeNames={"#p": partition},
        ExpressionAttributeValues={":p": {"S": value}},
        **more,
    )
    return [one[sort]["B"] for page in pages for one in page["Items"]]
