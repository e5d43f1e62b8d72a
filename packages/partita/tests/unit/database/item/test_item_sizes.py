"""Item sizes, against a second formula: written from the guide and not from the code."""

from __future__ import annotations

from base64 import b64decode, b64encode
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.database.item.attribute_values import AttributeValue, normalize_item, normalize_value
from partita.database.item.item_sizes import item_size, value_size
from partita.foundation.service_limits import ITEM_BYTES_MAX

texts = st.text(max_size=20)
names = texts.filter(bool)
number_texts = st.decimals(-(10**30), 10**30, places=6).map(str) | st.integers(
    -(10**37), 10**37
).map(str)
base64_texts = st.binary(max_size=20).map(lambda content: b64encode(content).decode())

scalars = st.one_of(
    texts.map(lambda text: {"S": text}),
    number_texts.map(lambda text: {"N": text}),
    base64_texts.map(lambda text: {"B": text}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.sets(texts, min_size=1, max_size=4).map(lambda members: {"SS": list(members)}),
    st.sets(st.integers(-999, 999), min_size=1, max_size=4).map(
        lambda members: {"NS": [str(member) for member in members]}
    ),
    st.sets(base64_texts, min_size=1, max_size=4).map(lambda members: {"BS": list(members)}),
)
values: st.SearchStrategy[dict[str, Any]] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda members: {"L": members})
        | st.dictionaries(names, inner, max_size=4).map(lambda members: {"M": members})
    ),
    max_leaves=12,
)
items = st.dictionaries(names, values, max_size=6)


def size_by_the_guide(value: AttributeValue) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return number_size_by_the_guide(content)
    if kind == "B":
        return len(b64decode(content))
    if kind in ("BOOL", "NULL"):
        return 1
    if kind in ("SS", "NS", "BS"):
        return sum(size_by_the_guide({kind[0]: member}) for member in content)
    if kind == "L":
        return 3 + sum(1 + size_by_the_guide(member) for member in content)
    return 3 + sum(
        1 + len(name.encode()) + size_by_the_guide(member) for name, member in content.items()
    )


def number_size_by_the_guide(text: str) -> int:
    """Returns one byte, one for each pair of digits on either side of the point, one for a minus.

    Leading and trailing zeros do not count, and no pair straddles the point (recorded). The
    longest numbers, of 20 pairs, have no byte for a minus (dynalite).
    """
    sign, digits, exponent = Decimal(text).normalize(Context(prec=50)).as_tuple()
    assert isinstance(exponent, int)
    if digits == (0,):
        return 1
    # Pairs are aligned on the point: pair number k holds the powers of ten 2k and 2k + 1.
    powers = [exponent, exponent + len(digits) - 1]
    pairs = powers[1] // 2 - powers[0] // 2 + 1
    return 1 + pairs + (sign if pairs < 20 else 0)


@given(values)
def test_the_size_of_a_value_follows_the_guide(value: dict[str, Any]) -> None:
    normalized = normalize_value(value)
    assert value_size(normalized) == size_by_the_guide(normalized)


@given(items)
def test_the_size_of_an_item_is_the_sum_of_its_names_and_values(item: dict[str, Any]) -> None:
    normalized = normalize_item(item)
    assert item_size(normalized) == sum(
        len(name.encode()) + size_by_the_guide(value) for name, value in normalized.items()
    )


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "é"}, 2),
        ({"S": "\U0001f600"}, 4),
        ({"B": ""}, 0),
        ({"B": "AA=="}, 1),
        ({"B": "AAA="}, 2),
        ({"B": "AAAA"}, 3),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [{"NULL": True}]}, 5),
        ({"M": {"ab": {"BOOL": False}}}, 7),
        ({"SS": ["a", "bcd"]}, 4),
        ({"NS": ["1", "100"]}, 4),
        ({"BS": ["AA==", "AAA="]}, 3),
    ],
)
def test_sizes_by_hand(value: dict[str, Any], size: int) -> None:
    assert value_size(value) == size


def test_the_largest_item_is_400_kb() -> None:
    assert ITEM_BYTES_MAX == 409_600
    assert item_size({"pk": {"S": "a"}, "v": {"S": "x" * (409_600 - 4)}}) == ITEM_BYTES_MAX
