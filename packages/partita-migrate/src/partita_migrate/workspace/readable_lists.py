"""Lists and counts in sentences for people."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[str] | None) -> str:
    """Returns the names with commas between them."""
    return ", ".join(names or [])


def enumerated(names: Iterable[str]) -> str:
    """Returns "a", "a and b" or "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def first_names(names: list[str], most: int, between: str = ", ") -> str:
    """Returns the first names, and how many more there are: "a, b and 3 more".

    Names of patterns can contain commas, so the separator can be another one.
    """
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def number_of(count: int, noun: str) -> str:
    """Returns "1 table" or "2 tables"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
