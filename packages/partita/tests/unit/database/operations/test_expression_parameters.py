"""The expression parameters of a request: combinations, placeholders, order of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from partita.database.operations.data_plane.expression_parameters import (
    ACTION,
    GET,
    NOTHING,
    PUT_OR_DELETE,
    QUERY,
    SCAN,
    UPDATE,
    UPDATE_ACTION,
    ParameterFamily,
    read_expressions,
)
from partita.errors import ValidationException
from partita.foundation.service_limits import (
    EXPRESSION_PLACEHOLDER_BYTES_MAX,
    EXPRESSION_VALUES_BYTES_MAX,
)

TEXT = {"S": "x"}
BOTH = "Can not use both expression and non-expression parameters in the same request: "


def refusal(family: ParameterFamily, **request: Any) -> str | None:
    with pytest.raises(ValidationException) as caught:
        read_expressions(request, family)
    return caught.value.message


def test_a_request_without_expressions_gives_none() -> None:
    for family in (PUT_OR_DELETE, UPDATE, GET, SCAN):
        assert read_expressions({"TableName": "t"}, family) is NOTHING


def test_what_is_given_is_compiled_and_values_are_normalised() -> None:
    expressions = read_expressions(
        {
            "UpdateExpression": "SET #a = :v",
            "ConditionExpression": "attribute_exists(pk)",
            "ExpressionAttributeNames": {"#a": "a"},
            "ExpressionAttributeValues": {":v": {"N": "1.0"}},
        },
        UPDATE,
    )
    assert expressions.values == {":v": {"N": "1"}}
    assert expressions.update and expressions.condition and not expressions.filter
    assert expressions.update.apply({}, expressions.values) == {"a": {"N": "1"}}


def test_expressions_and_what_they_replaced_cannot_be_mixed() -> None:
    assert refusal(PUT_OR_DELETE, Expected={}, ConditionExpression="") == (
        BOTH + "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"
    )
    assert refusal(
        UPDATE,
        Expected={},
        AttributeUpdates={},
        ConditionExpression="a",
        UpdateExpression="a",
    ) == (
        BOTH + "Non-expression parameters: {AttributeUpdates, Expected} "
        "Expression parameters: {UpdateExpression, ConditionExpression}"
    )
    assert refusal(GET, AttributesToGet=["a"], ProjectionExpression="a") == (
        BOTH + "Non-expression parameters: {AttributesToGet} "
        "Expression parameters: {ProjectionExpression}"
    )


def test_key_conditions_go_with_a_filter_expression() -> None:
    conditions = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [TEXT]}}
    expressions = read_expressions(
        {
            "KeyConditions": conditions,
            "FilterExpression": "a = :v",
            "ExpressionAttributeValues": {":v": TEXT},
        },
        QUERY,
    )
    assert expressions.key_condition and expressions.filter
    assert refusal(QUERY, KeyConditions=conditions, KeyConditionExpression="x") == (
        BOTH + "Non-expression parameters: {KeyConditions} "
        "Expression parameters: {KeyConditionExpression}"
    )


def test_placeholders_need_an_expression() -> None:
    unused = "can only be specified when using expressions"
    names, values = {"#a": "a"}, {":v": TEXT}
    message = refusal(PUT_OR_DELETE, ExpressionAttributeNames=names)
    assert message == f"ExpressionAttributeNames {unused}"
    message = refusal(PUT_OR_DELETE, ExpressionAttributeValues=values)
    assert message == f"ExpressionAttributeValues {unused}"
    message = refusal(SCAN, ProjectionExpression="a", ExpressionAttributeValues=values)
    assert message == f"ExpressionAttributeValues {unused}: FilterExpression is null"
    assert refusal(QUERY, ExpressionAttributeValues=values) == (
        f"ExpressionAttributeValues {unused}: FilterExpression and KeyConditionExpression are null"
    )


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        ({}, {}, "ExpressionAttributeNames must not be empty"),
        ({"a": "b"}, {}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"'),
        ({"#a": "b"}, {}, "ExpressionAttributeValues must not be empty"),
        (
            {"#a": "b"},
            {":v": {"N": "x"}, "v": TEXT},
            'ExpressionAttributeValues contains invalid key: Syntax error; key: "v"',
        ),
        (
            {"#a": "b"},
            {":v": {"N": "x"}},
            "The parameter cannot be converted to a numeric value: x",
        ),
        (
            {"#a": "b"},
            {":v": TEXT},
            "Invalid ConditionExpression: The expression can not be empty;",
        ),
        (
            {"#a": ""},
            {},
            "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a",
        ),
    ],
)
def test_placeholders_are_checked_before_expressions(
    names: dict[str, str], values: dict[str, Any], message: str
) -> None:
    assert message == refusal(
        PUT_OR_DELETE,
        ConditionExpression="",
        ExpressionAttributeNames=names,
        ExpressionAttributeValues=values,
    )


def test_scan_says_which_value_is_wrong_and_query_does_not() -> None:
    values = {":v": {"N": "x"}}
    message = "The parameter cannot be converted to a numeric value: x"
    assert refusal(SCAN, FilterExpression="a = :v", ExpressionAttributeValues=values) == (
        f"ExpressionAttributeValues contains invalid value: {message} for key :v"
    )
    assert message == refusal(
        QUERY, KeyConditionExpression="a = :v", ExpressionAttributeValues=values
    )


def test_each_expression_is_checked_fully_before_the_next() -> None:
    undefined = (
        "An expression attribute value used in expression is not defined; attribute value: :z"
    )
    message = refusal(UPDATE, UpdateExpression="SET a = :z", ConditionExpression="(")
    assert message == f"Invalid UpdateExpression: {undefined}"
    message = refusal(
        QUERY,
        KeyConditionExpression="(",
        FilterExpression="a = :z",
        ProjectionExpression="(",
    )
    assert message == f"Invalid FilterExpression: {undefined}"


def test_unused_names_come_before_unused_values_and_before_the_shape_of_a_key_condition() -> None:
    request: dict[str, Any] = {
        "KeyConditionExpression": "pk <> :v",
        "ExpressionAttributeNames": {"#a": "a", "#b": "b"},
        "ExpressionAttributeValues": {":v": TEXT, ":w": TEXT},
    }
    unused = "Value provided in ExpressionAttribute{} unused in expressions: keys: {{{}}}"
    assert refusal(QUERY, **request) == unused.format("Names", "#a, #b")
    del request["ExpressionAttributeNames"]
    assert refusal(QUERY, **request) == unused.format("Values", ":w")
    del request["ExpressionAttributeValues"][":w"]
    message = refusal(QUERY, **request)
    assert message == "Invalid operator used in KeyConditionExpression: <>"


def test_a_query_needs_a_key_condition() -> None:
    assert refusal(QUERY, TableName="t") == (
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the "
        "request."
    )


def test_a_conditional_operator_needs_two_conditions() -> None:
    message = refusal(SCAN, ConditionalOperator="AND")
    assert message == "ConditionalOperator cannot be used without Filter or Expected"
    expected = {"a": {"Exists": False}}
    assert refusal(UPDATE, ConditionalOperator="AND", Expected=expected) == (
        "ConditionalOperator can only be used when Filter or Expected has two or more elements"
    )


def test_a_placeholder_has_255_bytes_at_most() -> None:
    longest = "#" + "n" * (EXPRESSION_PLACEHOLDER_BYTES_MAX - 1)
    read_expressions(
        {"ProjectionExpression": longest, "ExpressionAttributeNames": {longest: "a"}}, GET
    )
    assert refusal(
        GET, ProjectionExpression="a", ExpressionAttributeNames={longest + "n": "a"}
    ) == (
        "ExpressionAttributeNames contains invalid key: "
        "The expression attribute map contains a key that is too long; size of key: 256"
    )


def test_values_have_2_megabytes_at_most() -> None:
    request: dict[str, Any] = {"FilterExpression": "a = :v"}
    fits = {":v": {"S": "x" * (EXPRESSION_VALUES_BYTES_MAX - 2)}}
    read_expressions({**request, "ExpressionAttributeValues": fits}, SCAN)
    exceeds = {":v": {"S": "x" * (EXPRESSION_VALUES_BYTES_MAX - 1)}}
    message = refusal(SCAN, **request, ExpressionAttributeValues=exceeds)
    assert message == "ExpressionAttributeValues exceeds max size"


def test_an_action_of_a_transaction_has_update_and_condition() -> None:
    action = {"UpdateExpression": "REMOVE a", "ConditionExpression": "attribute_exists(a)"}
    expressions = read_expressions(action, UPDATE_ACTION)
    assert expressions.update and expressions.condition
    assert refusal(ACTION, ConditionExpression="attribute_not_exists(") == (
        'Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "("'
    )
