"""DeleteItem: what is removed and returned, and its errors."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from .refusals import ENVELOPE, INVALID, VALIDATION, refusal

MISMATCH = "The provided key element does not match the schema"
KEY = {"pk": {"S": "a"}, "sk": {"S": "1"}}


@pytest.fixture(scope="module")
def music(module_table: Any) -> str:
    """A table with the string keys pk and sk."""
    return str(module_table(sk="S"))


@pytest.fixture
def song(client: Any, music: str) -> dict[str, Any]:
    """An item that is there."""
    item = {**KEY, "a": {"S": "x"}, "n": {"N": "5"}}
    client.put_item(TableName=music, Item=item)
    return item


def stored(client: Any, table: str) -> Any:
    return client.get_item(TableName=table, Key=KEY, ConsistentRead=True).get("Item")


def test_a_deleted_item_is_gone(raw: Any, client: Any, music: str, song: dict[str, Any]) -> None:
    answer = raw("DeleteItem", {"TableName": music, "Key": KEY})
    assert (answer.status, answer.body) == (200, {})
    assert stored(client, music) is None


@pytest.mark.parametrize("values", ["NONE", "ALL_OLD"])
def test_deleting_a_missing_item_succeeds(client: Any, music: str, values: str) -> None:
    key = {"pk": {"S": "missing"}, "sk": {"S": "1"}}
    answer = client.delete_item(TableName=music, Key=key, ReturnValues=values)
    assert "Attributes" not in answer


def test_all_old_returns_the_deleted_item(client: Any, music: str, song: dict[str, Any]) -> None:
    answer = client.delete_item(TableName=music, Key=KEY, ReturnValues="ALL_OLD")
    assert answer["Attributes"] == song


@pytest.mark.parametrize("values", ["ALL_NEW", "UPDATED_NEW", "UPDATED_OLD"])
def test_a_delete_cannot_return_values_of_an_update(client: Any, values: str) -> None:
    # recorded
    assert refusal(client.delete_item, TableName="no_such_table", Key=KEY, ReturnValues=values) == (
        VALIDATION,
        ENVELOPE + "ReturnValues can only be ALL_OLD or NONE",
    )


def test_a_failed_condition_deletes_nothing(client: Any, music: str, song: dict[str, Any]) -> None:
    assert refusal(
        client.delete_item,
        TableName=music,
        Key=KEY,
        ConditionExpression="a = :v",
        ExpressionAttributeValues={":v": {"S": "y"}},
    ) == ("ConditionalCheckFailedException", "The conditional request failed")
    assert stored(client, music) == song


def test_a_failed_condition_can_return_the_item_that_is_there(
    client: Any, music: str, song: dict[str, Any]
) -> None:
    with pytest.raises(ClientError) as failed:
        client.delete_item(
            TableName=music,
            Key=KEY,
            ConditionExpression="attribute_not_exists(a)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failed.value.response["Item"] == song


@pytest.mark.parametrize(
    "condition",
    [
        "attribute_exists(a)",
        "(attribute_exists(a)) AND (n = :v)",
        "(attribute_exists(a) AND n = :v)",
        "(attribute_exists(a) AND (n = :v))",
    ],
)
def test_a_condition_that_holds_deletes(
    client: Any, music: str, song: dict[str, Any], condition: str
) -> None:
    # recorded: single parentheses are allowed
    values = {"ExpressionAttributeValues": {":v": {"N": "5"}}} if ":v" in condition else {}
    client.delete_item(TableName=music, Key=KEY, ConditionExpression=condition, **values)
    assert stored(client, music) is None


def test_a_condition_on_a_missing_item_fails(client: Any, music: str) -> None:
    key = {"pk": {"S": "missing"}, "sk": {"S": "1"}}
    code, _ = refusal(
        client.delete_item, TableName=music, Key=key, ConditionExpression="attribute_exists(pk)"
    )
    assert code == "ConditionalCheckFailedException"


@pytest.mark.parametrize(
    ("expected", "operator", "deleted"),
    [
        ({"a": {"Value": {"S": "x"}}}, None, True),
        ({"a": {"Value": {"S": "y"}}}, None, False),
        ({"z": {"Exists": False}}, None, True),
        ({"a": {"Value": {"S": "y"}}, "n": {"Value": {"N": "5"}}}, "AND", False),
        ({"a": {"Value": {"S": "y"}}, "n": {"Value": {"N": "5"}}}, "OR", True),
        (
            {"a": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "x"}]}},
            None,
            True,
        ),
    ],
)
def test_expected_guards_a_delete(
    client: Any,
    music: str,
    song: dict[str, Any],
    expected: dict[str, Any],
    operator: str | None,
    deleted: bool,
) -> None:
    more = {"ConditionalOperator": operator} if operator else {}
    try:
        client.delete_item(TableName=music, Key=KEY, Expected=expected, **more)
    except client.exceptions.ConditionalCheckFailedException:
        assert not deleted
    assert (stored(client, music) is None) is deleted


# --- refusals that come before the table is looked up ---

VALUE = {"S": "1"}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "both kinds of condition": (
        {"Expected": {"a": {"Exists": False}}, "ConditionExpression": "attribute_exists(a)"},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
    ),
    "values without an expression": (
        {"ExpressionAttributeValues": {":v": VALUE}},
        "ExpressionAttributeValues can only be specified when using expressions",
    ),
    "names without an expression": (
        {"ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "names with Expected": (
        {"ExpressionAttributeNames": {"#a": "a"}, "Expected": {"a": {"Exists": False}}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "no values": (
        {"ConditionExpression": "attribute_exists(a)", "ExpressionAttributeValues": {}},
        "ExpressionAttributeValues must not be empty",
    ),
    "no names": (
        {"ConditionExpression": "attribute_exists(a)", "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames must not be empty",
    ),
    "an empty condition": (
        {"ConditionExpression": ""},
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
    "redundant parentheses": (
        {"ConditionExpression": "((attribute_not_exists(pk)))"},
        "Invalid ConditionExpression: The expression has redundant parentheses;",
    ),
    "exists without a value": (
        {"Expected": {"a": {"Exists": True}}},
        INVALID + "Value must be provided when Exists is true for Attribute: a",
    ),
    "a value that must not exist": (
        {"Expected": {"a": {"Exists": False, "Value": VALUE}}},
        INVALID + "Value cannot be used when Exists is false for Attribute: a",
    ),
    "a value and a list": (
        {
            "Expected": {
                "a": {"Value": VALUE, "ComparisonOperator": "EQ", "AttributeValueList": [VALUE]}
            }
        },
        INVALID + "Value and AttributeValueList cannot be used together for Attribute: a",
    ),
    "an operator alone": (
        {"Expected": {"a": {"ComparisonOperator": "EQ"}}},
        INVALID + "Value or AttributeValueList must be used with ComparisonOperator: EQ "
        "for Attribute: a",
    ),
    "BETWEEN one": (
        {"Expected": {"a": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [VALUE]}}},
        INVALID + "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
    ),
    # dynalite
    "BETWEEN two types": (
        {
            "ConditionExpression": "a between :b and :a",
            "ExpressionAttributeValues": {":a": {"S": "a"}, ":b": {"N": "1"}},
        },
        "Invalid ConditionExpression: The BETWEEN operator requires same data type for lower and "
        "upper bounds; lower bound operand: AttributeValue: {N:1}, "
        "upper bound operand: AttributeValue: {S:a}",
    ),
    "BETWEEN reversed": (
        {
            "ConditionExpression": "a between :b and :a",
            "ExpressionAttributeValues": {":a": {"S": "a"}, ":b": {"S": "b"}},
        },
        "Invalid ConditionExpression: The BETWEEN operator requires upper bound to be greater than "
        "or equal to lower bound; lower bound operand: AttributeValue: {S:b}, "
        "upper bound operand: AttributeValue: {S:a}",
    ),
    "an unused value": (
        {"ConditionExpression": "attribute_exists(a)", "ExpressionAttributeValues": {":v": VALUE}},
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
    ),
    # The order of the checks (dynalite).
    "the key's values before ReturnValues": (
        {"Key": {"pk": {"N": "abc"}}, "ReturnValues": "ALL_NEW"},
        "The parameter cannot be converted to a numeric value: abc",
    ),
    "ReturnValues before Expected": (
        {"ReturnValues": "ALL_NEW", "Expected": {"a": {}}},
        "ReturnValues can only be ALL_OLD or NONE",
    ),
    "names before the key's values": (
        {"Key": {"pk": {"N": "abc"}}, "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_parameters_are_refused(client: Any, music: str, case: str) -> None:
    more, text = REFUSED[case]
    for table in (music, "no_such_table"):
        assert refusal(client.delete_item, **{"TableName": table, "Key": KEY, **more}) == (
            VALIDATION,
            ENVELOPE + text,
        )


# --- members and their constraints (recorded) ---

BAD_CAPACITY = (
    "Value 'INVALID' at 'returnConsumedCapacity' failed to satisfy constraint: "
    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
)
BAD_RETURN_VALUES = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
MEMBER_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "empty table name and key": (
        {"TableName": "", "Key": {}},
        "1 validation error detected: Value at 'TableName' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1",
    ),
    "two unknown enum values": (
        {
            "TableName": "no_such_table",
            "Key": KEY,
            "ReturnValues": "INVALID",
            "ReturnConsumedCapacity": "INVALID",
        },
        f"2 validation errors detected: {BAD_CAPACITY}; {BAD_RETURN_VALUES}",
    ),
    "no key": (
        {"TableName": "no_such_table"},
        "1 validation error detected: Value null at 'key' failed to satisfy constraint: "
        "Member must not be null",
    ),
}


@pytest.mark.parametrize("case", MEMBER_ERRORS)
def test_members_that_break_their_constraints_are_named(client: Any, case: str) -> None:
    request, text = MEMBER_ERRORS[case]
    assert refusal(client.delete_item, **request) == (VALIDATION, text)


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


@pytest.mark.parametrize(
    ("values", "levels", "text"),
    [
        (
            "BOGUS",
            63,
            "1 validation error detected: Value 'BOGUS' at 'returnValues' failed to satisfy "
            "constraint: Member must satisfy enum value set: "
            "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]",
        ),
        ("UPDATED_NEW", 100, "ReturnValues can only be ALL_OLD or NONE"),
    ],
)
def test_a_deep_value_brings_the_older_wording_back(
    client: Any, values: str, levels: int, text: str
) -> None:
    # recorded
    assert refusal(
        client.delete_item,
        TableName="no_such_table",
        Key=KEY,
        ReturnValues=values,
        Expected={"a": {"Value": deep(levels)}},
    ) == (VALIDATION, text)


# --- keys ---

KEY_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "no sort key": ({"pk": {"S": "a"}}, MISMATCH),
    "an attribute too many": ({**KEY, "a": {"S": "x"}}, MISMATCH),
    "a number for a string": ({**KEY, "pk": {"N": "1"}}, MISMATCH),
    "a list for a string": ({**KEY, "pk": {"L": []}}, MISMATCH),
    "an empty key": (
        {**KEY, "pk": {"S": ""}},
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk",
    ),
    # dynalite
    "a long partition key": (
        {**KEY, "pk": {"S": "a" * 2049}},
        INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
    "a long sort key": (
        {**KEY, "sk": {"S": "a" * 1025}},
        INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    ),
}


@pytest.mark.parametrize("case", KEY_ERRORS)
def test_the_key_must_fit_the_schema(client: Any, music: str, case: str) -> None:
    key, text = KEY_ERRORS[case]
    assert refusal(client.delete_item, TableName=music, Key=key) == (VALIDATION, text)


def test_a_binary_key_cannot_be_empty(client: Any, table: Any) -> None:
    # recorded
    assert refusal(client.delete_item, TableName=table(pk="B"), Key={"pk": {"B": b""}}) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty binary value. Key: pk",
    )


def test_a_delete_in_a_missing_table_finds_no_resource(client: Any) -> None:
    assert refusal(client.delete_item, TableName="no_such_table", Key=KEY) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )
