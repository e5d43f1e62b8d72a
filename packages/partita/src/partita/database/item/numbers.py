"""DynamoDB numbers: 38 significant digits, exact, from 1e-130 to 9.99...e125, either sign.

A number travels as text. `parse` returns the exact Decimal, `canonical` the text that DynamoDB
returns (`1.50E2` becomes `150`), and `encode` the bytes that DynamoDB itself stores and hashes:
base-100 digits after an exponent byte, so that comparing bytes compares numbers. The length of
those bytes is also the number's size.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact, InvalidOperation, Rounded
from typing import Final

from partita.errors import ValidationException
from partita.foundation.service_limits import (
    NUMBER_DIGITS_MAX,
    NUMBER_EXPONENT_MAX,
    NUMBER_EXPONENT_MIN,
    NUMBER_TEXT_CHARS_MAX,
)

OVERFLOW: Final = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW: Final = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
PRECISION: Final = "Attempting to store more than 38 significant digits in a Number"
NOT_NUMERIC: Final = "The parameter cannot be converted to a numeric value"

# The quantifiers are possessive: a million digits followed by a letter must not be backtracked.
_NUMBER: Final = re.compile(r"[+-]?(\d++(?:\.\d*+)?|\.\d++)([eE]([+-]?\d++))?", re.ASCII)
_PLAIN_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,37}", re.ASCII)
EXPONENT_DIGITS_MAX: Final = 19
EXPONENT_BITS: Final = 64
"""A text whose exponent does not fit is refused as not numeric, not as an overflow (recorded)."""
OLDER_EXPONENT_BITS: Final = 32
"""Older operations parse with Java's BigDecimal, whose exponents have 32 bits (recorded)."""
PAIRS_MAX: Final = NUMBER_DIGITS_MAX // 2 + 1
# Sums and products of two numbers are exact within this precision: the exponents are at most
# 256 apart, so aligning two 38-digit numbers needs fewer than 300 digits.
EXACT: Final = Context(
    prec=400, Emin=-999_999, Emax=999_999, traps=[Inexact, Rounded, InvalidOperation]
)


def parse(text: str) -> Decimal:
    """Returns the exact value of a number's text; raises AWS's error if it is out of range."""
    if _PLAIN_INTEGER.fullmatch(text):
        return Decimal(text)
    digits, fraction_length, power = _split(text, EXPONENT_BITS)
    significant = digits.rstrip("0")
    # The range check looks at the power of ten of the first significant digit; for a zero, at the
    # exponent as written, so "0E200" overflows (recorded).
    if significant:
        power += len(digits) - 1 - fraction_length
    if power > NUMBER_EXPONENT_MAX:
        raise ValidationException(OVERFLOW)
    if power < NUMBER_EXPONENT_MIN:
        raise ValidationException(UNDERFLOW)
    if len(significant) > NUMBER_DIGITS_MAX:
        raise ValidationException(PRECISION)
    if not significant:
        return Decimal(0)
    sign = "-" if text.startswith("-") else ""
    return Decimal(f"{sign}{significant}E{power - len(significant) + 1}")


def _split(text: str, exponent_bits: int) -> tuple[str, int, int]:
    """Returns a number's digits without leading zeros, how many of them follow the point, and
    the exponent: `0.5E3` gives `("5", 1, 3)`."""
    match = _NUMBER.fullmatch(text)
    if not match:
        raise not_numeric(text)
    mantissa, exponent = match.group(1), match.group(3) or "0"
    # Python would take quadratic time to turn an exponent of a million digits into an integer.
    exponent_digits = exponent.lstrip("+-0") or "0"
    if len(exponent_digits) > EXPONENT_DIGITS_MAX:
        raise not_numeric(text)
    power = -int(exponent_digits) if exponent.startswith("-") else int(exponent_digits)
    if not _fits(power, exponent_bits):
        raise not_numeric(text)
    fraction_length = len(mantissa) - mantissa.index(".") - 1 if "." in mantissa else 0
    return mantissa.replace(".", "").lstrip("0"), fraction_length, power


def _fits(number: int, bits: int) -> bool:
    return -(1 << bits - 1) <= number < 1 << bits - 1


def not_numeric(text: str) -> ValidationException:
    shown = text[:NUMBER_TEXT_CHARS_MAX]
    return ValidationException(f"{NOT_NUMERIC}: {shown}")


def canonical(number: Decimal) -> str:
    """Returns the text that DynamoDB answers with: plain digits without exponent or extra zeros."""
    if not number:
        return "0"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def normalize(text: str) -> str:
    """Returns the canonical form of a number's text."""
    if _is_natural(text) or _PLAIN_INTEGER.fullmatch(text):
        return text
    return canonical(parse(text))


def normalize_older(text: str) -> str:
    """Like `normalize`, with the error texts of operations of the older generation."""
    if _is_natural(text):
        return text
    if not text:
        raise ValidationException(NOT_NUMERIC)
    digits, scale = big_decimal(text)
    # The service computes the magnitude in 32 bits as well, where it can overflow (recorded).
    if not _fits(max(len(digits), 1) - scale, OLDER_EXPONENT_BITS):
        raise ValidationException(UNDERFLOW)
    return normalize(text)


def big_decimal(text: str) -> tuple[str, int]:
    """Returns the digits and the scale of a number as Java's BigDecimal holds it."""
    digits, fraction_length, power = _split(text, OLDER_EXPONENT_BITS)
    scale = fraction_length - power
    if not _fits(scale, OLDER_EXPONENT_BITS):
        raise not_numeric(text)
    return digits, scale


def _is_natural(text: str) -> bool:
    """True for plain positive integers, which most numbers are: they are canonical already."""
    return text.isdecimal() and text.isascii() and text[0] != "0" and len(text) <= NUMBER_DIGITS_MAX


def check_range(number: Decimal, too_precise: str = PRECISION) -> Decimal:
    """Check that a computed number is within the limits of stored numbers, and return it."""
    if number:
        power = number.adjusted()
        if power > NUMBER_EXPONENT_MAX:
            raise ValidationException(OVERFLOW)
        if power < NUMBER_EXPONENT_MIN:
            raise ValidationException(UNDERFLOW)
        if len("".join(map(str, number.as_tuple().digits)).strip("0")) > NUMBER_DIGITS_MAX:
            raise ValidationException(too_precise)
    return number


def encode(text: str) -> bytes:
    """Returns the ordered bytes of a canonical number, as DynamoDB stores and hashes them.

    A positive number is an exponent byte above 0x80, then pairs of digits plus one, aligned on the
    decimal point. A negative number is the inverse of that, with a terminator above every digit
    byte, so that -1.5 sorts below -1; only numbers of full length have no room for the terminator,
    and do not need it. Zero is the single byte 0x80. (dynalite derived this encoding from recorded
    scans.)
    """
    if text == "0":
        return b"\x80"
    negative = text[0] == "-"
    whole, _, fraction = text.lstrip("-").partition(".")
    if whole == "0":
        stripped = fraction.lstrip("0")
        power = -(len(fraction) - len(stripped))
        digits = stripped
    else:
        power = len(whole)
        digits = (whole + fraction).rstrip("0")
    if power % 2:
        digits = "0" + digits
        power += 1
    if len(digits) % 2:
        digits += "0"
    exponent = power // 2 + 192
    pairs = [int(digits[i : i + 2]) for i in range(0, len(digits), 2)]
    if negative:
        terminator = [102] if len(pairs) < PAIRS_MAX else []
        return bytes([255 - exponent, *(101 - pair for pair in pairs), *terminator])
    return bytes([exponent, *(pair + 1 for pair in pairs)])


def size(text: str) -> int:
    """Returns the bytes that a canonical number counts in an item: the length of its encoding,
    computed without encoding it."""
    if text == "0":
        return 1
    # Digits are paired from the decimal point outwards; pairs of zeros at the ends are not stored.
    if _is_natural(text) and text[-1] != "0":
        return 1 + (len(text) + 1) // 2
    is_negative = text[0] == "-"
    whole, _, fraction = text.lstrip("-").partition(".")
    if not fraction:
        pairs = (len(whole) + 1) // 2 - (len(whole) - len(whole.rstrip("0"))) // 2
    elif whole == "0":
        pairs = (len(fraction) + 1) // 2 - (len(fraction) - len(fraction.lstrip("0"))) // 2
    else:
        pairs = (len(whole) + 1) // 2 + (len(fraction) + 1) // 2
    return 1 + pairs + (is_negative and pairs < PAIRS_MAX)
