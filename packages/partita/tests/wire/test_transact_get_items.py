"""TransactGetItems: up to 100 items of several tables, as of one moment."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .indexes import index
from .refusals import BAD_CAPACITY, ENVELOPE, PATHS_INTO_KEYS, VALIDATION, refusal

CANCELLED = "Transaction cancelled, please refer cancellation reasons for specific reasons "


def item(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": f"key {number}"},
        "n": {"N": str(number)},
        "m": {"M": {"x": {"S": "x"}, "y": {"S": "y"}}},
    }


def get(table: str, number: int, **more: Any) -> dict[str, Any]:
    return {"Get": {"TableName": table, "Key": {"pk": {"S": f"key {number}"}}, **more}}


@pytest.fixture(scope="module")
def tables(client: Any, module_table: Any) -> list[str]:
    """Two tables with the key pk and the items 0 to 9."""
    names = [module_table(), module_table()]
    for name in names:
        for number in range(10):
            client.put_item(TableName=name, Item=item(number))
    return names


@pytest.fixture
def notes(tables: list[str]) -> str:
    return tables[0]


def test_items_come_in_the_order_of_the_request(client: Any, tables: list[str]) -> None:
    one, two = tables
    answer = client.transact_get_items(
        TransactItems=[get(one, 3), get(two, 1), get(one, 77), get(one, 2)]
    )
    assert answer["Responses"] == [
        {"Item": item(3)},
        {"Item": item(1)},
        {},
        {"Item": item(2)},
    ]


def test_a_missing_item_is_an_empty_entry(raw: Any, notes: str) -> None:
    answer = raw("TransactGetItems", {"TransactItems": [get(notes, 77)]})
    assert (answer.status, answer.body) == (200, {"Responses": [{}]})


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"ProjectionExpression": "n"}, {"Item": {"n": {"N": "1"}}}),
        ({"ProjectionExpression": "m.x"}, {"Item": {"m": {"M": {"x": {"S": "x"}}}}}),
        (
            {"ProjectionExpression": "#n", "ExpressionAttributeNames": {"#n": "n"}},
            {"Item": {"n": {"N": "1"}}},
        ),
        # recorded: unlike GetItem and BatchGetItem, nothing left of an item is no item
        ({"ProjectionExpression": "nothing"}, {}),
    ],
)
def test_a_projection_returns_what_it_names(
    client: Any, notes: str, more: dict[str, Any], expected: dict[str, Any]
) -> None:
    answer = client.transact_get_items(TransactItems=[get(notes, 1, **more)])
    assert answer["Responses"] == [expected]


def test_100_items_are_read(client: Any, notes: str) -> None:
    answer = client.transact_get_items(TransactItems=[get(notes, n) for n in range(100)])
    assert len(answer["Responses"]) == 100
    assert answer["Responses"][9:11] == [{"Item": item(9)}, {}]


# --- refusals ---


def test_no_items_are_refused(client: Any) -> None:
    # recorded: two wordings are in use
    code, text = refusal(client.transact_get_items, TransactItems=[])
    assert code == VALIDATION
    assert text in {
        ENVELOPE + f"Value {where} failed to satisfy constraint: "
        "Member must have length greater than or equal to 1"
        for where in ("'[]' at 'transactItems'", "at 'TransactItems'")
    }


def test_101_items_are_refused(client: Any, notes: str) -> None:
    # recorded: two wordings are in use
    code, text = refusal(
        client.transact_get_items, TransactItems=[get(notes, n) for n in range(101)]
    )
    assert code == VALIDATION
    assert re.fullmatch(
        r"1 validation error detected: (?:Value '\[.+\]' at 'transactItems'|"
        r"Value at 'TransactItems') failed to satisfy constraint: "
        r"Member must have length less than or equal to 100",
        text,
        re.DOTALL,
    )


def test_one_item_twice_is_refused(client: Any, notes: str) -> None:
    # recorded
    assert refusal(
        client.transact_get_items,
        TransactItems=[get(notes, 1), get(notes, 1, ProjectionExpression="n")],
    ) == (VALIDATION, "Transaction request cannot include multiple operations on one item")


def test_a_missing_table_is_refused(client: Any, notes: str) -> None:
    # recorded
    assert refusal(
        client.transact_get_items, TransactItems=[get(notes, 1), get("no_such_table", 1)]
    ) == ("ResourceNotFoundException", "Requested resource not found")


PROJECTIONS: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "garbage": (
        {"ProjectionExpression": "!!!"},
        'Invalid ProjectionExpression: Syntax error; token: "!", near: "!!"',
    ),
    "empty": (
        {"ProjectionExpression": ""},
        "Invalid ProjectionExpression: The expression can not be empty;",
    ),
    "twice": (
        {"ProjectionExpression": "a, a"},
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or "
        "rewrite one of these paths; path one: [a], path two: [a]",
    ),
    "an unused name": (
        {"ProjectionExpression": "a", "ExpressionAttributeNames": {"#b": "b"}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
    ),
    "names without an expression": (
        {"ExpressionAttributeNames": {"#b": "b"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
}


@pytest.mark.parametrize("case", PROJECTIONS)
def test_a_wrong_projection_refuses_the_request(client: Any, notes: str, case: str) -> None:
    more, text = PROJECTIONS[case]
    assert refusal(
        client.transact_get_items, TransactItems=[get(notes, 1), get(notes, 2, **more)]
    ) == (VALIDATION, text)


@pytest.mark.parametrize(
    "key",
    [{}, {"pk": {"N": "1"}}, {"pk": {"L": []}}, {"pk": {"S": "a"}, "z": {"S": "b"}}],
    ids=["no attribute", "a number", "a list", "an attribute too many"],
)
def test_a_key_that_does_not_fit_cancels_the_transaction(
    client: Any, notes: str, key: dict[str, Any]
) -> None:
    # recorded
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_get_items(
            TransactItems=[get(notes, 1), {"Get": {"TableName": notes, "Key": key}}]
        )
    response = cancelled.value.response
    assert response["Error"]["Message"] == CANCELLED + "[None, ValidationError]"
    assert response["CancellationReasons"] == [
        {"Code": "None"},
        {
            "Code": "ValidationError",
            "Message": "The provided key element does not match the schema",
        },
    ]


def test_an_empty_key_refuses_the_request(client: Any, notes: str) -> None:
    # recorded
    empty = {"Get": {"TableName": notes, "Key": {"pk": {"S": ""}}}}
    assert refusal(client.transact_get_items, TransactItems=[get(notes, 1), empty]) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
        "contain an empty string value. Key: pk",
    )


def test_an_empty_binary_key_refuses_the_request(client: Any, table: Any) -> None:
    # recorded
    empty = {"Get": {"TableName": table(pk="B"), "Key": {"pk": {"B": b""}}}}
    assert refusal(client.transact_get_items, TransactItems=[empty]) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
        "contain an empty binary value. Key: pk",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"N": "abc"}, "The parameter cannot be converted to a numeric value: abc"),
        (
            {},
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
    ],
    ids=["no number", "nothing"],
)
def test_a_wrong_value_in_a_key_refuses_the_request(
    client: Any, notes: str, value: dict[str, Any], text: str
) -> None:
    # recorded for numbers: never a cancellation
    wrong = {"Get": {"TableName": notes, "Key": {"pk": value}}}
    assert refusal(client.transact_get_items, TransactItems=[wrong]) == (VALIDATION, text)


@pytest.mark.parametrize("path", PATHS_INTO_KEYS)
def test_a_projection_cannot_look_into_a_key(client: Any, table: Any, path: str) -> None:
    # Never a cancellation, and before keys are compared with their schema (DynamoDB Local).
    name = table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index("byG", "g")])
    client.put_item(TableName=name, Item={**item(1), "g": {"S": "g"}})
    asked = get(name, 1, ProjectionExpression=path)
    mismatch = {"Get": {"TableName": name, "Key": {"pk": {"N": "1"}}}}
    for gets in ([asked], [mismatch, asked], [get(name, 1), asked]):
        refused = refusal(client.transact_get_items, TransactItems=gets)
        assert refused == (VALIDATION, PATHS_INTO_KEYS[path])


# --- members and their constraints (recorded) ---


def test_a_bad_table_name_is_named_with_its_place(client: Any, notes: str) -> None:
    assert refusal(
        client.transact_get_items, TransactItems=[get(notes, 1), get("bad!name", 1)]
    ) == (
        VALIDATION,
        ENVELOPE + "Value 'bad!name' at 'transactItems.2.member.get.tableName' failed to satisfy "
        "constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    )


@pytest.mark.parametrize(
    "numbers", [(1,), (1, 1)], ids=["before a missing table", "before one item twice"]
)
def test_an_unknown_capacity_to_return_comes_first(client: Any, numbers: tuple[int, ...]) -> None:
    items = [get("no_such_table", number) for number in numbers]
    assert refusal(
        client.transact_get_items, TransactItems=items, ReturnConsumedCapacity="BOGUS"
    ) == (VALIDATION, ENVELOPE + BAD_CAPACITY)
