"""Splits names of tables and columns into words, and finds singulars and plurals."""

from __future__ import annotations

import re

from partita.foundation.service_limits import TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN

_DYNAMODB_NAME = re.compile(rf"[A-Za-z0-9_.-]{{{TABLE_NAME_CHARS_MIN},{TABLE_NAME_CHARS_MAX}}}")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_IRREGULAR = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "data": "data",
    "series": "series",
    "news": "news",
    "status": "status",
    "addresses": "address",
    "statuses": "status",
}


def is_dynamodb_name(name: str) -> bool:
    """True for 3 to 255 letters, digits, _, - and dots: a valid table or index name."""
    return _DYNAMODB_NAME.fullmatch(name) is not None


def words(name: str) -> list[str]:
    """Returns the words of a name. They are the same for customer_id, CustomerID and customerId."""
    return [part for part in name_parts(name) if part.isascii() and part.isalpha()]


def name_parts(name: str) -> list[str]:
    """Returns the words and numbers of a name in lower case, or the name itself if it has none."""
    return [word.lower() for word in _PARTS.findall(name)] or [name.lower()]


def singular(word: str) -> str:
    """Returns the singular of a name's last word: `metric_version` for `metric_versions`."""
    match = re.search(r"[A-Za-z]+$", word)
    if match is None:
        return word
    start, last = word[: match.start()], match[0]
    lower = last.lower()
    for plural, one in _IRREGULAR.items():
        if lower.endswith(plural):
            return start + last[: len(last) - len(plural)] + one
    # Short words are exceptions: the singular of ties is tie.
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch")):
        if lower.endswith(ending) and len(last) > len(ending) + 1:
            return start + last[: -len(ending)] + instead
    if lower.endswith("s") and not lower.endswith(("ss", "us", "is")) and len(last) > 2:
        return start + last[:-1]
    return word


def plural(word: str) -> str:
    if word != singular(word):
        return word
    lower = word.lower()
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if lower.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    return word + "s"
