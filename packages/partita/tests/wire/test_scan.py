"""Scan: a whole table or index, page by page or in segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .indexes import include, index
from .refusals import ENVELOPE, INVALID, SELECT_CLASHES, VALIDATION, refusal

MISMATCH = "The provided key element does not match the schema"
PARTITIONS = 12


def song(number: int) -> dict[str, Any]:
    """Three of four songs are in the index on g; all of them share few index keys."""
    item: dict[str, Any] = {
        "pk": {"S": f"pk {number % PARTITIONS}"},
        "sk": {"S": f"{number:02}"},
        "n": {"N": str(number)},
        "ss": {"SS": ["a", "b"]},
        "b": {"B": bytes([number, 255])},
        "l": {"S": str(number % 2)},
        "data": {"S": "d"},
    }
    if number % 4:
        item |= {"g": {"S": str(number % 2)}, "r": {"S": str(number % 3)}}
    return item


SONGS = [song(number) for number in range(48)]


@pytest.fixture(scope="module")
def music(client: Any, module_table: Any) -> str:
    """48 songs in 12 partitions, with one local and two global indexes."""
    name: str = module_table(
        sk="S",
        attributes=dict.fromkeys("lgr", "S"),
        LocalSecondaryIndexes=[index("by_l", "pk", "l")],
        GlobalSecondaryIndexes=[
            index("by_g", "g"),
            index("by_g_r", "g", "r", projection=include("data")),
        ],
    )
    for item in SONGS:
        client.put_item(TableName=name, Item=item)
    return name


def pages(client: Any, **request: Any) -> Iterator[Any]:
    while True:
        page = client.scan(**request)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def all_items(client: Any, **request: Any) -> list[dict[str, Any]]:
    return [item for page in pages(client, **request) for item in page["Items"]]


def numbers(items: list[dict[str, Any]]) -> list[int]:
    return [int(item["sk"]["S"]) for item in items]


# --- what is found, and in which order ---


def test_a_scan_finds_every_item_once(client: Any, music: str) -> None:
    answer = client.scan(TableName=music)
    assert sorted(answer["Items"], key=lambda item: str(item["sk"]["S"])) == SONGS
    assert answer["Count"] == answer["ScannedCount"] == 48
    assert "LastEvaluatedKey" not in answer


def test_a_partition_stays_together_and_in_order(client: Any, music: str) -> None:
    found = client.scan(TableName=music)["Items"]
    partitions = [item["pk"]["S"] for item in found]
    starts = [
        pk for before, pk in zip([None, *partitions], partitions, strict=False) if before != pk
    ]
    assert len(starts) == len(set(starts)) == PARTITIONS
    for start in starts:
        sort_keys = [item["sk"]["S"] for item in found if item["pk"]["S"] == start]
        assert sort_keys == sorted(sort_keys)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("S", "2 8 9 1 6 hello 0 5 4 äáöü aardman 7 3 zapf"),
        ("N", "7 999.9 8 3 2 -999.9 9 4 -0.09 6 1 0 0.012345 5"),
    ],
)
def test_partitions_come_in_the_order_of_the_service(
    client: Any, table: Any, kind: str, values: str
) -> None:
    # dynalite, recorded orders: by a hash of the partition key
    order = values.split()
    name = table(pk=kind)
    for value in sorted(order):
        client.put_item(TableName=name, Item={"pk": {kind: value}})
    assert [item["pk"][kind] for item in client.scan(TableName=name)["Items"]] == order


def test_an_empty_table_is_an_empty_list(raw: Any, table: Any) -> None:
    answer = raw("Scan", {"TableName": table()})
    assert (answer.status, answer.body) == (200, {"Items": [], "Count": 0, "ScannedCount": 0})


# --- filters ---

FILTERS: dict[str, tuple[str, dict[str, Any], Callable[[int], bool]]] = {
    "a number": ("n < :v", {":v": {"N": "5"}}, lambda n: n < 5),
    "numbers": ("n BETWEEN :v AND :w", {":v": {"N": "5"}, ":w": {"N": "7"}}, lambda n: 5 <= n <= 7),
    "a binary": ("b > :v", {":v": {"B": b"\x20"}}, lambda n: n >= 32),
    "the start of a binary": ("begins_with(b, :v)", {":v": {"B": b"\x07"}}, lambda n: n == 7),
    "binaries": (
        "b BETWEEN :v AND :w",
        {":v": {"B": b"\x05"}, ":w": {"B": b"\x07"}},
        lambda n: 5 <= n <= 6,
    ),
    "a key": ("pk = :v", {":v": {"S": "pk 3"}}, lambda n: n % PARTITIONS == 3),
    "a set in another order": ("ss = :v", {":v": {"SS": ["b", "a"]}}, lambda n: True),
    "another set": ("ss <> :v", {":v": {"SS": ["b", "a"]}}, lambda n: False),
    "something missing": ("attribute_not_exists(g)", {}, lambda n: n % 4 == 0),
    "one of some": ("n IN (:v, :w)", {":v": {"N": "1"}, ":w": {"N": "2.0"}}, lambda n: n in (1, 2)),
}


@pytest.mark.parametrize("case", FILTERS)
def test_a_filter_drops_items_that_were_read(client: Any, music: str, case: str) -> None:
    expression, values, passes = FILTERS[case]
    more = {"ExpressionAttributeValues": values} if values else {}
    answer = client.scan(TableName=music, FilterExpression=expression, **more)
    assert sorted(numbers(answer["Items"])) == [n for n in range(48) if passes(n)]
    assert (answer["Count"], answer["ScannedCount"]) == (len(answer["Items"]), 48)


def test_limit_counts_items_before_the_filter(client: Any, music: str) -> None:
    # recorded
    answer = client.scan(TableName=music, FilterExpression="attribute_exists(zz)", Limit=1)
    assert (answer["Items"], answer["Count"], answer["ScannedCount"]) == ([], 0, 1)
    assert set(answer["LastEvaluatedKey"]) == {"pk", "sk"}


def compare(operator: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


SCAN_FILTERS: dict[str, tuple[dict[str, Any], Callable[[int], bool]]] = {
    "EQ": ({"n": compare("EQ", {"N": "7"})}, lambda n: n == 7),
    "GT": ({"n": compare("GT", {"N": "40"})}, lambda n: n > 40),
    "BEGINS_WITH": ({"sk": compare("BEGINS_WITH", {"S": "4"})}, lambda n: n >= 40),
    "CONTAINS": ({"ss": compare("CONTAINS", {"S": "a"})}, lambda n: True),
    "NULL": ({"g": compare("NULL")}, lambda n: n % 4 == 0),
    "two": (
        {"n": compare("GT", {"N": "40"}), "g": compare("NULL")},
        lambda n: n > 40 and n % 4 == 0,
    ),
}


@pytest.mark.parametrize("case", SCAN_FILTERS)
def test_a_scan_filter_drops_items(client: Any, music: str, case: str) -> None:
    condition, passes = SCAN_FILTERS[case]
    answer = client.scan(TableName=music, ScanFilter=condition)
    assert sorted(numbers(answer["Items"])) == [n for n in range(48) if passes(n)]
    assert answer["ScannedCount"] == 48


def test_the_conditional_operator_joins_scan_filters(client: Any, music: str) -> None:
    answer = client.scan(
        TableName=music,
        ScanFilter={"n": compare("EQ", {"N": "7"}), "sk": compare("EQ", {"S": "08"})},
        ConditionalOperator="OR",
    )
    assert sorted(numbers(answer["Items"])) == [7, 8]


def test_a_filter_counts_the_characters_of_a_string(client: Any, table: Any) -> None:
    # recorded: UTF-16 code units, not bytes
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "1"}, "s": {"S": "é𝄞"}})
    for length, found in (("3", 1), ("6", 0), ("2", 0)):
        answer = client.scan(
            TableName=name,
            FilterExpression="size(s) = :n",
            ExpressionAttributeValues={":n": {"N": length}},
        )
        assert answer["Count"] == found


# --- paging ---


@settings(max_examples=10, deadline=None)
@given(
    limit=st.integers(min_value=1, max_value=50),
    name=st.sampled_from([None, "by_l", "by_g", "by_g_r"]),
)
def test_paging_with_any_limit_reads_what_one_page_reads(
    client: Any, music: str, limit: int, name: str | None
) -> None:
    request = {"TableName": music, **({"IndexName": name} if name else {})}
    whole = client.scan(**request)["Items"]
    assert all_items(client, **request, Limit=limit) == whole
    assert len(whole) == (48 if name in (None, "by_l") else 36)


LAST_KEYS: dict[str | None, set[str]] = {
    None: {"pk", "sk"},
    "by_l": {"pk", "sk", "l"},
    "by_g": {"pk", "sk", "g"},
    "by_g_r": {"pk", "sk", "g", "r"},
}


@pytest.mark.parametrize("name", LAST_KEYS)
def test_a_last_key_holds_the_keys_of_the_table_and_the_index(
    client: Any, music: str, name: str | None
) -> None:
    more = {"IndexName": name} if name else {}
    page = client.scan(TableName=music, Limit=5, **more)
    last = page["LastEvaluatedKey"]
    assert set(last) == LAST_KEYS[name]
    assert last == {key: page["Items"][-1][key] for key in last}


def test_a_limit_that_is_reached_has_a_last_key(client: Any, music: str) -> None:
    # dynalite: even if nothing follows
    assert "LastEvaluatedKey" in client.scan(TableName=music, Limit=48)
    assert "LastEvaluatedKey" not in client.scan(TableName=music, Limit=49)


def test_a_start_key_need_not_exist(client: Any, music: str) -> None:
    first = client.scan(TableName=music, Limit=1)["Items"][0]
    start = {"pk": first["pk"], "sk": {"S": first["sk"]["S"] + " and a bit"}}
    rest = client.scan(TableName=music, ExclusiveStartKey=start)
    assert rest["Count"] == 47


def test_a_page_ends_at_1_mb(client: Any, table: Any) -> None:
    name = table()
    for number in range(20):
        client.put_item(
            TableName=name, Item={"pk": {"S": f"{number:02}"}, "f": {"S": "x" * 60_000}}
        )
    page = client.scan(TableName=name)
    assert page["Count"] == 18
    assert page["LastEvaluatedKey"] == {"pk": page["Items"][-1]["pk"]}
    walked = all_items(client, TableName=name)
    assert sorted(item["pk"]["S"] for item in walked) == [f"{number:02}" for number in range(20)]


# --- segments ---


@settings(max_examples=10, deadline=None)
@given(total=st.integers(min_value=1, max_value=20), limit=st.integers(min_value=1, max_value=20))
def test_segments_share_the_table_out(client: Any, music: str, total: int, limit: int) -> None:
    found = [
        item
        for segment in range(total)
        for item in all_items(
            client, TableName=music, Segment=segment, TotalSegments=total, Limit=limit
        )
    ]
    # One after another they are the whole scan: each is a range of hashes.
    assert found == client.scan(TableName=music)["Items"]


@pytest.mark.parametrize("name", ["by_g", "by_l"])
def test_segments_share_an_index_out(client: Any, music: str, name: str) -> None:
    request = {"TableName": music, "IndexName": name}
    found = [
        number
        for segment in range(4)
        for number in numbers(
            all_items(client, **request, Segment=segment, TotalSegments=4, Limit=5)
        )
    ]
    assert sorted(found) == sorted(numbers(client.scan(**request)["Items"]))


@pytest.mark.parametrize(
    ("kind", "value", "segment"),
    [
        ("S", "3635", 0),
        ("S", "228", 0),
        ("S", "1668", 1),
        ("S", "3435", 4),
        ("N", "251", 1),
        ("N", "2388", 4095),
    ],
)
def test_an_item_lies_in_the_segment_of_the_service(
    client: Any, table: Any, kind: str, value: str, segment: int
) -> None:
    # dynalite, recorded with 4096 segments
    name = table(pk=kind)
    item = {"pk": {kind: value}}
    client.put_item(TableName=name, Item=item)
    answer = client.scan(TableName=name, Segment=segment, TotalSegments=4096)
    assert answer["Items"] == [item]


# --- indexes, Select and projections ---


def test_an_index_returns_what_it_projects(client: Any, music: str) -> None:
    names = {"pk", "sk", "g", "r", "data"}
    found = client.scan(TableName=music, IndexName="by_g_r")["Items"]
    expected = [{name: item[name] for name in names} for item in SONGS if "g" in item]
    assert sorted(found, key=lambda item: str(item["sk"]["S"])) == expected
    found = client.scan(TableName=music, IndexName="by_g")["Items"]
    expected = [item for item in SONGS if "g" in item]
    assert sorted(found, key=lambda item: str(item["sk"]["S"])) == expected


def test_a_local_index_can_be_read_consistently(client: Any, music: str) -> None:
    answer = client.scan(TableName=music, IndexName="by_l", ConsistentRead=True)
    assert answer["Count"] == 48


def test_select_count_returns_no_items(client: Any, music: str) -> None:
    answer = client.scan(TableName=music, Select="COUNT")
    assert "Items" not in answer
    assert answer["Count"] == 48


@pytest.mark.parametrize(
    "more",
    [
        {"ProjectionExpression": "n, nothing"},
        {"ProjectionExpression": "n", "Select": "SPECIFIC_ATTRIBUTES"},
        {"AttributesToGet": ["n"]},
    ],
)
def test_a_projection_does_not_add_the_keys(client: Any, music: str, more: dict[str, Any]) -> None:
    found = client.scan(TableName=music, **more)["Items"]
    assert sorted(int(item["n"]["N"]) for item in found) == list(range(48))
    assert all(set(item) == {"n"} for item in found)


# --- refusals found before the table is looked up ---

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "a segment of nothing": (
        {"Segment": 1},
        "The TotalSegments parameter is required but was not present in the request when Segment "
        "parameter is present",
    ),
    "segment 0 of nothing": (
        {"Segment": 0},
        "The TotalSegments parameter is required but was not present in the request when Segment "
        "parameter is present",
    ),
    "no segment": (
        {"TotalSegments": 1},
        "The Segment parameter is required but was not present in the request when parameter "
        "TotalSegments is present",
    ),
    "a segment after the last": (
        {"Segment": 5, "TotalSegments": 5},
        "The Segment parameter is zero-based and must be less than parameter TotalSegments",
    ),
    "limit 0": (
        {"Limit": 0},
        ENVELOPE + "Value at 'Limit' failed to satisfy constraint: "
        "Member must have value greater than or equal to 1",
    ),
    "a negative segment": (
        {"Segment": -1, "TotalSegments": 2},
        ENVELOPE + "Value at 'Segment' failed to satisfy constraint: "
        "Member must have value greater than or equal to 0",
    ),
    "begins_with a number": (
        {
            "FilterExpression": "begins_with(#a, :n)",
            "ExpressionAttributeNames": {"#a": "a"},
            "ExpressionAttributeValues": {":n": {"N": "1"}},
        },
        "Invalid FilterExpression: Incorrect operand type for operator or function; "
        "operator or function: begins_with, operand type: N",
    ),
    "redundant parentheses": (
        {
            "FilterExpression": "((#a = :v))",
            "ExpressionAttributeNames": {"#a": "a"},
            "ExpressionAttributeValues": {":v": {"S": "x"}},
        },
        "Invalid FilterExpression: The expression has redundant parentheses;",
    ),
    "paths that overlap": (
        {"ProjectionExpression": "a.b, a"},
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or "
        "rewrite one of these paths; path one: [a, b], path two: [a]",
    ),
    "no segments": (
        {"Segment": 0, "TotalSegments": 0},
        ENVELOPE + "Value '0' at 'totalSegments' failed to satisfy constraint: "
        "Member must have value greater than or equal to 1",
    ),
    "an undefined name": (
        {"ProjectionExpression": "#undef"},
        "Invalid ProjectionExpression: An expression attribute name used in the document path is "
        "not defined; attribute name: #undef",
    ),
    "one operand for a filter operator": (
        {"ScanFilter": {"a": compare("EQ")}},
        INVALID + "Invalid number of argument(s) for the EQ ComparisonOperator",
    ),
    "a conditional operator for one": (
        {"ScanFilter": {"a": compare("EQ", {"S": "x"})}, "ConditionalOperator": "AND"},
        "ConditionalOperator can only be used when Filter or Expected has two or more elements",
    ),
    # dynalite
    "too many segments": (
        {"Segment": 0, "TotalSegments": 1_000_001},
        ENVELOPE + "Value '1000001' at 'totalSegments' failed to satisfy constraint: "
        "Member must have value less than or equal to 1000000",
    ),
    "both kinds of everything": (
        {
            "AttributesToGet": ["a"],
            "ScanFilter": {},
            "ConditionalOperator": "AND",
            "ProjectionExpression": "",
            "FilterExpression": "",
        },
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet, ScanFilter, ConditionalOperator} "
        "Expression parameters: {ProjectionExpression, FilterExpression}",
    ),
    "names without an expression": (
        {"ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "values without a filter": (
        {"ExpressionAttributeValues": {":a": {"S": "x"}}},
        "ExpressionAttributeValues can only be specified when using expressions: "
        "FilterExpression is null",
    ),
    "values with a projection only": (
        {"ExpressionAttributeValues": {":a": {"S": "x"}}, "ProjectionExpression": "a"},
        "ExpressionAttributeValues can only be specified when using expressions: "
        "FilterExpression is null",
    ),
    "an empty filter": (
        {"FilterExpression": ""},
        "Invalid FilterExpression: The expression can not be empty;",
    ),
    "attributes to get before the filter": (
        {"AttributesToGet": ["a", "a"], "ScanFilter": {"a": compare("EQ")}},
        INVALID + "Duplicate value in attribute name: a",
    ),
    "segments before expressions": (
        {"Segment": 1, "FilterExpression": ""},
        "The TotalSegments parameter is required but was not present in the request when Segment "
        "parameter is present",
    ),
    "the filter before the projection": (
        {"FilterExpression": "", "ProjectionExpression": ""},
        "Invalid FilterExpression: The expression can not be empty;",
    ),
    # recorded: the older wording of values, wrapped
    "a value that is no number": (
        {"FilterExpression": "a = :v", "ExpressionAttributeValues": {":v": {"N": "abc"}}},
        "ExpressionAttributeValues contains invalid value: "
        "The parameter cannot be converted to a numeric value: abc for key :v",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_parameters_are_refused_before_the_table_is_looked_up(client: Any, case: str) -> None:
    more, text = REFUSED[case]
    assert refusal(client.scan, TableName="no_such_table", **more) == (VALIDATION, text)


def test_a_deep_value_of_a_single_filter_is_refused_for_one_of_two_reasons(client: Any) -> None:
    # recorded: both are in use
    value: dict[str, Any] = {"S": "x"}
    for _ in range(40):
        value = {"L": [value]}
    code, text = refusal(
        client.scan,
        TableName="no_such_table",
        ScanFilter={"a": compare("EQ", value)},
        ConditionalOperator="AND",
    )
    assert code == VALIDATION
    assert text in {
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit",
        REFUSED["a conditional operator for one"][1],
    }


@pytest.mark.parametrize("case", SELECT_CLASHES)
def test_select_must_fit_the_other_parameters(client: Any, music: str, case: str) -> None:
    more, text = SELECT_CLASHES[case]
    assert refusal(client.scan, TableName=music, **more) == (VALIDATION, text)


def test_a_scan_of_a_missing_table_finds_no_resource(client: Any) -> None:
    assert refusal(client.scan, TableName="no_such_table") == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


# --- refusals found with the table ---

S, N = {"S": "a"}, {"N": "1"}
START = "The provided starting key is invalid"
ON_TABLE: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "an unknown index": (
        {"IndexName": "nope"},
        "The table does not have the specified index: nope",
    ),
    # DynamoDB Local
    "an empty key in the start key": (
        {"ExclusiveStartKey": {"pk": S, "sk": {"S": ""}}},
        f"{START}: One or more parameter values are not valid. The AttributeValue for a key "
        "attribute cannot contain an empty string value. Key: sk",
    ),
    # recorded
    "a consistent read of a global index": (
        {"IndexName": "by_g", "ConsistentRead": True},
        "Consistent reads are not supported on global secondary indexes",
    ),
    "other attributes in the start key": (
        {"ExclusiveStartKey": {"bad": S}},
        START,
    ),
    "an attribute that the index does not project": (
        {"IndexName": "by_g_r", "ProjectionExpression": "n"},
        INVALID + "Global secondary index by_g_r does not project [n]",
    ),
    # dynalite
    "a start key of another type": (
        {"ExclusiveStartKey": {"pk": N, "sk": S}},
        MISMATCH,
    ),
    "an attribute too many in the start key": (
        {"ExclusiveStartKey": {"pk": S, "sk": S, "a": S}},
        START,
    ),
    "no index key in the start key": (
        {"IndexName": "by_g", "ExclusiveStartKey": {"pk": S, "sk": S}},
        START,
    ),
    "an index key of another type in the start key": (
        {"IndexName": "by_g", "ExclusiveStartKey": {"pk": S, "sk": S, "g": N}},
        MISMATCH,
    ),
    "a table key of another type in the start key": (
        {"IndexName": "by_g", "ExclusiveStartKey": {"pk": S, "sk": N, "g": S}},
        f"{START}: {MISMATCH}",
    ),
    "an empty value in the start key": (
        {"ExclusiveStartKey": {"pk": {}}},
        f"{START}: Supplied AttributeValue is empty, must contain exactly one of the supported "
        "datatypes",
    ),
    "all attributes of an index that does not have them": (
        {"IndexName": "by_g_r", "Select": "ALL_ATTRIBUTES"},
        INVALID + "Select type ALL_ATTRIBUTES is not supported for global secondary index by_g_r "
        "because its projection type is not ALL",
    ),
    "a path into a key": (
        {"ProjectionExpression": "pk.a"},
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
        "allowed: Key: pk",
    ),
    "a path into an index key": (
        {"FilterExpression": "attribute_exists(g[1])"},
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
        "allowed: IndexKey: g",
    ),
}


@pytest.mark.parametrize("case", ON_TABLE)
def test_a_scan_must_fit_its_table(client: Any, music: str, case: str) -> None:
    more, text = ON_TABLE[case]
    assert refusal(client.scan, TableName=music, **more) == (VALIDATION, text)


def test_a_start_key_must_lie_in_its_segment(client: Any, music: str) -> None:
    # dynalite
    segments = {
        segment: client.scan(TableName=music, Segment=segment, TotalSegments=2)["Items"]
        for segment in (0, 1)
    }
    elsewhere = {key: segments[1][0][key] for key in ("pk", "sk")}
    assert refusal(
        client.scan, TableName=music, Segment=0, TotalSegments=2, ExclusiveStartKey=elsewhere
    ) == (
        VALIDATION,
        f"{START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. "
        "TotalSegments: 2 Segment: 0",
    )
