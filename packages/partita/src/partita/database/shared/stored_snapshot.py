"""The data in PostgreSQL as one snapshot, for checks, backups and copies.

It is a repeatable-read transaction with a query for each read, which is slow, but no request waits
for it. Servers may run meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import psycopg
from psycopg import Connection, IsolationLevel

from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.shared.rounds.fetched_view import COUNTED, FIGURES, Pair, bucket_of
from partita.database.storage.postgresql import long_keys
from partita.database.storage.postgresql.postgresql_archive import PostgresqlArchive
from partita.database.storage.postgresql.postgresql_pool import SESSION, failure
from partita.database.tables import table_layout
from partita.database.tables.table_statistics import collection_size_value, statistics_value

ROWS_PER_TRIP: Final = 1000

_ROW: Final = "SELECT value FROM partita_rows WHERE key = %b AND bucket = %s"
_ROWS: Final = "SELECT key, value FROM partita_rows WHERE key >= %b AND key < %b ORDER BY key {}"
_COUNTS: Final = """
    SELECT key, sum(items)::bigint, sum(bytes)::bigint FROM (
        SELECT key, items, bytes FROM partita_sums UNION ALL
        SELECT key, items, bytes FROM partita_counts
    ) AS counted WHERE key >= %b AND key < %b GROUP BY key ORDER BY key"""
_SEQUENCES: Final = """
    SELECT key, last FROM partita_sequences WHERE key >= %b AND key < %b ORDER BY key"""


class StoredSnapshot:
    """A snapshot in which sums and sequences look like the keys that a data folder has for them."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self._names = count()
        self.archive = PostgresqlArchive(lambda: connection)

    def get(self, key: bytes) -> bytes | None:
        if key.startswith(FIGURES):
            figures = dict(self._figures(key, key + b"\x00"))
            return figures.get(key)
        place = long_keys.stored_key(key)
        row = self.connection.execute(_ROW, [place, bucket_of(key)]).fetchone()
        return None if row is None else long_keys.whole_pair(place, bytes(row[0]))[1]

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        if start.startswith(FIGURES):
            figures = list(self._figures(start, stop))
            yield from reversed(figures) if reverse else figures
            return
        with self.connection.cursor(f"range_{next(self._names)}", binary=True) as cursor:
            cursor.itersize = ROWS_PER_TRIP
            bounds = long_keys.stored_range(start, stop)
            cursor.execute(_ROWS.format("DESC" if reverse else ""), bounds)
            yield from long_keys.in_order(iter(cursor), start, stop, reverse=reverse)

    def _figures(self, start: bytes, stop: bytes) -> Iterator[Pair]:
        if start.startswith(COUNTED):
            for key, items, size in self.connection.execute(_COUNTS, [start, stop]):
                value = (
                    collection_size_value(size)
                    if start.startswith(table_layout.COLLECTIONS)
                    else statistics_value(items, size)
                )
                if value is not None:
                    yield bytes(key), value
        else:
            for key, last in self.connection.execute(_SEQUENCES, [start, stop]):
                yield bytes(key), change_layout.pack_sequence(last)


@contextmanager
def stored_snapshot(url: str) -> Iterator[StoredSnapshot]:
    try:
        with psycopg.connect(url, **{**SESSION, "autocommit": False}) as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            yield StoredSnapshot(connection)
    except psycopg.Error as error:
        raise failure(url, error) from error
