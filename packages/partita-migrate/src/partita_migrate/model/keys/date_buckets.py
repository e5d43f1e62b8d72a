"""Partition keys by a part of a date: the year, the month or the day of a row.

They spread a table over time, so that its latest rows are read from today's bucket and the buckets
before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

BUCKET = ".bucket"
"""Suffix of a parameter's name; such a parameter takes the date of one bucket after the other."""
BUCKETS = ("%Y", "%Y-%m", "%Y-%m-%d")
"""From coarse to fine."""


def bucket_count(part_format: str, first: str, last: str) -> int:
    return sum(1 for _ in buckets(part_format, first, last))


def buckets(
    part_format: str, first: str, last: str, *, is_descending: bool = False
) -> Iterator[str]:
    """Yields a date in every bucket from `first` to `last`, which are texts that begin with a
    date."""
    low, high = _day(first), _day(last)
    if low is None or high is None or low > high:
        return
    numbers = range(_number(part_format, low), _number(part_format, high) + 1)
    for number in reversed(numbers) if is_descending else numbers:
        yield _date(part_format, number).isoformat()


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def _number(part_format: str, day: date) -> int:
    """Numbers the buckets, so that neighbors differ by 1."""
    if part_format == "%Y":
        return day.year
    return day.year * 12 + day.month - 1 if part_format == "%Y-%m" else day.toordinal()


def _date(part_format: str, number: int) -> date:
    if part_format == "%Y":
        return date(number, 1, 1)
    if part_format == "%Y-%m":
        return date(number // 12, number % 12 + 1, 1)
    return date.fromordinal(number)
