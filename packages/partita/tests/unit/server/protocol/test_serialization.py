"""JSON types: the texts of the service's parser, as dynalite's tests recorded them."""

from __future__ import annotations

from typing import Any

import pytest

from partita.errors import SerializationException, ValidationException
from partita.server.protocol.request_validation import compile_validators

VALIDATORS = compile_validators(
    ["PutItem", "ListTables", "CreateTable", "BatchWriteItem", "BatchGetItem"]
)
STRUCTURE = "Start of structure or map found where not expected"
PACKAGE = "com.amazonaws.dynamodb.v20120810."
GENERIC = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast"


def refusal(operation: str, request: dict[str, Any]) -> str | None:
    with pytest.raises(SerializationException) as refused:
        VALIDATORS[operation](request)
    return refused.value.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (True, "TRUE_VALUE cannot be converted to String"),
        (False, "FALSE_VALUE cannot be converted to String"),
        (1, "NUMBER_VALUE cannot be converted to String"),
        (1.5, "DECIMAL_VALUE cannot be converted to String"),
        ([], "Unrecognized collection type class java.lang.String"),
        ({}, STRUCTURE),
    ],
)
def test_a_string(content: Any, message: str) -> None:
    assert refusal("PutItem", {"TableName": content}) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1", "STRING_VALUE cannot be converted to Integer"),
        (True, "TRUE_VALUE cannot be converted to Integer"),
        (1 << 40, "NUMBER_VALUE cannot be converted to Integer"),
        ([], "Unrecognized collection type class java.lang.Integer"),
        ({}, STRUCTURE),
    ],
)
def test_an_integer(content: Any, message: str) -> None:
    assert refusal("ListTables", {"Limit": content}) == message


def test_a_fraction_is_cut_to_an_integer() -> None:
    request: dict[str, Any] = {"Limit": 1.9}
    VALIDATORS["ListTables"](request)
    assert request == {"Limit": 1}


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("KeySchema", "a", "Unexpected field type"),
        ("KeySchema", {}, STRUCTURE),
        ("KeySchema", [1], "Unexpected value type in payload"),
        (
            "KeySchema",
            [[]],
            f"Unrecognized collection type class {PACKAGE}KeySchemaElement",
        ),
        ("ProvisionedThroughput", 1, "Unexpected field type"),
        (
            "ProvisionedThroughput",
            [],
            f"Unrecognized collection type class {PACKAGE}ProvisionedThroughput",
        ),
        (
            "ProvisionedThroughput",
            {"ReadCapacityUnits": "1"},
            "STRING_VALUE cannot be converted to Long",
        ),
        ("DeletionProtectionEnabled", "maybe", "Unexpected token received from parser"),
        ("DeletionProtectionEnabled", 1, "NUMBER_VALUE cannot be converted to Boolean"),
    ],
)
def test_collections_and_structures(member: str, content: Any, message: str) -> None:
    assert refusal("CreateTable", {member: content}) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [],
            "Unrecognized collection type java.util.Map<java.lang.String, "
            f"java.util.List<{PACKAGE}WriteRequest>>",
        ),
        ("a", "Unexpected field type"),
        ({"abc": {}}, STRUCTURE),
        ({"abc": [1]}, "Unexpected value type in payload"),
    ],
)
def test_a_batch(content: Any, message: str) -> None:
    assert refusal("BatchWriteItem", {"RequestItems": content}) == message


def test_a_scalar_in_place_of_a_nested_collection() -> None:
    message = refusal("BatchWriteItem", {"RequestItems": {"abc": "x"}})
    assert message is not None and message.startswith(GENERIC)


VALUE_REFUSALS: list[tuple[Any, str]] = [
    (1, "Unexpected value type in payload"),
    ([], f"Unrecognized collection type class {PACKAGE}AttributeValue"),
    ({"S": 1}, "NUMBER_VALUE cannot be converted to String"),
    ({"N": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
    ({"B": 1}, "only base-64-encoded strings are convertible to bytes"),
    ({"B": []}, "Unrecognized collection type class java.nio.ByteBuffer"),
    ({"B": "abcde"}, "Base64 encoded length is expected a multiple of 4 bytes but found: 5"),
    ({"B": "=+/="}, "Invalid last non-pad Base64 character dectected"),
    ({"B": "+/+="}, "Invalid last non-pad Base64 character dectected"),
    ({"B": "a\nbc"}, "Invalid base 64 character: '\n'"),
    ({"B": "a-bc"}, "Invalid base 64 character: '-'"),
    ({"B": "a=bc"}, "Invalid base 64 character: '='"),
    ({"B": "abcd" * 1_000_000 + "ab^d"}, "Invalid base 64 character: '^'"),
    ({"SS": "a"}, "Unexpected field type"),
    ({"SS": {}}, STRUCTURE),
    ({"SS": [[]]}, "Unrecognized collection type class java.lang.String"),
    ({"BS": [1]}, "only base-64-encoded strings are convertible to bytes"),
    ({"L": [1]}, "Unexpected value type in payload"),
    (
        {"M": []},
        f"Unrecognized collection type java.util.Map<java.lang.String, {PACKAGE}AttributeValue>",
    ),
    ({"M": {"a": {"L": [{"S": True}]}}}, "TRUE_VALUE cannot be converted to String"),
    ({"BOOL": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
]


@pytest.mark.parametrize(("value", "message"), VALUE_REFUSALS)
def test_an_attribute_value(value: Any, message: str) -> None:
    assert refusal("PutItem", {"TableName": "abc", "Item": {"a": value}}) == message


def test_the_first_wrong_field_in_the_document_is_reported() -> None:
    wrong = {"Item": {"a": {"S": 1}}, "TableName": []}
    assert refusal("PutItem", wrong) == "NUMBER_VALUE cannot be converted to String"
    wrong = {"TableName": [], "Item": {"a": {"S": 1}}}
    assert refusal("PutItem", wrong) == "Unrecognized collection type class java.lang.String"


def test_a_wrong_type_is_reported_before_any_constraint() -> None:
    assert refusal("PutItem", {"TableName": "", "Item": 1}) == "Unexpected field type"


def test_words_for_booleans_are_understood() -> None:
    request: dict[str, Any] = {"TableName": "abc", "Item": {"a": {"BOOL": "Yes"}}}
    VALIDATORS["PutItem"](request)
    assert request["Item"] == {"a": {"BOOL": True}}


def test_a_null_in_place_of_a_value_is_an_empty_value() -> None:
    request: dict[str, Any] = {"TableName": "abc", "Item": {"a": None, "b": {"L": [None]}}}
    VALIDATORS["PutItem"](request)
    assert request["Item"] == {"a": {}, "b": {"L": [{}]}}


def test_a_null_in_a_set_is_refused() -> None:
    with pytest.raises(ValidationException, match="may not have a null string as a member"):
        VALIDATORS["PutItem"]({"TableName": "abc", "Item": {"a": {"SS": [None]}}})


@pytest.mark.parametrize("levels", [201, 5_000])
def test_nesting_without_end_is_refused(levels: int) -> None:
    value: dict[str, Any] = {"S": "leaf"}
    for level in range(levels):
        value = {"L": [value]} if level % 2 else {"M": {"m": value}}
    assert refusal("PutItem", {"TableName": "abc", "Item": {"a": value}}) is None
