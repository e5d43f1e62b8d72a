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
import unicodedata
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

_FIXED_POINT = re.compile(r"n(\d+)\.(\d+)")
_COMPLEMENT = str.maketrans("0123456789", "9876543210")
MILLISECONDS = "ms"
HIGHEST = "\U0010ffff"
"""Sorts behind every text."""
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ASCII_UPPER = {lower: upper for upper, lower in _ASCII_LOWER.items()}

Written = Callable[[AttributeValue | None], str]
"""What a value becomes inside a key."""


class NotEncodable(PartitaError):
    """A value that a key cannot hold."""


_OF_UNICODE = {
    **dict.fromkeys("\u0439\u0419", "\u0419"),
    **dict.fromkeys("œŒ", "OE"),
    "\u0131": "\u0131",
}
"""Letters that MySQL's collations by Unicode's order tell from what they look like without marks,
or take for two: seen in all of MariaDB's."""


@lru_cache(PARSED_MAX)
def _plain_letter(letter: str) -> str:
    if letter in _OF_UNICODE:
        return _OF_UNICODE[letter]
    parts = unicodedata.normalize("NFD", letter)
    return "".join(part for part in parts if not unicodedata.combining(part)).upper()


def _without_accents(text: str) -> str:
    """As MySQL's collations compare: capitals without marks."""
    if text.isascii():
        return text.upper()
    plain = "".join(map(_plain_letter, unicodedata.normalize("NFC", text)))
    return unicodedata.normalize("NFC", plain)


_UNICODE_3_2 = unicodedata.ucd_3_2_0
_MARKED = ((0xC0, 0x250), (0x370, 0x530), (0x1E00, 0x2000))
"""Latin, Greek and Cyrillic letters, whose marks do not count."""
_OF_GENERAL = str.maketrans(
    "\u00df\u019e\u03d9\u03f2\u03f5\u0419\u0439\u048b\u04c6\u04ca\u04ce\u0501"
    "\u0503\u0505\u0507\u0509\u050b\u050d\u050f\u1f71\u1f73\u1f75\u1f77\u1f79"
    "\u1f7b\u1f7d\u1fbb\u1fc9\u1fcb\u1fd3\u1fdb\u1fe3\u1feb\u1ff9\u1ffb",
    "\u0053\u019e\u03d9\u03a3\u03f5\u0419\u0419\u048b\u04c6\u04ca\u04ce\u0501"
    "\u0503\u0505\u0507\u0509\u050b\u050d\u050f\u1fbb\u1fc9\u1fcb\u1fdb\u1ff9"
    "\u1feb\u1ffb\u1fbb\u1fc9\u1fcb\u1fd3\u1fdb\u1fe3\u1feb\u1ff9\u1ffb",
)
"""Where the rule below is not MariaDB's, seen by comparing the weights of all letters."""


@lru_cache(PARSED_MAX)
def _general_letter(letter: str) -> str:
    """As the _general_ci collations compare: letter by letter, by the Unicode of 2002, and all
    beyond its first plane as one."""
    if ord(letter) > 0xFFFF:
        return "\ufffd"
    if ord(letter) in _OF_GENERAL:
        return letter.translate(_OF_GENERAL)
    if any(first <= ord(letter) < end for first, end in _MARKED):
        parts = _UNICODE_3_2.normalize("NFD", letter)
        base, marks = parts[0], parts[1:]
        if marks and base.isalpha() and all(map(_UNICODE_3_2.combining, marks)):
            letter = base
    capital = letter.upper()
    is_known = len(capital) == 1 and "Cn" not in map(_UNICODE_3_2.category, (letter, capital))
    return capital if is_known else letter


def _general(text: str) -> str:
    return text.upper() if text.isascii() else "".join(map(_general_letter, text))


def _without_pad(text: str) -> str:
    """As PAD SPACE compares: blanks at the end do not count."""
    return text.rstrip(" ")


def _single(change: Callable[[str], str]) -> Callable[[str], str]:
    """Letter by letter, as servers do: one that would become two stays."""
    return lambda letter: changed if len(changed := change(letter)) == 1 else letter


FOLDS: dict[str, Callable[[str], str]] = {
    "ci": str.lower,
    "nocase": lambda text: text.translate(_ASCII_LOWER),
    "ai": lambda text: _without_pad(_without_accents(text)),
    "ai_no_pad": _without_accents,
    "general": lambda text: _without_pad(_general(text)),
    "general_no_pad": _general,
    "pad": _without_pad,
}
"""By format: PostgreSQL's citext, SQLite's NOCASE, the _ci collations of MySQL with PAD SPACE and
with NO PAD, and those that compare letter by letter (_general_ci); PAD SPACE alone, which CHAR of
PostgreSQL and RTRIM of SQLite have too."""
_LIKE_FOLDS = {"ai": "ai_no_pad", "general": "general_no_pad", "pad": ""}
FORMS: dict[str, Callable[[str], str]] = {
    "lower": lambda text: "".join(map(_single(str.lower), text)),
    "upper": lambda text: "".join(map(_single(str.upper), text)),
    "lower_pad": lambda text: _without_pad("".join(map(_single(str.lower), text))),
    "upper_pad": lambda text: _without_pad("".join(map(_single(str.upper), text))),
    "lower_ascii": lambda text: text.translate(_ASCII_LOWER),
    "upper_ascii": lambda text: text.translate(_ASCII_UPPER),
}
"""By format: what lower() and upper() make of a text; keys of it are not in the order of texts."""
_TEXTS = {**FOLDS, **FORMS}


def is_fold(part_format: str) -> bool:
    return part_format in FOLDS or part_format in FOLDINGS


def folding(fold: str) -> Callable[[str], str]:
    """What a text becomes whose collation compares by `fold`."""
    return FOLDINGS[fold] if fold in FOLDINGS else FOLDS[fold]


def is_beginning(start: str, text: str, fold: str) -> bool:
    """As LIKE compares texts whose collation compares by `fold`: blanks at the end count."""
    if fold in FOLDINGS:
        return FOLDINGS[fold].is_beginning(start, text)
    like = _LIKE_FOLDS.get(fold, fold)
    change = FOLDS[like] if like else str
    return change(text).startswith(change(start))


def function_of(form: str) -> str:
    """The function of SQL that makes a form."""
    return form.partition("_")[0]


def value_format(form: str) -> str:
    """Of what is compared with a form: whoever compares lower(x) passes a value as he wants it."""
    return "pad" if form.endswith("_pad") else ""


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
    if part_format in _TEXTS:
        change = _TEXTS[part_format]
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
