"""All arithmetic of updates agrees with integers of the same value, at every length of a number."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.database.expressions.update import added, compile_update
from partita.database.item.attribute_values import AttributeValue, Item
from partita.database.item.numbers import canonical, parse
from partita.errors import ValidationException

DIGITS_MAX = 38
# A number is an integer of up to 38 digits, shifted by a power of ten; twice as far apart as any
# two of them can be aligned within 38 digits, so that sums that are too long come up as well.
numbers = st.tuples(
    st.one_of(
        st.integers(-(10**DIGITS_MAX) + 1, 10**DIGITS_MAX - 1),
        st.integers(10**27, 10**30),  # where Python's own 28 digits end
        st.integers(-(10**19), 10**19),
    ),
    st.integers(-40, 40),
)
Number = tuple[int, int]


def text_of(number: Number) -> str:
    coefficient, exponent = number
    return canonical(parse(f"{coefficient}e{exponent}"))


def exact(left: Number, right: Number, sign: int) -> tuple[int, int]:
    """The result as an integer and the power of ten that it counts."""
    exponent = min(left[1], right[1])
    aligned = [number[0] * 10 ** (number[1] - exponent) for number in (left, right)]
    return aligned[0] + sign * aligned[1], exponent


def check(result: AttributeValue | None, left: Number, right: Number, sign: int) -> None:
    coefficient, exponent = exact(left, right, sign)
    significant = str(abs(coefficient)).strip("0")
    if result is None:
        assert len(significant) > DIGITS_MAX
        return
    assert len(significant) <= DIGITS_MAX
    # Compared as fractions of integers: no decimal context is involved.
    found, expected = Decimal(result["N"]).as_integer_ratio(), (coefficient, exponent)
    numerator, denominator = found
    if expected[1] >= 0:
        assert numerator == denominator * expected[0] * 10 ** expected[1]
    else:
        assert numerator * 10 ** -expected[1] == denominator * expected[0]


def update(text: str, item: Item, values: Item) -> AttributeValue | None:
    compiled = compile_update(text, {})
    try:
        return compiled.apply(item, values)["q"]
    except ValidationException:
        return None


@given(numbers, numbers, st.sampled_from("+-"))
def test_of_two_values(left: Number, right: Number, operator: str) -> None:
    values = {":a": {"N": text_of(left)}, ":b": {"N": text_of(right)}}
    result = update(f"SET q = :a {operator} :b", {}, values)
    check(result, left, right, 1 if operator == "+" else -1)


@given(numbers, numbers, st.sampled_from("+-"))
def test_of_an_attribute_and_a_value(left: Number, right: Number, operator: str) -> None:
    item, values = {"n": {"N": text_of(left)}}, {":b": {"N": text_of(right)}}
    result = update(f"SET q = n {operator} :b", item, values)
    check(result, left, right, 1 if operator == "+" else -1)


@given(numbers, numbers)
def test_of_add(left: Number, right: Number) -> None:
    old, delta = {"N": text_of(left)}, {"N": text_of(right)}
    try:
        result = added(old, delta)
    except ValidationException:
        result = None
    check(result, left, right, 1)


@pytest.mark.parametrize("digits", range(27, 39))
def test_a_number_minus_itself_is_zero(digits: int) -> None:
    number = {"N": "1" * digits}
    assert update("SET q = :b - :b", {}, {":b": number}) == {"N": "0"}
