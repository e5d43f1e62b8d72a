"""Sums of item digests, by which both sides are compared without looking at single items.

Two sides with equal sums have equal items. Only where sums differ, items are summed again by a hash
of their keys, and only where those sums differ, single items are compared. So the memory depends on
the number of sums, not on the number of items.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import msgspec
from msgspec import Struct, field

from partita.database.item.attribute_values import Item
from partita.foundation.service_limits import ITEM_BYTES_MAX
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.processes.worker_processes import Handler
from partita_migrate.moving.processes.worker_setup import WorkerSetup
from partita_migrate.moving.target_access.item_positions import DELETED, POSITION
from partita_migrate.moving.target_access.target_client import TargetClient
from partita_migrate.moving.target_access.target_items import (
    TargetItems,
    content_digest,
    encoded,
    is_too_large,
)
from partita_migrate.row_store.state_store import StateStore

PLACES = 1 << 16
_MODULUS = 1 << 128


class SumTask(Struct):
    """Some rows of the state store, or one segment of a table of the target."""

    table: str
    after: int = 0
    until: int = 0
    segment: int = 0
    segments: int = 0
    by_key: bool = False


class DigestSums(Struct):
    """The sums of one task."""

    sums: dict[int, bytes] = field(default_factory=dict)
    """By the number of a table, or by the place of keys."""
    items: int = 0
    tombstones: int = 0
    rows: int = 0
    is_made: bool = False


def key_place(table: TableDesign, item: Item) -> int:
    """Returns the place of an item by its key alone, so that both sides use the same place."""
    text = table.name
    for key in table.keys:
        for value in item[key.name].values():
            text += "\0" + value
    return crc32(text.encode()) % PLACES


class DigestSummer:
    """Runs tasks: `by_key` sums by places of keys, otherwise by whole tables."""

    def __init__(self, items: TargetItems, state: StateStore, target: TargetClient) -> None:
        self.items = items
        self.state = state
        self.target = target
        self.places = {table.name: n for n, table in enumerate(items.tables)}
        self.tables = {table.name: table for table in items.tables}

    def run(self, task: SumTask) -> DigestSums:
        return self._sum_segment(task) if task.segments else self._sum_rows(task)

    def _sum_rows(self, task: SumTask) -> DigestSums:
        sums = _SumBuilder()
        items = self.items
        numbers = items.numbers.get(task.table, [])
        entities = [(number, *self._home(items.entities[number][0])) for number in numbers]
        for _, row in self.state.numbered_rows(task.table, task.after, task.until):
            for number, table, place in entities:
                item, reason = items.make(number, row)
                if item is None or reason:
                    continue
                content = encoded(item)
                # An item has fewer bytes than its JSON.
                if len(content) > ITEM_BYTES_MAX and is_too_large(item):
                    continue
                where = key_place(table, item) if task.by_key else place
                sums.add(where, content_digest(item, content))
        return sums.sums(rows=task.until - task.after, is_made=True)

    def _sum_segment(self, task: SumTask) -> DigestSums:
        sums = _SumBuilder()
        tombstones = 0
        table, place = self._home(self.tables[task.table])
        for page in self.target.pages(table.name, task.segment, task.segments):
            for item in page:
                if DELETED in item:
                    tombstones += 1
                    continue
                item.pop(POSITION, None)
                where = key_place(table, item) if task.by_key else place
                sums.add(where, content_digest(item, encoded(item)))
        return sums.sums(tombstones=tombstones)

    def _home(self, table: TableDesign) -> tuple[TableDesign, int]:
        return table, self.places[table.name]


class _SumBuilder:
    """Adds up the digests of one task."""

    def __init__(self) -> None:
        self.digests: dict[int, int] = {}
        self.items = 0

    def add(self, place: int, digest: bytes) -> None:
        self.items += 1
        # A sum does not depend on the order in which items come.
        self.digests[place] = self.digests.get(place, 0) + int.from_bytes(digest)

    def sums(self, *, rows: int = 0, tombstones: int = 0, is_made: bool = False) -> DigestSums:
        reduced = {place: (value % _MODULUS).to_bytes(16) for place, value in self.digests.items()}
        return DigestSums(reduced, self.items, tombstones, rows, is_made)


class SideTotal:
    """The sums of one side."""

    def __init__(self) -> None:
        self.sums: dict[int, int] = {}
        self.items = 0
        self.tombstones = 0

    def add(self, task_sums: DigestSums) -> None:
        for place, value in task_sums.sums.items():
            total = self.sums.get(place, 0) + int.from_bytes(value)
            self.sums[place] = total % _MODULUS
        self.items += task_sums.items
        self.tombstones += task_sums.tombstones

    def differing(self, other: SideTotal) -> set[int]:
        """Returns the places whose sums differ."""
        places = self.sums.keys() | other.sums.keys()
        return {place for place in places if self.sums.get(place, 0) != other.sums.get(place, 0)}


def tasks(
    last: dict[str, int], tables: list[TableDesign], rows: int, segments: int, *, by_key: bool
) -> Iterator[SumTask]:
    """Yields the tasks of both sides; `last` has the last row number of each table of the
    source."""
    made = [
        SumTask(source, after, min(after + rows, until), by_key=by_key)
        for source, until in last.items()
        for after in range(0, until, rows)
    ]
    scanned = [
        SumTask(table.name, segment=segment, segments=segments, by_key=by_key)
        for table in tables
        for segment in range(segments)
    ]
    # Alternating: while the target reads for a scan, rows are turned into items here.
    for place in range(max(len(made), len(scanned))):
        yield from scanned[place : place + 1]
        yield from made[place : place + 1]


def worker(content: bytes) -> Handler:
    """Handles sum tasks in a process of its own."""
    setup = msgspec.msgpack.decode(content, type=WorkerSetup)
    summing = DigestSummer(*setup.opened())
    return lambda task: summing.run(msgspec.msgpack.decode(task, type=SumTask))
