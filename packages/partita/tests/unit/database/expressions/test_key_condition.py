"""Key conditions and the ranges that they become."""

# The service's texts are kept in one piece.
# ruff: noqa: E501

from __future__ import annotations

import pytest

from partita.database.expressions.key_condition import compile_key_condition
from partita.database.expressions.name_resolution import Values
from partita.database.item.key_encoding import KeyAttribute, KeyRange
from partita.errors import ValidationException

PARTITION = [KeyAttribute("pk", "S")]
SORT = [KeyAttribute("sk", "N")]
MANY = [KeyAttribute(name, "S") for name in "abcd"]
VALUES: Values = {
    ":p": {"S": "p"},
    ":n": {"N": "1"},
    ":m": {"N": "2"},
    ":s": {"S": "s"},
    ":bool": {"BOOL": True},
}
P = ({"S": "p"},)
S = {"S": "s"}


def resolved(
    text: str, sort: list[KeyAttribute], partition: list[KeyAttribute] = PARTITION
) -> KeyRange:
    condition = compile_key_condition(text, {})
    condition.check(VALUES)
    return condition.resolve(partition, sort, VALUES)


def refusal(text: str, sort: list[KeyAttribute]) -> str | None:
    with pytest.raises(ValidationException) as caught:
        resolved(text, sort)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pk = :p", KeyRange(P)),
        (":p = pk", KeyRange(P)),
        ("(pk = :p) AND (sk = :n)", KeyRange(P, ({"N": "1"},))),
        ("sk < :n AND pk = :p", KeyRange(P, (), "<", ({"N": "1"},))),
        ("pk = :p AND :n <= sk", KeyRange(P, (), ">=", ({"N": "1"},))),
        ("pk = :p AND sk BETWEEN :n AND :m", KeyRange(P, (), "BETWEEN", ({"N": "1"}, {"N": "2"}))),
    ],
)
def test_a_key_condition_becomes_a_range(text: str, expected: KeyRange) -> None:
    assert resolved(text, SORT) == expected


def test_begins_with_on_a_string_sort_key() -> None:
    expected = KeyRange(P, (), "begins_with", (S,))
    assert resolved("pk = :p AND begins_with(a, :s)", MANY[:1]) == expected


def test_keys_of_several_attributes_are_given_from_the_left() -> None:
    assert resolved("a = :s AND pk = :p AND b > :s", MANY) == KeyRange(P, (S,), ">", (S,))
    assert resolved("pk = :p AND a = :s AND b = :s", MANY) == KeyRange(P, (S, S))
    two = [*PARTITION, KeyAttribute("tenant", "S")]
    assert resolved("tenant = :s AND pk = :p", MANY, two) == KeyRange((P[0], S))


def test_every_partition_attribute_needs_an_equality() -> None:
    two = [*PARTITION, KeyAttribute("tenant", "S")]
    for text in ("pk = :p", "pk = :p AND tenant > :s"):
        with pytest.raises(ValidationException, match=r"^HASH key attributes tenant .*equality"):
            resolved(text, MANY, two)


@pytest.mark.parametrize(
    ("text", "missing", "given"),
    [
        ("pk = :p AND a = :s AND c = :s", "b", "c"),
        ("pk = :p AND a = :s AND b > :s AND c = :s", "b", "c"),
        ("pk = :p AND b = :s", "a", "b"),
    ],
)
def test_a_gap_in_a_key_of_several_attributes_is_refused(
    text: str, missing: str, given: str
) -> None:
    assert refusal(text, MANY) == (  # recorded
        f"RANGE key attributes {missing} must have equality conditions specified in the query "
        f"because a condition is present on key attribute {given}"
    )


INVALID = "Invalid KeyConditionExpression: "
TYPE = "Incorrect operand type for operator or function; operator or function: {}, operand type: {}"
SCHEMA = (
    "One or more parameter values were invalid: Condition parameter type does not match schema type"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pk = :p OR pk = :s", "Invalid operator used in KeyConditionExpression: OR"),
        ("NOT pk = :p", "Invalid operator used in KeyConditionExpression: NOT"),
        ("pk <> :p", "Invalid operator used in KeyConditionExpression: <>"),
        ("pk IN (:p)", "Invalid operator used in KeyConditionExpression: IN"),
        ("contains(pk, :p)", "Invalid operator used in KeyConditionExpression: contains"),
        ("size(pk) = :n", "KeyConditionExpressions cannot contain nested operations"),
        ("pk.x = :p", "KeyConditionExpressions cannot have conditions on nested attributes"),
        (
            "a.b = :n AND pk <> :p",
            "KeyConditionExpressions cannot have conditions on nested attributes",
        ),
        (
            "pk = sk",
            "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition",
        ),
        (":p = :p", "Invalid condition in KeyConditionExpression: No key attribute specified"),
        (
            "begins_with(:s, pk)",
            "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand",
        ),
        (
            "pk = :p AND sk > :n AND sk < :m",
            INVALID + "KeyConditionExpressions must only contain one condition per key",
        ),
        ("((pk = :p))", INVALID + "The expression has redundant parentheses;"),
        ("pk = :p AND sk < :bool", INVALID + TYPE.format("<", "BOOL")),
        ("pk = :p AND :bool >= sk", INVALID + TYPE.format(">=", "BOOL")),
        ("pk = :p AND begins_with(sk, :n)", INVALID + TYPE.format("begins_with", "N")),
        ("pk = :n", SCHEMA),
        ("pk = :p AND sk = :s", SCHEMA),
        ("pk = :p AND sk = :bool", SCHEMA),
        ("sk = :n", "Query condition missed key schema element: pk"),
        ("unknown_one = :n", "Query condition missed key schema element: pk"),
        ("pk = :p AND unknown_one = :n", "Query condition missed key schema element: sk"),
        ("pk < :p", "Query key condition not supported"),
        (
            "pk = :p AND sk = :n AND x = :n",
            "The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)",
        ),
    ],
)
def test_what_is_no_key_condition_is_refused(text: str, expected: str) -> None:
    assert refusal(text, SORT) == expected
