"""Numbers: exact values, one canonical text, and bytes whose order is the order of the numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partita.database.item import numbers
from partita.errors import ValidationException
from partita.foundation.service_limits import (
    NUMBER_DIGITS_MAX,
    NUMBER_EXPONENT_MAX,
    NUMBER_EXPONENT_MIN,
)

# Every number that can be stored: up to 38 digits whose first stands for 1e-130 to 1e125.
stored_numbers = st.builds(
    lambda negative, digits, power: Decimal(
        (int(negative), tuple(map(int, str(digits))), power - len(str(digits)) + 1)
    ),
    st.booleans(),
    st.integers(1, 10**NUMBER_DIGITS_MAX - 1) | st.integers(1, 999),
    st.integers(NUMBER_EXPONENT_MIN, NUMBER_EXPONENT_MAX) | st.integers(-3, 3),
) | st.just(Decimal(0))

LARGEST = Decimal("9.9999999999999999999999999999999999999E+125")
SMALLEST = Decimal("1E-130")


@given(stored_numbers, stored_numbers)
@example(LARGEST, LARGEST.copy_negate())
@example(SMALLEST, Decimal(0))
@example(SMALLEST.copy_negate(), Decimal(0))
@example(Decimal("-1.5"), Decimal("-1"))
@example(Decimal("-1.01"), Decimal("-1"))
@example(Decimal(99), Decimal(100))
def test_the_order_of_the_bytes_is_the_order_of_the_numbers(one: Decimal, other: Decimal) -> None:
    low, high = numbers.encode(numbers.canonical(one)), numbers.encode(numbers.canonical(other))
    assert (low < high) == (one < other)
    assert (low == high) == (one == other)


@given(st.integers(-(10**6), 10**6), st.integers(1, 200), st.integers(-20, 20))
def test_neighbours_keep_their_order(start: int, step: int, power: int) -> None:
    low, high = (Decimal(digits).scaleb(power) for digits in (start, start + step))
    assert numbers.encode(numbers.canonical(low)) < numbers.encode(numbers.canonical(high))


@given(stored_numbers)
def test_the_canonical_text_is_the_number(number: Decimal) -> None:
    text = numbers.canonical(number)
    assert Decimal(text) == number
    assert numbers.parse(text) == number
    assert numbers.normalize(text) == text
    assert re.fullmatch(r"0|-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?", text)
    assert text != "-0"


def spellings(number: Decimal) -> st.SearchStrategy[str]:
    """Other texts for the same number: leading and trailing zeros, exponents, a plus sign."""
    sign = "-" if number < 0 else ""
    mantissa = "".join(map(str, number.as_tuple().digits))
    exponent = number.as_tuple().exponent
    plain = f"{number.copy_abs():f}"
    return st.builds(
        lambda plus, zeros, letter, use_exponent, tail: (
            (sign or plus)
            + "0" * zeros
            + (
                f"{mantissa}{letter}{exponent}"
                if use_exponent
                else plain + ("" if not tail else "0" * tail if "." in plain else "." + "0" * tail)
            )
        ),
        st.sampled_from(["", "+"]),
        st.integers(0, 50),
        st.sampled_from("eE"),
        st.booleans(),
        st.integers(0, 50),
    )


@given(st.data())
def test_every_spelling_of_a_number_has_one_canonical_text(data: st.DataObject) -> None:
    number = data.draw(stored_numbers)
    spelled = data.draw(spellings(number))
    assert numbers.normalize(spelled) == numbers.canonical(number)


@given(stored_numbers)
def test_the_size_of_a_number_is_the_length_of_its_bytes(number: Decimal) -> None:
    text = numbers.canonical(number)
    assert numbers.size(text) == len(numbers.encode(text))
    assert 1 <= numbers.size(text) <= 21


# Recorded to the byte against the service (nubo-db/dynamodb-conformance, src/item-size.ts).
RECORDED_SIZES = {
    "0": 1,
    "-0": 1,
    "1": 2,
    "12": 2,
    "123": 3,
    "1234": 3,
    "12345678901234567890123456789012345678": 20,
    "0042": 2,
    "100": 2,
    "1010": 3,
    "0.0000001": 2,
    "1E125": 2,
    "1E-100": 2,
    "1.5": 3,
    "15": 2,
    "1.2": 3,
    "1.200": 3,
    "1.234": 4,
    "3.14159": 5,
    "123456": 4,
    "100.5": 4,
    "0.15": 2,
    "-42": 3,
}


@pytest.mark.parametrize(("text", "size"), RECORDED_SIZES.items())
def test_recorded_sizes(text: str, size: int) -> None:
    assert numbers.size(numbers.normalize(text)) == size


# Recorded (PutItem; input, stored).
@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("+5", "5"),
        ("+1.5", "1.5"),
        ("+0", "0"),
        ("-0", "0"),
        ("+0.0", "0"),
        ("+1e2", "100"),
        ("1e+2", "100"),
        ("1.5E+3", "1500"),
        ("+.5", "0.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1.e5", "100000"),
        ("00042", "42"),
        ("+1e-2", "0.01"),
        ("1.23E10", "12300000000"),
        ("0042.1200", "42.12"),
        ("1E125", "1" + "0" * 125),
        ("0e125", "0"),
        ("-0015.789e6", "-15789000"),
        ("0001.000e-130", "0." + "0" * 129 + "1"),
        ("9.9999999999999999999999999999999999999E+125", "9" * 38 + "0" * 88),
    ],
)
def test_recorded_normalisations(text: str, stored: str) -> None:
    assert numbers.normalize(text) == stored


# Recorded: each is refused as "no numeric value".
@pytest.mark.parametrize(
    "text",
    [
        *("", "+", "-", ".", "e2", "+e2", "1e", "1e+", "1+2", "+1+2", "1.2.3", "+1.2.3", "++5"),
        *("+-5", "-+5", "1.2e3.4", "0x5", "NaN", "Infinity", "-Infinity", "1_000", " 5", "5 "),
        *("1 5", "abc", "\u0661", "1e\u0662", "5\n"),
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValidationException) as refused:
        numbers.parse(text)
    assert refused.value.message == f"The parameter cannot be converted to a numeric value: {text}"


OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)


# Recorded.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e126", OVERFLOW),
        ("-1e126", OVERFLOW),
        ("1e2147483648", OVERFLOW),
        ("-1e99999999999", OVERFLOW),
        ("0e126", OVERFLOW),
        ("11e125", OVERFLOW),
        ("1e-131", UNDERFLOW),
        ("0.9e-130", UNDERFLOW),
        ("0e-131", UNDERFLOW),
        ("1e-99999999999", UNDERFLOW),
        ("1" * 39, "Attempting to store more than 38 significant digits in a Number"),
        ("1." + "1" * 38, "Attempting to store more than 38 significant digits in a Number"),
    ],
)
def test_numbers_beyond_the_limits_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as refused:
        numbers.parse(text)
    assert refused.value.message == message


NOT_NUMERIC = "The parameter cannot be converted to a numeric value"


# Recorded for parameters of statements; the bounds between are those of Java's BigDecimal.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NOT_NUMERIC),
        ("abc", f"{NOT_NUMERIC}: abc"),
        ("1e2147483648", f"{NOT_NUMERIC}: 1e2147483648"),
        ("0.1e2147483648", f"{NOT_NUMERIC}: 0.1e2147483648"),
        ("1e-2147483648", f"{NOT_NUMERIC}: 1e-2147483648"),
        ("1.5e-2147483647", f"{NOT_NUMERIC}: 1.5e-2147483647"),
        ("1e" + "9" * 30, f"{NOT_NUMERIC}: 1e" + "9" * 30),
        ("1e2147483647", UNDERFLOW),
        ("+00.01e2147483647", OVERFLOW),
        ("123e2147483645", UNDERFLOW),
        ("123e2147483644", OVERFLOW),
        ("1e-2147483647", UNDERFLOW),
        ("1e126", OVERFLOW),
        ("1" * 39, "Attempting to store more than 38 significant digits in a Number"),
    ],
)
def test_the_older_generation_counts_in_32_bits(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as refused:
        numbers.normalize_older(text)
    assert refused.value.message == message


@given(st.decimals(allow_nan=False, allow_infinity=False, places=20))
def test_both_generations_read_the_same_numbers(number: Decimal) -> None:
    for text in (str(number), f"{number:e}"):
        try:
            expected = numbers.normalize(text)
        except ValidationException as refused:
            with pytest.raises(ValidationException, match=re.escape(refused.message or "")):
                numbers.normalize_older(text)
        else:
            assert numbers.normalize_older(text) == expected


@pytest.mark.parametrize("text", ["1" * 38 + "0" * 80, "0." + "0" * 80 + "1" * 38, "0" * 5000])
def test_surrounding_zeros_are_no_digits(text: str) -> None:
    assert Decimal(numbers.normalize(text)) == Decimal(text)


def test_a_million_digits_are_refused_quickly_and_in_few_words() -> None:
    for text in ("1" * 1_000_000, "1e" + "9" * 1_000_000, "x" * 1_000_000):
        with pytest.raises(ValidationException) as refused:
            numbers.parse(text)
        assert len(refused.value.message or "") < 2000


@given(stored_numbers, stored_numbers)
def test_sums_are_exact(one: Decimal, other: Decimal) -> None:
    assert Fraction(numbers.EXACT.add(one, other)) == Fraction(one) + Fraction(other)
    assert Fraction(numbers.EXACT.subtract(one, other)) == Fraction(one) - Fraction(other)
