"""The parameters that expressions replaced."""

# The service's texts are kept in one piece.
# ruff: noqa: E501

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from partita.database.expressions.legacy_parameters import (
    attribute_updates,
    attributes_to_get,
    expected_condition,
    filter_condition,
    key_conditions,
)
from partita.database.item.attribute_values import ErrorWording, Item
from partita.database.item.key_encoding import KeyAttribute, KeyRange
from partita.errors import ValidationException

ITEM: Item = {
    "pk": {"S": "a"},
    "s": {"S": "str"},
    "n": {"N": "5"},
    "l": {"L": [{"N": "1"}]},
    "ss": {"SS": ["a", "b"]},
}
X, ONE, FIVE = {"S": "x"}, {"N": "1"}, {"N": "5.0"}


def case(operator: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(arguments)}


def holds(name: str, entry: dict[str, Any]) -> bool:
    condition = filter_condition("ScanFilter", {name: entry}, None, ErrorWording.OLDER)
    return condition.holds(ITEM, {})


@pytest.mark.parametrize(
    ("name", "operator", "arguments"),
    [
        ("n", "EQ", [FIVE]),
        ("n", "NE", [X]),
        ("missing", "NE", [X]),
        ("n", "GT", [ONE]),
        ("n", "LE", [FIVE]),
        ("n", "BETWEEN", [ONE, FIVE]),
        ("n", "IN", [ONE, FIVE]),
        ("s", "BEGINS_WITH", [{"S": "st"}]),
        ("s", "CONTAINS", [{"S": "tr"}]),
        ("ss", "CONTAINS", [{"S": "a"}]),
        ("l", "CONTAINS", [ONE]),
        ("s", "NOT_CONTAINS", [X]),
        ("n", "NOT_CONTAINS", [X]),
        ("n", "NOT_NULL", []),
        ("missing", "NULL", []),
    ],
)
def test_a_filter_that_holds(name: str, operator: str, arguments: list[dict[str, Any]]) -> None:
    assert holds(name, case(operator, *arguments))


@pytest.mark.parametrize(
    ("name", "operator", "arguments"),
    [
        ("n", "EQ", [X]),
        ("n", "LT", [X]),
        ("missing", "EQ", [X]),
        ("missing", "NOT_CONTAINS", [X]),
        ("missing", "NOT_NULL", []),
        ("l", "NOT_CONTAINS", [ONE]),
        ("n", "NULL", []),
    ],
)
def test_a_filter_that_does_not_hold(
    name: str, operator: str, arguments: list[dict[str, Any]]
) -> None:
    assert not holds(name, case(operator, *arguments))


def test_or_needs_one_condition_and_and_all() -> None:
    expected: dict[str, dict[str, Any]] = {
        "n": {"Value": ONE},
        "s": {"Value": {"S": "str"}},
        "x": {"Exists": False},
    }
    assert expected_condition(expected, "OR", ErrorWording.CURRENT).holds(ITEM, {})
    assert not expected_condition(expected, "AND", ErrorWording.CURRENT).holds(ITEM, {})
    assert not expected_condition(expected, None, ErrorWording.CURRENT).holds(ITEM, {})


INVALID = "One or more parameter values were invalid: "


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, INVALID + "Value must be provided when Exists is null for Attribute: a"),
        ({"Exists": True}, INVALID + "Value must be provided when Exists is true for Attribute: a"),
        (
            {"Exists": False, "Value": X},
            INVALID + "Value cannot be used when Exists is false for Attribute: a",
        ),
        (
            {"Value": X, "AttributeValueList": [X]},
            INVALID + "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        (
            {"Exists": True, "ComparisonOperator": "EQ", "Value": X},
            INVALID + "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            {"ComparisonOperator": "EQ"},
            INVALID
            + "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
        ),
        (
            {"AttributeValueList": [X]},
            INVALID
            + "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
        ),
        (
            case("BETWEEN", ONE),
            INVALID + "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
        ),
        (
            case("NULL", ONE),
            INVALID + "Invalid number of argument(s) for the NULL ComparisonOperator",
        ),
        (case("IN"), INVALID + "Invalid number of argument(s) for the IN ComparisonOperator"),
        (
            case("IN", ONE, X),
            INVALID + "AttributeValues inside AttributeValueList must be of same type",
        ),
        (
            case("LT", {"SS": ["a"]}),
            INVALID + "ComparisonOperator LT is not valid for SS AttributeValue type",
        ),
        (
            case("BEGINS_WITH", ONE),
            INVALID + "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
        ),
        (
            case("CONTAINS", {"L": []}),
            INVALID + "ComparisonOperator CONTAINS is not valid for L AttributeValue type",
        ),
        (
            case("BETWEEN", FIVE, ONE),
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
        ),
        ({"Value": {"N": "x"}}, "The parameter cannot be converted to a numeric value: x"),
    ],
)
def test_a_malformed_expectation_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        expected_condition({"a": entry}, None, ErrorWording.CURRENT)
    assert caught.value.message == message


def updated(**updates: dict[str, Any]) -> Item:
    return attribute_updates(updates, ErrorWording.CURRENT).apply(ITEM, {})


def test_attribute_updates_put_add_and_delete() -> None:
    after = updated(
        new={"Value": X},
        n={"Action": "ADD", "Value": ONE},
        l={"Action": "ADD", "Value": {"L": [X]}},
        ss={"Action": "DELETE", "Value": {"SS": ["a"]}},
        s={"Action": "DELETE"},
        fresh={"Action": "ADD", "Value": {"NS": ["1"]}},
    )
    assert after == {
        "pk": {"S": "a"},
        "new": X,
        "n": {"N": "6"},
        "l": {"L": [ONE, X]},
        "ss": {"SS": ["b"]},
        "fresh": {"NS": ["1"]},
    }


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, INVALID + "Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "ADD", "Value": X}, INVALID + "ADD action is not supported for the type S"),
        (
            {"Action": "DELETE", "Value": X},
            INVALID + "DELETE action with value is not supported for the type S",
        ),
        ({"Action": "ADD", "Value": ONE}, "Type mismatch for attribute to update"),
    ],
)
def test_an_attribute_update_that_cannot_be_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        updated(s=entry)
    assert caught.value.message == message


def test_attributes_to_get_are_shown_whole_and_not_twice() -> None:
    assert attributes_to_get(["n", "missing"]).project(ITEM) == {"n": {"N": "5"}}
    with pytest.raises(ValidationException, match="Duplicate value in attribute name: n"):
        attributes_to_get(["n", "s", "n"])


PARTITION, SORT = [KeyAttribute("pk", "S")], [KeyAttribute("sk", "N")]


def resolved(**conditions: dict[str, Any]) -> KeyRange:
    return key_conditions(conditions, ErrorWording.CURRENT).resolve(PARTITION, SORT, {})


def test_key_conditions_become_a_range() -> None:
    assert resolved(pk=case("EQ", X)) == KeyRange((X,))
    assert resolved(sk=case("EQ", ONE), pk=case("EQ", X)) == KeyRange((X,), (ONE,))
    between = resolved(pk=case("EQ", X), sk=case("BETWEEN", ONE, FIVE))
    assert between == KeyRange((X,), (), "BETWEEN", (ONE, {"N": "5"}))


def test_only_an_index_can_take_more_than_two_key_conditions() -> None:
    three = {name: case("EQ", X) for name in ("pk", "a", "b")}
    with pytest.raises(ValidationException, match="length 1 or 2 only"):
        key_conditions(three, ErrorWording.CURRENT)
    condition = key_conditions(three, ErrorWording.CURRENT, is_index=True)
    sort = [KeyAttribute("a", "S"), KeyAttribute("b", "S")]
    assert condition.resolve(PARTITION, sort, {}) == KeyRange((X,), (X, X))
    with pytest.raises(ValidationException, match="length 1 or 2 only"):
        condition.resolve(PARTITION, SORT, {})


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({}, "Conditions can be of length 1 or 2 only"),
        ({"sk": case("EQ", ONE)}, "Query condition missed key schema element: pk"),
        (
            {"pk": case("EQ", X), "z": case("EQ", X)},
            "Query condition missed key schema element: sk",
        ),
        ({"pk": case("NE", X)}, "Attempted conditional constraint is not an indexable operation"),
        ({"pk": case("NULL")}, "Attempted conditional constraint is not an indexable operation"),
        ({"pk": case("EQ", ONE)}, INVALID + "Condition parameter type does not match schema type"),
        ({"pk": case("LT", X)}, "Query key condition not supported"),
    ],
)
def test_key_conditions_that_a_key_cannot_serve_are_refused(
    conditions: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationException) as caught:
        resolved(**conditions)
    assert caught.value.message == message


def test_an_attribute_asked_for_twice_is_found_among_many() -> None:
    names = [f"a{number}" for number in range(100_000)]
    started = process_time()
    assert len(attributes_to_get(names).paths) == 100_000
    with pytest.raises(ValidationException, match="Duplicate value in attribute name: a0"):
        attributes_to_get([*names, "a0"])
    assert process_time() - started < 5


def test_a_value_is_found_among_many() -> None:
    numbers = [{"N": str(number)} for number in range(20_000)]
    condition = filter_condition(
        "ScanFilter", {"n": case("IN", *numbers)}, None, ErrorWording.OLDER
    )
    started = process_time()
    found = [condition.holds({"n": {"N": str(number)}}, {}) for number in range(19_000, 21_000)]
    assert sum(found) == 1_000
    assert not condition.holds({"n": {"S": "1"}}, {})
    assert process_time() - started < 1


def test_conditions_are_as_many_as_an_expression_has_operators() -> None:
    conditions = {f"a{number}": case("NULL") for number in range(301)}
    with pytest.raises(ValidationException, match="Too many conditions, at most 300 are allowed"):
        filter_condition("ScanFilter", conditions, None, ErrorWording.OLDER)
    with pytest.raises(ValidationException, match="Too many conditions, at most 300 are allowed"):
        expected_condition(conditions, None, ErrorWording.CURRENT)
    del conditions["a300"]
    assert filter_condition("ScanFilter", conditions, None, ErrorWording.OLDER).holds({}, {})
