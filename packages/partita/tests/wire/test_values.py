"""Attribute values over the wire: ten types, numbers, sets, nesting, and sizes to the byte."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .refusals import ENVELOPE, INVALID, VALIDATION, refusal

ITEM_BYTES_MAX = 400 * 1024


@pytest.fixture(scope="module")
def notes(module_table: Any) -> str:
    """A table with the string key pk."""
    return str(module_table())


def round_trip(client: Any, table: str, value: dict[str, Any]) -> Any:
    key = {"pk": {"S": "round trip"}}
    client.put_item(TableName=table, Item={**key, "v": value})
    return client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]["v"]


# --- the ten types ---

SAME: dict[str, dict[str, Any]] = {
    "a string": {"S": "text"},
    "an empty string": {"S": ""},
    "a string of any characters": {"S": '\x00 \n " \\ é 𝄞 \uffff \u2028'},
    "a number": {"N": "123.456"},
    "a number of 38 digits": {"N": "12345678901234567890123456789012345678"},
    "a binary": {"B": bytes(range(256))},
    "an empty binary": {"B": b""},
    "true": {"BOOL": True},
    "false": {"BOOL": False},
    "null": {"NULL": True},
    "a string set": {"SS": ["a", "b"]},
    "a string set with an empty string": {"SS": ["", "a"]},
    "a string set of an empty string": {"SS": [""]},
    "a number set": {"NS": ["-1", "0", "2"]},
    "a binary set": {"BS": [b"", b"\x00", b"\xff"]},
    "an empty list": {"L": []},
    "an empty map": {"M": {}},
    "a list of all types": {
        "L": [{"S": ""}, {"N": "1"}, {"B": b""}, {"BOOL": True}, {"NULL": True}, {"SS": [""]}]
    },
    "a map of maps": {"M": {"a": {"M": {"b": {"M": {"c": {"L": [{"M": {}}]}}}}}}},
    "a map with odd names": {"M": {"a.b": {"S": "x"}, "[0]": {"S": "x"}, "#": {"S": "x"}}},
}


@pytest.mark.parametrize("case", SAME)
def test_a_value_comes_back_as_it_was_put(client: Any, notes: str, case: str) -> None:
    assert round_trip(client, notes, SAME[case]) == SAME[case]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({"SS": ["b", "a", "", "é", "B"]}, {"SS": ["", "B", "a", "b", "é"]}),
        ({"NS": ["10", "9", "-1", "0.50"]}, {"NS": ["-1", "0.5", "9", "10"]}),
        ({"BS": [b"\xff", b"\x00", b""]}, {"BS": [b"", b"\x00", b"\xff"]}),
    ],
    ids=["SS", "NS", "BS"],
)
def test_members_of_a_set_come_in_order(
    client: Any, notes: str, sent: dict[str, Any], stored: dict[str, Any]
) -> None:
    # recorded: strings and binaries by bytes, numbers by value
    assert round_trip(client, notes, sent) == stored


# --- numbers ---

STORED: dict[str, str] = {
    # recorded
    "+5": "5",
    "+1.5": "1.5",
    "+0": "0",
    "-0": "0",
    "+0.0": "0",
    "+1e2": "100",
    "1e+2": "100",
    "1.5E+3": "1500",
    "1.5E2": "150",
    "+.5": "0.5",
    ".5": "0.5",
    "5.": "5",
    "1.": "1",
    "1.e5": "100000",
    "00042": "42",
    "+1e-2": "0.01",
    "1.23E10": "12300000000",
    "0042.1200": "42.12",
    "1.0": "1",
    "3.1400": "3.14",
    "1E125": "1" + "0" * 125,
    "0e125": "0",
    "9.9999999999999999999999999999999999999E+125": "9" * 38 + "0" * 88,
    "-9.9999999999999999999999999999999999999E+125": "-" + "9" * 38 + "0" * 88,
    # dynalite
    "-0015.789e6": "-15789000",
    "0001.000e-130": "0." + "0" * 129 + "1",
    "-1e-130": "-0." + "0" * 129 + "1",
    "1" + "0" * 60: "1" + "0" * 60,
    "0." + "0" * 60 + "1": "0." + "0" * 60 + "1",
}


@pytest.mark.parametrize(("sent", "stored"), STORED.items())
def test_a_number_is_stored_in_plain_digits(
    client: Any, notes: str, sent: str, stored: str
) -> None:
    assert round_trip(client, notes, {"N": sent}) == {"N": stored}


NOT_NUMERIC = "The parameter cannot be converted to a numeric value"
OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
PRECISION = "Attempting to store more than 38 significant digits in a Number"
BAD_NUMBERS: dict[str, str] = {
    # recorded
    **{
        text: f"{NOT_NUMERIC}: {text}"
        for text in (
            *("", "abc", "1.2.3", " 1", "1 ", "0x10", "1e", "NaN", "Infinity", "-Infinity"),
            *("+e2", "e2", "+1+2", "1+2", "++5", "+-5", "-+5", "+", "-", "1e+", "."),
            *("1.2e3.4", "0x5", "1_000", "1 5", "\u0661", "1\n", "-NaN", "dog"),
        )
    },
    "1e126": OVERFLOW,
    "-1e126": OVERFLOW,
    "11e125": OVERFLOW,
    "1e2147483647": OVERFLOW,
    "1e2147483648": OVERFLOW,
    "1e99999999999": OVERFLOW,
    "-1e99999999999": OVERFLOW,
    "0e126": OVERFLOW,
    "1e-131": UNDERFLOW,
    "0.9e-130": UNDERFLOW,
    "1e-2147483648": UNDERFLOW,
    "1e-99999999999": UNDERFLOW,
    "0e-131": UNDERFLOW,
    "1" * 39: PRECISION,
    "1" * 40: PRECISION,
    "0." + "1" * 39: PRECISION,
}


@pytest.mark.parametrize(("sent", "text"), BAD_NUMBERS.items())
def test_a_wrong_number_is_refused(client: Any, notes: str, sent: str, text: str) -> None:
    item = {"pk": {"S": "wrong"}, "v": {"N": sent}}
    assert refusal(client.put_item, TableName=notes, Item=item) == (VALIDATION, ENVELOPE + text)
    assert "Item" not in client.get_item(TableName=notes, Key={"pk": {"S": "wrong"}})


@pytest.mark.parametrize("exponent", ["1" + "0" * 1_000, "9" * 100_000])
def test_an_exponent_of_many_digits_is_refused(client: Any, notes: str, exponent: str) -> None:
    code, _ = refusal(
        client.put_item,
        TableName=notes,
        Item={"pk": {"S": "wrong"}, "v": {"N": f"1e{exponent}"}},
    )
    assert code == VALIDATION


def test_an_exponent_beyond_64_bits_makes_no_number(client: Any, notes: str) -> None:
    # recorded
    code, text = refusal(
        client.put_item,
        TableName=notes,
        Item={"pk": {"S": "wrong"}, "v": {"N": "1e" + "9" * 20}},
    )
    assert code == VALIDATION
    assert text.removeprefix(ENVELOPE).startswith(NOT_NUMERIC)


def test_number_keys_of_equal_value_are_one_key(client: Any, table: Any) -> None:
    # recorded
    name = table(pk="N")
    client.put_item(TableName=name, Item={"pk": {"N": "+5"}, "v": {"S": "x"}})
    for same in ("5", "5.0", "0.5e1", "0005"):
        found = client.get_item(TableName=name, Key={"pk": {"N": same}})
        assert found["Item"] == {"pk": {"N": "5"}, "v": {"S": "x"}}


def test_numbers_of_a_set_that_differ_in_the_last_digit_are_two(client: Any, notes: str) -> None:
    # recorded: no floating point is involved
    numbers = ["100000000000000001", "100000000000000002"]
    assert round_trip(client, notes, {"NS": numbers}) == {"NS": numbers}


# --- wrong values, in the words of each operation (recorded) ---

KEY = {"pk": {"S": "words"}}
CURRENT: dict[str, str] = {
    "abc": f"{NOT_NUMERIC}: abc",
    "": f"{NOT_NUMERIC}: ",
    "1e126": OVERFLOW,
    "1e2147483647": OVERFLOW,
    "1e-131": UNDERFLOW,
    "1" * 40: PRECISION,
}
OLDER: dict[str, str] = {
    "abc": f"{NOT_NUMERIC}: abc",
    "": NOT_NUMERIC,
    "1e126": OVERFLOW,
    "1e2147483647": UNDERFLOW,
}
DUPLICATES: dict[str, tuple[dict[str, Any], str, str]] = {
    "SS": (
        {"SS": ["b", "a", "b"]},
        INVALID + 'Input collection ["a", "b", "b"] contains duplicates.',
        INVALID + "Input collection [b, a, b] contains duplicates.",
    ),
    "BS": (
        {"BS": [b"\xff", b"\x00", b"\x00"]},
        INVALID + 'Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.',
        INVALID + "Input collection [/w==, AA==, AA==]of type BS contains duplicates.",
    ),
    "NS": (
        {"NS": ["2", "1", "2"]},
        INVALID + "Input collection contains duplicates.",
        "Input collection contains duplicates",
    ),
}


def keyed(**values: Any) -> dict[str, Any]:
    return {"ExpressionAttributeValues": {f":{name}": value for name, value in values.items()}}


PLACES: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "PutItem item": ("put_item", lambda v: {"Item": {**KEY, "v": v}}),
    "PutItem nested": (
        "put_item",
        lambda v: {"Item": {**KEY, "v": {"M": {"x": {"L": [v]}}}}},
    ),
    "PutItem value": (
        "put_item",
        lambda v: {"Item": KEY, "ConditionExpression": "a = :v", **keyed(v=v)},
    ),
    "PutItem Expected": ("put_item", lambda v: {"Item": KEY, "Expected": {"a": {"Value": v}}}),
    "UpdateItem key": ("update_item", lambda v: {"Key": {"pk": v}}),
    "UpdateItem value": (
        "update_item",
        lambda v: {"Key": KEY, "UpdateExpression": "SET a = :v", **keyed(v=v)},
    ),
    "UpdateItem AttributeUpdates": (
        "update_item",
        lambda v: {"Key": KEY, "AttributeUpdates": {"a": {"Value": v}}},
    ),
    "DeleteItem key": ("delete_item", lambda v: {"Key": {"pk": v}}),
    "DeleteItem value": (
        "delete_item",
        lambda v: {"Key": KEY, "ConditionExpression": "a = :v", **keyed(v=v)},
    ),
    "GetItem key": ("get_item", lambda v: {"Key": {"pk": v}}),
    "Query key value": (
        "query",
        lambda v: {"KeyConditionExpression": "pk = :v", **keyed(v=v)},
    ),
    "Query filter": (
        "query",
        lambda v: {
            "KeyConditionExpression": "pk = :p",
            "FilterExpression": "a = :v",
            **keyed(v=v, p={"S": "x"}),
        },
    ),
    "Query start key": (
        "query",
        lambda v: {
            "KeyConditionExpression": "pk = :p",
            "ExclusiveStartKey": {"pk": v},
            **keyed(p={"S": "x"}),
        },
    ),
    "Query QueryFilter": (
        "query",
        lambda v: {
            "KeyConditions": {
                "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}
            },
            "QueryFilter": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [v]}},
        },
    ),
}
ENVELOPED = ("put_item", "update_item", "delete_item")


def in_place(client: Any, table: str, place: str, value: dict[str, Any]) -> tuple[str, str]:
    operation, build = PLACES[place]
    return refusal(getattr(client, operation), TableName=table, **build(value))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", CURRENT)
def test_a_wrong_number_is_refused_wherever_it_stands(
    client: Any, notes: str, place: str, number: str
) -> None:
    prefix = ENVELOPE if PLACES[place][0] in ENVELOPED else ""
    assert in_place(client, notes, place, {"N": number}) == (VALIDATION, prefix + CURRENT[number])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", DUPLICATES)
def test_a_duplicate_in_a_set_is_refused_wherever_it_stands(
    client: Any, notes: str, place: str, kind: str
) -> None:
    value, text, _ = DUPLICATES[kind]
    prefix = ENVELOPE if PLACES[place][0] in ENVELOPED else ""
    assert in_place(client, notes, place, value) == (VALIDATION, prefix + text)


def batch_get(client: Any, table: str, value: dict[str, Any]) -> tuple[str, str]:
    return refusal(client.batch_get_item, RequestItems={table: {"Keys": [{"pk": value}]}})


def batch_put(client: Any, table: str, value: dict[str, Any]) -> tuple[str, str]:
    requests = [{"PutRequest": {"Item": {**KEY, "v": value}}}]
    return refusal(client.batch_write_item, RequestItems={table: requests})


def scan_filter(client: Any, table: str, value: dict[str, Any]) -> tuple[str, str]:
    condition = {"v": {"ComparisonOperator": "EQ", "AttributeValueList": [value]}}
    return refusal(client.scan, TableName=table, ScanFilter=condition)


def scan_value(client: Any, table: str, value: dict[str, Any]) -> tuple[str, str]:
    return refusal(client.scan, TableName=table, FilterExpression="v = :k", **keyed(k=value))


def transact_put(client: Any, table: str, value: dict[str, Any]) -> tuple[str, str]:
    action = {"Put": {"TableName": table, "Item": {**KEY, "v": value}}}
    return refusal(client.transact_write_items, TransactItems=[action])


def transact_get(client: Any, table: str, value: dict[str, Any]) -> tuple[str, str]:
    action = {"Get": {"TableName": table, "Key": {"pk": value}}}
    return refusal(client.transact_get_items, TransactItems=[action])


@pytest.mark.parametrize("number", CURRENT)
@pytest.mark.parametrize("send", [batch_get, transact_put, transact_get])
def test_batch_reads_and_transactions_use_the_current_words_without_a_prefix(
    client: Any, notes: str, send: Any, number: str
) -> None:
    assert send(client, notes, {"N": number}) == (VALIDATION, CURRENT[number])


@pytest.mark.parametrize("number", OLDER)
@pytest.mark.parametrize("send", [batch_put, scan_filter])
def test_batch_writes_and_scans_use_the_older_words(
    client: Any, notes: str, send: Any, number: str
) -> None:
    assert send(client, notes, {"N": number}) == (VALIDATION, OLDER[number])


@pytest.mark.parametrize("number", OLDER)
def test_a_scan_wraps_the_older_words_of_a_value(client: Any, notes: str, number: str) -> None:
    assert scan_value(client, notes, {"N": number}) == (
        VALIDATION,
        f"ExpressionAttributeValues contains invalid value: {OLDER[number]} for key :k",
    )


@pytest.mark.parametrize("kind", DUPLICATES)
def test_each_operation_has_its_words_for_duplicates(client: Any, notes: str, kind: str) -> None:
    value, current, older = DUPLICATES[kind]
    for send in (batch_get, transact_put, transact_get):
        assert send(client, notes, value) == (VALIDATION, current)
    for send in (batch_put, scan_filter):
        assert send(client, notes, value) == (VALIDATION, older)
    assert scan_value(client, notes, value) == (
        VALIDATION,
        f"ExpressionAttributeValues contains invalid value: {older} for key :k",
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    # recorded; two blanks are the service's
    "an empty string set": ({"SS": []}, INVALID + "An string set  may not be empty"),
    "an empty number set": ({"NS": []}, INVALID + "An number set  may not be empty"),
    "an empty binary set": ({"BS": []}, INVALID + "Binary sets should not be empty"),
    "empty strings": (
        {"SS": ["", ""]},
        INVALID + 'Input collection ["", ""] contains duplicates.',
    ),
    "empty binaries": (
        {"BS": [b"", b""]},
        INVALID + 'Input collection ["",""]of type BS contains duplicates.',
    ),
    "two strings": (
        {"SS": ["a", "a"]},
        INVALID + 'Input collection ["a", "a"] contains duplicates.',
    ),
    "numbers of equal value": (
        {"NS": ["1", "1.0"]},
        INVALID + "Input collection contains duplicates.",
    ),
    "no number in a set": ({"NS": [""]}, f"{NOT_NUMERIC}: "),
    "null that is false": (
        {"NULL": False},
        INVALID + "Null attribute value types must have the value of true",
    ),
    # dynalite
    "no type": (
        {},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    "two types": (
        {"S": "x", "N": "1"},
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the "
        "supported datatypes",
    ),
    "two types, one of them wrong": ({"S": "", "N": ""}, f"{NOT_NUMERIC}: "),
    "no type in a list": (
        {"L": [{}]},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    "an empty set in a list": ({"L": [{"SS": []}]}, INVALID + "An string set  may not be empty"),
    "an empty set in a map": (
        {"M": {"a": {"NS": []}}},
        INVALID + "An number set  may not be empty",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_is_refused(client: Any, notes: str, case: str) -> None:
    value, text = WRONG[case]
    item = {"pk": {"S": "wrong"}, "v": value}
    assert refusal(client.put_item, TableName=notes, Item=item) == (VALIDATION, ENVELOPE + text)
    assert "Item" not in client.get_item(TableName=notes, Key={"pk": {"S": "wrong"}})


@pytest.mark.parametrize(
    "case",
    [
        "an empty string set",
        "an empty number set",
        "an empty binary set",
        "no number in a set",
        "null that is false",
    ],
)
def test_a_wrong_value_of_an_update_is_refused_in_the_same_words(
    client: Any, notes: str, case: str
) -> None:
    # recorded: without the name of the value
    value, text = WRONG[case]
    assert in_place(client, notes, "UpdateItem value", value) == (VALIDATION, ENVELOPE + text)


@pytest.mark.parametrize("value", [{"v": {"M": {"": {"S": "x"}}}}, {"": {"S": "x"}}])
def test_an_attribute_has_a_name(client: Any, notes: str, value: dict[str, Any]) -> None:
    # recorded in transactions
    assert refusal(client.put_item, TableName=notes, Item={"pk": {"S": "wrong"}, **value}) == (
        VALIDATION,
        ENVELOPE + "Empty attribute name",
    )


# --- nesting ---

TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)


def nested(levels: int, kind: str = "L") -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels):
        value = {"L": [value]} if kind == "L" else {"M": {"x": value}}
    return value


@pytest.mark.parametrize("kind", ["L", "M"])
def test_values_nest_32_levels_deep(client: Any, notes: str, kind: str) -> None:
    # recorded: the leaf is on level 32
    assert round_trip(client, notes, nested(31, kind)) == nested(31, kind)
    assert refusal(
        client.put_item, TableName=notes, Item={"pk": {"S": "deep"}, "v": nested(32, kind)}
    ) == (VALIDATION, ENVELOPE + TOO_DEEP)


@pytest.mark.parametrize("send", [batch_put, transact_put])
def test_deep_values_are_refused_without_a_prefix_elsewhere(
    client: Any, notes: str, send: Any
) -> None:
    # recorded
    assert send(client, notes, nested(32)) == (VALIDATION, TOO_DEEP)


def test_values_nested_much_too_deep_are_refused_in_other_words(client: Any, notes: str) -> None:
    # recorded: from about 63 levels on
    item = {"pk": {"S": "deep"}, "v": nested(100)}
    assert refusal(client.put_item, TableName=notes, Item=item) == (VALIDATION, TOO_DEEP)
    assert refusal(
        client.update_item,
        TableName=notes,
        Key={"pk": {"S": "deep"}},
        UpdateExpression="SET v = :deep",
        ExpressionAttributeValues={":deep": nested(100)},
    ) == (
        VALIDATION,
        f"ExpressionAttributeValues contains invalid value: {TOO_DEEP} for key :deep",
    )


def test_a_value_nested_ten_thousand_levels_deep_is_refused(raw: Any, notes: str) -> None:
    value = '{"L":[' * 10_000 + '{"S":"x"}' + "]}" * 10_000
    body = f'{{"TableName":"{notes}","Item":{{"pk":{{"S":"a"}},"v":{value}}}}}'
    answer = raw("PutItem", body)
    assert answer.status == 400


# --- sizes ---

NUMBER_BYTES: dict[str, int] = {
    # recorded to the byte
    "0": 1,
    "-0": 1,
    "1": 2,
    "12": 2,
    "123": 3,
    "1234": 3,
    "12345678901234567890123456789012345678": 20,
    "0042": 2,
    "100": 2,
    "1010": 3,
    "0.0000001": 2,
    "1E125": 2,
    "1E-100": 2,
    "1.5": 3,
    "15": 2,
    "1.2": 3,
    "1.200": 3,
    "1.234": 4,
    "3.14159": 5,
    "123456": 4,
    "100.5": 4,
    "0.15": 2,
    "-42": 3,
}
VALUE_BYTES: dict[str, tuple[dict[str, Any], int]] = {
    **{f"number {text}": ({"N": text}, size) for text, size in NUMBER_BYTES.items()},
    "an empty string": ({"S": ""}, 0),
    "a string": ({"S": "abc"}, 3),
    "a string of two-byte characters": ({"S": "éé"}, 4),
    "a string of a four-byte character": ({"S": "𝄞"}, 4),
    "a binary": ({"B": b"12345"}, 5),
    "an empty binary": ({"B": b""}, 0),
    "a boolean": ({"BOOL": False}, 1),
    "a null": ({"NULL": True}, 1),
    "a string set": ({"SS": ["a", "bc"]}, 3),
    "a number set": ({"NS": ["1", "123"]}, 5),
    "a binary set": ({"BS": [b"1", b"234"]}, 4),
    # guide: three bytes for a list or a map, one for each member
    "an empty list": ({"L": []}, 3),
    "an empty map": ({"M": {}}, 3),
    "a list": ({"L": [{"S": "abc"}, {"N": "1"}]}, 3 + 1 + 3 + 1 + 2),
    "a map": ({"M": {"name": {"S": "abc"}}}, 3 + 1 + 4 + 3),
    "a map of lists": ({"M": {"é": {"L": [{"NULL": True}]}}}, 3 + 1 + 2 + 3 + 1 + 1),
}


@pytest.mark.parametrize("case", VALUE_BYTES)
def test_a_value_counts_its_bytes(client: Any, notes: str, case: str) -> None:
    value, size = VALUE_BYTES[case]
    key = {"pk": {"S": "sized"}}
    room = ITEM_BYTES_MAX - len("pksized") - len("v") - len("f") - size
    client.put_item(TableName=notes, Item={**key, "v": value, "f": {"S": "x" * room}})
    code, text = refusal(
        client.put_item,
        TableName=notes,
        Item={**key, "v": value, "f": {"S": "x" * (room + 1)}},
    )
    assert code == VALIDATION
    assert text.removeprefix(ENVELOPE) == "Item size has exceeded the maximum allowed size"


def test_the_names_of_attributes_count_their_bytes(client: Any, notes: str) -> None:
    key = {"pk": {"S": "named"}}
    room = ITEM_BYTES_MAX - len("pknamed") - len("é".encode()) * 1_000 - 1 - len("f")
    item = {**key, "é" * 1_000: {"BOOL": True}, "f": {"S": "x" * room}}
    client.put_item(TableName=notes, Item=item)
    code, _ = refusal(client.put_item, TableName=notes, Item={**item, "f": {"S": "x" * (room + 1)}})
    assert code == VALIDATION


def test_a_list_of_long_numbers_may_fill_an_item(client: Any, notes: str) -> None:
    # recorded: 15,000 numbers of 38 digits fit, 21,000 do not
    number = {"N": "1" * 38}
    client.put_item(TableName=notes, Item={"pk": {"S": "long"}, "v": {"L": [number] * 15_000}})
    code, _ = refusal(
        client.put_item,
        TableName=notes,
        Item={"pk": {"S": "long"}, "v": {"L": [number] * 21_000}},
    )
    assert code == VALIDATION


# --- any item ---

TEXTS = st.text(max_size=12)
NUMBERS = st.builds(
    lambda digits, exponent: f"{digits}E{exponent}",
    st.integers(min_value=1 - 10**38, max_value=10**38 - 1),
    st.integers(min_value=-130, max_value=125 - 37),
)
BINARIES = st.binary(max_size=12)
SCALARS = st.one_of(
    st.builds(lambda text: {"S": text}, TEXTS),
    st.builds(lambda number: {"N": number}, NUMBERS),
    st.builds(lambda binary: {"B": binary}, BINARIES),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(
        lambda members: {"SS": members}, st.lists(TEXTS, min_size=1, max_size=4, unique=True)
    ),
    st.builds(
        lambda members: {"NS": members},
        st.lists(NUMBERS, min_size=1, max_size=4, unique_by=Decimal),
    ),
    st.builds(
        lambda members: {"BS": members}, st.lists(BINARIES, min_size=1, max_size=4, unique=True)
    ),
)
NAMES = st.text(min_size=1, max_size=8)
VALUES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=4)),
        st.builds(lambda members: {"M": members}, st.dictionaries(NAMES, inner, max_size=4)),
    ),
    max_leaves=10,
)


def plain(number: str) -> str:
    text = f"{Decimal(number):f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def normalised(value: dict[str, Any]) -> dict[str, Any]:
    ((kind, content),) = value.items()
    rules: dict[str, Callable[[Any], Any]] = {
        "N": plain,
        "SS": lambda members: sorted(members, key=str.encode),
        "NS": lambda members: [plain(member) for member in sorted(members, key=Decimal)],
        "BS": sorted,
        "L": lambda members: [normalised(member) for member in members],
        "M": lambda members: {name: normalised(member) for name, member in members.items()},
    }
    return {kind: rules[kind](content) if kind in rules else content}


@settings(max_examples=25, deadline=None)
@given(attributes=st.dictionaries(NAMES.filter(lambda name: name != "pk"), VALUES, max_size=5))
def test_any_item_comes_back_as_it_was_put(
    client: Any, notes: str, attributes: dict[str, Any]
) -> None:
    key = {"pk": {"S": "any"}}
    client.put_item(TableName=notes, Item={**key, **attributes})
    found = client.get_item(TableName=notes, Key=key, ConsistentRead=True)["Item"]
    assert found == {**key, **{name: normalised(value) for name, value in attributes.items()}}
    scanned = client.query(
        TableName=notes,
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": {"S": "any"}},
    )
    assert scanned["Items"] == [found]


@settings(max_examples=25, deadline=None)
@given(value=VALUES)
def test_any_value_equals_itself(client: Any, notes: str, value: dict[str, Any]) -> None:
    key = {"pk": {"S": "equal"}}
    client.put_item(TableName=notes, Item={**key, "v": value})
    client.put_item(
        TableName=notes,
        Item=key,
        ConditionExpression="v = :v",
        ExpressionAttributeValues={":v": value},
    )


def test_binary_travels_as_base64(raw: Any, notes: str) -> None:
    key = {"pk": {"S": "base64"}}
    text = base64.b64encode(b"\xfb\xff").decode()
    raw("PutItem", {"TableName": notes, "Item": {**key, "b": {"B": text}}})
    answer = raw("GetItem", {"TableName": notes, "Key": key})
    assert answer.body["Item"]["b"] == {"B": text}
