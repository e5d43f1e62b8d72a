"""A view that reads PostgreSQL directly, for long background work on a thread that may block.

Rows that are read for a decision are kept with their versions, as in a round, so that the commit
can check them. A long range read is not a snapshot: rows may change while it goes on. Code that
needs a consistent copy, such as a backup, also reads the changes made since it started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from psycopg import Connection

from partita.database.recovery import recovery_layout
from partita.database.shared.rounds.fetched_view import FIGURES, FetchedView, Pair, bucket_of
from partita.database.shared.stored_snapshot import StoredSnapshot
from partita.database.storage.engine import Changes, prefix_end
from partita.database.storage.postgresql import long_keys
from partita.database.storage.postgresql.trip_plans import ABSENT, StoredRow
from partita.database.storage.recovery_log import STAMP_KEY
from partita.database.tables import table_layout

PAGE_ROWS: Final = 1000
CATALOG_PREFIXES: Final = (table_layout.CATALOG, recovery_layout.RECORDS)

_ROW: Final = "SELECT value, version FROM partita_rows WHERE key = %b AND bucket = %s"
_PAGE: Final = """
    SELECT key, value, version FROM partita_rows
    WHERE key {} %b AND key < %b ORDER BY key LIMIT %s"""
_FIRST, _NEXT = _PAGE.format(">="), _PAGE.format(">")
_LAST: Final = """
    SELECT key, value, version FROM partita_rows
    WHERE key >= %b AND key < %b ORDER BY key DESC LIMIT %s"""
_CATALOG_VERSION: Final = "SELECT version FROM partita_catalog WHERE id = 1"


class LiveView(FetchedView):
    def __init__(
        self, connection: Callable[[], Connection[Any]], moment: Callable[[], int]
    ) -> None:
        """`moment` returns a commit stamp: all commits up to it are visible, later ones have
        greater stamps."""
        super().__init__()
        self._connection = connection
        self._moment = moment
        self.catalog_version = 0
        self._catalog_rows: dict[bytes, StoredRow] = {}

    def refresh_catalog(self) -> bool:
        """Read the catalog and the records of recovery again if they have changed, and return True
        if so."""
        while True:
            row = self._connection().execute(_CATALOG_VERSION).fetchone()
            version = 0 if row is None else row[0]
            if version == self.catalog_version:
                return False
            rows = {
                row.key: row
                for prefix in CATALOG_PREFIXES
                for row in self._rows_between(prefix, prefix_end(prefix))
            }
            row = self._connection().execute(_CATALOG_VERSION).fetchone()
            # Otherwise it may have changed while it was read.
            if row is not None and row[0] == version:
                self.catalog_version, self._catalog_rows = version, rows
                return True

    def note_progress(self, changes: Changes, version: int) -> None:
        """Apply committed changes to rows of the catalog that did not change its version."""
        for key, value in changes.items():
            if key.startswith(CATALOG_PREFIXES) and value is not None:
                self._catalog_rows[key] = StoredRow(key, value, version)

    def forget_catalog(self) -> None:
        self.catalog_version = 0

    def catalog_row_version(self, key: bytes) -> int:
        """The version of a row of the catalog when it was read."""
        row = self._catalog_rows.get(key)
        return ABSENT if row is None else row.version

    def get(self, key: bytes) -> bytes | None:
        if key == STAMP_KEY:
            return self._moment().to_bytes(8, "big")
        return super().get(key)

    def figure(self, key: bytes) -> bytes | None:
        return StoredSnapshot(self._connection()).get(key)

    def row(self, key: bytes) -> StoredRow | None:
        stored_key = long_keys.stored_key(key)
        parameters = [stored_key, bucket_of(key)]
        stored = self._connection().execute(_ROW, parameters, binary=True).fetchone()
        row = None
        if stored is not None:
            row = StoredRow(*long_keys.whole_pair(stored_key, bytes(stored[0])), stored[1])
        self._rows[key] = row
        return row

    def forget(self) -> None:
        """Forget the rows read for a decision, after it was made."""
        self._rows.clear()

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        assert not start.startswith(FIGURES), "figures are read one by one"
        if start.startswith(CATALOG_PREFIXES):
            yield from (
                (key, row.value) for key, row in self._catalog_rows.items() if start <= key < stop
            )
            return
        bounds = long_keys.stored_range(start, stop)
        rows = self._backward(*bounds) if reverse else self._stored(*bounds)
        pairs = ((key, value) for key, value, _ in rows)
        yield from long_keys.in_order(pairs, start, stop, reverse=reverse)

    def _rows_between(self, start: bytes, stop: bytes) -> Iterator[StoredRow]:
        for key, value, version in self._stored(*long_keys.stored_range(start, stop)):
            yield StoredRow(*long_keys.whole_pair(key, value), version)

    def _stored(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes, int]]:
        statement = _FIRST
        while True:
            page = self._page(statement, start, stop)
            yield from page
            if len(page) < PAGE_ROWS:
                return
            statement, start = _NEXT, page[-1][0]

    def _backward(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes, int]]:
        while True:
            page = self._page(_LAST, start, stop)
            yield from page
            if len(page) < PAGE_ROWS:
                return
            stop = page[-1][0]

    def _page(self, statement: str, start: bytes, stop: bytes) -> list[tuple[bytes, bytes, int]]:
        rows = self._connection().execute(statement, [start, stop, PAGE_ROWS], binary=True)
        return [(bytes(key), bytes(value), version) for key, value, version in rows]
