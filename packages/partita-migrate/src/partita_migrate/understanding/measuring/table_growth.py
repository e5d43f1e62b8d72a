"""Estimates how fast a table grows: from the times when its rows were made, or from inserts."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

from partita_migrate.understanding.analysis import significant
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.inventory import SourceColumn, SourceTable

DAY_SECONDS = 86_400
RECENT_DAYS = 30
RECENT_ROWS_MIN = 30
"""With fewer sampled rows in the last days, these say nothing."""

_CREATION_NAMES = (
    "created_at", "created", "createdat", "creation_date", "create_date", "created_on",
    "create_time", "creation_time", "date_created", "inserted_at", "insert_time", "date_added",
    "added_at", "registered_at", "registration_date", "registrationdate", "date_joined",
    "joined_at", "signup_date", "order_date", "orderdate", "payment_date", "rental_date",
    "invoice_date", "invoicedate", "posted_at", "published_at", "logged_at", "event_time",
    "occurred_at", "recorded_at", "timestamp", "ts",
)  # fmt: skip


_OTHER_TIMES = re.compile(r"updat|modif|chang|last|delet|expir|end|birth|due|until|valid|next")
"""Occurs in the names of times that are not the time of creation."""
RISING_SHARE_MIN = 0.95


def creation_column(table: SourceTable) -> SourceColumn | None:
    """Returns the column with the time of creation, by its name.

    If no name fits, it returns another time that may rise with the numbers of the rows; `growth`
    checks that.
    """
    times = [column for column in table.columns if column.kind in ("date", "datetime")]
    by_name = {column.name.lower(): column for column in times}
    named = (by_name[name] for name in _CREATION_NAMES if name in by_name)
    others = (time for time in times if not _OTHER_TIMES.search(time.name.lower()))
    return next(named, next(others, None) if numbered_column(table) else None)


def numbered_column(table: SourceTable) -> SourceColumn | None:
    return next((column for column in table.columns if column.is_auto_increment), None)


def growth(
    table: SourceTable,
    rows: float,
    column: SourceColumn | None,
    moments: array[float],
    numbers: array[float],
    patterns: Iterable[AccessPattern],
) -> tuple[float | None, str]:
    """Returns rows per day with the reason, or None if nothing tells. `numbers` and `moments` are
    of the same rows."""
    is_creation_time = column is not None and (
        column.name.lower() in _CREATION_NAMES or _is_rising(numbers, moments)
    )
    growth_found = _by_moments(rows, moments) if is_creation_time else None
    if growth_found is not None and column is not None:
        per_day, how = growth_found
        return significant(per_day), f"{how} by {column.name}"
    inserted = _net_inserts(table, patterns)
    if inserted is not None:
        return significant(
            inserted
        ), "by the rates of the patterns that insert, less those that delete"
    return None, ""


def _is_rising(numbers: array[float], moments: array[float]) -> bool:
    """True when rows with greater numbers are later, with few exceptions."""
    if len(numbers) != len(moments) or len(moments) < RECENT_ROWS_MIN:
        return False
    by_number = [moment for _, moment in sorted(zip(numbers, moments, strict=True))]
    rising = sum(earlier <= later for earlier, later in pairwise(by_number))
    return rising >= RISING_SHARE_MIN * (len(by_number) - 1)


def _by_moments(rows: float, moments: array[float]) -> tuple[float, str] | None:
    """Returns the growth over the last days before the newest row, or over all time if these have
    too few rows."""
    if len(moments) < 2:
        return None
    ordered = sorted(moments)
    newest, days = ordered[-1], (ordered[-1] - ordered[0]) / DAY_SECONDS
    if days <= 0:
        return None
    recent = len(ordered) - bisect_left(ordered, newest - RECENT_DAYS * DAY_SECONDS)
    if days > RECENT_DAYS and recent >= RECENT_ROWS_MIN:
        return rows * recent / len(ordered) / RECENT_DAYS, f"of the last {RECENT_DAYS} days,"
    return rows / days, f"over {days:,.0f} days,"


def _net_inserts(table: SourceTable, patterns: Iterable[AccessPattern]) -> float | None:
    signs = {"insert": 1, "delete": -1}
    changes = [
        signs[pattern.operation] * pattern.calls_per_second * max(pattern.items, 1)
        for pattern in patterns
        if pattern.table == table.name and pattern.operation in signs
    ]
    return sum(changes) * DAY_SECONDS if changes else None
