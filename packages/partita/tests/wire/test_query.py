"""Query: one partition of a table or an index, in order, page by page."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .indexes import KEYS_ONLY, include, index
from .refusals import ENVELOPE, INVALID, SELECT_CLASHES, VALIDATION, refusal

STRINGS = ("pk", "sk", "lsi1sk", "lsi2sk")


@pytest.fixture(scope="module")
def music(module_table: Any) -> str:
    """pk + sk with two local and three global indexes, all keys strings."""
    name: str = module_table(
        sk="S",
        attributes=dict.fromkeys(STRINGS, "S"),
        LocalSecondaryIndexes=[
            index("lsi1", "pk", "lsi1sk"),
            index("lsi2", "pk", "lsi2sk", projection=include("lsi1sk")),
        ],
        GlobalSecondaryIndexes=[
            index("gsi1", "lsi1sk"),
            index("gsi2", "lsi1sk", "lsi2sk", projection=include("data")),
            index("gsi3", "lsi2sk", projection=KEYS_ONLY),
        ],
    )
    return name


@pytest.fixture(scope="module")
def ordered(module_table: Any) -> dict[str, str]:
    """Tables with each type of sort key."""
    return {kind: module_table(sk=kind) for kind in ("S", "N", "B")}


@pytest.fixture
def pk(request: pytest.FixtureRequest) -> str:
    """A partition that no other test uses."""
    return str(request.node.nodeid)


def put(client: Any, table: str, pk: str, sk: str, **attributes: Any) -> dict[str, Any]:
    item = {"pk": {"S": pk}, "sk": {"S": sk}, **attributes}
    client.put_item(TableName=table, Item=item)
    return item


def query(client: Any, table: str, pk: str, more_condition: str = "", **more: Any) -> Any:
    """The partition `pk`; further values are `:a`, `:b`, ... of `values`."""
    values = {":pk": {"S": pk}, **more.pop("values", {})}
    return client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk" + more_condition,
        ExpressionAttributeValues=values,
        **more,
    )


def sort_keys(answer: Any) -> list[str]:
    return [next(iter(item["sk"].values())) for item in answer["Items"]]


def pages(client: Any, **request: Any) -> Iterator[Any]:
    while True:
        page = client.query(**request)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


# --- what is found, and in which order ---


def test_a_partition_comes_in_the_order_of_its_sort_keys(client: Any, music: str, pk: str) -> None:
    for sk in ("b", "a", "ab", "B", "10", "1", "2", "A", "aa", "é", "z"):
        put(client, music, pk, sk)
    expected = ["1", "10", "2", "A", "B", "a", "aa", "ab", "b", "z", "é"]
    assert sort_keys(query(client, music, pk)) == expected
    assert sort_keys(query(client, music, pk, ScanIndexForward=False)) == expected[::-1]


def test_numbers_come_in_the_order_of_their_values(
    client: Any, ordered: dict[str, str], pk: str
) -> None:
    numbers = ["-100", "-5", "-1", "-0.5", "0", "0.001", "1", "5", "10", "100", "1000000"]
    for number in reversed(numbers):
        client.put_item(TableName=ordered["N"], Item={"pk": {"S": pk}, "sk": {"N": number}})
    assert sort_keys(query(client, ordered["N"], pk)) == numbers


def test_binaries_come_in_the_order_of_their_unsigned_bytes(
    client: Any, ordered: dict[str, str], pk: str
) -> None:
    binaries = [b"\x00", b"\x01", b"\x01\x02", b"\x02", b"\x7f", b"\x80", b"\xff"]
    for binary in reversed(binaries):
        client.put_item(TableName=ordered["B"], Item={"pk": {"S": pk}, "sk": {"B": binary}})
    answer = query(client, ordered["B"], pk)
    assert [item["sk"]["B"] for item in answer["Items"]] == binaries
    answer = query(
        client, ordered["B"], pk, " AND begins_with(sk, :a)", values={":a": {"B": b"\x01"}}
    )
    assert [item["sk"]["B"] for item in answer["Items"]] == [b"\x01", b"\x01\x02"]
    answer = query(client, ordered["B"], pk, " AND sk > :a", values={":a": {"B": b"\x7f"}})
    assert [item["sk"]["B"] for item in answer["Items"]] == [b"\x80", b"\xff"]


NUMBERS = st.builds(
    lambda digits, exponent: Decimal(f"{digits}E{exponent}"),
    st.integers(min_value=1 - 10**38, max_value=10**38 - 1),
    st.integers(min_value=-130, max_value=125 - 37),
)


@settings(max_examples=20, deadline=None)
@given(numbers=st.lists(NUMBERS, min_size=2, max_size=6, unique=True))
def test_any_numbers_come_in_decimal_order(
    client: Any, ordered: dict[str, str], numbers: list[Decimal]
) -> None:
    pk = repr(numbers)[:1000]
    table = ordered["N"]
    for number in numbers:
        client.put_item(TableName=table, Item={"pk": {"S": pk}, "sk": {"N": str(number)}})
    found = [Decimal(sk) for sk in sort_keys(query(client, table, pk))]
    assert found == sorted(numbers)


@settings(max_examples=20, deadline=None)
@given(texts=st.lists(st.text(min_size=1, max_size=20), min_size=2, max_size=6, unique=True))
def test_any_strings_come_in_the_order_of_their_utf_8_bytes(
    client: Any, ordered: dict[str, str], texts: list[str]
) -> None:
    pk = base64.b64encode("".join(texts).encode()).decode()[:1000] + str(len(texts))
    table = ordered["S"]
    for text in texts:
        put(client, table, pk, text)
    found = sort_keys(query(client, table, pk))
    assert set(texts) <= set(found)
    assert found == sorted(found, key=str.encode)


CONDITIONS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "=": (" AND sk = :a", {":a": {"S": "b"}}, ["b"]),
    "<": (" AND sk < :a", {":a": {"S": "b"}}, ["a", "ab"]),
    "<=": (" AND sk <= :a", {":a": {"S": "b"}}, ["a", "ab", "b"]),
    ">": (" AND sk > :a", {":a": {"S": "b"}}, ["bc", "c"]),
    ">=": (" AND sk >= :a", {":a": {"S": "b"}}, ["b", "bc", "c"]),
    "between": (
        " AND sk BETWEEN :a AND :b",
        {":a": {"S": "ab"}, ":b": {"S": "b"}},
        ["ab", "b"],
    ),
    "begins_with": (" AND begins_with(sk, :a)", {":a": {"S": "b"}}, ["b", "bc"]),
    "nothing": (" AND sk = :a", {":a": {"S": "zzz"}}, []),
    # recorded: the value may come first, single parentheses are allowed
    "value first": (" AND :a <= sk", {":a": {"S": "b"}}, ["b", "bc", "c"]),
    "value first, other way": (" AND :a > sk", {":a": {"S": "b"}}, ["a", "ab"]),
    "parentheses": (" AND (sk = :a)", {":a": {"S": "b"}}, ["b"]),
    "lower case": (" and sk between :a and :b", {":a": {"S": "b"}, ":b": {"S": "b"}}, ["b"]),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_a_condition_chooses_sort_keys(client: Any, music: str, case: str) -> None:
    condition, values, expected = CONDITIONS[case]
    pk = "test_a_condition_chooses_sort_keys"
    for sk in ("a", "ab", "b", "bc", "c"):
        put(client, music, pk, sk)
    answer = query(client, music, pk, condition, values=values)
    assert sort_keys(answer) == expected
    assert answer["Count"] == answer["ScannedCount"] == len(expected)


@pytest.mark.parametrize(
    "condition",
    [
        "(pk = :p) AND (sk = :s)",
        "(pk = :p AND sk = :s)",
        "((pk = :p) AND (sk = :s))",
        ":p = pk AND :s = sk",
        "sk = :s AND pk = :p",
        "#p = :p AND #s = :s",
    ],
)
def test_a_key_condition_may_be_written_in_many_ways(
    client: Any, music: str, condition: str
) -> None:
    item = put(client, music, "written", "1")
    names = {"ExpressionAttributeNames": {"#p": "pk", "#s": "sk"}} if "#" in condition else {}
    answer = client.query(
        TableName=music,
        KeyConditionExpression=condition,
        ExpressionAttributeValues={":p": {"S": "written"}, ":s": {"S": "1"}},
        **names,
    )
    assert answer["Items"] == [item]


def test_key_conditions_may_be_joined_by_a_filter_expression(client: Any, music: str) -> None:
    # dynalite
    put(client, music, "both", "1", n={"N": "1"})
    put(client, music, "both", "2")
    answer = client.query(
        TableName=music,
        KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "both"}]}},
        FilterExpression="attribute_exists(n)",
    )
    assert sort_keys(answer) == ["1"]


def test_a_partition_without_items_is_an_empty_list(raw: Any, music: str) -> None:
    request = {
        "TableName": music,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "nobody"}},
    }
    answer = raw("Query", request)
    assert (answer.status, answer.body) == (200, {"Items": [], "Count": 0, "ScannedCount": 0})


LEGACY: dict[str, tuple[dict[str, Any], list[str]]] = {
    "EQ": ({"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "b"}]}, ["b"]),
    "LT": ({"ComparisonOperator": "LT", "AttributeValueList": [{"S": "b"}]}, ["a", "ab"]),
    "LE": ({"ComparisonOperator": "LE", "AttributeValueList": [{"S": "b"}]}, ["a", "ab", "b"]),
    "GT": ({"ComparisonOperator": "GT", "AttributeValueList": [{"S": "b"}]}, ["c"]),
    "GE": ({"ComparisonOperator": "GE", "AttributeValueList": [{"S": "b"}]}, ["b", "c"]),
    "BEGINS_WITH": (
        {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "a"}]},
        ["a", "ab"],
    ),
    "BETWEEN": (
        {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"S": "ab"}, {"S": "b"}]},
        ["ab", "b"],
    ),
}


@pytest.mark.parametrize("case", LEGACY)
def test_key_conditions_choose_sort_keys(client: Any, music: str, case: str) -> None:
    condition, expected = LEGACY[case]
    for sk in ("a", "ab", "b", "c"):
        put(client, music, "legacy", sk)
    answer = client.query(
        TableName=music,
        KeyConditions={
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "legacy"}]},
            "sk": condition,
        },
    )
    assert sort_keys(answer) == expected


# --- filters ---


def test_a_filter_drops_items_that_were_read(client: Any, music: str, pk: str) -> None:
    for number in range(4):
        put(client, music, pk, str(number), n={"N": str(number)})
    answer = query(client, music, pk, FilterExpression="n > :a", values={":a": {"N": "1"}})
    assert sort_keys(answer) == ["2", "3"]
    assert (answer["Count"], answer["ScannedCount"]) == (2, 4)


def test_limit_counts_items_before_the_filter(client: Any, music: str, pk: str) -> None:
    for number in range(5):
        put(client, music, pk, str(number), n={"N": str(number)})
    answer = query(client, music, pk, FilterExpression="n > :a", values={":a": {"N": "1"}}, Limit=3)
    assert (answer["Count"], answer["ScannedCount"]) == (1, 3)
    assert answer["LastEvaluatedKey"] == {"pk": {"S": pk}, "sk": {"S": "2"}}


QUERY_FILTERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "EQ": ({"b": {"ComparisonOperator": "EQ", "AttributeValueList": [{"BOOL": True}]}}, ["1"]),
    "CONTAINS": (
        {"s": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [{"S": "ell"}]}},
        ["1", "2"],
    ),
    "NOT_NULL": ({"b": {"ComparisonOperator": "NOT_NULL"}}, ["1", "2"]),
    "IN": (
        {"n": {"ComparisonOperator": "IN", "AttributeValueList": [{"N": "1"}, {"N": "3"}]}},
        ["1", "3"],
    ),
}


@pytest.mark.parametrize("case", QUERY_FILTERS)
def test_a_query_filter_drops_items(client: Any, music: str, case: str) -> None:
    condition, expected = QUERY_FILTERS[case]
    put(client, music, "qf", "1", b={"BOOL": True}, s={"S": "hello"}, n={"N": "1"})
    put(client, music, "qf", "2", b={"BOOL": False}, s={"S": "bell"}, n={"N": "2"})
    put(client, music, "qf", "3", s={"S": "x"}, n={"N": "3"})
    answer = client.query(
        TableName=music,
        KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "qf"}]}},
        QueryFilter=condition,
    )
    assert sort_keys(answer) == expected
    assert answer["ScannedCount"] == 3


@pytest.mark.parametrize(("operator", "expected"), [("AND", []), ("OR", ["1", "2"])])
def test_the_conditional_operator_joins_query_filters(
    client: Any, music: str, operator: str, expected: list[str]
) -> None:
    put(client, music, "joined", "1", n={"N": "1"})
    put(client, music, "joined", "2", n={"N": "2"}, m={"N": "2"})
    answer = client.query(
        TableName=music,
        KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "joined"}]}},
        QueryFilter={
            "n": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "1"}]},
            "m": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "2"}]},
        },
        ConditionalOperator=operator,
    )
    assert sort_keys(answer) == expected


# --- paging ---


def test_a_query_that_reads_everything_has_no_last_key(client: Any, music: str, pk: str) -> None:
    for number in range(3):
        put(client, music, pk, str(number))
    assert "LastEvaluatedKey" not in query(client, music, pk)
    assert "LastEvaluatedKey" not in query(client, music, pk, Limit=4)


def test_a_limit_that_is_reached_has_a_last_key(client: Any, music: str, pk: str) -> None:
    # dynalite: even if nothing follows
    for number in range(3):
        put(client, music, pk, str(number))
    answer = query(client, music, pk, Limit=3)
    assert answer["LastEvaluatedKey"] == {"pk": {"S": pk}, "sk": {"S": "2"}}
    rest = query(client, music, pk, Limit=3, ExclusiveStartKey=answer["LastEvaluatedKey"])
    assert rest["Items"] == []
    assert "LastEvaluatedKey" not in rest


def test_a_start_key_is_not_repeated_and_need_not_exist(client: Any, music: str, pk: str) -> None:
    for sk in ("a", "c", "e"):
        put(client, music, pk, sk)
    for start, forward, backward in (("c", ["e"], ["a"]), ("d", ["e"], ["c", "a"])):
        key = {"pk": {"S": pk}, "sk": {"S": start}}
        assert sort_keys(query(client, music, pk, ExclusiveStartKey=key)) == forward
        answer = query(client, music, pk, ExclusiveStartKey=key, ScanIndexForward=False)
        assert sort_keys(answer) == backward


# recorded
START_OF_ONE_ITEM = "The provided exclusive start key is invalid"


@pytest.fixture(scope="module")
def single(module_table: Any, client: Any) -> str:
    """A table without a sort key, with two items that are in a global index without a sort key."""
    name: str = module_table(
        attributes={"color": "S"}, GlobalSecondaryIndexes=[index("byColor", "color")]
    )
    for pk in ("a", "b"):
        client.put_item(TableName=name, Item={"pk": {"S": pk}, "color": {"S": "red"}})
    return name


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"Limit": 1},
        {"Limit": 1, "ScanIndexForward": False},
        {"Limit": 1, "Select": "COUNT"},
        {"Limit": 1, "FilterExpression": "attribute_exists(nothing)"},
    ],
)
def test_one_item_without_a_sort_key_is_all_there_is(
    client: Any, single: str, more: dict[str, Any]
) -> None:
    answer = query(client, single, "a", **more)
    assert answer["ScannedCount"] == 1
    assert "LastEvaluatedKey" not in answer


def test_legacy_key_conditions_have_no_last_key_without_a_sort_key(
    client: Any, single: str
) -> None:
    condition = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}
    answer = client.query(TableName=single, KeyConditions={"pk": condition}, Limit=1)
    assert (answer["Count"], "LastEvaluatedKey" in answer) == (1, False)


@pytest.mark.parametrize("asked", ["a", "absent"])
@pytest.mark.parametrize("start", ["a", "b", "absent"])
@pytest.mark.parametrize("forward", [True, False])
def test_a_query_without_a_sort_key_cannot_be_continued(
    client: Any, single: str, asked: str, start: str, forward: bool
) -> None:
    request = {
        "TableName": single,
        **conditions("pk = :p", p={"S": asked}),
        "ExclusiveStartKey": {"pk": {"S": start}},
        "ScanIndexForward": forward,
    }
    assert refusal(client.query, **request) == (VALIDATION, START_OF_ONE_ITEM)


def test_a_start_key_of_another_form_is_refused_first_without_a_sort_key(
    client: Any, single: str
) -> None:
    asked = {"TableName": single, **conditions("pk = :p", p=S)}
    for start, text in (
        ({"bad": S}, INVALID_START),
        ({"pk": S, "color": S}, INVALID_START),
        ({"pk": N}, MISMATCH),
    ):
        refused = refusal(client.query, **asked, ExclusiveStartKey=start)
        assert refused == (VALIDATION, text)


def test_an_index_without_a_sort_key_is_read_in_pages(client: Any, single: str) -> None:
    request = {"TableName": single, **conditions("color = :c", c={"S": "red"})}
    walked = list(pages(client, **request, IndexName="byColor", Limit=1))
    assert [page["Count"] for page in walked] == [1, 1, 0]
    assert all(page["LastEvaluatedKey"].keys() == {"pk", "color"} for page in walked[:-1])


def test_a_scan_without_a_sort_key_is_read_in_pages(client: Any, single: str) -> None:
    page = client.scan(TableName=single, Limit=1)
    rest = client.scan(TableName=single, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert (page["Count"], rest["Count"]) == (1, 1)


INDEX_KEYS: dict[str | None, tuple[str, set[str]]] = {
    None: ("pk = :v", {"pk", "sk"}),
    "lsi1": ("pk = :v", {"pk", "sk", "lsi1sk"}),
    "gsi1": ("lsi1sk = :v", {"pk", "sk", "lsi1sk"}),
    "gsi2": ("lsi1sk = :v", {"pk", "sk", "lsi1sk", "lsi2sk"}),
}


@pytest.mark.parametrize("name", INDEX_KEYS)
@pytest.mark.parametrize("forward", [True, False])
def test_items_that_share_an_index_key_are_each_seen_once(
    client: Any, music: str, name: str | None, forward: bool
) -> None:
    # recorded
    condition, members = INDEX_KEYS[name]
    pk = f"ties {name} {forward}"
    for number in range(7):
        put(client, music, pk, str(number), lsi1sk={"S": pk}, lsi2sk={"S": str(number // 3)})
    request = {
        "TableName": music,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {":v": {"S": pk}},
        "ScanIndexForward": forward,
        **({"IndexName": name} if name else {}),
    }
    whole = sort_keys(client.query(**request))
    assert sorted(whole) == [str(number) for number in range(7)]
    for limit in (1, 2, 3):
        walked = list(pages(client, **request, Limit=limit))
        assert [sk for page in walked for sk in sort_keys(page)] == whole
        assert all(set(page["LastEvaluatedKey"]) == members for page in walked[:-1])


@settings(max_examples=20, deadline=None)
@given(
    sks=st.sets(st.text("ab\x00é\uffff𝄞", min_size=1, max_size=4), min_size=1, max_size=8),
    limit=st.integers(min_value=1, max_value=9),
    forward=st.booleans(),
)
def test_paging_with_any_limit_reads_what_one_page_reads(
    client: Any, music: str, sks: set[str], limit: int, forward: bool
) -> None:
    pk = "paging " + base64.b64encode(repr(sorted(sks)).encode()).decode()
    for sk in sks:
        put(client, music, pk, sk)
    request = {
        "TableName": music,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": pk}},
        "ScanIndexForward": forward,
    }
    whole = client.query(**request)["Items"]
    walked = [item for page in pages(client, **request, Limit=limit) for item in page["Items"]]
    assert walked == whole
    assert {item["sk"]["S"] for item in whole} == sks


def test_a_page_ends_at_1_mb(client: Any, music: str, pk: str) -> None:
    # recorded: 20 items of 60 KB
    for number in range(20):
        put(client, music, pk, f"{number:02}", f={"S": "x" * 60_000})
    page = query(client, music, pk)
    assert 0 < page["Count"] < 20
    assert page["LastEvaluatedKey"] == {"pk": {"S": pk}, "sk": page["Items"][-1]["sk"]}
    # The item that crosses the line is the last of the page.
    assert page["Count"] == 18
    rest = query(client, music, pk, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert sort_keys(page) + sort_keys(rest) == [f"{number:02}" for number in range(20)]
    counted = query(client, music, pk, Select="COUNT")
    assert (counted["Count"], "LastEvaluatedKey" in counted) == (18, True)
    filtered = query(client, music, pk, FilterExpression="attribute_exists(zz)")
    assert (filtered["Count"], filtered["ScannedCount"]) == (0, 18)
    assert "LastEvaluatedKey" in filtered


@pytest.mark.parametrize(("surplus", "ends"), [(0, False), (1, True)])
def test_a_page_counts_what_is_stored_to_the_byte(
    client: Any, music: str, surplus: int, ends: bool
) -> None:
    # dynalite, recorded: 25 items of 41,943 stored bytes are one byte less than 1 MB. A stored
    # value has a length before it and is cut into pieces of 3 KB; its name is not stored with it.
    pk = f"page 1MB {surplus}"
    assert len(pk) == 10
    for number in range(25):
        filler = "x" * (41_645 + (surplus if number == 24 else 0))
        put(client, music, pk, f"{number:02}", e={"S": filler})
    assert ("LastEvaluatedKey" in query(client, music, pk)) is ends


# --- indexes ---


def test_an_index_returns_what_it_projects(client: Any, music: str, pk: str) -> None:
    keys = {"pk": {"S": pk}, "sk": {"S": "1"}, "lsi1sk": {"S": pk}, "lsi2sk": {"S": pk}}
    whole = {**keys, "data": {"S": "d"}, "rest": {"S": "o"}}
    client.put_item(TableName=music, Item=whole)
    expected = {
        "lsi1": ("pk", whole),
        "lsi2": ("pk", keys),
        "gsi1": ("lsi1sk", whole),
        "gsi2": ("lsi1sk", {**keys, "data": {"S": "d"}}),
        "gsi3": ("lsi2sk", {name: keys[name] for name in ("pk", "sk", "lsi2sk")}),
    }
    for name, (key, item) in expected.items():
        answer = client.query(
            TableName=music,
            IndexName=name,
            KeyConditionExpression=f"{key} = :v",
            ExpressionAttributeValues={":v": {"S": pk}},
        )
        assert answer["Items"] == [item], name


def test_an_index_holds_only_items_with_all_its_keys(client: Any, music: str, pk: str) -> None:
    # recorded
    put(client, music, pk, "no index key")
    put(client, music, pk, "only hash", lsi1sk={"S": pk})
    put(client, music, pk, "both", lsi1sk={"S": pk}, lsi2sk={"S": "x"})
    found = {}
    for name, key in (("gsi1", "lsi1sk"), ("gsi2", "lsi1sk"), ("lsi1", "pk"), ("lsi2", "pk")):
        answer = client.query(
            TableName=music,
            IndexName=name,
            KeyConditionExpression=f"{key} = :v",
            ExpressionAttributeValues={":v": {"S": pk}},
        )
        found[name] = set(sort_keys(answer))
    assert found == {
        "gsi1": {"only hash", "both"},
        "gsi2": {"both"},
        "lsi1": {"only hash", "both"},
        "lsi2": {"both"},
    }


def test_a_local_index_comes_in_the_order_of_its_sort_key(client: Any, music: str, pk: str) -> None:
    for number in range(4):
        put(client, music, pk, str(number), lsi1sk={"S": str(9 - number)})
    answer = query(client, music, pk, IndexName="lsi1", ConsistentRead=True)
    assert sort_keys(answer) == ["3", "2", "1", "0"]
    answer = query(
        client, music, pk, " AND lsi1sk > :a", values={":a": {"S": "7"}}, IndexName="lsi1"
    )
    assert sort_keys(answer) == ["1", "0"]


TIES = [
    ("aa", "da", "ba", "ca", "db", "cb"),
    ("bb", "aa", "ce", "ea", "da", "cd"),
]


@pytest.mark.parametrize("keys", TIES)
def test_items_that_share_an_index_key_come_in_the_order_of_the_service(
    client: Any, table: Any, keys: tuple[str, ...]
) -> None:
    # dynalite, recorded orders: by a hash of the table's key
    name = table(
        sk="S",
        attributes={"g": "S"},
        GlobalSecondaryIndexes=[index("by_g", "g")],
    )
    for key in sorted(keys):
        put(client, name, key[0], key[1], g={"S": "same"})
    for forward, expected in ((True, list(keys)), (False, list(keys)[::-1])):
        answer = client.query(
            TableName=name,
            IndexName="by_g",
            KeyConditionExpression="g = :g",
            ExpressionAttributeValues={":g": {"S": "same"}},
            ScanIndexForward=forward,
        )
        assert [item["pk"]["S"] + item["sk"]["S"] for item in answer["Items"]] == expected


def test_a_changed_index_key_moves_the_entry(client: Any, music: str, pk: str) -> None:
    put(client, music, pk, "1", lsi1sk={"S": pk + "old"})
    put(client, music, pk, "1", lsi1sk={"S": pk + "new"})
    for value, count in ((pk + "old", 0), (pk + "new", 1)):
        answer = client.query(
            TableName=music,
            IndexName="gsi1",
            KeyConditionExpression="lsi1sk = :v",
            ExpressionAttributeValues={":v": {"S": value}},
        )
        assert answer["Count"] == count


# --- Select and projections ---


@pytest.fixture(scope="module")
def selected(client: Any, music: str) -> dict[str, Any]:
    item = {"pk": {"S": "select"}, "sk": {"S": "1"}, "lsi1sk": {"S": "x"}, "lsi2sk": {"S": "y"}}
    item |= {"data": {"S": "d"}, "rest": {"S": "o"}}
    client.put_item(TableName=music, Item=item)
    return item


def test_select_count_returns_no_items(client: Any, music: str, selected: dict[str, Any]) -> None:
    answer = query(client, music, "select", Select="COUNT")
    assert "Items" not in answer
    assert (answer["Count"], answer["ScannedCount"]) == (1, 1)


SELECTED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "specific attributes": (
        {"Select": "SPECIFIC_ATTRIBUTES", "ProjectionExpression": "rest"},
        {"rest"},
    ),
    "attributes to get": (
        {"Select": "SPECIFIC_ATTRIBUTES", "ProjectionExpression": "rest, sk"},
        {"rest", "sk"},
    ),
    "all attributes": (
        {"Select": "ALL_ATTRIBUTES"},
        {"pk", "sk", "lsi1sk", "lsi2sk", "data", "rest"},
    ),
    # A local index fetches from the table what it does not project.
    "all attributes of a local index": (
        {"Select": "ALL_ATTRIBUTES", "IndexName": "lsi2"},
        {"pk", "sk", "lsi1sk", "lsi2sk", "data", "rest"},
    ),
    "what a local index projects": (
        {"Select": "ALL_PROJECTED_ATTRIBUTES", "IndexName": "lsi2"},
        {"pk", "sk", "lsi1sk", "lsi2sk"},
    ),
    "an attribute that a local index does not project": (
        {"ProjectionExpression": "rest", "IndexName": "lsi2"},
        {"rest"},
    ),
}


@pytest.mark.parametrize("case", SELECTED)
def test_select_chooses_attributes(
    client: Any, music: str, selected: dict[str, Any], case: str
) -> None:
    more, names = SELECTED[case]
    (item,) = query(client, music, "select", **more)["Items"]
    assert item == {name: selected[name] for name in names}


def test_a_global_index_returns_what_it_projects_when_asked(
    client: Any, music: str, selected: dict[str, Any]
) -> None:
    answer = client.query(
        TableName=music,
        IndexName="gsi2",
        Select="ALL_PROJECTED_ATTRIBUTES",
        KeyConditionExpression="lsi1sk = :v",
        ExpressionAttributeValues={":v": {"S": "x"}},
    )
    expected = {"pk", "sk", "lsi1sk", "lsi2sk", "data"}
    assert answer["Items"] == [{name: selected[name] for name in expected}]


def test_a_projection_does_not_add_the_keys(
    client: Any, music: str, selected: dict[str, Any]
) -> None:
    (item,) = query(client, music, "select", ProjectionExpression="rest, nothing")["Items"]
    assert item == {"rest": {"S": "o"}}


def test_attributes_to_get_does_not_add_the_keys(
    client: Any, music: str, selected: dict[str, Any]
) -> None:
    answer = client.query(
        TableName=music,
        KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "select"}]}},
        AttributesToGet=["rest"],
    )
    assert answer["Items"] == [{"rest": {"S": "o"}}]


# --- refusals found before the table is looked up ---

P = {":p": {"S": "a"}}
KEYED = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": P}
EQ = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}
LEGACY_KEYED = {"KeyConditions": {"pk": EQ}}
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)


def conditions(expression: str, **values: Any) -> dict[str, Any]:
    return {
        "KeyConditionExpression": expression,
        "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
    }


def operand(operator: str, type_: str) -> str:
    return (
        "Invalid KeyConditionExpression: Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {type_}"
    )


S, N, BOOL = {"S": "a"}, {"N": "1"}, {"BOOL": True}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "limit 0": (
        {**KEYED, "Limit": 0},
        ENVELOPE + "Value at 'Limit' failed to satisfy constraint: "
        "Member must have value greater than or equal to 1",
    ),
    "an unknown Select": (
        {**KEYED, "Select": "INVALID_VALUE"},
        ENVELOPE + "Value 'INVALID_VALUE' at 'select' failed to satisfy constraint: Member must "
        "satisfy enum value set: "
        "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]",
    ),
    "an unused name": (
        {**KEYED, "ExpressionAttributeNames": {"#unused": "a"}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}",
    ),
    "an unused value": (
        conditions("pk = :p", p=S, unused=S),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}",
    ),
    "an empty key condition": (
        {"KeyConditionExpression": ""},
        "Invalid KeyConditionExpression: The expression can not be empty;",
    ),
    "redundant parentheses": (
        conditions("((pk = :p))", p=S),
        "Invalid KeyConditionExpression: The expression has redundant parentheses;",
    ),
    "redundant parentheses in a part": (
        conditions("((pk = :p)) AND (sk = :s)", p=S, s=S),
        "Invalid KeyConditionExpression: The expression has redundant parentheses;",
    ),
    "redundant parentheses inside": (
        conditions("((sk = :p) AND ((pk = :p)))", p=S),
        "Invalid KeyConditionExpression: The expression has redundant parentheses;",
    ),
    "an unknown function": (
        {"KeyConditionExpression": "dog(pk)"},
        "Invalid KeyConditionExpression: Invalid function name; function: dog",
    ),
    "paths that overlap": (
        {**KEYED, "ProjectionExpression": "a, a.b"},
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or "
        "rewrite one of these paths; path one: [a], path two: [a, b]",
    ),
    "an undefined name in the filter": (
        {**KEYED, "FilterExpression": "#missing = :p"},
        "Invalid FilterExpression: An expression attribute name used in the document path is not "
        "defined; attribute name: #missing",
    ),
    "begins_with a number": (
        conditions("pk = :p AND begins_with(sk, :n)", p=S, n=N),
        operand("begins_with", "N"),
    ),
    "begins_with a boolean": (
        conditions("pk = :p AND begins_with(sk, :b)", p=S, b=BOOL),
        operand("begins_with", "BOOL"),
    ),
    "less than a boolean": (conditions("pk = :p AND sk < :b", p=S, b=BOOL), operand("<", "BOOL")),
    "a boolean first": (conditions("pk = :p AND :b >= sk", p=S, b=BOOL), operand(">=", "BOOL")),
    "between booleans": (
        conditions("pk = :p AND sk BETWEEN :b AND :b", p=S, b=BOOL),
        operand("BETWEEN", "BOOL"),
    ),
    "two conditions on one key": (
        conditions("pk = :p AND sk > :a AND sk < :b", p=S, a=S, b=S),
        "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition "
        "per key",
    ),
    "the first wrong clause, a value": (
        conditions("pk = :missing AND sk < :b", b=BOOL),
        "Invalid KeyConditionExpression: An expression attribute value used in expression is not "
        "defined; attribute value: :missing",
    ),
    "the first wrong clause, an operand": (
        conditions("pk < :b AND sk = :missing", b=BOOL),
        operand("<", "BOOL"),
    ),
    "no attributes to select": (
        {**KEYED, "Select": "SPECIFIC_ATTRIBUTES"},
        ENVELOPE + "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
        "SPECIFIC_ATTRIBUTES",
    ),
    # dynalite
    "no key condition": (
        {},
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the "
        "request.",
    ),
    "both kinds of key condition": (
        {**KEYED, "KeyConditions": {"pk": EQ}},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {KeyConditions} "
        "Expression parameters: {KeyConditionExpression}",
    ),
    "both kinds of everything": (
        {
            "AttributesToGet": ["a"],
            "QueryFilter": {},
            "ConditionalOperator": "AND",
            "KeyConditions": {},
            "ProjectionExpression": "",
            "FilterExpression": "",
            "KeyConditionExpression": "",
        },
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet, QueryFilter, ConditionalOperator, "
        "KeyConditions} Expression parameters: {ProjectionExpression, FilterExpression, "
        "KeyConditionExpression}",
    ),
    "a query filter with an expression": (
        {**KEYED, "QueryFilter": {"a": EQ}},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {QueryFilter} Expression parameters: {KeyConditionExpression}",
    ),
    "attributes to get with an expression, before Select": (
        {**KEYED, "AttributesToGet": ["a"], "Select": "COUNT"},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet} "
        "Expression parameters: {KeyConditionExpression}",
    ),
    "a reversed between": (
        conditions("pk = :p AND sk BETWEEN :b AND :p", p=S, b={"S": "b"}),
        "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater "
        "than or equal to lower bound; lower bound operand: AttributeValue: {S:b}, "
        "upper bound operand: AttributeValue: {S:a}",
    ),
    "names without an expression": (
        {"KeyConditions": {"pk": EQ}, "ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "an attribute to get twice": (
        {"KeyConditions": {"pk": EQ}, "AttributesToGet": ["a", "a"]},
        INVALID + "Duplicate value in attribute name: a",
    ),
    "three key conditions": (
        {"KeyConditions": dict.fromkeys("abc", EQ)},
        "Conditions can be of length 1 or 2 only",
    ),
    "no key conditions": ({"KeyConditions": {}}, "Conditions can be of length 1 or 2 only"),
    "too few arguments": (
        {"KeyConditions": {"pk": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [S]}}},
        INVALID + "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
    ),
    "an operator for another type": (
        {
            "KeyConditions": {"pk": EQ},
            "QueryFilter": {
                "a": {"ComparisonOperator": "LT", "AttributeValueList": [{"SS": ["a"]}]}
            },
        },
        INVALID + "ComparisonOperator LT is not valid for SS AttributeValue type",
    ),
    "the filter before attributes to get": (
        {
            "KeyConditions": {"pk": EQ},
            "QueryFilter": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": []}},
            "AttributesToGet": ["a", "a"],
        },
        INVALID + "Invalid number of argument(s) for the EQ ComparisonOperator",
    ),
    "an empty filter before a key condition that cannot be used": (
        {**conditions("pk = :p OR pk = :p", p=S), "FilterExpression": ""},
        "Invalid FilterExpression: The expression can not be empty;",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_parameters_are_refused_before_the_table_is_looked_up(client: Any, case: str) -> None:
    more, text = REFUSED[case]
    assert refusal(client.query, TableName="no_such_table", **more) == (VALIDATION, text)


KEY_CONDITIONS: dict[str, tuple[str, str]] = {
    # dynalite
    **{
        condition: (condition, f"Invalid operator used in KeyConditionExpression: {operator}")
        for condition, operator in (
            ("pk = :p OR pk = :p", "OR"),
            ("pk IN (:p)", "IN"),
            ("NOT pk = :p", "NOT"),
            ("pk <> :p", "<>"),
            ("attribute_exists(pk)", "attribute_exists"),
            ("attribute_not_exists(pk)", "attribute_not_exists"),
            ("attribute_type(pk, :p)", "attribute_type"),
            ("contains(pk, :p)", "contains"),
        )
    },
    "size": ("size(pk) = :p", "KeyConditionExpressions cannot contain nested operations"),
    "between, value first": (
        ":p BETWEEN pk AND sk",
        "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute "
        "as its first operand",
    ),
    "begins_with, value first": (
        "begins_with(:p, pk)",
        "Invalid condition in KeyConditionExpression: begins_with operator must have the key "
        "attribute as its first operand",
    ),
    "two attributes": (
        "pk = sk",
        "Invalid condition in KeyConditionExpression: Multiple attribute names used in one "
        "condition",
    ),
    "no attribute": (
        ":p = :p",
        "Invalid condition in KeyConditionExpression: No key attribute specified",
    ),
    # recorded
    "a path": (
        "pk = :p AND sk.foo = :p",
        "KeyConditionExpressions cannot have conditions on nested attributes",
    ),
}


@pytest.mark.parametrize("case", KEY_CONDITIONS)
def test_a_key_condition_compares_keys_with_values(client: Any, music: str, case: str) -> None:
    # Only some of these texts have been seen behind "Invalid KeyConditionExpression: ".
    condition, text = KEY_CONDITIONS[case]
    more = (
        conditions(condition, p={"S": "S"})
        if ":p" in condition
        else {"KeyConditionExpression": condition}
    )
    code, message = refusal(client.query, TableName=music, **more)
    assert code == VALIDATION
    assert message.removeprefix("Invalid KeyConditionExpression: ") == text


def test_attribute_type_needs_the_name_of_a_type(client: Any, music: str) -> None:
    # dynalite: reported by the parser, before the operator is refused
    code, text = refusal(client.query, TableName=music, **conditions("attribute_type(pk, :p)", p=N))
    assert code == VALIDATION
    assert text == operand("attribute_type", "N")


def test_an_unknown_conditional_operator_hides_an_unknown_select(client: Any) -> None:
    # recorded; bare
    request = {
        "KeyConditions": {"pk": EQ},
        "QueryFilter": {"a": EQ, "b": EQ},
        "ConditionalOperator": "XOR",
        "Select": "BOGUS",
    }
    assert refusal(client.query, TableName="no_such_table", **request) == (
        VALIDATION,
        "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]",
    )


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        ({"TableName": "abc!", "Select": "INVALID"}, "validation error"),
        (
            {
                "TableName": "no_such_table",
                "Select": "INVALID",
                "ReturnConsumedCapacity": "INVALID",
            },
            "returnConsumedCapacity",
        ),
    ],
)
def test_constraints_come_before_everything(
    client: Any, request_: dict[str, Any], part: str
) -> None:
    # recorded
    code, text = refusal(client.query, **request_, **KEYED)
    assert code == VALIDATION
    assert part in text


def test_an_operand_type_is_checked_before_the_number_of_conditions(client: Any) -> None:
    # recorded
    request = conditions("pk = :p AND sk < :b AND lsi1sk = :p", p=S, b=BOOL)
    assert refusal(client.query, TableName="no_such_table", **request) == (
        VALIDATION,
        operand("<", "BOOL"),
    )


def test_a_query_of_a_missing_table_finds_no_resource(client: Any) -> None:
    assert refusal(client.query, TableName="no_such_table", **KEYED) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


@pytest.mark.parametrize("case", SELECT_CLASHES)
def test_select_must_fit_the_other_parameters(client: Any, music: str, case: str) -> None:
    more, text = SELECT_CLASHES[case]
    keyed = LEGACY_KEYED if "AttributesToGet" in more else KEYED
    refused = refusal(client.query, TableName=music, **keyed, **more)
    assert refused == (VALIDATION, ENVELOPE + text)


def test_select_is_checked_before_the_table_is_looked_up(client: Any) -> None:
    more, text = SELECT_CLASHES["count"]
    refused = refusal(client.query, TableName="no_such_table", **KEYED, **more)
    assert refused == (VALIDATION, ENVELOPE + text)


@pytest.mark.parametrize("name", ["gsi2", "gsi3"])
def test_what_is_found_out_with_the_index_has_no_envelope(
    client: Any, music: str, name: str
) -> None:
    # recorded
    condition = conditions("lsi1sk = :v" if name == "gsi2" else "lsi2sk = :v", v=S)
    assert refusal(
        client.query, TableName=music, IndexName=name, Select="ALL_ATTRIBUTES", **condition
    ) == (
        VALIDATION,
        f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index {name} "
        "because its projection type is not ALL",
    )


# --- refusals found with the table ---

EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
    "contain an empty string value. Key: "
)
ON_TABLE: dict[str, tuple[dict[str, Any], str]] = {
    # DynamoDB Local
    "an empty partition key": (conditions("pk = :v", v={"S": ""}), EMPTY_KEY + "pk"),
    "an empty sort key": (
        conditions("pk = :p AND sk > :v", p=S, v={"S": ""}),
        EMPTY_KEY + "sk",
    ),
    "an empty start of the sort key": (
        conditions("pk = :p AND begins_with(sk, :v)", p=S, v={"S": ""}),
        EMPTY_KEY + "sk",
    ),
    "a long sort key": (
        conditions("pk = :p AND sk > :v", p=S, v={"S": "x" * 1025}),
        INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    ),
    # recorded
    "no partition key": (
        conditions("sk = :v", v=S),
        "Query condition missed key schema element: pk",
    ),
    "another attribute": (
        conditions("attr1 = :v", v=S),
        "Query condition missed key schema element: pk",
    ),
    "an unknown index": (
        {**KEYED, "IndexName": "nope"},
        "The table does not have the specified index: nope",
    ),
    "a consistent read of a global index": (
        {**conditions("lsi1sk = :v", v=S), "IndexName": "gsi1", "ConsistentRead": True},
        "Consistent reads are not supported on global secondary indexes",
    ),
    "a number for a string": (
        conditions("pk = :v", v=N),
        INVALID + "Condition parameter type does not match schema type",
    ),
    "a boolean for a string": (
        conditions("pk = :v", v=BOOL),
        INVALID + "Condition parameter type does not match schema type",
    ),
    "a number for the sort key": (
        conditions("pk = :p AND sk > :v", p=S, v=N),
        INVALID + "Condition parameter type does not match schema type",
    ),
    "three conditions": (
        conditions("pk = :p AND sk = :p AND lsi1sk = :p", p=S),
        "The number of query conditions (3) exceeds the number of key attributes defined in the "
        "schema (2)",
    ),
    "an attribute that the index does not project": (
        {**conditions("lsi2sk = :v", v=S), "IndexName": "gsi3", "ProjectionExpression": "a"},
        INVALID + "Global secondary index gsi3 does not project [a]",
    ),
    # dynalite
    "not the sort key": (
        conditions("pk = :p AND z = :p", p=S),
        "Query condition missed key schema element: sk",
    ),
    "not the sort key of the index": (
        {**conditions("pk = :p AND sk = :p", p=S), "IndexName": "lsi1"},
        "Query condition missed key schema element: lsi1sk",
    ),
    "a range of partition keys": (
        conditions("pk > :p", p=S),
        "Query key condition not supported",
    ),
    "an operator that is no range": (
        {"KeyConditions": {"pk": EQ, "sk": {**EQ, "ComparisonOperator": "CONTAINS"}}},
        "Attempted conditional constraint is not an indexable operation",
    ),
    "a filter on the partition key": (
        {**KEYED, "FilterExpression": "pk = :p"},
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: pk",
    ),
    "a filter on the sort key": (
        {**KEYED, "FilterExpression": "sk = :p"},
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk",
    ),
    "a filter on a key of the index": (
        {**KEYED, "FilterExpression": "lsi1sk = :p", "IndexName": "lsi1"},
        "Filter Expression can only contain non-primary key attributes: "
        "Primary key attribute: lsi1sk",
    ),
    "a query filter on the key": (
        {"KeyConditions": {"pk": EQ}, "QueryFilter": {"pk": EQ}},
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: pk",
    ),
    "all attributes of an index that does not have them": (
        {**conditions("lsi1sk = :v", v=S), "IndexName": "gsi2", "Select": "ALL_ATTRIBUTES"},
        INVALID + "Select type ALL_ATTRIBUTES is not supported for global secondary index gsi2 "
        "because its projection type is not ALL",
    ),
    "a path into a key": (
        {**KEYED, "ProjectionExpression": "pk.a"},
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
        "allowed: Key: pk",
    ),
    "a path into another index's key": (
        {**KEYED, "FilterExpression": "lsi1sk.a = :p"},
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
        "allowed: IndexKey: lsi1sk",
    ),
}


@pytest.mark.parametrize("case", ON_TABLE)
def test_a_query_must_fit_its_table(client: Any, music: str, case: str) -> None:
    more, text = ON_TABLE[case]
    assert refusal(client.query, TableName=music, **more) == (VALIDATION, text)


def test_an_index_of_one_key_takes_one_condition(client: Any, music: str) -> None:
    # dynalite, and the text recorded for three conditions on two keys
    request = conditions("lsi1sk = :p AND lsi2sk = :p", p=S)
    code, text = refusal(client.query, TableName=music, IndexName="gsi1", **request)
    assert code == VALIDATION
    assert text in {
        "Query key condition not supported",
        "The number of query conditions (2) exceeds the number of key attributes defined in the "
        "schema (1)",
    }


def test_a_filter_may_use_the_tables_keys_when_an_index_is_queried(
    client: Any, music: str, pk: str
) -> None:
    # dynalite
    put(client, music, pk, "1", lsi1sk={"S": pk})
    put(client, music, pk, "2", lsi1sk={"S": pk})
    answer = client.query(
        TableName=music,
        IndexName="gsi1",
        KeyConditionExpression="lsi1sk = :v",
        FilterExpression="sk = :s",
        ExpressionAttributeValues={":v": {"S": pk}, ":s": {"S": "2"}},
    )
    assert sort_keys(answer) == ["2"]


# --- start keys ---

INVALID_START = "The provided starting key is invalid"
MISMATCH = "The provided key element does not match the schema"
OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
WHOLE = {"pk": S, "sk": S}
START_KEYS: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "other attributes": ({**KEYED, "ExclusiveStartKey": {"bad": S}}, INVALID_START),
    "no index key": (
        {**conditions("lsi1sk = :v", v=S), "IndexName": "gsi1", "ExclusiveStartKey": {"pk": S}},
        INVALID_START,
    ),
    # dynalite
    "an attribute too many": ({**KEYED, "ExclusiveStartKey": {**WHOLE, "a": S}}, INVALID_START),
    "no sort key": ({**KEYED, "ExclusiveStartKey": {"pk": S, "a": S}}, INVALID_START),
    "a partition key of another type": (
        {**KEYED, "ExclusiveStartKey": {"pk": N, "sk": S}},
        MISMATCH,
    ),
    "a sort key of another type": ({**KEYED, "ExclusiveStartKey": {"pk": S, "sk": N}}, MISMATCH),
    "an index key of another type": (
        {
            **conditions("lsi1sk = :v", v=S),
            "IndexName": "gsi1",
            "ExclusiveStartKey": {**WHOLE, "lsi1sk": N},
        },
        MISMATCH,
    ),
    "a table key of another type": (
        {
            **conditions("lsi1sk = :v", v=S),
            "IndexName": "gsi1",
            "ExclusiveStartKey": {"pk": S, "sk": N, "lsi1sk": S},
        },
        f"{INVALID_START}: {MISMATCH}",
    ),
    "another partition": (
        {**KEYED, "ExclusiveStartKey": {"pk": {"S": "other"}, "sk": S}},
        OUTSIDE,
    ),
    "outside the range": (
        {
            **conditions("pk = :p AND sk < :p", p=S),
            "ExclusiveStartKey": {"pk": S, "sk": {"S": "b"}},
        },
        "The provided starting key does not match the range key predicate",
    ),
    "outside the range and in another partition": (
        {
            **conditions("pk = :p AND sk < :p", p=S),
            "ExclusiveStartKey": {"pk": {"S": "other"}, "sk": {"S": "b"}},
        },
        "The provided starting key does not match the range key predicate",
    ),
    "in the range and in another partition": (
        {
            **conditions("pk = :p AND sk <= :p", p=S),
            "ExclusiveStartKey": {"pk": {"S": "other"}, "sk": S},
        },
        "The query can return at most one row and cannot be restarted",
    ),
    # DynamoDB Local
    "an empty sort key": (
        {**KEYED, "ExclusiveStartKey": {"pk": S, "sk": {"S": ""}}},
        f"{INVALID_START}: {EMPTY_KEY}sk",
    ),
    # dynalite
    "an empty value": (
        {**KEYED, "ExclusiveStartKey": {"pk": {}}},
        f"{INVALID_START}: Supplied AttributeValue is empty, must contain exactly one of the "
        "supported datatypes",
    ),
    "a number that is none": (
        {**KEYED, "ExclusiveStartKey": {"pk": {"N": "x"}}},
        "The parameter cannot be converted to a numeric value: x",
    ),
}


@pytest.mark.parametrize("case", START_KEYS)
def test_a_start_key_must_fit_the_query(client: Any, music: str, case: str) -> None:
    more, text = START_KEYS[case]
    assert refusal(client.query, TableName=music, **more) == (VALIDATION, text)


# The plain form of a Query has a path of its own, which must refuse the same placeholders.
@pytest.mark.parametrize(
    ("parameter", "placeholder", "size"),
    [
        ("ExpressionAttributeNames", "#" + "n" * 255, " size of key: 256"),
        ("ExpressionAttributeValues", ":" + "v" * 255, ""),
    ],
)
def test_a_placeholder_of_more_than_255_bytes_is_refused(
    client: Any, music: str, parameter: str, placeholder: str, size: str
) -> None:
    parts = {"ExpressionAttributeNames": "#p", "ExpressionAttributeValues": ":p"}
    used = {**parts, parameter: placeholder}
    assert refusal(
        client.query,
        TableName=music,
        KeyConditionExpression=" = ".join(used.values()),
        ExpressionAttributeNames={used["ExpressionAttributeNames"]: "pk"},
        ExpressionAttributeValues={used["ExpressionAttributeValues"]: {"S": "a"}},
    ) == (
        VALIDATION,
        f"{parameter} contains invalid key: "
        f"The expression attribute map contains a key that is too long;{size}",
    )
