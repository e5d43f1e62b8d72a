"""Conditions are true or false for items as in the service."""

from __future__ import annotations

from base64 import b64encode

import pytest

from partita.database.expressions.condition import compile_condition
from partita.database.expressions.name_resolution import Values
from partita.database.item.attribute_values import Item


def binary(content: bytes) -> dict[str, str]:
    return {"B": b64encode(content).decode()}


ITEM: Item = {
    "pk": {"S": "a"},
    "s": {"S": "string"},
    "n": {"N": "5"},
    "small": {"N": "-0.5"},
    "b": binary(b"\x00\xff\x01"),
    "flag": {"BOOL": True},
    "nothing": {"NULL": True},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "bs": {"BS": ["AA==", "/w=="]},
    "l": {"L": [{"N": "1"}, {"S": "two"}, {"M": {"deep": {"L": [{"N": "3"}]}}}]},
    "m": {"M": {"x": {"S": "y"}, "same": {"N": "5"}}},
    "wide": {"S": "é\U0001d11e"},
}
VALUES: Values = {
    ":five": {"N": "5"},
    ":one": {"N": "1"},
    ":nine": {"N": "9"},
    ":three": {"N": "3"},
    ":two": {"N": "2"},
    ":s": {"S": "str"},
    ":ring": {"S": "ring"},
    ":two_text": {"S": "two"},
    ":a": {"S": "a"},
    ":empty": {"S": ""},
    ":ab": {"SS": ["a", "b"]},
    ":byte": binary(b"\xff"),
    ":prefix": binary(b"\x00\xff"),
    ":S": {"S": "S"},
    ":NULL": {"S": "NULL"},
    ":true": {"BOOL": True},
}


@pytest.mark.parametrize(
    "text",
    [
        "n = :five",
        ":five = n",
        "n = m.same",
        "n <> s",
        "s <> absent",
        "absent <> away",
        "n < :nine",
        "small < :one",
        "n >= :five",
        ":one <= n",
        "s > :s",
        "b > :prefix",
        "n BETWEEN :one AND :five",
        ":three BETWEEN :one AND n",
        "n IN (:one, s, :five)",
        "ss = :ab",
        "flag = :true",
        "l[0] = :one",
        "l[2].deep[0] = :three",
        "attribute_exists(m.x)",
        "attribute_not_exists(m.y)",
        "attribute_not_exists(l[3])",
        "attribute_not_exists(s.x)",
        "attribute_type(s, :S)",
        "attribute_type(nothing, :NULL)",
        "begins_with(s, :s)",
        "begins_with(b, :prefix)",
        "contains(s, :ring)",
        "contains(s, :empty)",
        "contains(b, :byte)",
        "contains(ss, :a)",
        "contains(ns, :two)",
        "contains(bs, :byte)",
        "contains(l, :two_text)",
        "size(l) = :three",
        "size(ss) = size(m)",
        "size(b) = :three",
        "size(wide) = :three",  # UTF-16 units: recorded
        "NOT n = :one",
        "NOT absent = :one",
        "NOT size(n) = :one",
        "NOT n = :one AND s = s2 OR n = :five",
        "n = :one OR n = :five AND NOT s = :s",
        "not n = :one or n = :five",
    ],
)
def test_true_of_the_item(text: str) -> None:
    condition = compile_condition(text, {})
    condition.check(VALUES)
    assert condition.holds(ITEM, VALUES) is True


@pytest.mark.parametrize(
    "text",
    [
        "n = :one",
        "n = :s",
        "absent = :one",
        "absent = away",
        "absent < :one",
        "n < s",
        "s < n",
        "ss < ns",
        "l < m",
        "n BETWEEN :nine AND absent",
        "s BETWEEN :one AND :five",
        "absent IN (:one)",
        "n IN (s, :one)",
        "attribute_exists(absent)",
        "attribute_exists(m.x.y)",
        "attribute_type(absent, :S)",
        "attribute_type(n, :S)",
        "begins_with(n, s)",
        "begins_with(s, :ring)",
        "contains(ss, :empty)",
        "contains(ss, :one)",
        "contains(m, :a)",
        "contains(n, :five)",
        "contains(absent, :a)",
        "size(absent) = :one",
        "size(n) > :one",
        "size(n) = absent",
        "n = :five AND s = :s",
        "NOT (n = :five OR s = :s)",
    ],
)
def test_false_of_the_item(text: str) -> None:
    condition = compile_condition(text, {})
    condition.check(VALUES)
    assert condition.holds(ITEM, VALUES) is False


def test_an_item_that_does_not_exist_has_no_attributes() -> None:
    assert compile_condition("attribute_not_exists(pk)", {}).holds(None, {})
    assert not compile_condition("attribute_exists(pk)", {}).holds(None, {})


def test_sets_are_compared_without_order_because_they_are_kept_sorted() -> None:
    assert compile_condition("a = b", {}).holds(
        {"a": {"NS": ["1", "2"]}, "b": {"NS": ["1", "2"]}}, {}
    )


def test_a_condition_tells_what_it_uses() -> None:
    condition = compile_condition("#a.b = :v AND size(c[0]) > n", {"#a": "x", "#other": "y"})
    assert condition.names_used == {"#a"}
    assert condition.values_used == {":v"}
    assert condition.attributes == {"x", "c", "n"}
    assert condition.paths == {("x", "b"), ("c", 0), ("n",)}


def test_the_same_text_is_compiled_once_for_the_same_names() -> None:
    first = compile_condition("#a = :v", {"#a": "x"})
    assert compile_condition("#a = :v", {"#a": "x"}) is first
    assert compile_condition("#a = :v", {"#a": "y"}) is not first
