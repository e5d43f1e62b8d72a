"""Verifies while following: compares a few rows and items after each batch, over and over.

After a batch, the target holds the items that the stored rows make. Rows of the store are taken in
turn and their items are read. The same rows are read in the source, and in turn the source's own
rows; they are compared when following has reached the position at which they were read, unless they
changed since. A difference is checked again before it is reported: a source may show a commit a
moment after its place in the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.move import Move
from partita_migrate.moving.target_access.item_positions import is_tombstone, key_of
from partita_migrate.moving.target_access.target_items import item_digest
from partita_migrate.proving.sandbox.source_snapshot import consistent_read
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

ROWS_AT_ONCE = 500
EVERY_SECONDS = 0.25
LOOKS = 3
"""How often a difference is seen before it is reported."""
LISTED_MAX = 100
VERIFIED = "verified"
"""Fact of the state store: the position at which the last complete round without differences began.
"""

Turn = list[Item]


class RowRead(NamedTuple):
    """Rows of the source, and the log positions before and after they were read."""

    table: str
    requested_keys: Sequence[str]
    rows: dict[str, Item]
    since: int
    until: int


class ContinuousVerification:
    """Compares both sides a little at a time."""

    def __init__(self, move: Move) -> None:
        self.move = move
        self.tables = [table for table in move.origin.tables if table.primary_key]
        self.rows = 0
        self.items = 0
        self.rounds = 0
        self.different = 0
        self.differences: list[str] = []
        """The first differences, at most `LISTED_MAX`."""
        self._due = 0.0
        self._reads: list[RowRead] = []
        self._suspects: dict[tuple[str, str], tuple[Item, int]] = {}
        self._store = self._rows_of_store()
        self._table = 0
        self._behind: list[Any] | None = None
        """The primary key after which the source is read next."""

    def step(self) -> None:
        """Compares a little; called when the state store and the target are at the same
        position."""
        if not self.tables or time.monotonic() < self._due:
            return
        ready = [read for read in self._reads if read.until <= self.move.position]
        for read in ready:
            self._compare_rows(read)
        if len(ready) == len(self._reads):
            self._reads.clear()
            with suppress(SourceError):
                self._take_turns()
        self._due = time.monotonic() + EVERY_SECONDS

    def _take_turns(self) -> None:
        """Compares some items, and reads the same rows and the next ones of the source."""
        table, rows = next(self._store)
        self._compare_items(table.name, rows)
        if rows:
            self._read_by_keys(table, rows)
        again: dict[str, list[Item]] = {}
        for (name, _), (row, _) in self._suspects.items():
            again.setdefault(name, []).append(row)
        for checked_table in self.tables:
            if checked_table.name in again:
                self._read_by_keys(checked_table, again[checked_table.name][:ROWS_AT_ONCE])
        self._read_on()

    def _rows_of_store(self) -> Iterator[tuple[SourceTable, Turn]]:
        """Yields rows of the store, some at a time, without end."""
        before: tuple[int, int] | None = None
        while True:
            began = (self.move.position, self.different)
            for table in self.tables:
                after = 0
                while chunk := self.move.state.some_rows(table.name, after, ROWS_AT_ONCE):
                    yield table, [row for _, row in chunk]
                    after = chunk[-1][0]
            self.rounds += 1
            # Suspects of the round before have been checked again in this one.
            if before is not None and before[1] == self.different:
                with self.move.state.transaction():
                    self.move.state.set_fact(VERIFIED, before[0])
            before = began
            yield self.tables[0], []

    # Items of the target.

    def _compare_items(self, name: str, rows: Turn) -> None:
        expected: list[tuple[TableDesign, Item]] = []
        for row in rows:
            for number in self.move.items.numbers.get(name, []):
                item = self.move.items.item_of(number, row)
                if item is not None:
                    expected.append((self.move.entities[number][0], item))
        keys = [(table.name, key_of(table, item)) for table, item in expected]
        for (table, item), existing in zip(expected, self.move.target.get_all(keys), strict=True):
            self.items += 1
            if (
                existing is None
                or is_tombstone(existing)
                or item_digest(existing) != item_digest(item)
            ):
                what = "is missing" if existing is None else "is not what its row makes"
                self._report(f"item of {table.name}, {key_of(table, item)}: {what}")

    # Rows of the source.

    def _read(
        self,
        table: SourceTable,
        requested_keys: Sequence[str],
        rows: Callable[[SourceDatabase], Turn],
    ) -> None:
        with self.move.origin.connect() as source, source.errors():
            since = self.move.log.end(source)
            with consistent_read(source):
                source_rows = rows(source)
            until = self.move.log.end(source)
        keyed = {self.move.state.key_text(table.name, row): row for row in source_rows}
        self._reads.append(RowRead(table.name, requested_keys or list(keyed), keyed, since, until))

    def _read_by_keys(self, table: SourceTable, rows: Turn) -> None:
        keys = [self.move.state.key_text(table.name, row) for row in rows]
        self._read(
            table, keys, lambda source: self.move.origin.rows_with_keys_of(source, table, rows)
        )

    def _read_on(self) -> None:
        """Reads the next rows of the source by primary key, starting over after the last table."""
        table = self.tables[self._table]
        self._read(table, [], lambda source: self._rows_behind(source, table))

    def _rows_behind(self, source: SourceDatabase, table: SourceTable) -> Turn:
        raw_rows = self.move.origin.raw_rows(source, table, self._behind, ROWS_AT_ONCE)
        if len(raw_rows) < ROWS_AT_ONCE:
            self._table, self._behind = (self._table + 1) % len(self.tables), None
        else:
            self._behind = list(raw_rows[-1][-len(table.primary_key) :])
        return [self.move.origin.read_row(table.name, row) for row in raw_rows]

    def _compare_rows(self, read: RowRead) -> None:
        """Compares rows with the store, except for those that have changed since they were read."""
        for key in read.requested_keys:
            self.rows += 1
            row, stored = read.rows.get(key), self.move.state.find(read.table, key)
            is_same = row == (stored.row if stored is not None else None)
            if is_same or (stored is not None and stored.position > read.since):
                self._suspects.pop((read.table, key), None)
                continue
            current = row if row is not None else stored.row if stored is not None else {}
            looks = self._suspects.get((read.table, key), ({}, 0))[1] + 1
            self._suspects[read.table, key] = (current, looks)
            if looks == LOOKS:
                self._report(f"row of {read.table}, {key}: is not what the source has")

    def _report(self, what: str) -> None:
        self.different += 1
        if len(self.differences) < LISTED_MAX:
            self.differences.append(what.replace("\0", ", "))
