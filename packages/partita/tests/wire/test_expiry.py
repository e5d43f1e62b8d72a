"""Expired items are gone within seconds, from the table, its indexes and its counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .indexes import index
from .time_to_live import enable

EXPIRY_SECONDS_MAX = 60
YEAR = 365 * 24 * 3600


def seconds(offset: float) -> dict[str, str]:
    return {"N": str(int(time.time() + offset))}


def put(client: Any, name: str, key: str, **attributes: Any) -> None:
    client.put_item(TableName=name, Item={"pk": {"S": key}, **attributes})


def keys(client: Any, name: str, **request: Any) -> list[str]:
    pages = client.get_paginator("scan").paginate(TableName=name, **request)
    return sorted(item["pk"]["S"] for page in pages for item in page["Items"])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + EXPIRY_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "nothing has expired"
        time.sleep(0.05)


def test_expired_items_leave_table_indexes_and_counts(client: Any, table: Any) -> None:
    name = table(
        sk="S",
        attributes={"g": "S", "l": "S"},
        LocalSecondaryIndexes=[index("local", "pk", "l")],
        GlobalSecondaryIndexes=[index("global", "g")],
    )
    enable(client, name)
    more = {"sk": {"S": "s"}, "g": {"S": "x"}, "l": {"S": "y"}}
    for number in range(20):
        put(client, name, f"past{number}", ttl=seconds(-60), **more)
    put(client, name, "future", ttl=seconds(3600), **more)
    put(client, name, "never", **more)
    wait_until(lambda: keys(client, name) == ["future", "never"])
    for found in ("local", "global"):
        assert keys(client, name, IndexName=found) == ["future", "never"]
    description = client.describe_table(TableName=name)["Table"]
    items = client.scan(TableName=name)["Items"]
    assert len(items) == 2
    (local,), (a_global,) = (
        description["LocalSecondaryIndexes"],
        description["GlobalSecondaryIndexes"],
    )
    counts = [description["ItemCount"], local["ItemCount"], a_global["ItemCount"]]
    assert counts == [2, 2, 2]
    sizes = [description["TableSizeBytes"], local["IndexSizeBytes"], a_global["IndexSizeBytes"]]
    assert len(set(sizes)) == 1


def test_items_that_were_there_before_it_was_switched_on_expire_too(
    client: Any, table: Any
) -> None:
    name = table()
    for number in range(30):
        put(client, name, f"past{number}", ttl=seconds(-60))
    put(client, name, "future", ttl=seconds(3600))
    enable(client, name)
    wait_until(lambda: keys(client, name) == ["future"])
    assert client.describe_table(TableName=name)["Table"]["ItemCount"] == 1


def test_an_item_expires_when_its_second_comes(client: Any, table: Any) -> None:
    name = table()
    enable(client, name)
    second = seconds(1.5)
    put(client, name, "soon", ttl=second)
    assert keys(client, name) == ["soon"] or time.time() > int(second["N"])
    wait_until(lambda: keys(client, name) == [])


def test_what_is_no_recent_number_does_not_expire(client: Any, table: Any) -> None:
    # Guide: other types are ignored, and times more than five years ago
    name = table()
    kept = {
        "string": {"S": seconds(-60)["N"]},
        "set": {"NS": [seconds(-60)["N"]]},
        "null": {"NULL": True},
        "zero": {"N": "0"},
        "negative": {"N": "-1"},
        "far past": seconds(-5.1 * YEAR),
        "milliseconds": {"N": seconds(-60)["N"] + "000"},
        "huge": {"N": "1" + "0" * 100},
    }
    for key, value in kept.items():
        put(client, name, f"before {key}", ttl=value)
    enable(client, name)
    for key, value in kept.items():
        put(client, name, f"after {key}", ttl=value)
    put(client, name, "past", ttl=seconds(-60))
    put(client, name, "long past", ttl=seconds(-4.9 * YEAR))
    put(client, name, "fraction", ttl={"N": seconds(-60)["N"] + ".5"})
    expected = sorted(f"{when} {key}" for when in ("before", "after") for key in kept)
    wait_until(lambda: len(keys(client, name)) == len(expected))
    assert keys(client, name) == expected


def test_an_item_that_was_written_again_does_not_expire(client: Any, table: Any) -> None:
    name = table()
    enable(client, name)
    for key in ("later", "never", "removed"):
        put(client, name, key, ttl=seconds(2))
    put(client, name, "gone", ttl=seconds(2))
    put(client, name, "later", ttl=seconds(3600))
    put(client, name, "never")
    client.update_item(
        TableName=name, Key={"pk": {"S": "removed"}}, UpdateExpression="REMOVE #t",
        ExpressionAttributeNames={"#t": "ttl"},
    )  # fmt: skip
    wait_until(lambda: "gone" not in keys(client, name))
    assert keys(client, name) == ["later", "never", "removed"]


def test_every_way_to_write_sets_the_time(client: Any, table: Any) -> None:
    name = table()
    enable(client, name)
    past = seconds(-60)
    key = {"pk": {"S": "updated"}}
    client.update_item(
        TableName=name, Key=key, UpdateExpression="SET #t = :t",
        ExpressionAttributeNames={"#t": "ttl"}, ExpressionAttributeValues={":t": past},
    )  # fmt: skip
    batch = [{"PutRequest": {"Item": {"pk": {"S": "batch"}, "ttl": past}}}]
    client.batch_write_item(RequestItems={name: batch})
    transaction = {"Put": {"TableName": name, "Item": {"pk": {"S": "transaction"}, "ttl": past}}}
    client.transact_write_items(TransactItems=[transaction])
    put(client, name, "kept")
    wait_until(lambda: keys(client, name) == ["kept"])


def test_expired_items_of_long_keys_are_found(client: Any, table: Any) -> None:
    name = table(sk="S")
    enable(client, name)
    for letter in "abc":
        put(client, name, "p" * 2048, sk={"S": "s" * 1023 + letter}, ttl=seconds(-60))
    put(client, name, "p" * 2048, sk={"S": "s" * 1023 + "d"})
    wait_until(lambda: client.scan(TableName=name)["Count"] == 1)
    assert client.scan(TableName=name)["Items"][0]["sk"]["S"][-1] == "d"


def test_nothing_expires_after_it_was_switched_off(client: Any, table: Any) -> None:
    name, other = table(), table()
    enable(client, name)
    put(client, name, "a", ttl=seconds(2))
    enable(client, name, enabled=False)
    put(client, name, "b", ttl=seconds(-60))
    # Another table shows that the sweep has been there since.
    enable(client, other)
    put(client, other, "gone", ttl=seconds(3))
    wait_until(lambda: keys(client, other) == [])
    assert keys(client, name) == ["a", "b"]


def test_a_key_can_be_the_time(client: Any, table: Any) -> None:
    name = table(sk="N")
    enable(client, name, "sk")
    put(client, name, "past", sk=seconds(-60))
    put(client, name, "future", sk=seconds(3600))
    wait_until(lambda: keys(client, name) == ["future"])
