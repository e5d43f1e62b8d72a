"""Values as texts inside keys, in forms that sort as the source sorts the values.

The format of a template's field says how: `{x:n10.2}` is a number in fixed point, ten digits before
the point and two behind it; `{x:ci}`, `{x:nocase}`, `{x:ai}`, `{x:general}` (both also with
`_no_pad`) and `{x:pad}` are texts as a collation compares them, and so is
`{x:utf8mb4_unicode_ci}`, by the file of that name in the folder's `collations/`; `{x:lower}` and
`{x:upper}` are what the functions of SQL make of them, `{x:lower_ascii}` and `{x:upper_ascii}`
those of SQLite, `{x:lower_pad}` and `{x:upper_pad}` without blanks at their end; `{x:08}` is padded
with zeros; `{x:%Y-%m}` is a part of a date, and `{x:ms}` a moment in UTC, to the millisecond.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

from partita.database.item.values import AttributeValue
from partita.errors import PartitaError
from partita_migrate.model.templates import NULL_IN_TEMPLATE, escaped
from partita_migrate.understanding.schema.collations import FOLDINGS, why_not_in_keys
from partita_migrate.understanding.schema.column_refs import PARSED_MAX
from partita_migrate.understanding.schema.text_folds import TEXTS, is_fold

_FIXED_POINT = re.compile(r"n(\d+)\.(\d+)")
_COMPLEMENT = str.maketrans("0123456789", "9876543210")
MILLISECONDS = "ms"
HIGHEST = "\U0010ffff"
"""Sorts behind every text."""
Written = Callable[[AttributeValue | None], str]
"""What a value becomes inside a key."""


class NotEncodable(PartitaError):
    """A value that a key cannot hold."""


def fixed_point_format(whole: int, fraction: int) -> str:
    return f"n{whole}.{fraction}"


def is_order_preserving(part_format: str, value_type: str) -> bool:
    """Whether texts of this format sort as the values do."""
    if value_type == "N":
        return _FIXED_POINT.fullmatch(part_format) is not None
    return not part_format or is_fold(part_format)


def field_text(part_format: str, value: AttributeValue | None) -> str:
    """What a field becomes inside a key; NotEncodable when the format does not hold the value."""
    return field_writer(part_format)(value)


@lru_cache(PARSED_MAX)
def field_writer(part_format: str) -> Written:
    """`field_text` of one format."""
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
        # Asked for each time: a process may read another folder.
        return lambda value: escaped(FOLDINGS[part_format](plain_text(value)))
    if part_format and "%" not in part_format:
        raise PartitaError(
            f"No key is written as {part_format!r}; if it is a collation,"
            f" {why_not_in_keys(part_format)}."
        )
    if part_format:
        return lambda value: _part_of_date(part_format, plain_text(value))
    # Numbers hold nothing that is escaped.
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
    """The end of a range, also of numbers that the format does not hold: as near as it can be.

    None when no value that it holds is within the range.
    """
    try:
        return field_text(part_format, value)
    except NotEncodable:
        fixed = _FIXED_POINT.fullmatch(part_format)
        if fixed is None:
            raise
    whole, fraction = int(fixed[1]), int(fixed[2])
    rounding = ROUND_FLOOR if is_high else ROUND_CEILING
    number = Decimal(plain_text(value)).quantize(Decimal(1).scaleb(-fraction), rounding=rounding)
    if abs(number) < 10**whole:
        return _fixed_point(str(number), whole, fraction)
    if number < 0:
        return None if is_high else ""
    return HIGHEST if is_high else None


def plain_text(value: AttributeValue) -> str:
    """The value of a single attribute as text; bytes in hexadecimal, which sorts as they do."""
    ((kind, held),) = value.items()
    if kind == "B":
        return b64decode(held).hex()
    if kind == "BOOL":
        return "true" if held else "false"
    return str(held)


def _fixed_point(text: str, whole: int, fraction: int) -> str:
    """A sign before negatives, whose digits count backwards, and as many digits for all."""
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
