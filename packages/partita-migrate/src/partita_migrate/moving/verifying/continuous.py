"""Verification while following: a little of both sides after each batch, over and over.

Behind a batch, the target has what the state store's rows make: some rows are taken in turn, and
their items read. The same rows are read in the source, and in turn those that it has; they are
compared when following has come to where they were read, unless they have changed since. What
differs is looked at again before it is reported, for a source may show a commit a moment after its
place in the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from partita.database.item.values import Item
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.items import item_digest
from partita_migrate.moving.logs.origin import BEGIN
from partita_migrate.moving.moves import Move
from partita_migrate.moving.positions import is_tombstone, key_of
from partita_migrate.understanding.schema.inventory import Table
from partita_migrate.understanding.sources.connection import Source, SourceError

ROWS_AT_ONCE = 500
EVERY_SECONDS = 0.25
LOOKS = 3
"""At what differs, before it is reported."""
LISTED_MAX = 100
VERIFIED = "verified"
"""Fact: the position at which the last whole round began that found nothing."""

Turn = list[Item]


class Read(NamedTuple):
    """Rows of the source, and between which places in the log they were read."""

    table: str
    asked: Sequence[str]
    rows: dict[str, Item]
    since: int
    until: int


class Continuous:
    def __init__(self, move: Move) -> None:
        self.move = move
        self.tables = [table for table in move.origin.tables if table.primary_key]
        self.rows = 0
        self.items = 0
        self.rounds = 0
        self.different = 0
        self.differences: list[str] = []
        """The first of them."""
        self._due = 0.0
        self._reads: list[Read] = []
        self._suspects: dict[tuple[str, str], tuple[Item, int]] = {}
        self._store = self._rows_of_store()
        self._table = 0
        self._behind: list[Any] | None = None
        """Where the source is read next: behind this key of a table."""

    def step(self) -> None:
        """When the state store and the target are at one position."""
        if not self.tables or time.monotonic() < self._due:
            return
        ready = [one for one in self._reads if one.until <= self.move.position]
        for read in ready:
            self._compare_rows(read)
        if len(ready) == len(self._reads):
            self._reads.clear()
            with suppress(SourceError):
                self._take_turns()
        self._due = time.monotonic() + EVERY_SECONDS

    def _take_turns(self) -> None:
        table, rows = next(self._store)
        self._compare_items(table.name, rows)
        if rows:
            self._read_by_keys(table, rows)
        again: dict[str, list[Item]] = {}
        for (name, _), (row, _) in self._suspects.items():
            again.setdefault(name, []).append(row)
        for one in self.tables:
            if one.name in again:
                self._read_by_keys(one, again[one.name][:ROWS_AT_ONCE])
        self._read_on()

    def _rows_of_store(self) -> Iterator[tuple[Table, Turn]]:
        """Some at a time, without end."""
        before: tuple[int, int] | None = None
        while True:
            began = (self.move.position, self.different)
            for table in self.tables:
                after = 0
                while chunk := self.move.state.some_rows(table.name, after, ROWS_AT_ONCE):
                    yield table, [row for _, row in chunk]
                    after = chunk[-1][0]
            self.rounds += 1
            # What the round before suspected has been looked at again in this one.
            if before is not None and before[1] == self.different:
                with self.move.state.transaction():
                    self.move.state.set_fact(VERIFIED, before[0])
            before = began
            yield self.tables[0], []

    # Items of the target.

    def _compare_items(self, name: str, rows: Turn) -> None:
        wanted: list[tuple[TableDesign, Item]] = []
        for row in rows:
            for number in self.move.items.numbers.get(name, []):
                item = self.move.items.made(number, row)
                if item is not None:
                    wanted.append((self.move.homes[number][0], item))
        keys = [(table.name, key_of(table, item)) for table, item in wanted]
        for (table, item), there in zip(wanted, self.move.target.get_all(keys), strict=True):
            self.items += 1
            if there is None or is_tombstone(there) or item_digest(there) != item_digest(item):
                what = "is missing" if there is None else "is not what its row makes"
                self._report(f"item of {table.name}, {key_of(table, item)}: {what}")

    # Rows of the source.

    def _read(self, table: Table, asked: Sequence[str], rows: Callable[[Source], Turn]) -> None:
        with self.move.origin.connect() as source, source.errors():
            since = self.move.log.end(source)
            source.connection.exec_driver_sql(BEGIN[self.move.origin.family])
            try:
                found = rows(source)
            finally:
                if not source.is_lost:
                    source.connection.exec_driver_sql("ROLLBACK")
            until = self.move.log.end(source)
        keyed = {self.move.state.key_text(table.name, row): row for row in found}
        self._reads.append(Read(table.name, asked or list(keyed), keyed, since, until))

    def _read_by_keys(self, table: Table, rows: Turn) -> None:
        keys = [self.move.state.key_text(table.name, row) for row in rows]
        self._read(table, keys, lambda source: self.move.origin.rows_like(source, table, rows))

    def _read_on(self) -> None:
        """The next rows of the source by primary key, and after the last table the first again."""
        table = self.tables[self._table]
        self._read(table, [], lambda source: self._rows_behind(source, table))

    def _rows_behind(self, source: Source, table: Table) -> Turn:
        found = self.move.origin.raw_rows(source, table, self._behind, ROWS_AT_ONCE)
        if len(found) < ROWS_AT_ONCE:
            self._table, self._behind = (self._table + 1) % len(self.tables), None
        else:
            self._behind = list(found[-1][-len(table.primary_key) :])
        return [self.move.origin.read_row(table.name, row) for row in found]

    def _compare_rows(self, read: Read) -> None:
        """But those that have changed since they were read."""
        for key in read.asked:
            self.rows += 1
            row, kept = read.rows.get(key), self.move.state.find(read.table, key)
            is_same = row == (kept.row if kept is not None else None)
            if is_same or (kept is not None and kept.position > read.since):
                self._suspects.pop((read.table, key), None)
                continue
            known = row if row is not None else kept.row if kept is not None else {}
            looks = self._suspects.get((read.table, key), ({}, 0))[1] + 1
            self._suspects[read.table, key] = (known, looks)
            if looks == LOOKS:
                self._report(f"row of {read.table}, {key}: is not what the source has")

    def _report(self, what: str) -> None:
        self.different += 1
        if len(self.differences) < LISTED_MAX:
            self.differences.append(what.replace("\0", ", "))
