"""The view of a round: the rows and ranges fetched so far, and those that requests were missing.

A value that was not fetched yet reads as absent and is noted, so that one run of a request notes as
much as possible. A run that noted something is repeated when the values were fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from partita.database.item.key_encoding import PARTITION_HASH_BYTES
from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.logs.event_log import event_log_layout as event_layout
from partita.database.recovery import recovery_layout
from partita.database.storage.postgresql.trip_plans import (
    ABSENT,
    PAGE_BYTES_MAX,
    PAGE_ROWS,
    PAGE_ROWS_MAX,
    FetchPlan,
    FetchResult,
    RangePage,
    StoredRow,
)
from partita.database.tables import table_layout
from partita.database.tables.table_statistics import collection_size_value, statistics_value

Pair = tuple[bytes, bytes]
BUCKET_BYTES: Final = 2
GROWTH: Final = 4
MISSES_MAX: Final = 5000
"""A loop over values that all read as absent might never end."""


@dataclass(slots=True)
class RangeRead:
    """The part of a range that was fetched so far."""

    start: bytes
    stop: bytes
    reverse: bool
    rows: list[StoredRow] = field(default_factory=list)
    is_complete: bool = False
    rows_next: int = PAGE_ROWS
    bytes_next: int = PAGE_BYTES_MAX

    def next_page(self) -> RangePage:
        start, stop = self.start, self.stop
        if self.rows and self.reverse:
            stop = self.rows[-1].key
        elif self.rows:
            start = self.rows[-1].key + b"\x00"
        return RangePage(start, stop, self.reverse, self.rows_next, self.bytes_next)

    def add(self, rows: list[StoredRow], *, is_last: bool) -> None:
        self.rows += rows
        self.is_complete = is_last
        self.rows_next = min(PAGE_ROWS_MAX, GROWTH * self.rows_next)
        if not (rows or is_last):
            # A page of long keys with the same stored prefix: they can be sorted only when all of
            # them are there.
            self.rows_next, self.bytes_next = GROWTH * self.rows_next, GROWTH * self.bytes_next


class MissLimitReached(Exception):
    """Ends a run that missed 5,000 values; it is repeated when they were fetched."""


class FetchedView:
    """Values and ranges that were fetched, in the form of a snapshot."""

    def __init__(self, figures: dict[bytes, bytes] | None = None) -> None:
        self._rows: dict[bytes, StoredRow | None] = {}
        self._ranges: dict[tuple[bytes, bytes, bool], RangeRead] = {}
        self._figures: dict[bytes, bytes] = {} if figures is None else figures
        """Counts and sequence numbers, encoded as an embedded database stores them."""
        self._collections: dict[bytes, bytes | None] = {}
        """Sizes of item collections, encoded likewise."""
        self._keys: set[bytes] = set()
        self._parts: list[RangeRead] = []
        self._misses = 0

    def begin_run(self) -> None:
        self._misses = 0

    def prefetch(self, keys: Iterable[bytes]) -> None:
        """Note keys that will be read."""
        self._keys.update(key for key in keys if key not in self._rows)

    @property
    def needs_fetch(self) -> bool:
        """True if something was noted that has to be fetched."""
        return bool(self._keys or self._parts)

    @property
    def has_misses(self) -> bool:
        """True if the current run read something that was not fetched."""
        return self._misses > 0

    def get(self, key: bytes) -> bytes | None:
        if key.startswith(FIGURES):
            return self.figure(key)
        row = self.row(key)
        return None if row is None else row.value

    def figure(self, key: bytes) -> bytes | None:
        figures: Mapping[bytes, bytes | None] = self._figures
        if key.startswith(table_layout.COLLECTIONS):
            figures = self._collections
        if key not in figures:
            self._note(key)
            return None
        return figures[key]

    def row(self, key: bytes) -> StoredRow | None:
        if key not in self._rows:
            self._note(key)
            return None
        return self._rows[key]

    def keys(self) -> Set[bytes]:
        """The keys of all point reads that were fetched."""
        return self._rows.keys()

    def version(self, key: bytes) -> int:
        """The version of a fetched row; ABSENT if there is no row."""
        row = self._rows.get(key)
        return ABSENT if row is None else row.version

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        if start >= stop:
            return
        part = self._ranges.setdefault((start, stop, reverse), RangeRead(start, stop, reverse))
        for row in part.rows:
            yield row.key, row.value
        if not part.is_complete:
            if part not in self._parts:
                self._parts.append(part)
            self._count_miss()

    def take_misses(self) -> tuple[FetchPlan, list[RangeRead]]:
        """Take what was noted: what to fetch, and the ranges that its pages belong to."""
        keys, parts = self._keys, self._parts
        self._keys, self._parts = set(), []
        counts = {key for key in keys if key.startswith(COUNTED)}
        sequences = {key for key in keys if key.startswith(change_layout.SEQUENCES)}
        pages = [part.next_page() for part in parts]
        return FetchPlan(keys - counts - sequences, pages, counts, sequences), parts

    def add(self, plan: FetchPlan, parts: list[RangeRead], fetched: FetchResult) -> None:
        self._rows.update(dict.fromkeys(plan.keys))
        self._rows.update((row.key, row) for row in fetched.rows)
        for part, (rows, is_last) in zip(parts, fetched.pages, strict=True):
            part.add(rows, is_last=is_last)
        for key in plan.counts:
            items, size = fetched.counts.get(key, (0, 0))
            if key.startswith(table_layout.COLLECTIONS):
                self._collections[key] = collection_size_value(size)
            else:
                self._figures[key] = statistics_value(items, size)
        for key in plan.sequences:
            self._figures[key] = change_layout.pack_sequence(fetched.sequences.get(key, 0))

    def _note(self, key: bytes) -> None:
        self._keys.add(key)
        self._count_miss()

    def _count_miss(self) -> None:
        self._misses += 1
        if self._misses > MISSES_MAX:
            raise MissLimitReached


COUNTED: Final = (table_layout.STATISTICS, table_layout.COLLECTIONS)
FIGURES: Final = (*COUNTED, change_layout.SEQUENCES)


CATALOG_SPACES: Final = (
    table_layout.FORMAT_KEY[:1],
    table_layout.CATALOG,
    change_layout.STREAMS,
    event_layout.STREAMS,
    recovery_layout.RECORDS,
)
"""Rows that every server keeps in memory: they are changed under an exclusive lock."""
UNSHARED: Final = (*FIGURES, change_layout.CHANGES)
"""Changes that later drafts of a round do not see: the commit adds them up."""


class CurrentView:
    """The view that the catalog, jobs and reads refer to: that of the round that is running."""

    def __init__(self) -> None:
        self.current = FetchedView()

    def get(self, key: bytes) -> bytes | None:
        return self.current.get(key)

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        return self.current.range(start, stop, reverse=reverse)


def bucket_of(key: bytes) -> int:
    """The bucket of a row, by which tables are distributed over nodes: the first 15 bits of the
    hash of its partition key, or 0."""
    space = key[:1]
    if space == table_layout.ITEMS:
        start = table_layout.ITEM_PARTITION_BYTES
    elif space == table_layout.ENTRIES:
        start = table_layout.ENTRY_PARTITION_BYTES
    else:
        return 0
    hashed = key[start - PARTITION_HASH_BYTES : start - PARTITION_HASH_BYTES + BUCKET_BYTES]
    return int.from_bytes(hashed, "big") >> 1
