"""Row counts of tables: counted if that is cheap, else taken from the server's statistics."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from partita.foundation.service_limits import MB
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

COUNTED_BYTES_MAX = 64 * MB
COUNTED_ROWS_MAX = 500_000
"""The limit for tables whose size in bytes is unknown."""
COUNT_SECONDS_MAX = 3.0
COUNTING_SECONDS_MAX = 30.0
"""The limit for all tables together."""

Counted = Callable[[], None]
"""Called after each table."""


def count_rows(
    source: SourceDatabase, tables: list[SourceTable], counted: Counted
) -> list[SourceTable]:
    """Returns the tables with their counts. They come with an estimate, or with -1 if the server
    has none."""
    end = time.monotonic() + COUNTING_SECONDS_MAX
    tables_counted = []
    for table in tables:
        exact = _count(source, table) if _is_cheap(table) and time.monotonic() < end else None
        if exact is not None:
            tables_counted.append(replace(table, row_count=exact, is_row_count_exact=True))
        elif table.row_count < 0:
            tables_counted.append(replace(table, row_count=_planned(source, table)))
        else:
            tables_counted.append(table)
        counted()
    return tables_counted


def _is_cheap(table: SourceTable) -> bool:
    if not table.is_readable:
        return False
    if table.data_bytes is None:
        return table.row_count <= COUNTED_ROWS_MAX
    return table.data_bytes <= COUNTED_BYTES_MAX


def _count(source: SourceDatabase, table: SourceTable) -> int | None:
    """Counts a table. Returns None if that takes too long, or if the table is locked."""
    try:
        with source.limit(COUNT_SECONDS_MAX):
            # The time-out ends a count that the size estimate promised to be cheap.
            (row,) = source.rows(f"SELECT count(*) FROM {_named(source, table)}")
            return int(row[0])
    except SourceError:
        if source.is_lost:
            raise
        return None


def _planned(source: SourceDatabase, table: SourceTable) -> int:
    """Returns the planner's estimate. PostgreSQL derives it from the number of pages, even without
    ANALYZE."""
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
    """Returns the table with an alias by which our own statements are recognized in the server's
    statistics."""
    return f"{source.relation(table)} AS partita_count"
