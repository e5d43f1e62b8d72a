"""Exact numbers: fractions for computing, and decimals of 38 digits as DynamoDB stores them."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from partita.foundation.service_limits import (
    NUMBER_DIGITS_MAX,
    NUMBER_EXPONENT_MAX,
    NUMBER_EXPONENT_MIN,
)

_ROUNDED = Context(prec=NUMBER_DIGITS_MAX, rounding=ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999)


def exact(text: str) -> Fraction:
    """Parses a number of DynamoDB. `Fraction(text)` does too, but takes several times as long."""
    whole, _, decimals = text.partition(".")
    if not decimals.isdigit() and decimals:
        return Fraction(text)
    try:
        return Fraction(int(whole + decimals), 10 ** len(decimals))
    except ValueError:
        return Fraction(text)


def is_storable(number: Decimal) -> bool:
    """True when DynamoDB stores the number without rounding it."""
    if not number.is_finite():
        return False
    if not number:
        return True
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return len(digits) <= NUMBER_DIGITS_MAX and _is_in_range(number)


def rounded(number: Fraction) -> Decimal | None:
    """Rounds to 38 significant digits, half to even. Returns None when the number is out of
    DynamoDB's range."""
    quotient = _ROUNDED.divide(Decimal(number.numerator), Decimal(number.denominator))
    return quotient if not quotient or _is_in_range(quotient) else None


def _is_in_range(number: Decimal) -> bool:
    return NUMBER_EXPONENT_MIN <= number.adjusted() <= NUMBER_EXPONENT_MAX


def text_of(number: Decimal) -> str:
    """Returns a number in plain digits, without exponent and trailing zeros."""
    if not number:
        return "0"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
