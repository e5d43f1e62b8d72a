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
"""Letters for which MySQL's Unicode collations differ from Unicode's decomposition, as observed in
MariaDB: some keep their marks, and some are two letters."""


@lru_cache(PARSED_MAX)
def _plain_letter(letter: str) -> str:
    if letter in _OF_UNICODE:
        return _OF_UNICODE[letter]
    parts = unicodedata.normalize("NFD", letter)
    return "".join(part for part in parts if not unicodedata.combining(part)).upper()


def _without_accents(text: str) -> str:
    """Folds as MySQL's accent-insensitive collations compare: capitals without marks."""
    if text.isascii():
        return text.upper()
    plain = "".join(map(_plain_letter, unicodedata.normalize("NFC", text)))
    return unicodedata.normalize("NFC", plain)


_UNICODE_3_2 = unicodedata.ucd_3_2_0
_MARKED = ((0xC0, 0x250), (0x370, 0x530), (0x1E00, 0x2000))
"""Ranges of Latin, Greek and Cyrillic letters, whose marks these collations ignore."""
_OF_GENERAL = str.maketrans(
    "\u00df\u019e\u03d9\u03f2\u03f5\u0419\u0439\u048b\u04c6\u04ca\u04ce\u0501"
    "\u0503\u0505\u0507\u0509\u050b\u050d\u050f\u1f71\u1f73\u1f75\u1f77\u1f79"
    "\u1f7b\u1f7d\u1fbb\u1fc9\u1fcb\u1fd3\u1fdb\u1fe3\u1feb\u1ff9\u1ffb",
    "\u0053\u019e\u03d9\u03a3\u03f5\u0419\u0419\u048b\u04c6\u04ca\u04ce\u0501"
    "\u0503\u0505\u0507\u0509\u050b\u050d\u050f\u1fbb\u1fc9\u1fcb\u1fdb\u1ff9"
    "\u1feb\u1ffb\u1fbb\u1fc9\u1fcb\u1fd3\u1fdb\u1fe3\u1feb\u1ff9\u1ffb",
)
"""Exceptions from the rule below, found by comparing MariaDB's weights of all letters."""


@lru_cache(PARSED_MAX)
def _general_letter(letter: str) -> str:
    """Folds a letter as the _general_ci collations do.

    They compare letter by letter, by the Unicode of 2002, and treat all characters beyond the first
    plane as equal.
    """
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
    """Folds as PAD SPACE collations do: trailing blanks do not count."""
    return text.rstrip(" ")


def _single(change: Callable[[str], str]) -> Callable[[str], str]:
    """Returns a function that changes letter by letter. A letter that would become two stays as it
    is, as in the servers."""
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
"""Built-in folds by format: PostgreSQL's citext, SQLite's NOCASE, MySQL's _ci collations with and
without PAD SPACE, and the _general_ci ones. `pad` is PAD SPACE alone, which CHAR of PostgreSQL and
RTRIM of SQLite also have."""
_LIKE_FOLDS = {"ai": "ai_no_pad", "general": "general_no_pad", "pad": ""}
FORMS: dict[str, Callable[[str], str]] = {
    "lower": lambda text: "".join(map(_single(str.lower), text)),
    "upper": lambda text: "".join(map(_single(str.upper), text)),
    "lower_pad": lambda text: _without_pad("".join(map(_single(str.lower), text))),
    "upper_pad": lambda text: _without_pad("".join(map(_single(str.upper), text))),
    "lower_ascii": lambda text: text.translate(_ASCII_LOWER),
    "upper_ascii": lambda text: text.translate(_ASCII_UPPER),
}
"""SQL's lower() and upper() by format. Keys in these formats do not sort as the texts do."""
TEXTS = {**FOLDS, **FORMS}


def is_fold(part_format: str) -> bool:
    return part_format in FOLDS or part_format in FOLDINGS


def folding(fold: str) -> Callable[[str], str]:
    """Returns the function that maps texts which the collation treats as equal to one text."""
    return FOLDINGS[fold] if fold in FOLDINGS else FOLDS[fold]


def is_beginning(start: str, text: str, fold: str) -> bool:
    """True when LIKE finds `text` by its beginning `start`. Unlike `=`, LIKE counts trailing
    blanks."""
    if fold in FOLDINGS:
        return FOLDINGS[fold].is_beginning(start, text)
    like = _LIKE_FOLDS.get(fold, fold)
    change = FOLDS[like] if like else str
    return change(text).startswith(change(start))


def function_of(form: str) -> str:
    """Returns the SQL function behind a format: `lower` for `lower_ascii`."""
    return form.partition("_")[0]


def value_format(form: str) -> str:
    """Returns the format of the value that lower(x) or upper(x) is compared with.

    The value itself is not changed: lower(x) = 'ABC' finds nothing.
    """
    return "pad" if form.endswith("_pad") else ""
