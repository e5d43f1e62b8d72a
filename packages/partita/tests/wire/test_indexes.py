"""Indexes: an index shows exactly the items of its table that have its keys, in its own order."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from .indexes import EVERYTHING, KEYS_ONLY, include, index
from .refusals import refusal

SECONDS_MAX = 60


def scanned(client: Any, name: str, **request: Any) -> list[dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=name, **request)
    return [item for page in pages for item in page["Items"]]


def queried(client: Any, name: str, index_name: str, condition: str, **more: Any) -> list[Any]:
    values = {f":{key}": more.pop(key) for key in list(more) if key.islower()}
    answer = client.query(
        TableName=name,
        IndexName=index_name,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values,
        **more,
    )
    return list(answer["Items"])


def in_any_order(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: sorted(item.items()).__repr__())


def put(client: Any, name: str, **item: Any) -> dict[str, Any]:
    client.put_item(TableName=name, Item=item)
    return item


def string(text: str) -> dict[str, str]:
    return {"S": text}


def number(value: int | str) -> dict[str, str]:
    return {"N": str(value)}


# Projections.


@pytest.fixture
def projected(table: Any) -> str:
    name: str = table(
        sk="S",
        attributes={"g": "S", "l": "N"},
        LocalSecondaryIndexes=[
            index("local_all", "pk", "l"),
            index("local_keys", "pk", "l", projection=KEYS_ONLY),
            index("local_some", "pk", "l", projection=include("v", "missing")),
        ],
        GlobalSecondaryIndexes=[
            index("global_all", "g", "l"),
            index("global_keys", "g", "l", projection=KEYS_ONLY),
            index("global_some", "g", "l", projection=include("v", "missing")),
        ],
    )
    return name


@pytest.mark.parametrize("kind", ["local", "global"])
def test_an_index_has_what_is_projected_into_it(client: Any, projected: str, kind: str) -> None:
    item = put(
        client,
        projected,
        pk=string("p"),
        sk=string("s"),
        g=string("g"),
        l=number(1),
        v=string("v"),
        w={"M": {"deep": {"L": [number(1)]}}},
    )
    keys = {"pk", "sk", "l"} | ({"g"} if kind == "global" else set())
    expected = {"all": set(item), "keys": keys, "some": keys | {"v"}}
    for projection, names in expected.items():
        (found,) = scanned(client, projected, IndexName=f"{kind}_{projection}")
        assert found == {name: value for name, value in item.items() if name in names}


@pytest.mark.parametrize("projection", ["all", "keys", "some"])
def test_a_local_index_can_fetch_what_it_does_not_have(
    client: Any, projected: str, projection: str
) -> None:
    item = put(
        client, projected, pk=string("p"), sk=string("s"), l=number(1), v=string("v"), w=string("w")
    )
    found = queried(
        client, projected, f"local_{projection}", "pk = :p", p=string("p"), Select="ALL_ATTRIBUTES"
    )
    assert found == [item]


# What a Scan of a local index is asked to show beside its filter, and which attributes that is.
FETCHED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "everything": ({"Select": "ALL_ATTRIBUTES"}, {"pk", "sk", "l", "v", "w"}),
    "what it has": ({}, {"pk", "sk", "l"}),
    "all that it has": ({"Select": "ALL_PROJECTED_ATTRIBUTES"}, {"pk", "sk", "l"}),
    "some that it lacks": ({"ProjectionExpression": "sk, v"}, {"sk", "v"}),
    "some that it has": ({"ProjectionExpression": "sk"}, {"sk"}),
}
FILTERS: dict[str, dict[str, Any]] = {
    "an expression": {
        "FilterExpression": "w = :w",
        "ExpressionAttributeValues": {":w": {"S": "yes"}},
    },
    "an expression over both": {
        "FilterExpression": "l = :l AND NOT (w <> :w)",
        "ExpressionAttributeValues": {":w": {"S": "yes"}, ":l": {"N": "1"}},
    },
}


@pytest.mark.parametrize("shown", FETCHED)
@pytest.mark.parametrize("filtering", FILTERS)
def test_a_scan_of_a_local_index_filters_by_what_it_does_not_have(
    client: Any, projected: str, shown: str, filtering: str
) -> None:
    # DynamoDB Local
    values = {"sk": string("s"), "l": number(1), "v": string("v")}
    item = put(client, projected, pk=string("p"), **values, w=string("yes"))
    put(client, projected, pk=string("q"), **values, w=string("no"))
    put(client, projected, pk=string("r"), **values)
    more, names = FETCHED[shown]
    found = scanned(client, projected, IndexName="local_keys", **FILTERS[filtering], **more)
    assert found == [{name: value for name, value in item.items() if name in names}]


def test_a_legacy_scan_filter_sees_the_item_behind_a_local_index(
    client: Any, projected: str
) -> None:
    item = put(client, projected, pk=string("p"), sk=string("s"), l=number(1), w=string("yes"))
    condition = {"ComparisonOperator": "EQ", "AttributeValueList": [string("yes")]}
    asked = {"ScanFilter": {"w": condition}, "Select": "ALL_ATTRIBUTES"}
    assert scanned(client, projected, IndexName="local_keys", **asked) == [item]


def test_a_filter_that_fetches_is_paid_for(client: Any, table: Any) -> None:
    name = table(
        sk="S",
        attributes={"l": "S"},
        LocalSecondaryIndexes=[index("local", "pk", "l", projection=KEYS_ONLY)],
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )
    for sk in ("1", "2"):
        item = {"pk": string("p"), "sk": string(sk), "l": string("l"), "w": string("x" * 4000)}
        client.put_item(TableName=name, Item=item)
    answer = client.scan(
        TableName=name,
        IndexName="local",
        FilterExpression="w = :w",
        ExpressionAttributeValues={":w": string("no")},
        ReturnConsumedCapacity="INDEXES",
    )
    assert (answer["Count"], answer["ScannedCount"]) == (0, 2)
    assert answer["ConsumedCapacity"]["Table"] == {"CapacityUnits": 1.0}
    assert answer["ConsumedCapacity"]["LocalSecondaryIndexes"] == {"local": {"CapacityUnits": 0.5}}


def test_a_query_of_an_index_cannot_filter_by_what_it_does_not_have(
    client: Any, projected: str
) -> None:
    # recorded; DynamoDB Local refuses it too, whatever is selected
    for name in ("local_keys", "global_keys"):
        key = "pk" if name == "local_keys" else "g"
        code, text = refusal(
            client.query,
            TableName=projected,
            IndexName=name,
            KeyConditionExpression=f"{key} = :p",
            FilterExpression="w = :p",
            ExpressionAttributeValues={":p": string("p")},
            **({"Select": "ALL_ATTRIBUTES"} if name == "local_keys" else {}),
        )
        assert (code, text) == (
            "ValidationException",
            f"One or more parameter values were invalid: Secondary index {name} does not project "
            "one or more filter attributes: [w]",
        )


def test_an_update_of_a_projected_attribute_shows_in_the_index(client: Any, projected: str) -> None:
    key = {"pk": string("p"), "sk": string("s")}
    put(client, projected, **key, g=string("g"), l=number(1), v=string("old"))
    client.update_item(
        TableName=projected,
        Key=key,
        UpdateExpression="SET v = :v, w = :v",
        ExpressionAttributeValues={":v": string("new")},
    )
    for kind in ("local", "global"):
        (found,) = scanned(client, projected, IndexName=f"{kind}_some")
        assert found["v"] == string("new")
        assert "w" not in found


# Sparse indexes.


def test_an_item_without_an_index_key_is_not_in_the_index(client: Any, projected: str) -> None:
    put(client, projected, pk=string("both"), sk=string("s"), g=string("g"), l=number(1))
    put(client, projected, pk=string("hash only"), sk=string("s"), g=string("g"))
    put(client, projected, pk=string("range only"), sk=string("s"), l=number(1))
    put(client, projected, pk=string("none"), sk=string("s"))

    def keys(name: str) -> list[str]:
        return sorted(item["pk"]["S"] for item in scanned(client, projected, IndexName=name))

    assert keys("global_all") == ["both"]
    assert keys("local_all") == ["both", "range only"]


def test_an_item_enters_moves_in_and_leaves_an_index(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    key = {"pk": string("p")}

    def update(expression: str, **values: Any) -> list[str]:
        named = {f":{each}": value for each, value in values.items()}
        more = {"ExpressionAttributeValues": named} if named else {}
        client.update_item(TableName=name, Key=key, UpdateExpression=expression, **more)
        return [item["g"]["S"] for item in scanned(client, name, IndexName="global")]

    put(client, name, **key)
    assert scanned(client, name, IndexName="global") == []
    assert update("SET g = :g", g=string("one")) == ["one"]
    assert update("SET g = :g", g=string("two")) == ["two"]
    assert queried(client, name, "global", "g = :g", g=string("one")) == []
    assert update("REMOVE g") == []
    assert update("SET g = :g", g=string("three")) == ["three"]
    client.delete_item(TableName=name, Key=key)
    assert scanned(client, name, IndexName="global") == []


def test_an_identical_item_does_not_write_its_indexes(client: Any, table: Any) -> None:
    # recorded; the order of attributes is no part of an item
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    item = {"pk": string("p"), "g": string("g"), "m": {"M": {"a": number(1), "b": number(2)}}}
    turned = {"m": {"M": {"b": number(2), "a": number(1)}}, "g": string("g"), "pk": string("p")}
    client.put_item(TableName=name, Item=item)
    for again in (item, turned):
        capacity = client.put_item(TableName=name, Item=again, ReturnConsumedCapacity="INDEXES")
        assert capacity["ConsumedCapacity"] == {
            "TableName": name,
            "CapacityUnits": 1.0,
            "Table": {"CapacityUnits": 1.0},
        }


# Order and paging.


def test_a_global_index_has_its_own_order(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S", "n": "N"}, GlobalSecondaryIndexes=[index("late", "g", "n")])
    values = [5, -1, 100, 0, -100, 10, 1, -5]
    for each in values:
        put(client, name, pk=string(str(each)), g=string("g"), n=number(each))
    for forward in (True, False):
        found = queried(client, name, "late", "g = :g", g=string("g"), ScanIndexForward=forward)
        assert [int(item["n"]["N"]) for item in found] == sorted(values, reverse=not forward)
    found = queried(
        client, name, "late", "g = :g AND n BETWEEN :a AND :b",
        g=string("g"), a=number(-5), b=number(5),
    )  # fmt: skip
    assert [int(item["n"]["N"]) for item in found] == [-5, -1, 0, 1, 5]


def pages_of_one(client: Any, operation: str, **request: Any) -> Iterator[dict[str, Any]]:
    """Returns every item of a query or scan with one item per page, and checks the page tokens."""
    start: dict[str, Any] = {}
    while True:
        answer = getattr(client, operation)(**request, Limit=1, **start)
        assert answer["ScannedCount"] <= 1
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("kind", ["local", "global", "hash_only"])
def test_items_that_share_an_index_key_are_walked_one_by_one(
    client: Any, table: Any, kind: str, forward: bool
) -> None:
    name = table(
        sk="N",
        attributes={"g": "S", "l": "N"},
        LocalSecondaryIndexes=[index("local", "pk", "l")],
        GlobalSecondaryIndexes=[index("global", "g", "l"), index("hash_only", "g")],
    )
    items = [
        put(client, name, pk=string("p"), sk=number(each), g=string("g"), l=number(each % 2))
        for each in range(40)
    ]
    attribute, value = ("pk", string("p")) if kind == "local" else ("g", string("g"))
    request: dict[str, Any] = {
        "TableName": name,
        "IndexName": kind,
        "KeyConditionExpression": f"{attribute} = :v",
        "ExpressionAttributeValues": {":v": value},
        "ScanIndexForward": forward,
    }
    walked = list(pages_of_one(client, "query", **request))
    assert walked == client.query(**request)["Items"]
    assert in_any_order(walked) == in_any_order(items)
    if kind != "hash_only":
        sorts = [int(item["l"]["N"]) for item in walked]
        assert sorts == sorted(sorts, reverse=not forward)


def test_the_two_directions_mirror_each_other(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    for each in range(30):
        put(client, name, pk=string(str(each)), g=string("g"))
    forward, backward = (
        queried(client, name, "global", "g = :g", g=string("g"), ScanIndexForward=direction)
        for direction in (True, False)
    )
    assert backward == forward[::-1]


def test_a_scan_of_an_index_is_walked_one_by_one(client: Any, table: Any) -> None:
    name = table(sk="N", attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g", "sk")])
    items = [
        put(client, name, pk=string("p"), sk=number(each), g=string(f"g{each % 3}"))
        for each in range(30)
    ]
    walked = list(pages_of_one(client, "scan", TableName=name, IndexName="global"))
    assert walked == scanned(client, name, IndexName="global")
    assert in_any_order(walked) == in_any_order(items)


def test_a_page_ends_with_the_keys_of_index_and_table(client: Any, table: Any) -> None:
    # recorded
    name = table(
        sk="S",
        attributes={"g": "S", "h": "S", "l": "S"},
        LocalSecondaryIndexes=[index("local", "pk", "l")],
        GlobalSecondaryIndexes=[index("global", "g", "h"), index("hash_only", "g")],
    )
    for each in "ab":
        put(client, name, **{key: string(each) for key in ("pk", "sk", "g", "h", "l", "other")})
    for index_name, keys in {
        "local": {"pk", "sk", "l"},
        "global": {"pk", "sk", "g", "h"},
        "hash_only": {"pk", "sk", "g"},
    }.items():
        answer = client.scan(TableName=name, IndexName=index_name, Limit=1)
        assert set(answer["LastEvaluatedKey"]) == keys


def test_paging_goes_on_after_the_item_it_stopped_at_was_deleted(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    for each in range(10):
        put(client, name, pk=string(str(each)), g=string("g"))
    everything = [item["pk"]["S"] for item in scanned(client, name, IndexName="global")]
    answer = client.scan(TableName=name, IndexName="global", Limit=4)
    stop = answer["LastEvaluatedKey"]
    client.delete_item(TableName=name, Key={"pk": stop["pk"]})
    rest = scanned(client, name, IndexName="global", ExclusiveStartKey=stop)
    assert [item["pk"]["S"] for item in rest] == everything[4:]


def test_segments_of_an_index_make_up_the_index(client: Any, table: Any) -> None:
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    for each in range(60):
        put(client, name, pk=string(str(each)), g=string(f"g{each % 20}"))
    found = [
        item
        for segment in range(4)
        for item in scanned(client, name, IndexName="global", Segment=segment, TotalSegments=4)
    ]
    assert len(found) == 60
    assert in_any_order(found) == in_any_order(scanned(client, name))


# Several key attributes.


def test_an_index_of_several_partition_and_sort_attributes(client: Any, table: Any) -> None:
    # recorded (order of the sort attributes, gapless prefix, keys of a page)
    name = table(
        attributes={"a": "S", "b": "S", "x": "N", "y": "S"},
        GlobalSecondaryIndexes=[index("many", "a", "b", "x", "y", hash_count=2)],
    )
    rows = [(a, b, x, y) for a in "ab" for b in "cd" for x in (1, 10, 2) for y in "fe"]
    for position, (a, b, x, y) in enumerate(rows):
        put(client, name, pk=string(str(position)), a=string(a), b=string(b), x=number(x),
            y=string(y))  # fmt: skip
    put(client, name, pk=string("sparse"), a=string("a"), b=string("c"), x=number(1))

    def found(condition: str, **values: Any) -> list[tuple[int, str]]:
        items = queried(client, name, "many", f"a = :a AND b = :b{condition}",
                        a=string("a"), b=string("c"), **values)  # fmt: skip
        return [(int(item["x"]["N"]), item["y"]["S"]) for item in items]

    everything = [(1, "e"), (1, "f"), (2, "e"), (2, "f"), (10, "e"), (10, "f")]
    assert found("") == everything
    assert found(" AND x = :x", x=number(2)) == [(2, "e"), (2, "f")]
    assert found(" AND x = :x AND y > :y", x=number(2), y=string("e")) == [(2, "f")]
    assert found(" AND x > :x", x=number(1)) == everything[2:]
    assert found("", ScanIndexForward=False) == everything[::-1]
    last = client.scan(TableName=name, IndexName="many", Limit=1)["LastEvaluatedKey"]
    assert set(last) == {"pk", "a", "b", "x", "y"}
    assert len(list(pages_of_one(client, "scan", TableName=name, IndexName="many"))) == 24


# An index equals its table, whatever is written.

ATTRIBUTES = ("g", "h", "v")
some_text = st.sampled_from(["a", "b", "c", "d" * 600])
item_attributes = st.fixed_dictionaries(
    {},
    optional={
        "g": some_text.map(string),
        "h": st.integers(-3, 3).map(number),
        "v": st.sampled_from([string("x"), string("long" * 50), {"BOOL": True}, {"L": []}]),
    },
)
item_keys = st.tuples(st.sampled_from(["p", "q"]), st.integers(0, 4)).map(
    lambda pair: {"pk": string(pair[0]), "sk": number(pair[1])}
)
changes = st.one_of(
    st.tuples(st.just("put"), item_keys, item_attributes),
    st.tuples(st.just("delete"), item_keys, st.just({})),
    st.tuples(st.just("update"), item_keys, item_attributes),
    st.tuples(st.just("remove"), item_keys, item_attributes),
    st.tuples(st.just("batch"), item_keys, item_attributes),
    st.tuples(st.just("transact"), item_keys, item_attributes),
    st.tuples(st.just("refused"), item_keys, item_attributes),
)


def apply(client: Any, name: str, kind: str, key: Any, attributes: Any) -> None:
    item = {**key, **attributes}
    if kind == "put":
        client.put_item(TableName=name, Item=item)
    elif kind == "delete":
        client.delete_item(TableName=name, Key=key)
    elif kind == "batch":
        client.batch_write_item(RequestItems={name: [{"PutRequest": {"Item": item}}]})
    elif kind == "transact":
        other = {"pk": string("other"), "sk": number(0)}
        client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": name, "Item": item}},
                {"Put": {"TableName": name, "Item": {**other, **attributes}}},
            ]
        )
    elif kind == "refused":
        with pytest.raises(ClientError, match="conditional request failed"):
            client.put_item(
                TableName=name, Item=item, ConditionExpression="attribute_exists(nothing)"
            )
    elif kind == "update" and attributes:
        client.update_item(
            TableName=name,
            Key=key,
            UpdateExpression="SET " + ", ".join(f"{each} = :{each}" for each in attributes),
            ExpressionAttributeValues={f":{each}": value for each, value in attributes.items()},
        )
    elif kind == "remove" and attributes:
        client.update_item(
            TableName=name, Key=key, UpdateExpression="REMOVE " + ", ".join(attributes)
        )


INDEXES: dict[str, tuple[tuple[str, ...], set[str] | None]] = {
    # name: (its keys, the attributes that it projects besides keys; None for all)
    "local": (("pk", "h"), None),
    "local_keys": (("pk", "h"), set()),
    "by_g": (("g",), None),
    "by_g_h": (("g", "h"), set()),
    "by_h": (("h", "sk"), {"v"}),
}


def of_index(item: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Returns the attributes of an item that an index should have."""
    keys, projected = INDEXES[name]
    if not all(key in item for key in keys):
        return None
    if projected is None:
        return item
    names = {"pk", "sk", *keys, *projected}
    return {each: value for each, value in item.items() if each in names}


def size(item: dict[str, Any]) -> int:
    """The bytes of an item by the guide; the values of these tests are simple."""
    deserialize = TypeDeserializer().deserialize
    total = 0
    for name, value in item.items():
        content = deserialize(value)
        if isinstance(content, str):
            total += len(content)
        elif isinstance(content, bool):
            total += 1
        elif isinstance(content, Decimal):
            total += 1 if content == 0 else 2 if content > 0 else 3
        else:
            assert content == []
            total += 3
        total += len(name)
    return total


def figures(client: Any, name: str) -> dict[str, tuple[int, int]]:
    table = client.describe_table(TableName=name)["Table"]
    indexes = table["LocalSecondaryIndexes"] + table["GlobalSecondaryIndexes"]
    return {
        "table": (table["ItemCount"], table["TableSizeBytes"]),
        **{each["IndexName"]: (each["ItemCount"], each["IndexSizeBytes"]) for each in indexes},
    }


@pytest.fixture(scope="module")
def busy(module_table: Any) -> str:
    """A table with an index of every kind, for sequences of writes."""

    def made(index_name: str) -> dict[str, Any]:
        keys, projected = INDEXES[index_name]
        projection = EVERYTHING
        if projected is not None:
            projection = include(*projected) if projected else KEYS_ONLY
        return index(index_name, *keys, projection=projection)

    name: str = module_table(
        sk="N",
        attributes={"g": "S", "h": "N"},
        LocalSecondaryIndexes=[made("local"), made("local_keys")],
        GlobalSecondaryIndexes=[made("by_g"), made("by_g_h"), made("by_h")],
    )
    return name


@settings(max_examples=30)
@given(sequence=st.lists(changes, min_size=1, max_size=15))
def test_indexes_and_counts_are_true_after_any_writes(
    client: Any, busy: str, sequence: list[Any]
) -> None:
    for change in sequence:
        apply(client, busy, *change)
    items = scanned(client, busy, ConsistentRead=True)
    expected = {"table": (len(items), sum(map(size, items)))}
    for name in INDEXES:
        entries = [entry for item in items if (entry := of_index(item, name)) is not None]
        assert in_any_order(scanned(client, busy, IndexName=name)) == in_any_order(entries)
        expected[name] = (len(entries), sum(map(size, entries)))
    assert figures(client, busy) == expected


# An index that is added while everybody writes.


def test_an_index_added_under_load_is_complete_and_exact(client: Any, table: Any) -> None:
    name = table(sk="N")
    stop = threading.Event()

    def write(worker: int) -> None:
        position = 0
        while not stop.is_set():
            position += 1
            key = {"pk": string(f"w{worker}"), "sk": number(position % 60)}
            if position % 5 == 0:
                client.delete_item(TableName=name, Key=key)
            elif position % 7 == 0:
                client.update_item(TableName=name, Key=key, UpdateExpression="REMOVE g")
            else:
                client.put_item(
                    TableName=name,
                    Item={**key, "g": string(f"g{position % 4}"), "v": number(position)},
                )

    def add_and_compare(index_name: str) -> None:
        client.update_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[{"Create": index(index_name, "g")}],
        )
        wait_until_active(client, name)

    with ThreadPoolExecutor(6) as pool:
        writers = [pool.submit(write, worker) for worker in range(6)]
        try:
            for number_of_index in range(4):
                add_and_compare(f"index{number_of_index}")
        finally:
            stop.set()
        for writer in writers:
            writer.result(timeout=SECONDS_MAX)
    items = scanned(client, name, ConsistentRead=True)
    expected = in_any_order([item for item in items if "g" in item])
    description = client.describe_table(TableName=name)["Table"]
    assert description["ItemCount"] == len(items)
    for found in description["GlobalSecondaryIndexes"]:
        entries = scanned(client, name, IndexName=found["IndexName"])
        assert in_any_order(entries) == expected
        assert found["ItemCount"] == len(expected)


def wait_until_active(client: Any, name: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        indexes = client.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
        if all(each["IndexStatus"] == "ACTIVE" for each in indexes):
            return
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Reading an index.


def test_an_unknown_index_is_refused(client: Any, table: Any) -> None:
    # recorded ("does not have the specified index"); the name: dynalite
    text = "The table does not have the specified index: unknown"
    name = table()
    assert refusal(client.scan, TableName=name, IndexName="unknown") == (
        "ValidationException",
        text,
    )
    assert refusal(
        client.query,
        TableName=name,
        IndexName="unknown",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": string("p")},
    ) == ("ValidationException", text)


def test_a_global_index_is_not_read_consistently_and_a_local_one_is(
    client: Any, projected: str
) -> None:
    # recorded
    put(client, projected, pk=string("p"), sk=string("s"), l=number(1))
    assert refusal(
        client.scan, TableName=projected, IndexName="global_all", ConsistentRead=True
    ) == (
        "ValidationException",
        "Consistent reads are not supported on global secondary indexes",
    )
    assert len(scanned(client, projected, IndexName="local_all", ConsistentRead=True)) == 1


def test_a_table_key_can_be_an_index_key(client: Any, table: Any) -> None:
    name = table(
        sk="S",
        GlobalSecondaryIndexes=[index("turned", "sk", "pk", projection=KEYS_ONLY)],
    )
    for pk, sk in ("ax", "bx", "cy"):
        put(client, name, pk=string(pk), sk=string(sk), v=string("v"))
    found = queried(client, name, "turned", "sk = :s", s=string("x"))
    assert found == [
        {"pk": string("a"), "sk": string("x")},
        {"pk": string("b"), "sk": string("x")},
    ]


def test_index_keys_as_long_as_they_may_be(client: Any, table: Any) -> None:
    name = table(
        sk="S",
        attributes={"g": "S", "h": "S"},
        GlobalSecondaryIndexes=[index("global", "g", "h")],
    )
    long = {"pk": "p" * 2048, "g": "g" * 2048, "h": "h" * 1024}
    endings = ["".join(pair) for pair in (("a", "c"), ("b", "b"), ("c", "a"))]
    for ending in endings:
        item = {key: string(text[:-1] + ending[0]) for key, text in long.items() if key == "h"}
        put(client, name, pk=string(long["pk"]), sk=string("s" * 1023 + ending[1]),
            g=string(long["g"]), **item)  # fmt: skip
    for forward in (True, False):
        found = list(
            pages_of_one(
                client,
                "query",
                TableName=name,
                IndexName="global",
                KeyConditionExpression="g = :g",
                ExpressionAttributeValues={":g": string(long["g"])},
                ScanIndexForward=forward,
            )
        )
        assert [item["h"]["S"][-1] for item in found] == sorted("abc", reverse=not forward)
