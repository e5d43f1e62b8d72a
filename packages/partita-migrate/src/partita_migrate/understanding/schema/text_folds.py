"""Texts as a collation compares them: the folds that are built in, and SQL's lower() and upper().

A fold maps texts that compare as equal to one text. A collation without a built-in fold has a file
in the folder's `collations/` instead, see `collations.py`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

from partita_migrate.understanding.schema.collations import FOLDINGS
from partita_migrate.understanding.schema.column_refs import PARSED_MAX

_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ASCII_UPPER = {lower: upper for upper, lower in _ASCII_LOWER.items()}

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
TEXTS = {**FOLDS, **FORMS}


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
