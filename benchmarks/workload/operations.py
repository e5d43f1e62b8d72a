"""The operations: the requests that a driver repeats, and checks of their responses.

Every operation is checked once per server before it is measured: status 200, the expected content,
and for a write also what a read says afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

from benchmarks.drivers.single_request import Client
from benchmarks.workload import dataset
from benchmarks.workload.dataset import (
    INDEX,
    PARTITION_ITEMS,
    PARTITIONS,
    READ_ITEMS,
    READ_TABLE,
    WRITE_ITEMS,
    WRITE_TABLE,
    Json,
)

SCAN_ITEMS = 1_000
BATCH_GET_ITEMS = 50
BATCH_WRITE_ITEMS = 25
BATCHES = WRITE_ITEMS // BATCH_WRITE_ITEMS


class WrongAnswer(Exception):
    """Raised when a server responds with 200 and wrong content; the message says what is wrong."""


@dataclass(frozen=True)
class Operation:
    name: str
    target: str
    requests: Callable[[], list[Json]]
    check: Callable[[Client, Json], None]
    """Sends a request, and raises WrongAnswer if the response is wrong."""
    consumes: bool = False
    """True if a request can do its work only once, so that the driver needs enough of them."""
    is_fresh: bool = False
    """True if each request is sent in many forms, so that no response can come from a cache."""

    def bodies(self) -> list[bytes]:
        bodies = [orjson.dumps(request) for request in self.requests()]
        forms = -(-FRESH_REQUESTS_MIN // len(bodies)) if self.is_fresh else 1
        return [body + b" " * blanks for blanks in range(forms) for body in bodies]


FRESH_REQUESTS_MIN = 100_000
"""Enough different requests that each has left the response cache before it is repeated."""
VERSIONS = range(2)
"""Versions of each item: every put changes its item, as a server may skip unchanged ones."""


def _shuffled(count: int) -> list[int]:
    """Returns numbers in a shuffled order, which is the same in every run."""
    numbers = list(range(count))
    Random(count).shuffle(numbers)
    return numbers


def _same(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise WrongAnswer(f"{what}: {str(found)[:150]} instead of {str(expected)[:150]}")


# Sets come back in any order, numbers in any spelling.


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: sorted(inner)
            if name == "SS"
            else float(inner)
            if name == "N"
            else _canonical(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_canonical(inner) for inner in value]
    return value


def _same_items(found: list[Json], expected: list[Json]) -> None:
    _same("number of items", len(found), len(expected))
    for one, other in zip(found, expected, strict=True):
        _same("item", _canonical(one), _canonical(other))


def _by_key(items: list[Json]) -> list[Json]:
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))


def _read(client: Client, family: str, number: int) -> Json | None:
    request = {
        "TableName": WRITE_TABLE,
        "Key": dataset.key(family, number),
        "ConsistentRead": True,
    }
    return client.call("GetItem", request).get("Item")


def _expect_nothing(answer: Json) -> None:
    # moto adds consumed capacity without a request for it, which is acceptable.
    unasked = {"ConsumedCapacity", "ItemCollectionMetrics"}
    _same("answer", {name: answer[name] for name in answer.keys() - unasked}, {})


def _expect_stored(client: Client, family: str, number: int, visits: int = 0) -> None:
    expected = dataset.item(family, number)
    expected["info"]["M"]["visits"]["N"] = str(visits)
    _same("stored item", _canonical(_read(client, family, number)), _canonical(expected))


# GetItem


def _get_item() -> list[Json]:
    return [
        {"TableName": READ_TABLE, "Key": dataset.key("read", number)}
        for number in _shuffled(READ_ITEMS)
    ]


def _check_get_item(client: Client, request: Json) -> None:
    answer = client.call("GetItem", request)
    number = _shuffled(READ_ITEMS)[0]
    _same("answer", _canonical(answer), _canonical({"Item": dataset.item("read", number)}))


# Query


def _query() -> list[Json]:
    return [
        {
            "TableName": READ_TABLE,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": dataset.partition_key("read", partition)}},
        }
        for partition in _shuffled(PARTITIONS)
    ]


def _partition() -> list[Json]:
    first = _shuffled(PARTITIONS)[0] * PARTITION_ITEMS
    return [dataset.item("read", first + place) for place in range(PARTITION_ITEMS)]


def _check_query(client: Client, request: Json) -> None:
    _same_items(client.call("Query", request)["Items"], _partition())


# Query with a filter and a projection


def _query_filtered() -> list[Json]:
    return [
        {
            **request,
            "FilterExpression": "info.#state = :open AND #rank >= :zero",
            "ProjectionExpression": "pk, sk, info.#state, #rank",
            "ExpressionAttributeNames": {"#state": "state", "#rank": "rank"},
            "ExpressionAttributeValues": {
                **request["ExpressionAttributeValues"],
                ":open": {"S": "open"},
                ":zero": {"N": "0"},
            },
        }
        for request in _query()
    ]


def _check_query_filtered(client: Client, request: Json) -> None:
    answer = client.call("Query", request)
    _same("ScannedCount", answer["ScannedCount"], PARTITION_ITEMS)
    expected = [
        {
            "pk": item["pk"],
            "sk": item["sk"],
            "rank": item["rank"],
            "info": {"M": {"state": item["info"]["M"]["state"]}},
        }
        for item in _partition()
        if item["info"]["M"]["state"]["S"] == "open"
    ]
    _same_items(answer["Items"], expected)


# Query of the index


def _query_index() -> list[Json]:
    return [
        {
            "TableName": READ_TABLE,
            "IndexName": INDEX,
            "KeyConditionExpression": "#group = :group",
            "ExpressionAttributeNames": {"#group": "group"},
            "ExpressionAttributeValues": {":group": {"S": dataset.group(number)}},
        }
        for number in _shuffled(PARTITIONS)
    ]


def _check_query_index(client: Client, request: Json) -> None:
    first = _shuffled(PARTITIONS)[0]
    expected = [dataset.item("read", n) for n in range(first, READ_ITEMS, PARTITIONS)]
    _same_items(client.call("Query", request)["Items"], expected)


# Scan


def _scan() -> list[Json]:
    return [{"TableName": READ_TABLE, "Limit": SCAN_ITEMS}]


def _check_scan(client: Client, request: Json) -> None:
    """Checks that items are complete; their order is the server's choice."""
    answer = client.call("Scan", request)
    _same("Count", answer["Count"], SCAN_ITEMS)
    if "LastEvaluatedKey" not in answer:
        raise WrongAnswer("a page that is not the last has no LastEvaluatedKey")
    numbers = [int(item["rank"]["N"]) for item in answer["Items"]]
    _same("number of different items", len(set(numbers)), SCAN_ITEMS)
    _same_items(answer["Items"], [dataset.item("read", number) for number in numbers])


# BatchGetItem


def _batch_numbers() -> list[list[int]]:
    numbers = _shuffled(READ_ITEMS)
    return [
        numbers[start : start + BATCH_GET_ITEMS] for start in range(0, READ_ITEMS, BATCH_GET_ITEMS)
    ]


def _batch_get_item() -> list[Json]:
    return [
        {"RequestItems": {READ_TABLE: {"Keys": [dataset.key("read", n) for n in numbers]}}}
        for numbers in _batch_numbers()
    ]


def _check_batch_get_item(client: Client, request: Json) -> None:
    answer = client.call("BatchGetItem", request)
    _same("UnprocessedKeys", answer.get("UnprocessedKeys", {}), {})
    expected = [dataset.item("read", number) for number in _batch_numbers()[0]]
    _same_items(_by_key(answer["Responses"][READ_TABLE]), _by_key(expected))


# PutItem


def _put_item() -> list[Json]:
    return [
        {"TableName": WRITE_TABLE, "Item": dataset.item("put", number, version)}
        for version in VERSIONS
        for number in _shuffled(WRITE_ITEMS)
    ]


def _check_put_item(client: Client, request: Json) -> None:
    _expect_nothing(client.call("PutItem", request))
    _expect_stored(client, "put", _shuffled(WRITE_ITEMS)[0])


# UpdateItem


def _update(family: str, number: int) -> Json:
    return {
        "TableName": WRITE_TABLE,
        "Key": dataset.key(family, number),
        "UpdateExpression": "SET info.#visits = info.#visits + :one",
        "ConditionExpression": "attribute_exists(pk) AND info.#visits >= :zero",
        "ExpressionAttributeNames": {"#visits": "visits"},
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":zero": {"N": "0"}},
    }


def _update_item() -> list[Json]:
    return [_update("update", number) for number in _shuffled(WRITE_ITEMS)]


def _check_update_item(client: Client, request: Json) -> None:
    _expect_nothing(client.call("UpdateItem", request))
    _expect_stored(client, "update", _shuffled(WRITE_ITEMS)[0], visits=1)


# BatchWriteItem


def batch_put(table: str, items: list[Json]) -> Json:
    return {"RequestItems": {table: [{"PutRequest": {"Item": item}} for item in items]}}


def _batch(number: int) -> range:
    """Returns the numbers of the items that one batch puts."""
    return range(number * BATCH_WRITE_ITEMS, (number + 1) * BATCH_WRITE_ITEMS)


def _batch_write_item() -> list[Json]:
    return [
        batch_put(WRITE_TABLE, [dataset.item("batch", number, version) for number in _batch(batch)])
        for version in VERSIONS
        for batch in _shuffled(BATCHES)
    ]


def _check_batch_write_item(client: Client, request: Json) -> None:
    answer = client.call("BatchWriteItem", request)
    _same("UnprocessedItems", answer.get("UnprocessedItems", {}), {})
    for number in _batch(_shuffled(BATCHES)[0]):
        _expect_stored(client, "batch", number)


# TransactWriteItems


def _transact_write_items() -> list[Json]:
    return [
        {
            "TransactItems": [
                {
                    "Put": {
                        "TableName": WRITE_TABLE,
                        "Item": dataset.item("transact-put", number, version),
                    }
                },
                {"Update": _update("transact", number)},
            ]
        }
        for version in VERSIONS
        for number in _shuffled(WRITE_ITEMS)
    ]


def _check_transact_write_items(client: Client, request: Json) -> None:
    _expect_nothing(client.call("TransactWriteItems", request))
    number = _shuffled(WRITE_ITEMS)[0]
    _expect_stored(client, "transact-put", number)
    _expect_stored(client, "transact", number, visits=1)


# DeleteItem


def delete_item(count: int) -> list[Json]:
    """Returns deletions of existing items, which `run` puts before it measures."""
    return [
        {"TableName": WRITE_TABLE, "Key": dataset.key("delete", number)} for number in range(count)
    ]


def _check_delete_item(client: Client, request: Json) -> None:
    client.call("PutItem", {"TableName": WRITE_TABLE, "Item": dataset.item("delete", 0)})
    _expect_stored(client, "delete", 0)
    _expect_nothing(client.call("DeleteItem", request))
    _same("deleted item", _read(client, "delete", 0), None)


# DeleteItem is last, because the items that it needs make the database larger.
OPERATIONS = (
    Operation("GetItem", "GetItem", _get_item, _check_get_item),
    Operation("GetItemFresh", "GetItem", _get_item, _check_get_item, is_fresh=True),
    Operation("Query", "Query", _query, _check_query),
    Operation("QueryFresh", "Query", _query, _check_query, is_fresh=True),
    Operation("QueryFiltered", "Query", _query_filtered, _check_query_filtered),
    Operation("QueryFilteredFresh", "Query", _query_filtered, _check_query_filtered, is_fresh=True),
    Operation("QueryIndex", "Query", _query_index, _check_query_index),
    Operation("Scan", "Scan", _scan, _check_scan),
    Operation("BatchGetItem", "BatchGetItem", _batch_get_item, _check_batch_get_item),
    Operation("PutItem", "PutItem", _put_item, _check_put_item),
    Operation("UpdateItem", "UpdateItem", _update_item, _check_update_item),
    Operation("BatchWriteItem", "BatchWriteItem", _batch_write_item, _check_batch_write_item),
    Operation(
        "TransactWriteItems",
        "TransactWriteItems",
        _transact_write_items,
        _check_transact_write_items,
    ),
    Operation(
        "DeleteItem", "DeleteItem", lambda: delete_item(1), _check_delete_item, consumes=True
    ),
)

# What the report calls them.
DESCRIPTIONS = {
    "GetItem": "GetItem",
    "GetItemFresh": "GetItem, never asked before",
    "Query": "Query (10 items)",
    "QueryFresh": "Query (10 items), never asked before",
    "QueryFiltered": "Query, filter + projection",
    "QueryFilteredFresh": "Query, filter + projection, never asked before",
    "QueryIndex": "Query of a GSI (10 items)",
    "Scan": "Scan (page of 1,000)",
    "BatchGetItem": "BatchGetItem (50)",
    "PutItem": "PutItem",
    "UpdateItem": "UpdateItem (condition, nested)",
    "BatchWriteItem": "BatchWriteItem (25)",
    "TransactWriteItems": "TransactWriteItems (2)",
    "DeleteItem": "DeleteItem",
}
