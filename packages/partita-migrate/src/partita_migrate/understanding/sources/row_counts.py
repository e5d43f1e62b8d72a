"""How many rows a table has: counted where that is cheap, else what the server's statistics say."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from partita.foundation.service_limits import MB
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

COUNTED_BYTES_MAX = 64 * MB
COUNTED_ROWS_MAX = 500_000
"""For tables whose size in bytes is not known."""
COUNT_SECONDS_MAX = 3.0
COUNTING_SECONDS_MAX = 30.0
"""Of all tables together."""

Counted = Callable[[], None]
"""Called after each table."""


def count_rows(
    source: SourceDatabase, tables: list[SourceTable], counted: Counted
) -> list[SourceTable]:
    """Tables come with an estimate, or with -1 when the server has none."""
    end = time.monotonic() + COUNTING_SECONDS_MAX
    found = []
    for table in tables:
        exact = _count(source, table) if _is_cheap(table) and time.monotonic() < end else None
        if exact is not None:
            found.append(replace(table, row_count=exact, is_row_count_exact=True))
        elif table.row_count < 0:
            found.append(replace(table, row_count=_planned(source, table)))
        else:
            found.append(table)
        counted()
    return found


def _is_cheap(table: SourceTable) -> bool:
    if not table.is_readable:
        return False
    if table.data_bytes is None:
        return table.row_count <= COUNTED_ROWS_MAX
    return table.data_bytes <= COUNTED_BYTES_MAX


def _count(source: SourceDatabase, table: SourceTable) -> int | None:
    """None when it takes too long, or when something holds the table."""
    try:
        with source.limit(COUNT_SECONDS_MAX):
            (row,) = source.rows(f"SELECT count(*) FROM {_named(source, table)}")
            return int(row[0])
    except SourceError:
        if source.is_lost:
            raise
        return None


def _planned(source: SourceDatabase, table: SourceTable) -> int:
    """What the planner expects; PostgreSQL answers from the number of pages, analysed or not."""
    if source.dialect != "postgresql" or not table.is_readable:
        return 0
    try:
        (row,) = source.rows(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {_named(source, table)}")
        return int(row[0][0]["Plan"]["Plan Rows"])
    except SourceError:
        if source.is_lost:
            raise
        return 0


def _named(source: SourceDatabase, table: SourceTable) -> str:
    """With a name by which our own statements are known among those that the server remembers."""
    return f"{source.relation(table)} AS partita_count"
