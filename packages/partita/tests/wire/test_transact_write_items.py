"""TransactWriteItems: up to 100 actions that happen all or not at all."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from .refusals import BAD_CAPACITY, BAD_RETURNS, ENVELOPE, INVALID, VALIDATION, refusal

MISMATCH = "The provided key element does not match the schema"
CANCELLED = "Transaction cancelled, please refer cancellation reasons for specific reasons "
FAILED = "The conditional request failed"
STRINGS = ("pk", "g")


@pytest.fixture(scope="module")
def tables(module_table: Any) -> list[str]:
    """Two tables with the key pk, the string index key g and the binary index key b."""
    indexes = [
        {
            "IndexName": f"by_{key}",
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
        for key in ("g", "b")
    ]
    attributes = {**dict.fromkeys(STRINGS, "S"), "b": "B"}
    return [module_table(attributes=attributes, GlobalSecondaryIndexes=indexes) for _ in range(2)]


@pytest.fixture
def notes(tables: list[str]) -> str:
    return tables[0]


@pytest.fixture
def pk(request: pytest.FixtureRequest) -> str:
    """A key that no other test uses."""
    return str(request.node.nodeid)


def key(pk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}}


def put(table: str, pk: str, attributes: dict[str, Any] | None = None, **more: Any) -> Any:
    return {"Put": {"TableName": table, "Item": {**key(pk), **(attributes or {})}, **more}}


def update(table: str, pk: str, expression: str, values: Any = None, **more: Any) -> Any:
    if values:
        more["ExpressionAttributeValues"] = values
    return {"Update": {"TableName": table, "Key": key(pk), "UpdateExpression": expression, **more}}


def delete(table: str, pk: str, **more: Any) -> Any:
    return {"Delete": {"TableName": table, "Key": key(pk), **more}}


def check(table: str, pk: str, condition: str, **more: Any) -> Any:
    return {
        "ConditionCheck": {
            "TableName": table,
            "Key": key(pk),
            "ConditionExpression": condition,
            **more,
        }
    }


def stored(client: Any, table: str, pk: str) -> Any:
    return client.get_item(TableName=table, Key=key(pk), ConsistentRead=True).get("Item")


def cancellation(client: Any, items: list[Any], **more: Any) -> dict[str, Any]:
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_write_items(TransactItems=items, **more)
    response: dict[str, Any] = cancelled.value.response
    return response


# --- what a transaction does ---


def test_all_four_actions_over_two_tables_happen(client: Any, tables: list[str], pk: str) -> None:
    one, two = tables
    client.put_item(TableName=one, Item={**key(pk + "u"), "n": {"N": "1"}})
    client.put_item(TableName=two, Item=key(pk + "d"))
    client.put_item(TableName=two, Item=key(pk + "c"))
    client.transact_write_items(
        TransactItems=[
            put(one, pk + "p", {"a": {"S": "x"}}),
            update(one, pk + "u", "SET n = n + :v", {":v": {"N": "5"}}),
            delete(two, pk + "d"),
            check(two, pk + "c", "attribute_exists(pk)"),
        ]
    )
    assert stored(client, one, pk + "p") == {**key(pk + "p"), "a": {"S": "x"}}
    assert stored(client, one, pk + "u") == {**key(pk + "u"), "n": {"N": "6"}}
    assert stored(client, two, pk + "d") is None


def test_a_transaction_answers_with_an_empty_object(raw: Any, notes: str, pk: str) -> None:
    answer = raw("TransactWriteItems", {"TransactItems": [put(notes, pk)]})
    assert (answer.status, answer.body) == (200, {})


def test_an_update_creates_a_missing_item(client: Any, notes: str, pk: str) -> None:
    action = update(
        notes,
        pk,
        "SET a = :v",
        {":v": {"S": "x"}},
        ConditionExpression="attribute_not_exists(pk)",
    )
    client.transact_write_items(TransactItems=[action])
    assert stored(client, notes, pk) == {**key(pk), "a": {"S": "x"}}


def test_100_actions_happen(client: Any, notes: str, pk: str) -> None:
    client.transact_write_items(TransactItems=[put(notes, f"{pk}{n}") for n in range(100)])
    assert stored(client, notes, f"{pk}99")


def test_an_index_follows_a_transaction(client: Any, notes: str, pk: str) -> None:
    client.transact_write_items(TransactItems=[put(notes, pk, {"g": {"S": pk}})])
    found = client.query(
        TableName=notes,
        IndexName="by_g",
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": {"S": pk}},
    )
    assert found["Items"] == [{**key(pk), "g": {"S": pk}}]


# --- cancellations ---


def test_one_failed_condition_undoes_everything(client: Any, tables: list[str], pk: str) -> None:
    one, two = tables
    client.put_item(TableName=two, Item=key(pk))
    response = cancellation(
        client,
        [put(one, pk), put(two, pk, ConditionExpression="attribute_not_exists(pk)")],
    )
    # recorded
    assert response["Error"]["Message"] == CANCELLED + "[None, ConditionalCheckFailed]"
    assert response["CancellationReasons"] == [
        {"Code": "None"},
        {"Code": "ConditionalCheckFailed", "Message": FAILED},
    ]
    assert stored(client, one, pk) is None


def test_every_failed_condition_is_reported(client: Any, notes: str, pk: str) -> None:
    # Alternator's tests on AWS: no short circuit
    response = cancellation(
        client,
        [
            check(notes, pk + "1", "attribute_exists(pk)"),
            put(notes, pk + "2"),
            delete(notes, pk + "3", ConditionExpression="attribute_exists(pk)"),
            update(notes, pk + "4", "REMOVE a", ConditionExpression="attribute_exists(pk)"),
        ],
    )
    codes = [reason["Code"] for reason in response["CancellationReasons"]]
    failed = "ConditionalCheckFailed"
    assert codes == [failed, "None", failed, failed]
    assert response["Error"]["Message"] == f"{CANCELLED}[{failed}, None, {failed}, {failed}]"
    assert stored(client, notes, pk + "2") is None


@pytest.mark.parametrize("kind", ["put", "update", "delete", "check"])
def test_a_failed_condition_can_return_the_item_that_is_there(
    client: Any, notes: str, pk: str, kind: str
) -> None:
    old = {**key(pk), "a": {"S": "old"}}
    client.put_item(TableName=notes, Item=old)
    more: dict[str, Any] = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
    actions = {
        "put": put(notes, pk, **condition, **more),
        "update": update(notes, pk, "REMOVE a", **condition, **more),
        "delete": delete(notes, pk, **condition, **more),
        "check": check(notes, pk, "attribute_not_exists(pk)", **more),
    }
    response = cancellation(client, [actions[kind]])
    assert response["CancellationReasons"] == [
        {"Code": "ConditionalCheckFailed", "Message": FAILED, "Item": old}
    ]
    assert stored(client, notes, pk) == old


def test_a_failed_condition_returns_no_item_unasked(client: Any, notes: str, pk: str) -> None:
    client.put_item(TableName=notes, Item=key(pk))
    response = cancellation(client, [check(notes, pk, "attribute_not_exists(pk)")])
    assert "Item" not in response["CancellationReasons"][0]


@pytest.mark.parametrize(
    "condition", ["attribute_exists(pk)", "score > :v", "attribute_exists(pk) AND score > :v"]
)
def test_a_cancelled_update_does_not_create_an_item(
    client: Any, notes: str, pk: str, condition: str
) -> None:
    # recorded
    action = update(notes, pk, "ADD score :v", {":v": {"N": "1"}}, ConditionExpression=condition)
    response = cancellation(client, [action])
    assert response["CancellationReasons"][0]["Code"] == "ConditionalCheckFailed"
    assert stored(client, notes, pk) is None


def test_a_cancellation_carries_no_capacity(client: Any, notes: str, pk: str) -> None:
    # recorded
    response = cancellation(
        client, [check(notes, pk, "attribute_exists(pk)")], ReturnConsumedCapacity="TOTAL"
    )
    assert "ConsumedCapacity" not in response


def with_key(kind: str, table: str, value: dict[str, Any]) -> Any:
    wrong = {"pk": value}
    return {
        "put": {"Put": {"TableName": table, "Item": wrong}},
        "update": {"Update": {"TableName": table, "Key": wrong, "UpdateExpression": "REMOVE a"}},
        "delete": {"Delete": {"TableName": table, "Key": wrong}},
        "check": {
            "ConditionCheck": {
                "TableName": table,
                "Key": wrong,
                "ConditionExpression": "attribute_exists(pk)",
            }
        },
    }[kind]


@pytest.mark.parametrize("kind", ["put", "update", "delete", "check"])
@pytest.mark.parametrize(("value", "type_"), [({"N": "5"}, "N"), ({"L": [{"S": "x"}]}, "L")])
def test_a_key_of_the_wrong_type_cancels_the_transaction(
    client: Any, notes: str, kind: str, value: dict[str, Any], type_: str
) -> None:
    # recorded
    response = cancellation(client, [with_key(kind, notes, value)])
    texts = {"put": f"{INVALID}Type mismatch for key pk expected: S actual: {type_}"}
    assert response["Error"]["Message"] == CANCELLED + "[ValidationError]"
    assert response["CancellationReasons"] == [
        {"Code": "ValidationError", "Message": texts.get(kind, MISMATCH)}
    ]


def test_only_the_first_wrong_key_is_reported_and_no_condition(
    client: Any, notes: str, pk: str
) -> None:
    # Alternator's tests on AWS
    response = cancellation(
        client,
        [
            check(notes, pk, "attribute_exists(pk)"),
            with_key("put", notes, {"N": "5"}),
            with_key("delete", notes, {"N": "5"}),
        ],
    )
    codes = [reason["Code"] for reason in response["CancellationReasons"]]
    assert codes == ["None", "ValidationError", "None"]


@pytest.mark.parametrize(("value", "type_"), [({"N": "5"}, "N"), ({"L": [{"S": "x"}]}, "L")])
@pytest.mark.parametrize("kind", ["put", "update"])
def test_an_index_key_of_the_wrong_type_cancels_the_transaction(
    client: Any, notes: str, pk: str, kind: str, value: dict[str, Any], type_: str
) -> None:
    # recorded
    actions = {
        "put": put(notes, pk, {"g": value}),
        "update": update(notes, pk, "SET g = :v", {":v": value}),
    }
    response = cancellation(client, [actions[kind]])
    assert response["CancellationReasons"] == [
        {
            "Code": "ValidationError",
            "Message": f"{INVALID}Type mismatch for Index Key g Expected: S Actual: {type_} "
            "IndexName: by_g",
        }
    ]


UNAPPLIED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a missing operand": (
        "SET a = b",
        {},
        "The provided expression refers to an attribute that does not exist in the item",
    ),
    "a missing parent": (
        "SET a.b = :v",
        {":v": {"N": "1"}},
        "The document path provided in the update expression is invalid for update",
    ),
    "a wrong operand": (
        "SET a = s + :v",
        {":v": {"N": "1"}},
        "An operand in the update expression has an incorrect data type",
    ),
    # recorded
    "an item that grows too large": (
        "SET f = :v, h = :v",
        {":v": {"S": "x" * 250_000}},
        "Item size to update has exceeded the maximum allowed size",
    ),
}


@pytest.mark.parametrize("case", UNAPPLIED)
def test_an_update_that_cannot_be_applied_cancels_the_transaction(
    client: Any, notes: str, pk: str, case: str
) -> None:
    expression, values, text = UNAPPLIED[case]
    old = {**key(pk), "s": {"S": "x"}}
    client.put_item(TableName=notes, Item=old)
    response = cancellation(
        client, [put(notes, pk + "peer"), update(notes, pk, expression, values)]
    )
    assert response["CancellationReasons"] == [
        {"Code": "None"},
        {"Code": "ValidationError", "Message": text},
    ]
    assert stored(client, notes, pk) == old
    assert stored(client, notes, pk + "peer") is None


@pytest.mark.parametrize("kind", ["check", "delete"])
def test_a_transaction_that_changes_nothing_holds_nothing(
    raw: Any, notes: str, pk: str, kind: str
) -> None:
    # Sent without a client token: boto3 adds one, and remembering it is a change.
    idle = {
        "check": check(notes, pk, "attribute_not_exists(pk)"),
        "delete": delete(notes, pk),
    }
    assert raw("TransactWriteItems", {"TransactItems": [idle[kind]]}).body == {}
    assert raw("TransactWriteItems", {"TransactItems": [put(notes, pk)]}).body == {}


# --- client tokens ---


def test_a_repeated_token_does_not_repeat_the_transaction(client: Any, notes: str, pk: str) -> None:
    request = {
        "TransactItems": [update(notes, pk, "ADD n :v", {":v": {"N": "1"}})],
        "ClientRequestToken": str(uuid.uuid4()),
    }
    client.transact_write_items(**request)
    client.transact_write_items(**request)
    assert stored(client, notes, pk)["n"] == {"N": "1"}


def test_a_token_with_another_request_is_refused(client: Any, notes: str, pk: str) -> None:
    token = str(uuid.uuid4())
    client.transact_write_items(TransactItems=[put(notes, pk)], ClientRequestToken=token)
    code, _ = refusal(
        client.transact_write_items,
        TransactItems=[put(notes, pk, {"a": {"S": "x"}})],
        ClientRequestToken=token,
    )
    assert code == "IdempotentParameterMismatchException"
    assert stored(client, notes, pk) == key(pk)


def test_a_token_survives_another_wish_for_capacity(client: Any, notes: str, pk: str) -> None:
    # What is asked back is no part of what the token stands for (DynamoDB Local).
    token = str(uuid.uuid4())
    action = update(notes, pk, "ADD n :v", {":v": {"N": "1"}})
    client.transact_write_items(TransactItems=[action], ClientRequestToken=token)
    client.transact_write_items(
        TransactItems=[action], ClientRequestToken=token, ReturnConsumedCapacity="TOTAL"
    )
    assert stored(client, notes, pk)["n"] == {"N": "1"}


def test_the_token_of_a_cancelled_transaction_can_be_used_again(
    client: Any, notes: str, pk: str
) -> None:
    token = str(uuid.uuid4())
    action = put(notes, pk, ConditionExpression="attribute_not_exists(pk)")
    client.put_item(TableName=notes, Item={**key(pk), "a": {"S": "x"}})
    cancellation(client, [action], ClientRequestToken=token)
    client.delete_item(TableName=notes, Key=key(pk))
    client.transact_write_items(TransactItems=[action], ClientRequestToken=token)
    assert stored(client, notes, pk) == key(pk)


def test_a_token_has_36_characters_at_most(client: Any, notes: str, pk: str) -> None:
    # recorded: two wordings are in use
    client.transact_write_items(
        TransactItems=[put(notes, pk)], ClientRequestToken=uuid.uuid4().hex + "four"
    )
    token = "t" * 37
    code, text = refusal(
        client.transact_write_items, TransactItems=[put(notes, pk)], ClientRequestToken=token
    )
    assert code == VALIDATION
    assert text in {
        ENVELOPE + f"Value {where} failed to satisfy constraint: "
        "Member must have length less than or equal to 36"
        for where in ("at 'ClientRequestToken'", f"'{token}' at 'clientRequestToken'")
    }


# --- refusals of the whole request ---


def test_no_actions_are_refused(client: Any) -> None:
    # recorded: two wordings are in use
    code, text = refusal(client.transact_write_items, TransactItems=[])
    assert code == VALIDATION
    assert text in {
        ENVELOPE + f"Value {where} failed to satisfy constraint: "
        "Member must have length greater than or equal to 1"
        for where in ("'[]' at 'transactItems'", "at 'TransactItems'")
    }


def test_101_actions_are_refused(client: Any, notes: str, pk: str) -> None:
    # recorded: two wordings are in use
    code, text = refusal(
        client.transact_write_items, TransactItems=[put(notes, f"{pk}{n}") for n in range(101)]
    )
    assert code == VALIDATION
    assert re.fullmatch(
        r"1 validation error detected: (?:Value '\[.+\]' at 'transactItems'|"
        r"Value at 'TransactItems') failed to satisfy constraint: "
        r"Member must have length less than or equal to 100",
        text,
        re.DOTALL,
    )


PAIRS: list[tuple[str, str]] = [
    ("put", "put"),
    ("put", "delete"),
    ("update", "check"),
    ("check", "check"),
]


@pytest.mark.parametrize("kinds", PAIRS)
def test_two_actions_on_one_item_are_refused(
    client: Any, notes: str, pk: str, kinds: tuple[str, str]
) -> None:
    # recorded
    actions = [with_key(kind, notes, {"S": pk}) for kind in kinds]
    assert refusal(client.transact_write_items, TransactItems=actions) == (
        VALIDATION,
        "Transaction request cannot include multiple operations on one item",
    )


def test_the_same_key_in_two_tables_is_not_one_item(
    client: Any, tables: list[str], pk: str
) -> None:
    client.transact_write_items(TransactItems=[put(table, pk) for table in tables])
    assert all(stored(client, table, pk) for table in tables)


def test_a_missing_table_refuses_the_request(client: Any, notes: str, pk: str) -> None:
    # recorded
    assert refusal(
        client.transact_write_items, TransactItems=[put(notes, pk), put("no_such_table", pk)]
    ) == ("ResourceNotFoundException", "Requested resource not found")
    assert stored(client, notes, pk) is None


@pytest.mark.parametrize("kind", ["put", "update", "delete", "check"])
def test_an_empty_key_refuses_the_request(client: Any, notes: str, kind: str) -> None:
    # recorded
    assert refusal(
        client.transact_write_items, TransactItems=[with_key(kind, notes, {"S": ""})]
    ) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
        "contain an empty string value. Key: pk",
    )


@pytest.mark.parametrize("kind", ["put", "update", "delete", "check"])
def test_an_empty_binary_key_refuses_the_request(client: Any, table: Any, kind: str) -> None:
    # recorded
    assert refusal(
        client.transact_write_items, TransactItems=[with_key(kind, table(pk="B"), {"B": b""})]
    ) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
        "contain an empty binary value. Key: pk",
    )


@pytest.mark.parametrize(
    ("attribute", "value", "name"), [("g", {"S": ""}, "string"), ("b", {"B": b""}, "binary")]
)
def test_an_empty_index_key_refuses_the_request(
    client: Any, notes: str, pk: str, attribute: str, value: dict[str, Any], name: str
) -> None:
    # recorded
    assert refusal(
        client.transact_write_items, TransactItems=[put(notes, pk, {attribute: value})]
    ) == (
        VALIDATION,
        "One or more parameter values are not valid. A value specified for a secondary index key "
        "is not supported. The AttributeValue for a key attribute cannot contain an empty "
        f"{name} value. IndexName: by_{attribute}, IndexKey: {attribute}",
    )
    assert refusal(
        client.transact_write_items,
        TransactItems=[update(notes, pk, f"SET {attribute} = :v", {":v": value})],
    ) == (
        VALIDATION,
        "One or more parameter values are not valid. The update expression attempted to update a "
        "secondary index key to a value that is not supported. The AttributeValue for a key "
        f"attribute cannot contain an empty {name} value.",
    )


TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)


def nested(levels: int, leaf: dict[str, Any] | None = None) -> dict[str, Any]:
    value = leaf or {"S": "leaf"}
    for _ in range(levels):
        value = {"M": {"x": value}}
    return value


REFUSED: dict[str, tuple[Any, str]] = {
    # recorded; no prefix in a transaction
    "an empty condition of a put": (
        put("no_such_table", "a", ConditionExpression=""),
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
    "an empty condition of a delete": (
        delete("no_such_table", "a", ConditionExpression=""),
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
    "an empty condition of a check": (
        check("no_such_table", "a", ""),
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
    "half a condition": (
        put("no_such_table", "a", ConditionExpression="attribute_not_exists("),
        'Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "("',
    ),
    "redundant parentheses": (
        put("no_such_table", "a", ConditionExpression="((attribute_not_exists(pk)))"),
        "Invalid ConditionExpression: The expression has redundant parentheses;",
    ),
    "an unused value of a put": (
        put(
            "no_such_table",
            "a",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":v": {"S": "x"}},
        ),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
    ),
    "an unused value of an update": (
        update("no_such_table", "a", "REMOVE a", {":v": {"S": "x"}}),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
    ),
    "an unused value of a delete": (
        delete(
            "no_such_table",
            "a",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":v": {"S": "x"}},
        ),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
    ),
    "an unused value of a check": (
        check(
            "no_such_table",
            "a",
            "attribute_exists(pk)",
            ExpressionAttributeValues={":v": {"S": "x"}},
        ),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
    ),
    "an empty attribute name": (
        put("no_such_table", "a", {"": {"S": "x"}}),
        "Empty attribute name",
    ),
    "an empty name inside": (
        put("no_such_table", "a", {"m": {"M": {"": {"S": "x"}}}}),
        "Empty attribute name",
    ),
    "a value nested too deep": (put("no_such_table", "a", {"d": nested(32)}), TOO_DEEP),
    "a value nested much too deep": (put("no_such_table", "a", {"d": nested(40)}), TOO_DEEP),
    "a long condition": (
        put(
            "no_such_table",
            "a",
            ConditionExpression=f"attribute_not_exists({'a' * 4087})",
        ),
        "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; "
        "expression size: 4109",
    ),
    "a long update": (
        update("no_such_table", "a", f"REMOVE {'a' * 4096}"),
        "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size;",
    ),
    "an item that is too large": (
        put("no_such_table", "a", {"f": {"S": "x" * 409_600}}),
        "Item size has exceeded the maximum allowed size",
    ),
    # The order of the checks within one action (recorded).
    "an empty attribute name before depth": (
        put("no_such_table", "a", {"d": nested(32), "": {"S": "x"}}),
        "Empty attribute name",
    ),
    "depth before an empty name inside": (
        put("no_such_table", "a", {"d": nested(31, {"M": {"": {"S": "x"}}})}),
        TOO_DEEP,
    ),
    "the condition before the depth of the key": (
        {
            "Delete": {
                "TableName": "no_such_table",
                "Key": {"pk": nested(32)},
                "ConditionExpression": "",
            }
        },
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_action_refuses_the_request_before_tables_are_looked_up(
    client: Any, case: str
) -> None:
    action, text = REFUSED[case]
    assert refusal(client.transact_write_items, TransactItems=[action]) == (VALIDATION, text)


def test_a_wrong_action_leaves_the_others_undone(client: Any, notes: str, pk: str) -> None:
    wrong = put(
        notes,
        pk + "2",
        ConditionExpression="attribute_exists(pk)",
        ExpressionAttributeValues={":v": {"S": "x"}},
    )
    refusal(client.transact_write_items, TransactItems=[put(notes, pk), wrong])
    assert stored(client, notes, pk) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a value nested too deep", "an empty condition of a delete"),
        ("an empty condition of a delete", "a value nested too deep"),
    ],
)
def test_the_first_wrong_action_is_reported(client: Any, first: str, second: str) -> None:
    # recorded: whatever kind its error is of
    actions = [REFUSED[first][0], REFUSED[second][0]]
    assert refusal(client.transact_write_items, TransactItems=actions) == (
        VALIDATION,
        REFUSED[first][1],
    )


@pytest.mark.parametrize("kind", ["update", "condition", "check", "put", "delete"])
def test_a_value_nested_too_deep_in_an_expression_is_refused(client: Any, kind: str) -> None:
    # recorded: beyond 60 levels the value is named; above, some regions name it and some do not
    def said(value: dict[str, Any], *more: Any) -> tuple[str, str]:
        condition: dict[str, Any] = {
            "ConditionExpression": "a = :a OR a = :deep",
            "ExpressionAttributeValues": {":a": {"S": "a"}, ":deep": value},
        }
        actions = {
            "update": update(
                "no_such_table", "a", "SET b = :a, a = :deep", {":a": {"S": "a"}, ":deep": value}
            ),
            "condition": {
                "Update": {
                    "TableName": "no_such_table",
                    "Key": {"pk": {"S": "a"}},
                    "UpdateExpression": "REMOVE a",
                    **condition,
                }
            },
            "check": {
                "ConditionCheck": {
                    "TableName": "no_such_table",
                    "Key": {"pk": {"S": "a"}},
                    **condition,
                }
            },
            "put": put("no_such_table", "a", **condition),
            "delete": delete("no_such_table", "a", **condition),
        }
        return refusal(client.transact_write_items, TransactItems=[actions[kind], *more])

    named = f"ExpressionAttributeValues contains invalid value: {TOO_DEEP} for key :deep"
    later = put("no_such_table", "b", {"": {"S": "x"}})
    for levels in (61, 63, 100):
        assert said(nested(levels)) == (VALIDATION, named)
        assert said(nested(levels), later) == (VALIDATION, named)
        assert said(nested(levels, {"L": [{"N": "abc"}]})) == (VALIDATION, named)
    for levels in (32, 40, 60):
        assert said(nested(levels)) == (VALIDATION, TOO_DEEP)
    code, _ = said(nested(31))
    assert code == "ResourceNotFoundException"


def test_a_value_nested_very_deep_outside_of_expressions_has_no_key(client: Any) -> None:
    # recorded
    for action in (
        put("no_such_table", "a", {"d": nested(100)}),
        {"Delete": {"TableName": "no_such_table", "Key": {"pk": nested(100)}}},
    ):
        assert refusal(client.transact_write_items, TransactItems=[action]) == (
            VALIDATION,
            TOO_DEEP,
        )


def test_an_action_is_one_of_four(client: Any) -> None:
    # recorded: two wordings are in use
    code, text = refusal(client.transact_write_items, TransactItems=[{}])
    assert code == VALIDATION
    assert text in {
        ENVELOPE + "Value '' at 'transactItems' failed to satisfy constraint: TransactWriteRequest "
        "should contain Delete or Put or Update or ConditionCheck",
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    }


def test_an_action_is_only_one_of_four(client: Any, notes: str, pk: str) -> None:
    # DynamoDB Local
    both = {**put(notes, pk), **delete(notes, pk + "2")}
    assert refusal(client.transact_write_items, TransactItems=[both]) == (
        VALIDATION,
        "TransactItems can only contain one of Check, Put, Update or Delete",
    )


def test_a_transaction_holds_4_mb(client: Any, notes: str, pk: str) -> None:
    # recorded
    big = {"f": {"S": "x" * 350_000}}
    client.transact_write_items(TransactItems=[put(notes, f"{pk}{n}", big) for n in range(10)])
    actions = [put(notes, f"{pk}more{n}", big) for n in range(13)]
    code, text = refusal(client.transact_write_items, TransactItems=actions)
    assert code == VALIDATION
    assert "size cannot exceed" in text
    assert stored(client, notes, f"{pk}more0") is None
    # What is deleted does not count.
    client.transact_write_items(TransactItems=[delete(notes, f"{pk}{n}") for n in range(10)])


# --- members and their constraints (recorded) ---


@pytest.mark.parametrize(("more", "text"), BAD_RETURNS.values(), ids=BAD_RETURNS)
@pytest.mark.parametrize("times", [1, 2], ids=["missing table", "one item twice"])
def test_an_unknown_enum_value_comes_first(
    client: Any, more: dict[str, Any], text: str, times: int
) -> None:
    actions = [put("no_such_table", "a")] * times
    assert refusal(client.transact_write_items, TransactItems=actions, **more) == (VALIDATION, text)


def test_a_long_token_and_an_unknown_capacity(client: Any) -> None:
    # recorded: the new wording stops at the first error, the older one reports both
    token = "t" * 37
    long = "failed to satisfy constraint: Member must have length less than or equal to 36"
    code, text = refusal(
        client.transact_write_items,
        TransactItems=[put("no_such_table", "a")],
        ClientRequestToken=token,
        ReturnConsumedCapacity="BOGUS",
    )
    assert code == VALIDATION
    assert text in {
        f"{ENVELOPE}Value at 'ClientRequestToken' {long}",
        f"2 validation errors detected: Value '{token}' at 'clientRequestToken' {long}; "
        f"{BAD_CAPACITY}",
    }


@pytest.mark.parametrize(
    ("action", "path"),
    [
        (put("bad!name", "a"), "put"),
        (update("bad!name", "a", "REMOVE a"), "update"),
        (delete("bad!name", "a"), "delete"),
        (check("bad!name", "a", "attribute_exists(a)"), "conditionCheck"),
    ],
    ids=["put", "update", "delete", "check"],
)
def test_a_bad_table_name_is_named_with_its_place(client: Any, action: Any, path: str) -> None:
    actions = [put("no_such_table", "a"), action]
    assert refusal(client.transact_write_items, TransactItems=actions) == (
        VALIDATION,
        ENVELOPE + f"Value 'bad!name' at 'transactItems.2.member.{path}.tableName' failed to "
        "satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    )


def test_an_unknown_wish_for_the_failed_item_refuses_the_request(client: Any, notes: str) -> None:
    # Alternator's tests on AWS: never a cancellation
    action = check(notes, "x", "attribute_exists(pk)", ReturnValuesOnConditionCheckFailure="none")
    assert refusal(client.transact_write_items, TransactItems=[action]) == (
        VALIDATION,
        ENVELOPE + "Value 'none' at "
        "'transactItems.1.member.conditionCheck.returnValuesOnConditionCheckFailure' failed to "
        "satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]",
    )


REQUIRED: dict[str, tuple[Any, str]] = {
    # dynalite; DynamoDB Local for the condition of a check
    "put": ({"Put": {"TableName": "no_such_table"}}, "put.item"),
    "update": (
        {"Update": {"TableName": "no_such_table", "UpdateExpression": "REMOVE a"}},
        "update.key",
    ),
    "delete": ({"Delete": {"TableName": "no_such_table"}}, "delete.key"),
    "check": (
        {"ConditionCheck": {"TableName": "no_such_table", "Key": {"pk": {"S": "a"}}}},
        "conditionCheck.conditionExpression",
    ),
    "update's expression": (
        {"Update": {"TableName": "no_such_table", "Key": {"pk": {"S": "a"}}}},
        "update.updateExpression",
    ),
}


@pytest.mark.parametrize("case", REQUIRED)
def test_a_missing_member_is_named_with_its_place(client: Any, case: str) -> None:
    action, path = REQUIRED[case]
    assert refusal(client.transact_write_items, TransactItems=[action]) == (
        VALIDATION,
        ENVELOPE + f"Value null at 'transactItems.1.member.{path}' failed to satisfy constraint: "
        "Member must not be null",
    )
