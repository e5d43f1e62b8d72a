"""Exact numbers: fractions inside, and decimals as DynamoDB has them at the edge."""

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
    """Of a number of DynamoDB. `Fraction` takes text too, in several times the time."""
    whole, _, decimals = text.partition(".")
    if not decimals.isdigit() and decimals:
        return Fraction(text)
    try:
        return Fraction(int(whole + decimals), 10 ** len(decimals))
    except ValueError:
        return Fraction(text)


def is_storable(number: Decimal) -> bool:
    """Whether DynamoDB keeps it as it is."""
    if not number.is_finite():
        return False
    if not number:
        return True
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return len(digits) <= NUMBER_DIGITS_MAX and _is_in_range(number)


def rounded(number: Fraction) -> Decimal | None:
    """To 38 significant digits, half to even; None when it is out of DynamoDB's range."""
    quotient = _ROUNDED.divide(Decimal(number.numerator), Decimal(number.denominator))
    return quotient if not quotient or _is_in_range(quotient) else None


def _is_in_range(number: Decimal) -> bool:
    return NUMBER_EXPONENT_MIN <= number.adjusted() <= NUMBER_EXPONENT_MAX


def text_of(number: Decimal) -> str:
    """Plain digits, no exponent, no surplus zeros."""
    if not number:
        return "0"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
