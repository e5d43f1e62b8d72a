"""Global indexes whose keys are made of several attributes: up to four HASH and four RANGE.

Texts marked "recorded" are answers of the real service; the rules without a text come from
Alternator's tests, which pass on AWS.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .refusals import VALIDATION, refusal

ATTRIBUTES = ("h", "a", "b", "c", "d")


def schema(hashes: str, ranges: str) -> list[dict[str, str]]:
    return [
        *({"AttributeName": name, "KeyType": "HASH"} for name in hashes),
        *({"AttributeName": name, "KeyType": "RANGE"} for name in ranges),
    ]


def index(name: str, hashes: str, ranges: str, projection: str = "ALL") -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": schema(hashes, ranges),
        "Projection": {"ProjectionType": projection},
    }


@pytest.fixture(scope="module")
def places(module_table: Any) -> str:
    """`ranges`: h HASH, a b c d RANGE; `hashes`: h a HASH, b RANGE; `all`: h a b d HASH.

    c is a number, all others are strings.
    """
    name: str = module_table(
        attributes={**dict.fromkeys(ATTRIBUTES, "S"), "c": "N"},
        GlobalSecondaryIndexes=[
            index("ranges", "h", "abcd"),
            index("hashes", "ha", "b", "KEYS_ONLY"),
            index("all", "habd", ""),
        ],
    )
    return name


def put(client: Any, table: str, pk: str, **keys: str) -> dict[str, Any]:
    item: dict[str, Any] = {"pk": {"S": pk}}
    item |= {name: {"N" if name == "c" else "S": value} for name, value in keys.items()}
    client.put_item(TableName=table, Item=item)
    return item


def query(client: Any, table: str, condition: str, index: str = "ranges", **more: Any) -> Any:
    """Values are named by their letters: `h="x"` is `:h`; `c...` are numbers."""
    values = {
        f":{name}": {"N" if name.startswith("c") else "S": more.pop(name)}
        for name in list(more)
        if name.islower()
    }
    return client.query(
        TableName=table,
        IndexName=index,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values,
        **more,
    )


def found(answer: Any) -> list[str]:
    return [item["pk"]["S"] for item in answer["Items"]]


@pytest.fixture(scope="module")
def grid(client: Any, places: str) -> str:
    """Sixteen items of the partition "grid", one for each pair of a, b, c, d out of two values."""
    for a, b, c, d in itertools.product("xy", "xy", ("2", "10"), "xy"):
        put(client, places, f"{a}{b}{c}{d}", h="grid", a=a, b=b, c=c, d=d)
    return "grid"


# --- order and conditions ---


def test_items_come_in_the_order_of_one_attribute_after_another(
    client: Any, places: str, grid: str
) -> None:
    # c is a number: 2 comes before 10
    expected = [f"{a}{b}{c}{d}" for a, b, c, d in itertools.product("xy", "xy", ("2", "10"), "xy")]
    assert found(query(client, places, "h = :h", h=grid)) == expected
    answer = query(client, places, "h = :h", h=grid, ScanIndexForward=False)
    assert found(answer) == expected[::-1]


CONDITIONS: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "one equal": (
        "h = :h AND a = :a",
        {"a": "y"},
        ["yx2x", "yx2y", "yx10x", "yx10y", "yy2x", "yy2y", "yy10x", "yy10y"],
    ),
    "two equal": (
        "h = :h AND a = :a AND b = :b",
        {"a": "y", "b": "x"},
        ["yx2x", "yx2y", "yx10x", "yx10y"],
    ),
    "all equal": (
        "h = :h AND a = :a AND b = :b AND c = :c AND d = :d",
        {"a": "y", "b": "x", "c": "10", "d": "x"},
        ["yx10x"],
    ),
    "the last greater": (
        "h = :h AND a = :a AND b > :b",
        {"a": "y", "b": "x"},
        ["yy2x", "yy2y", "yy10x", "yy10y"],
    ),
    "a number greater": (
        "h = :h AND a = :a AND b = :b AND c > :c",
        {"a": "y", "b": "x", "c": "3"},
        ["yx10x", "yx10y"],
    ),
    "the first less": (
        "h = :h AND a < :a",
        {"a": "y"},
        ["xx2x", "xx2y", "xx10x", "xx10y", "xy2x", "xy2y", "xy10x", "xy10y"],
    ),
    "at most": ("h = :h AND a = :a AND b <= :b", {"a": "y", "b": "w"}, []),
    "begins_with": (
        "h = :h AND a = :a AND begins_with(b, :b)",
        {"a": "x", "b": "y"},
        ["xy2x", "xy2y", "xy10x", "xy10y"],
    ),
    "between": (
        "h = :h AND a = :a AND b = :b AND c BETWEEN :c1 AND :c2",
        {"a": "x", "b": "y", "c1": "1", "c2": "2"},
        ["xy2x", "xy2y"],
    ),
    # recorded: the order of the clauses is free
    "in another order": (
        "b > :b AND h = :h AND a = :a",
        {"a": "y", "b": "x"},
        ["yy2x", "yy2y", "yy10x", "yy10y"],
    ),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_conditions_name_the_first_attributes(
    client: Any, places: str, grid: str, case: str
) -> None:
    condition, values, expected = CONDITIONS[case]
    assert found(query(client, places, condition, h=grid, **values)) == expected


def test_all_hash_attributes_together_are_the_partition(client: Any, places: str) -> None:
    for a, b in (("1", "1"), ("1", "2"), ("2", "1")):
        put(client, places, f"parts {a}{b}", h="parts", a=a, b=b)
    answer = query(client, places, "h = :h AND a = :a", "hashes", h="parts", a="1")
    assert found(answer) == ["parts 11", "parts 12"]
    answer = query(
        client, places, "a = :a AND h = :h AND b > :b", "hashes", h="parts", a="1", b="1"
    )
    assert found(answer) == ["parts 12"]


def test_neighbouring_parts_are_not_run_together(client: Any, places: str) -> None:
    put(client, places, "run 1", h="ab", a="c", b="x")
    put(client, places, "run 2", h="a", a="bc", b="x")
    assert found(query(client, places, "h = :h AND a = :a", "hashes", h="a", a="bc")) == ["run 2"]
    put(client, places, "run 3", h="run", a="p\x00", b="q", c="1", d="1")
    put(client, places, "run 4", h="run", a="p", b="\x00q", c="1", d="1")
    answer = query(client, places, "h = :h AND a = :a", h="run", a="p")
    assert found(answer) == ["run 4"]


def test_an_index_may_have_four_hash_attributes(client: Any, places: str) -> None:
    item = put(client, places, "four", h="1", a="2", b="3", d="4")
    condition = "h = :h AND a = :a AND b = :b AND d = :d"
    answer = query(client, places, condition, "all", h="1", a="2", b="3", d="4")
    assert answer["Items"] == [item]


# --- what is in the index ---


@pytest.mark.parametrize("without", ATTRIBUTES)
def test_an_item_that_lacks_a_key_attribute_is_not_in_the_index(
    client: Any, places: str, without: str
) -> None:
    pk = f"without {without}"
    put(client, places, pk, h=pk, a="1", b="1", c="1", d="1")
    assert found(query(client, places, "h = :h", h=pk)) == [pk]
    client.update_item(
        TableName=places, Key={"pk": {"S": pk}}, UpdateExpression=f"REMOVE {without}"
    )
    assert found(query(client, places, "h = :h", h=pk)) == []
    assert pk not in found(client.scan(TableName=places, IndexName="ranges"))


def test_an_update_of_one_attribute_moves_the_entry(client: Any, places: str) -> None:
    put(client, places, "moved", h="moved", a="1", b="1", c="1", d="1")
    client.update_item(
        TableName=places,
        Key={"pk": {"S": "moved"}},
        UpdateExpression="SET b = :b",
        ExpressionAttributeValues={":b": {"S": "2"}},
    )
    condition = "h = :h AND a = :a AND b = :b"
    assert found(query(client, places, condition, h="moved", a="1", b="1")) == []
    assert found(query(client, places, condition, h="moved", a="1", b="2")) == ["moved"]


def test_an_index_of_keys_projects_all_its_attributes(client: Any, places: str) -> None:
    item = put(client, places, "keys", h="keys", a="1", b="2", c="3", d="4")
    answer = query(client, places, "h = :h AND a = :a", "hashes", h="keys", a="1")
    assert answer["Items"] == [{name: item[name] for name in ("pk", "h", "a", "b")}]


def test_an_index_added_later_finds_what_is_there(client: Any, table: Any) -> None:
    name = table()
    client.put_item(
        TableName=name, Item={"pk": {"S": "1"}, "h": {"S": "h"}, "a": {"S": "a"}, "b": {"S": "b"}}
    )
    client.put_item(TableName=name, Item={"pk": {"S": "2"}, "h": {"S": "h"}, "a": {"S": "a"}})
    client.update_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in "hab"],
        GlobalSecondaryIndexUpdates=[{"Create": index("late", "h", "ab")}],
    )
    for _ in range(5_000):
        (described,) = client.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
        if described["IndexStatus"] == "ACTIVE":
            break
    assert described["IndexStatus"] == "ACTIVE"
    assert described["KeySchema"] == schema("h", "ab")
    assert found(query(client, name, "h = :h AND a = :a", "late", h="h", a="a")) == ["1"]


# --- paging ---


@settings(max_examples=8, deadline=None)
@given(limit=st.integers(min_value=1, max_value=17), forward=st.booleans())
def test_paging_with_any_limit_reads_what_one_page_reads(
    client: Any, places: str, grid: str, limit: int, forward: bool
) -> None:
    whole = found(query(client, places, "h = :h", h=grid, ScanIndexForward=forward))
    walked: list[str] = []
    start: dict[str, Any] = {}
    while True:
        page = query(
            client, places, "h = :h", h=grid, ScanIndexForward=forward, Limit=limit, **start
        )
        walked += found(page)
        if "LastEvaluatedKey" not in page:
            break
        # recorded: the keys of the table and all attributes of the index key
        assert set(page["LastEvaluatedKey"]) == {"pk", *ATTRIBUTES}
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert walked == whole


def test_items_with_the_same_index_key_are_each_seen_once(client: Any, places: str) -> None:
    for number in range(5):
        put(client, places, f"tie {number}", h="tie", a="1", b="1", c="1", d="1")
    seen: list[str] = []
    start: dict[str, Any] = {}
    for _ in range(6):
        page = query(client, places, "h = :h", h="tie", Limit=1, **start)
        seen += found(page)
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert sorted(seen) == [f"tie {number}" for number in range(5)]


def test_a_start_key_needs_every_attribute(client: Any, places: str, grid: str) -> None:
    page = query(client, places, "h = :h", h=grid, Limit=1)
    short = {name: value for name, value in page["LastEvaluatedKey"].items() if name != "c"}
    values = {":h": {"S": grid}}
    assert refusal(
        client.query,
        TableName=places,
        IndexName="ranges",
        KeyConditionExpression="h = :h",
        ExpressionAttributeValues=values,
        ExclusiveStartKey=short,
    ) == (VALIDATION, "The provided starting key is invalid")


# --- refusals ---


def refused(client: Any, table: str, condition: str, index: str = "ranges", **more: Any) -> Any:
    return refusal(lambda **request: query(client, table, condition, index, **request), **more)


GAPS: dict[str, tuple[str, dict[str, str], str]] = {
    # recorded
    "a gap": ("h = :h AND a = :a AND c = :c", {"a": "x", "c": "1"}, "b c"),
    "a range before the last": (
        "h = :h AND a = :a AND b > :b AND c = :c",
        {"a": "x", "b": "x", "c": "1"},
        "b c",
    ),
    "not the first": ("h = :h AND b = :b", {"b": "x"}, "a b"),
}


@pytest.mark.parametrize("case", GAPS)
def test_range_attributes_are_named_without_gaps(client: Any, places: str, case: str) -> None:
    condition, values, names = GAPS[case]
    missing, present = names.split()
    code, text = refused(client, places, condition, h="grid", **values)
    assert code == VALIDATION
    assert (
        f"RANGE key attributes {missing} must have equality conditions specified in the query "
        f"because a condition is present on key attribute {present}"
    ) in text


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("h = :h", {"h": "x"}),
        ("h = :h AND a > :a", {"h": "x", "a": "x"}),
        ("h = :h AND b = :b", {"h": "x", "b": "x"}),
    ],
)
def test_every_hash_attribute_needs_an_equality(
    client: Any, places: str, condition: str, values: dict[str, str]
) -> None:
    code, _ = refused(client, places, condition, "hashes", **values)
    assert code == VALIDATION


@pytest.mark.parametrize("name", ["h", "a", "d"])
def test_a_filter_cannot_use_an_attribute_of_the_index_key(
    client: Any, places: str, name: str
) -> None:
    code, text = refused(
        client,
        places,
        "h = :h",
        h="grid",
        FilterExpression=f"{name} = :h",
    )
    assert (code, text) == (
        VALIDATION,
        "Filter Expression can only contain non-primary key attributes: "
        f"Primary key attribute: {name}",
    )


def test_a_filter_may_use_the_key_of_the_table(client: Any, places: str, grid: str) -> None:
    answer = query(client, places, "h = :h", h=grid, p="xx2x", FilterExpression="pk = :p")
    assert found(answer) == ["xx2x"]


def test_begins_with_needs_a_string(client: Any, places: str) -> None:
    code, text = refused(
        client,
        places,
        "h = :h AND a = :a AND b = :b AND begins_with(c, :c)",
        h="grid",
        a="x",
        b="x",
        c="1",
    )
    assert (code, text) == (
        VALIDATION,
        "Invalid KeyConditionExpression: Incorrect operand type for operator or function; "
        "operator or function: begins_with, operand type: N",
    )


def test_a_value_of_another_type_is_refused(client: Any, places: str) -> None:
    item = {"pk": {"S": "typed"}, "h": {"S": "x"}, "b": {"N": "1"}}
    assert refusal(client.put_item, TableName=places, Item=item) == (
        VALIDATION,
        "One or more parameter values were invalid: Type mismatch for Index Key b Expected: S "
        "Actual: N IndexName: all",
    )


def test_an_empty_value_is_refused(client: Any, places: str) -> None:
    item = {"pk": {"S": "empty"}, "h": {"S": "x"}, "d": {"S": ""}}
    assert refusal(client.put_item, TableName=places, Item=item) == (
        VALIDATION,
        "One or more parameter values are not valid. A value specified for a secondary index key "
        "is not supported. The AttributeValue for a key attribute cannot contain an empty string "
        "value. IndexName: all, IndexKey: d",
    )


BAD_SCHEMAS: dict[str, tuple[list[dict[str, str]], str]] = {
    "five HASH": (schema("habcd", ""), "HASH"),
    "five RANGE": (schema("h", "abcde"), "RANGE"),
    "RANGE before HASH": (
        [*schema("h", "a"), {"AttributeName": "b", "KeyType": "HASH"}],
        "HASH",
    ),
    "no HASH": (schema("", "ab"), "HASH"),
    "one attribute twice": (schema("ha", "a"), "same name"),
}


@pytest.mark.parametrize("case", BAD_SCHEMAS)
def test_a_key_schema_has_its_limits(client: Any, table_names: Iterator[str], case: str) -> None:
    key_schema, part = BAD_SCHEMAS[case]
    used = {"pk", *(element["AttributeName"] for element in key_schema)}
    code, text = refusal(
        client.create_table,
        TableName=next(table_names),
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in sorted(used)
        ],
        GlobalSecondaryIndexes=[
            {"IndexName": "bad", "KeySchema": key_schema, "Projection": {"ProjectionType": "ALL"}}
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    assert code == VALIDATION
    assert part in text
