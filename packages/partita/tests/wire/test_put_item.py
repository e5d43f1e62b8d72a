"""PutItem: what is stored and returned, and errors with the service's texts.

"recorded" is an answer of the real service kept by a public conformance suite; "dynalite" is an
older recording.
"""

from __future__ import annotations

from typing import Any

import pytest

from .indexes import index
from .refusals import ENVELOPE, INVALID, VALIDATION, refusal

STRINGS = ("pk", "sk", "lsi1sk", "lsi2sk")


@pytest.fixture(scope="module")
def notes(module_table: Any) -> str:
    """A table with the string key pk."""
    return str(module_table())


@pytest.fixture(scope="module")
def indexed(module_table: Any) -> str:
    """pk + sk, and lsi1sk that is a key of lsi1, gsi1 and gsi2, and the binary bidx of gsib."""
    name: str = module_table(
        sk="S",
        attributes={**dict.fromkeys(STRINGS, "S"), "bidx": "B"},
        LocalSecondaryIndexes=[index("lsi1", "pk", "lsi1sk")],
        GlobalSecondaryIndexes=[
            index("gsi2", "lsi1sk", "lsi2sk"),
            index("gsi1", "lsi1sk"),
            index("gsib", "bidx"),
        ],
    )
    return name


def stored(client: Any, table: str, pk: str, **key: Any) -> Any:
    answer = client.get_item(TableName=table, Key={"pk": {"S": pk}, **key}, ConsistentRead=True)
    return answer.get("Item")


def test_a_put_answers_with_an_empty_object(raw: Any, notes: str) -> None:
    answer = raw("PutItem", {"TableName": notes, "Item": {"pk": {"S": "empty answer"}}})
    assert (answer.status, answer.body) == (200, {})


def test_a_put_replaces_the_whole_item(client: Any, notes: str) -> None:
    key = {"pk": {"S": "replaced"}}
    client.put_item(TableName=notes, Item={**key, "a": {"S": "1"}, "b": {"S": "2"}})
    client.put_item(TableName=notes, Item={**key, "c": {"S": "3"}})
    assert stored(client, notes, "replaced") == {**key, "c": {"S": "3"}}


def test_all_old_returns_the_item_that_was_replaced(client: Any, notes: str) -> None:
    old = {"pk": {"S": "all old"}, "a": {"N": "1"}}
    client.put_item(TableName=notes, Item=old)
    new = {"pk": {"S": "all old"}, "a": {"N": "2"}}
    answer = client.put_item(TableName=notes, Item=new, ReturnValues="ALL_OLD")
    assert answer["Attributes"] == old


def test_all_old_of_a_new_item_returns_no_attributes(client: Any, notes: str) -> None:
    item = {"pk": {"S": "all old of nothing"}}
    assert "Attributes" not in client.put_item(TableName=notes, Item=item, ReturnValues="ALL_OLD")


@pytest.mark.parametrize("values", ["ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
def test_a_put_cannot_return_values_of_an_update(client: Any, notes: str, values: str) -> None:
    # recorded for DeleteItem, older recording (dynalite) for PutItem
    assert refusal(
        client.put_item, TableName=notes, Item={"pk": {"S": "a"}}, ReturnValues=values
    ) == (VALIDATION, ENVELOPE + "ReturnValues can only be ALL_OLD or NONE")


def test_a_put_into_a_missing_table_finds_no_resource(client: Any) -> None:
    assert refusal(client.put_item, TableName="no_such_table", Item={"pk": {"S": "a"}}) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


def test_a_table_can_be_named_by_its_arn(client: Any, notes: str) -> None:
    arn = client.describe_table(TableName=notes)["Table"]["TableArn"]
    client.put_item(TableName=arn, Item={"pk": {"S": "by arn"}})
    assert stored(client, notes, "by arn") == {"pk": {"S": "by arn"}}


# --- members and their constraints (recorded) ---

TOO_SHORT = (
    "Value at 'TableName' failed to satisfy constraint: "
    "Member must have length greater than or equal to 1"
)
BAD_CAPACITY = (
    "Value 'INVALID' at 'returnConsumedCapacity' failed to satisfy constraint: "
    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
)
# "UPDATE_NEW" is the service's spelling.
BAD_RETURN_VALUES = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
BAD_METRICS = (
    "Value 'INVALID' at 'returnItemCollectionMetrics' failed to satisfy constraint: "
    "Member must satisfy enum value set: [SIZE, NONE]"
)
ITEM = {"pk": {"S": "a"}}
MEMBER_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "no table name": (
        {"Item": ITEM},
        "Value null at 'tableName' failed to satisfy constraint: Member must not be null",
    ),
    "empty table name": ({"TableName": "", "Item": ITEM}, TOO_SHORT),
    "empty table name and item": ({"TableName": "", "Item": {}}, TOO_SHORT),
    "empty table name and bad ReturnValues": (
        {"TableName": "", "Item": ITEM, "ReturnValues": "INVALID"},
        TOO_SHORT,
    ),
    "long table name": (
        {"TableName": "a" * 256, "Item": ITEM},
        f"Value '{'a' * 256}' at 'tableName' failed to satisfy constraint: "
        "Member must have length less than or equal to 255",
    ),
    "characters in the table name": (
        {"TableName": "bad table!@#", "Item": ITEM},
        "Value 'bad table!@#' at 'tableName' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    ),
    "no item": (
        {"TableName": "no_such_table"},
        "Value null at 'item' failed to satisfy constraint: Member must not be null",
    ),
}


@pytest.mark.parametrize("case", MEMBER_ERRORS)
def test_a_member_that_breaks_its_constraint_is_named(client: Any, case: str) -> None:
    request, text = MEMBER_ERRORS[case]
    assert refusal(client.put_item, **request) == (VALIDATION, ENVELOPE + text)


def test_an_empty_request_lacks_its_table_name_and_its_item(client: Any) -> None:
    # dynalite; the order of several errors varies on AWS
    code, text = refusal(client.put_item)
    assert code == VALIDATION
    count, _, errors = text.partition(": ")
    assert count == "2 validation errors detected"
    assert set(errors.split("; ")) == {
        "Value null at 'tableName' failed to satisfy constraint: Member must not be null",
        "Value null at 'item' failed to satisfy constraint: Member must not be null",
    }


def test_three_unknown_enum_values_are_all_reported(client: Any) -> None:
    assert refusal(
        client.put_item,
        TableName="no_such_table",
        Item=ITEM,
        ReturnConsumedCapacity="INVALID",
        ReturnValues="INVALID",
        ReturnItemCollectionMetrics="INVALID",
    ) == (
        VALIDATION,
        f"3 validation errors detected: {BAD_CAPACITY}; {BAD_RETURN_VALUES}; {BAD_METRICS}",
    )


def test_an_enum_value_is_case_sensitive(client: Any, notes: str) -> None:
    assert refusal(client.put_item, TableName=notes, Item=ITEM, ReturnValues="none") == (
        VALIDATION,
        ENVELOPE + BAD_RETURN_VALUES,
    )


# --- parameters that exclude or need each other ---

MISUSED: dict[str, tuple[dict[str, Any], str]] = {
    "Expected with an expression": (
        {"Expected": {"a": {"Exists": False}}, "ConditionExpression": "attribute_exists(pk)"},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
    ),
    "values without an expression": (
        {"ExpressionAttributeValues": {":v": {"S": "a"}}},
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
    "an empty expression": (
        {"ConditionExpression": ""},
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
    "no names": (
        {"ConditionExpression": "attribute_exists(pk)", "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames must not be empty",
    ),
    "no values": (
        {"ConditionExpression": "attribute_exists(pk)", "ExpressionAttributeValues": {}},
        "ExpressionAttributeValues must not be empty",
    ),
    "redundant parentheses": (
        {"ConditionExpression": "((attribute_not_exists(pk)))"},
        "Invalid ConditionExpression: The expression has redundant parentheses;",
    ),
    "an operand twice": (
        {"ConditionExpression": "contains(#d, #d)", "ExpressionAttributeNames": {"#d": "data"}},
        "Invalid ConditionExpression: The first operand must be distinct from the remaining "
        "operands for this operator or function; operator: contains, first operand: [data]",
    ),
    # DynamoDB Local
    "ConditionalOperator alone": (
        {"ConditionalOperator": "AND"},
        "ConditionalOperator cannot be used without Filter or Expected",
    ),
    "ConditionalOperator for one condition": (
        {"ConditionalOperator": "OR", "Expected": {"a": {"Exists": False}}},
        "ConditionalOperator can only be used when Filter or Expected has two or more elements",
    ),
    "ConditionalOperator with an expression": (
        {"ConditionalOperator": "AND", "ConditionExpression": "attribute_exists(pk)"},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {ConditionalOperator} "
        "Expression parameters: {ConditionExpression}",
    ),
}


@pytest.mark.parametrize("case", MISUSED)
def test_parameters_that_do_not_go_together_are_refused(client: Any, notes: str, case: str) -> None:
    more, text = MISUSED[case]
    assert refusal(client.put_item, TableName=notes, Item=ITEM, **more) == (
        VALIDATION,
        ENVELOPE + text,
    )


@pytest.mark.parametrize("case", MISUSED)
def test_parameters_are_checked_before_the_table_is_looked_up(client: Any, case: str) -> None:
    more, text = MISUSED[case]
    assert refusal(client.put_item, TableName="no_such_table", Item=ITEM, **more) == (
        VALIDATION,
        ENVELOPE + text,
    )


# --- the legacy condition ---

VALUE = {"S": "1"}
BAD_EXPECTED: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "exists without a value": (
        {"Exists": True},
        "Value must be provided when Exists is true for Attribute: a",
    ),
    "a value that must not exist": (
        {"Exists": False, "Value": VALUE},
        "Value cannot be used when Exists is false for Attribute: a",
    ),
    "value and list": (
        {"Value": VALUE, "ComparisonOperator": "EQ", "AttributeValueList": [VALUE]},
        "Value and AttributeValueList cannot be used together for Attribute: a",
    ),
    "an operator alone": (
        {"ComparisonOperator": "EQ"},
        "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
    ),
    "BETWEEN one": (
        {"ComparisonOperator": "BETWEEN", "AttributeValueList": [VALUE]},
        "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
    ),
    # dynalite
    "exists and an operator": (
        {"Exists": True, "ComparisonOperator": "EQ", "Value": VALUE},
        "Exists and ComparisonOperator cannot be used together for Attribute: a",
    ),
    "BETWEEN three": (
        {"ComparisonOperator": "BETWEEN", "AttributeValueList": [VALUE] * 3},
        "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
    ),
    "IN nothing": (
        {"ComparisonOperator": "IN", "AttributeValueList": []},
        "Invalid number of argument(s) for the IN ComparisonOperator",
    ),
    "NULL with a value": (
        {"ComparisonOperator": "NULL", "AttributeValueList": [VALUE]},
        "Invalid number of argument(s) for the NULL ComparisonOperator",
    ),
    "mixed types": (
        {"ComparisonOperator": "IN", "AttributeValueList": [VALUE, {"N": "1"}]},
        "AttributeValues inside AttributeValueList must be of same type",
    ),
    "a list without an operator": (
        {"AttributeValueList": [VALUE]},
        "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
    ),
    "nothing": ({}, "Value must be provided when Exists is null for Attribute: a"),
    "an order of sets": (
        {"ComparisonOperator": "LT", "AttributeValueList": [{"SS": ["a"]}]},
        "ComparisonOperator LT is not valid for SS AttributeValue type",
    ),
}


@pytest.mark.parametrize("case", BAD_EXPECTED)
def test_a_malformed_expected_is_refused(client: Any, notes: str, case: str) -> None:
    expected, text = BAD_EXPECTED[case]
    assert refusal(client.put_item, TableName=notes, Item=ITEM, Expected={"a": expected}) == (
        VALIDATION,
        ENVELOPE + INVALID + text,
    )


def test_a_reversed_between_in_expected_is_refused(client: Any, notes: str) -> None:
    # dynalite
    between = {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"S": "b"}, {"S": "a"}]}
    assert refusal(client.put_item, TableName=notes, Item=ITEM, Expected={"a": between}) == (
        VALIDATION,
        ENVELOPE + "The BETWEEN condition was provided a range where the lower bound is greater "
        "than the upper bound",
    )


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        (0, "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"),
        (40, "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"),
        (
            100,
            "Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: "
            "Member must satisfy enum value set: [OR, AND]",
        ),
    ],
)
def test_an_unknown_conditional_operator_is_refused(client: Any, levels: int, text: str) -> None:
    # recorded: a value nested 100 levels deep brings the older wording back
    deep: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        deep = {"L": [deep]}
    assert refusal(
        client.put_item,
        TableName="no_such_table",
        Item=ITEM,
        Expected={"a": {"Value": deep}, "b": {"Value": VALUE}},
        ConditionalOperator="XOR",
    ) == (VALIDATION, ENVELOPE + text)


OLD = {"a": {"S": "apple"}, "n": {"N": "5"}, "ss": {"SS": ["x", "y"]}, "l": {"L": [{"S": "x"}]}}


def compare(operator: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


HOLDS: dict[str, tuple[dict[str, Any], bool]] = {
    "Exists false, missing": ({"z": {"Exists": False}}, True),
    "Exists false, there": ({"a": {"Exists": False}}, False),
    "Value equal": ({"a": {"Value": {"S": "apple"}}}, True),
    "Value different": ({"a": {"Value": {"S": "pear"}}}, False),
    "Exists true and Value": ({"a": {"Exists": True, "Value": {"S": "apple"}}}, True),
    "EQ": ({"a": compare("EQ", {"S": "apple"})}, True),
    "EQ of another type": ({"n": compare("EQ", {"S": "5"})}, False),
    "EQ of a set in another order": ({"ss": compare("EQ", {"SS": ["y", "x"]})}, True),
    "NE": ({"a": compare("NE", {"S": "pear"})}, True),
    "NE, missing": ({"z": compare("NE", {"S": "pear"})}, True),
    "LT": ({"n": compare("LT", {"N": "10"})}, True),
    "LT, missing": ({"z": compare("LT", {"N": "10"})}, False),
    "LE": ({"n": compare("LE", {"N": "5.0"})}, True),
    "GT": ({"n": compare("GT", {"N": "5"})}, False),
    "GE": ({"n": compare("GE", {"N": "5"})}, True),
    "NULL": ({"z": compare("NULL")}, True),
    "NULL, there": ({"a": compare("NULL")}, False),
    "NOT_NULL": ({"a": compare("NOT_NULL")}, True),
    "NOT_NULL, missing": ({"z": compare("NOT_NULL")}, False),
    "CONTAINS a substring": ({"a": compare("CONTAINS", {"S": "ppl"})}, True),
    "CONTAINS a member": ({"ss": compare("CONTAINS", {"S": "x"})}, True),
    "CONTAINS an element": ({"l": compare("CONTAINS", {"S": "x"})}, True),
    "NOT_CONTAINS": ({"a": compare("NOT_CONTAINS", {"S": "ppl"})}, False),
    "NOT_CONTAINS a member": ({"ss": compare("NOT_CONTAINS", {"S": "z"})}, True),
    "BEGINS_WITH": ({"a": compare("BEGINS_WITH", {"S": "app"})}, True),
    "BEGINS_WITH something else": ({"a": compare("BEGINS_WITH", {"S": "pp"})}, False),
    "IN": ({"a": compare("IN", {"S": "pear"}, {"S": "apple"})}, True),
    "not IN": ({"a": compare("IN", {"S": "pear"})}, False),
    "BETWEEN": ({"n": compare("BETWEEN", {"N": "1"}, {"N": "5"})}, True),
    "BETWEEN others": ({"n": compare("BETWEEN", {"N": "6"}, {"N": "7"})}, False),
    "two, both hold": ({"a": {"Value": {"S": "apple"}}, "n": compare("GE", {"N": "5"})}, True),
    "two, one holds": ({"a": {"Value": {"S": "pear"}}, "n": compare("GE", {"N": "5"})}, False),
}


def succeeds(client: Any, **request: Any) -> bool:
    try:
        client.put_item(**request)
    except client.exceptions.ConditionalCheckFailedException:
        return False
    return True


@pytest.mark.parametrize("case", HOLDS)
def test_expected_compares_with_the_stored_item(client: Any, notes: str, case: str) -> None:
    expected, holds = HOLDS[case]
    item = {"pk": {"S": "expected"}, **OLD}
    client.put_item(TableName=notes, Item=item)
    assert succeeds(client, TableName=notes, Item=item, Expected=expected) is holds


@pytest.mark.parametrize(("operator", "holds"), [("AND", False), ("OR", True)])
def test_the_conditional_operator_joins_the_expectations(
    client: Any, notes: str, operator: str, holds: bool
) -> None:
    item = {"pk": {"S": "joined"}, **OLD}
    client.put_item(TableName=notes, Item=item)
    expected = {"a": {"Value": {"S": "pear"}}, "n": {"Value": {"N": "5"}}}
    request = {"Expected": expected, "ConditionalOperator": operator}
    assert succeeds(client, TableName=notes, Item=item, **request) is holds


# --- conditions ---


def test_a_failed_condition_changes_nothing(client: Any, notes: str) -> None:
    old = {"pk": {"S": "kept"}, "a": {"S": "old"}}
    client.put_item(TableName=notes, Item=old)
    assert refusal(
        client.put_item,
        TableName=notes,
        Item={"pk": {"S": "kept"}, "a": {"S": "new"}},
        ConditionExpression="attribute_not_exists(pk)",
    ) == ("ConditionalCheckFailedException", "The conditional request failed")
    assert stored(client, notes, "kept") == old


def test_a_failed_condition_can_return_the_item_that_is_there(client: Any, notes: str) -> None:
    old = {"pk": {"S": "shown"}, "a": {"S": "old"}}
    client.put_item(TableName=notes, Item=old)
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as failed:
        client.put_item(
            TableName=notes,
            Item={"pk": {"S": "shown"}},
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failed.value.response["Item"] == old


@pytest.mark.parametrize("show", [None, "NONE"])
def test_a_failed_condition_returns_no_item_unasked(
    client: Any, notes: str, show: str | None
) -> None:
    client.put_item(TableName=notes, Item={"pk": {"S": "not shown"}})
    more = {"ReturnValuesOnConditionCheckFailure": show} if show else {}
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as failed:
        client.put_item(
            TableName=notes,
            Item={"pk": {"S": "not shown"}},
            ConditionExpression="attribute_not_exists(pk)",
            **more,
        )
    assert "Item" not in failed.value.response


def test_a_failed_condition_on_a_missing_item_has_no_item_to_return(
    client: Any, notes: str
) -> None:
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as failed:
        client.put_item(
            TableName=notes,
            Item={"pk": {"S": "never there"}},
            ConditionExpression="attribute_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert "Item" not in failed.value.response
    assert stored(client, notes, "never there") is None


# --- keys ---

KEY_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    # dynalite; found after the table, so without the prefix
    "no key": ({"a": VALUE}, INVALID + "Missing the key pk in the item"),
    "no sort key": ({"pk": VALUE}, INVALID + "Missing the key sk in the item"),
    "a number for a string": (
        {"pk": {"N": "1"}, "sk": VALUE},
        INVALID + "Type mismatch for key pk expected: S actual: N",
    ),
    "a list for a string": (
        {"pk": VALUE, "sk": {"L": []}},
        INVALID + "Type mismatch for key sk expected: S actual: L",
    ),
    # recorded
    "an empty partition key": (
        {"pk": {"S": ""}, "sk": VALUE},
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk",
    ),
    "an empty sort key": (
        {"pk": VALUE, "sk": {"S": ""}},
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: sk",
    ),
    # dynalite; the missing blank in "of2048" is the service's
    "a long partition key": (
        {"pk": {"S": "a" * 2049}, "sk": VALUE},
        INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
    "a long sort key": (
        {"pk": VALUE, "sk": {"S": "a" * 1025}},
        INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    ),
    # recorded: the first index, alphabetically, that the attribute is a key of
    "a number for an index key": (
        {"pk": VALUE, "sk": VALUE, "lsi1sk": {"N": "1"}},
        INVALID + "Type mismatch for Index Key lsi1sk Expected: S Actual: N IndexName: gsi1",
    ),
    "a list for an index key": (
        {"pk": VALUE, "sk": VALUE, "lsi1sk": {"L": []}},
        INVALID + "Type mismatch for Index Key lsi1sk Expected: S Actual: L IndexName: gsi1",
    ),
    "an empty index key": (
        {"pk": VALUE, "sk": VALUE, "lsi1sk": {"S": ""}},
        "One or more parameter values are not valid. A value specified for a secondary index key "
        "is not supported. The AttributeValue for a key attribute cannot contain an empty string "
        "value. IndexName: gsi1, IndexKey: lsi1sk",
    ),
    "an empty binary index key": (
        {"pk": VALUE, "sk": VALUE, "bidx": {"B": b""}},
        "One or more parameter values are not valid. A value specified for a secondary index key "
        "is not supported. The AttributeValue for a key attribute cannot contain an empty binary "
        "value. IndexName: gsib, IndexKey: bidx",
    ),
}


@pytest.mark.parametrize("case", KEY_ERRORS)
def test_an_item_must_have_keys_that_fit_the_schema(client: Any, indexed: str, case: str) -> None:
    item, text = KEY_ERRORS[case]
    assert refusal(client.put_item, TableName=indexed, Item=item) == (VALIDATION, text)


def test_a_binary_key_cannot_be_empty(client: Any, table: Any) -> None:
    # recorded
    assert refusal(client.put_item, TableName=table(pk="B"), Item={"pk": {"B": b""}}) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty binary value. Key: pk",
    )


def test_an_index_key_may_be_missing(client: Any, indexed: str) -> None:
    item = {"pk": {"S": "sparse"}, "sk": {"S": "1"}}
    client.put_item(TableName=indexed, Item=item)
    assert stored(client, indexed, "sparse", sk={"S": "1"}) == item


@pytest.mark.parametrize(
    ("pk", "sk"), [("a" * 2048, "a" * 1024), ("é" * 1024, "é" * 512)], ids=["ascii", "utf-8"]
)
def test_keys_of_the_greatest_size_are_stored(client: Any, indexed: str, pk: str, sk: str) -> None:
    client.put_item(TableName=indexed, Item={"pk": {"S": pk}, "sk": {"S": sk}})
    assert stored(client, indexed, pk, sk={"S": sk}) is not None


def test_the_first_key_attribute_is_checked_first(client: Any, indexed: str) -> None:
    # dynalite: partition key before sort key before index keys
    item = {"pk": {"N": "1"}, "sk": {"S": ""}, "lsi1sk": {"N": "1"}}
    assert refusal(client.put_item, TableName=indexed, Item=item) == (
        VALIDATION,
        INVALID + "Type mismatch for key pk expected: S actual: N",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"a": ""},
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
        (
            {"S": None},
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
        ({"NULL": "no"}, INVALID + "Null attribute value types must have the value of true"),
    ],
    ids=["an unknown type", "a null member", "a null that is no"],
)
def test_values_that_boto3_does_not_send_are_refused(
    raw: Any, notes: str, value: dict[str, Any], text: str
) -> None:
    # dynalite
    answer = raw("PutItem", {"TableName": notes, "Item": {"pk": {"S": "odd"}, "v": value}})
    assert (answer.status, answer.body["message"]) == (400, ENVELOPE + text)


def test_unknown_members_and_nulls_are_ignored(raw: Any, client: Any, notes: str) -> None:
    # dynalite
    request = {
        "TableName": notes,
        "Item": {"pk": {"S": "ignored", "Z": 1, "N": None}},
        "ReturnValues": None,
        "Unknown": [1],
    }
    assert raw("PutItem", request).body == {}
    assert stored(client, notes, "ignored") == {"pk": {"S": "ignored"}}


# --- size ---


def test_a_put_that_would_exceed_400_kb_changes_nothing(client: Any, notes: str) -> None:
    key = {"pk": {"S": "size"}}
    exact = 400 * 1024 - len("pk") - len("size") - len("a")
    client.put_item(TableName=notes, Item={**key, "a": {"S": "x" * exact}})
    code, text = refusal(
        client.put_item, TableName=notes, Item={**key, "a": {"S": "y" * (exact + 1)}}
    )
    assert code == VALIDATION
    assert text.removeprefix(ENVELOPE) == "Item size has exceeded the maximum allowed size"
    assert stored(client, notes, "size")["a"]["S"] == "x" * exact


def test_the_item_size_is_checked_before_the_table_is_looked_up(client: Any) -> None:
    # dynalite
    item = {"pk": {"S": "a"}, "a": {"S": "x" * 400 * 1024}}
    code, text = refusal(client.put_item, TableName="no_such_table", Item=item)
    assert code == VALIDATION
    assert text.removeprefix(ENVELOPE) == "Item size has exceeded the maximum allowed size"


# --- order of checks ---

ORDER: dict[str, tuple[dict[str, Any], str]] = {
    # dynalite
    "expressions that do not mix before names without one": (
        {
            "Expected": {},
            "ConditionExpression": "",
            "ExpressionAttributeNames": {},
            "Item": {"a": {"N": "x"}},
        },
        MISUSED["Expected with an expression"][1],
    ),
    "names before values": (
        {"ExpressionAttributeNames": {}, "ExpressionAttributeValues": {}, "Item": ITEM},
        MISUSED["names without an expression"][1],
    ),
    "misuse before the item's values": (
        {"ExpressionAttributeNames": {}, "Item": {"a": {"N": "x"}}},
        MISUSED["names without an expression"][1],
    ),
    "the item's values before ReturnValues": (
        {"Item": {"a": {"N": "x"}}, "ReturnValues": "ALL_NEW"},
        "The parameter cannot be converted to a numeric value: x",
    ),
    "ReturnValues before Expected": (
        {"Item": ITEM, "ReturnValues": "ALL_NEW", "Expected": {"a": {}}},
        "ReturnValues can only be ALL_OLD or NONE",
    ),
    "the item's values before the expression": (
        {"Item": {"a": {"N": "x"}}, "ConditionExpression": ""},
        "The parameter cannot be converted to a numeric value: x",
    ),
    "names before the expression": (
        {"Item": ITEM, "ConditionExpression": "", "ExpressionAttributeNames": {"a": "a"}},
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
    ),
    "values before the expression": (
        {"Item": ITEM, "ConditionExpression": "", "ExpressionAttributeValues": {"b": {"S": "a"}}},
        'ExpressionAttributeValues contains invalid key: Syntax error; key: "b"',
    ),
}


@pytest.mark.parametrize("case", ORDER)
def test_checks_come_in_the_order_of_the_service(client: Any, case: str) -> None:
    request, text = ORDER[case]
    assert refusal(client.put_item, TableName="no_such_table", **request) == (
        VALIDATION,
        ENVELOPE + text,
    )


def test_the_key_is_checked_before_the_condition(client: Any, notes: str) -> None:
    assert refusal(
        client.put_item,
        TableName=notes,
        Item={"pk": {"N": "1"}},
        ConditionExpression="attribute_exists(pk)",
    ) == (VALIDATION, INVALID + "Type mismatch for key pk expected: S actual: N")
