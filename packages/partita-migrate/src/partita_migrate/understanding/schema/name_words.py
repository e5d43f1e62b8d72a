"""Splits the names of tables and columns into words."""

from __future__ import annotations

import re

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


def words(name: str) -> list[str]:
    """Returns the words of a name: customer_id, CustomerID and customerId all give customer, id."""
    return [part for part in name_parts(name) if part.isascii() and part.isalpha()]


def name_parts(name: str) -> list[str]:
    """Returns the words and numbers of a name in lower case, or the name itself if it
    has neither."""
    return [word.lower() for word in _PARTS.findall(name)] or [name.lower()]


def singular(word: str) -> str:
    """Makes the last word of a name singular: `metric_versions` gives `metric_version`."""
    match = re.search(r"[A-Za-z]+$", word)
    if match is None:
        return word
    start, last = word[: match.start()], match[0]
    lower = last.lower()
    for plural, singular_form in _IRREGULAR.items():
        if lower.endswith(plural):
            return start + last[: len(last) - len(plural)] + singular_form
    for ending, replacement in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch")):
        if lower.endswith(ending) and len(last) > len(ending) + 1:
            return start + last[: -len(ending)] + replacement
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
