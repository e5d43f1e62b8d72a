"""The formats of values inside keys: texts that sort by their bytes as the source sorts the values.

The format stands in a template's field after a colon:

- `{x:n10.2}`: a number in fixed point, ten digits before the point and two after it
- `{x:ci}`, `{x:nocase}`, `{x:ai}`, `{x:general}`, `{x:pad}`: a text as a collation compares
  it; `ai` and `general` also exist with `_no_pad`
- `{x:utf8mb4_unicode_ci}`: a text as the collation in the folder's `collations/` compares it
- `{x:lower}`, `{x:upper}`: the result of SQL's functions; with `_ascii` as in SQLite, with
  `_pad` without trailing blanks
- `{x:08}`: padded with zeros
- `{x:%Y-%m}`: a part of a date
- `{x:ms}`: a time in UTC, to the millisecond
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

from partita.database.item.attribute_values import AttributeValue
from partita.errors import PartitaError
from partita_migrate.model.keys.key_templates import NULL_IN_TEMPLATE, escaped
from partita_migrate.understanding.schema.collations import FOLDINGS, HIGH, why_not_in_keys
from partita_migrate.understanding.schema.column_refs import PARSED_MAX
from partita_migrate.understanding.schema.text_folds import TEXTS, is_fold

_FIXED_POINT = re.compile(r"n(\d+)\.(\d+)")
_COMPLEMENT = str.maketrans("0123456789", "9876543210")
MILLISECONDS = "ms"
Written = Callable[[AttributeValue | None], str]
"""Writes a value as it appears inside a key; None stands for NULL."""


class NotEncodable(PartitaError):
    """Raised for a value that a key's format cannot hold."""


def fixed_point_format(whole: int, fraction: int) -> str:
    return f"n{whole}.{fraction}"


def is_order_preserving(part_format: str, value_type: str) -> bool:
    """True when texts in this format sort as the source's values do."""
    if value_type == "N":
        return _FIXED_POINT.fullmatch(part_format) is not None
    return not part_format or is_fold(part_format)


def field_text(part_format: str, value: AttributeValue | None) -> str:
    """Returns a value as a key holds it. Raises NotEncodable if the format cannot hold it."""
    return field_writer(part_format)(value)


@lru_cache(PARSED_MAX)
def field_writer(part_format: str) -> Written:
    """Compiles `field_text` for one format."""
    write = _writer(part_format)
    return lambda value: NULL_IN_TEMPLATE if value is None else write(value)


def _writer(part_format: str) -> Callable[[AttributeValue], str]:
    if part_format in TEXTS:
        change = TEXTS[part_format]
        return lambda value: escaped(change(plain_text(value)))
    fixed = _FIXED_POINT.fullmatch(part_format)
    if fixed is not None:
        whole, fraction = int(fixed[1]), int(fixed[2])
        return lambda value: (
            _fixed_point(value["N"], whole, fraction)
            if "N" in value
            else escaped(plain_text(value))
        )
    if part_format.startswith("0"):
        digits = int(part_format)
        return lambda value: plain_text(value).zfill(digits)
    if part_format == MILLISECONDS:
        return lambda value: _milliseconds(plain_text(value))
    if part_format in FOLDINGS:
        # Looked up for each value: the process may have read another folder's collations since.
        return lambda value: escaped(FOLDINGS[part_format](plain_text(value)))
    if part_format and "%" not in part_format:
        raise PartitaError(
            f"No key is written as {part_format!r}; if it is a collation,"
            f" {why_not_in_keys(part_format)}."
        )
    if part_format:
        return lambda value: _part_of_date(part_format, plain_text(value))
    # A number contains nothing to escape.
    return lambda value: value["N"] if "N" in value else escaped(plain_text(value))


def _part_of_date(part_format: str, text: str) -> str:
    moment = moment_of(text)
    return escaped(moment.strftime(part_format) if moment else text)


def _milliseconds(text: str) -> str:
    moment = moment_of(text)
    if moment is None:
        return escaped(text)
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def bound_text(part_format: str, value: AttributeValue, *, is_high: bool) -> str | None:
    """Returns the end of a range of keys, for a limit that the format may not be able to hold.

    Such a limit is rounded into the range. None means that the format holds no value in the range.
    """
    try:
        return field_text(part_format, value)
    except NotEncodable:
        fixed = _FIXED_POINT.fullmatch(part_format)
        if fixed is None:
            raise
    whole, fraction = int(fixed[1]), int(fixed[2])
    # No stored value lies between the limit and the rounded limit, so the same keys are in the
    # range.
    rounding = ROUND_FLOOR if is_high else ROUND_CEILING
    number = Decimal(plain_text(value)).quantize(Decimal(1).scaleb(-fraction), rounding=rounding)
    if abs(number) < 10**whole:
        return _fixed_point(str(number), whole, fraction)
    if number < 0:
        return None if is_high else ""
    return HIGH if is_high else None


def plain_text(value: AttributeValue) -> str:
    """Returns a scalar value as text. Bytes become hexadecimal, which sorts as they do."""
    ((kind, content),) = value.items()
    if kind == "B":
        return b64decode(content).hex()
    if kind == "BOOL":
        return "true" if content else "false"
    return str(content)


def _fixed_point(text: str, whole: int, fraction: int) -> str:
    """Writes a number with a fixed count of digits.

    A negative number gets a minus sign, which sorts before digits, and the complement of its
    digits, so that -5 (`-4`) sorts before -3 (`-6`).
    """
    # The common case without Decimal. isdecimal() alone would let in other scripts' digits.
    if len(text) <= whole and text.isdecimal() and text.isascii():
        return text.zfill(whole) + ("." + "0" * fraction if fraction else "")
    number = Decimal(text)
    digits = f"{abs(number):.{fraction}f}".zfill(whole + (fraction + 1 if fraction else 0))
    is_longer = len(digits) > whole + (fraction + 1 if fraction else 0)
    if is_longer or Decimal(digits) != abs(number):
        raise NotEncodable(
            f"{text} does not fit into {whole} digits before the point and {fraction} behind it."
        )
    return f"-{digits.translate(_COMPLEMENT)}" if number < 0 else digits


def moment_of(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
