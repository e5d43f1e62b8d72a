"""Values of ten types are checked and normalized."""

from __future__ import annotations

from base64 import b64decode, b64encode
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.database.item.attribute_values import ErrorWording, normalize_item, normalize_value
from partita.errors import ValidationException

INVALID = "One or more parameter values were invalid: "

texts = st.text(max_size=8)
names = texts.filter(bool)
number_texts = st.decimals(-(10**9), 10**9, places=3).map(str)
base64_texts = st.binary(max_size=8).map(lambda content: b64encode(content).decode())


def distinct_numbers(count: int) -> st.SearchStrategy[list[str]]:
    return st.lists(number_texts, min_size=1, max_size=count, unique_by=Decimal)


scalars = st.one_of(
    texts.map(lambda text: {"S": text}),
    number_texts.map(lambda text: {"N": text}),
    base64_texts.map(lambda text: {"B": text}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.lists(texts, min_size=1, max_size=5, unique=True).map(lambda members: {"SS": members}),
    distinct_numbers(5).map(lambda members: {"NS": members}),
    st.lists(base64_texts, min_size=1, max_size=5, unique=True).map(lambda each: {"BS": each}),
)
values: st.SearchStrategy[dict[str, Any]] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda members: {"L": members})
        | st.dictionaries(names, inner, max_size=3).map(lambda members: {"M": members})
    ),
    max_leaves=10,
)


@given(values)
def test_a_value_is_normalised_once(value: dict[str, Any]) -> None:
    once = normalize_value(value)
    assert normalize_value(once) == once


@given(values)
def test_normalising_leaves_what_it_was_given_alone(value: dict[str, Any]) -> None:
    before = deepcopy(value)
    normalize_value(value)
    assert value == before


@given(values)
def test_a_normalised_value_means_the_same(value: dict[str, Any]) -> None:
    assert meaning(normalize_value(value)) == meaning(value)


def meaning(value: dict[str, Any]) -> Any:
    """Returns the meaning of a value, independent of its spelling."""
    ((kind, content),) = value.items()
    if kind == "N":
        return kind, Decimal(content)
    if kind == "NS":
        return kind, frozenset(map(Decimal, content))
    if kind in ("SS", "BS"):
        return kind, frozenset(content)
    if kind == "L":
        return kind, [meaning(member) for member in content]
    if kind == "M":
        return kind, {name: meaning(member) for name, member in content.items()}
    return kind, content


@given(st.permutations(["", "a", "b", "é", "\U0001f600", "\uffff"]))
def test_string_sets_are_kept_in_byte_order(members: list[str]) -> None:
    assert normalize_value({"SS": members}) == {"SS": sorted(members, key=str.encode)}


@given(st.permutations([b"", b"\x00", b"\x00\x01", b"\x7f", b"\x80", b"\xff"]))
def test_binary_sets_are_kept_in_byte_order(members: list[bytes]) -> None:
    kept = normalize_value({"BS": [b64encode(member).decode() for member in members]})
    assert [b64decode(member) for member in kept["BS"]] == sorted(members)


@given(distinct_numbers(8))
def test_number_sets_are_kept_in_numeric_order(members: list[str]) -> None:
    kept = normalize_value({"NS": members})["NS"]
    assert [Decimal(member) for member in kept] == sorted(map(Decimal, members))


def refusal(value: dict[str, Any], wording: ErrorWording = ErrorWording.CURRENT) -> str | None:
    with pytest.raises(ValidationException) as refused:
        normalize_value(value, wording)
    return refused.value.message


# Recorded, or dynalite where the newer recordings are silent.
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {},
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
        (
            {"S": "a", "BOOL": True},
            "Supplied AttributeValue has more than one datatypes set, "
            "must contain exactly one of the supported datatypes",
        ),
        ({"S": "", "N": ""}, "The parameter cannot be converted to a numeric value: "),
        ({"NULL": False}, INVALID + "Null attribute value types must have the value of true"),
        ({"SS": []}, INVALID + "An string set  may not be empty"),
        ({"NS": []}, INVALID + "An number set  may not be empty"),
        ({"BS": []}, INVALID + "Binary sets should not be empty"),
        (
            {"SS": ["b", "a", "b"]},
            INVALID + 'Input collection ["a", "b", "b"] contains duplicates.',
        ),
        (
            {"BS": ["/w==", "AA==", "AA=="]},
            INVALID + 'Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.',
        ),
        ({"NS": ["2", "1", "2.0"]}, INVALID + "Input collection contains duplicates."),
        ({"L": [{"M": {"x": {"SS": []}}}]}, INVALID + "An string set  may not be empty"),
    ],
)
def test_what_the_service_refuses(value: dict[str, Any], text: str) -> None:
    assert refusal(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"N": ""}, "The parameter cannot be converted to a numeric value"),
        ({"SS": ["b", "a", "b"]}, INVALID + "Input collection [b, a, b] contains duplicates."),
        (
            {"BS": ["/w==", "AA==", "AA=="]},
            INVALID + "Input collection [/w==, AA==, AA==]of type BS contains duplicates.",
        ),
        ({"NS": ["2", "1", "2"]}, "Input collection contains duplicates"),
    ],
)
def test_the_older_words_of_batches_and_scans(value: dict[str, Any], text: str) -> None:
    # recorded
    assert refusal(value, ErrorWording.OLDER) == text


def nested(levels: int, leaf: dict[str, Any]) -> dict[str, Any]:
    for level in range(levels):
        leaf = {"M": {"x": leaf}} if level % 2 else {"L": [leaf]}
    return leaf


def test_a_leaf_may_lie_31_levels_deep() -> None:
    # recorded: 31 maps or lists around a leaf are accepted, 32 refused
    normalize_value(nested(31, {"S": "leaf"}))
    assert refusal(nested(32, {"S": "leaf"})) == (
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit"
    )


def test_an_attribute_has_a_name() -> None:
    for item in ({"": {"S": "a"}}, {"m": {"M": {"": {"S": "a"}}}}):
        with pytest.raises(ValidationException, match=r"^Empty attribute name$"):
            normalize_item(item)


def test_empty_members_of_sets_are_members() -> None:
    # recorded: only the empty set itself is refused
    assert normalize_value({"SS": ["a", ""]}) == {"SS": ["", "a"]}
    assert normalize_value({"BS": [""]}) == {"BS": [""]}
