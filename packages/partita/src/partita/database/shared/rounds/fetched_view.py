"""What one round knows of the database, and what its requests have asked for in vain.

A value that is not known yet reads as absent and is noted, so that one run of a function notes
everything it can get at. A run that has noted something does not count.
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
ASKED_IN_VAIN_MAX: Final = 5000
"""A search in what is not known may never come to its end."""


@dataclass(slots=True)
class RangeRead:
    """The part of a range that is known."""

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
            # A page full of long keys that begin alike: all of them are needed to sort them.
            self.rows_next, self.bytes_next = GROWTH * self.rows_next, GROWTH * self.bytes_next


class MissLimitReached(Exception):
    """A run has asked for so much in vain that what it does no longer leads anywhere."""


class FetchedView:
    """A snapshot in parts: point reads and ranges that were fetched."""

    def __init__(self, figures: dict[bytes, bytes] | None = None) -> None:
        self._rows: dict[bytes, StoredRow | None] = {}
        self._ranges: dict[tuple[bytes, bytes, bool], RangeRead] = {}
        self._figures: dict[bytes, bytes] = {} if figures is None else figures
        """Counts and sequence numbers, as the layouts have them."""
        self._collections: dict[bytes, bytes | None] = {}
        """Sizes of item collections."""
        self._keys: set[bytes] = set()
        self._parts: list[RangeRead] = []
        self._asked_in_vain = 0

    def begin_run(self) -> None:
        self._asked_in_vain = 0

    def foresee(self, keys: Iterable[bytes]) -> None:
        """Note keys that are going to be asked for."""
        self._keys.update(key for key in keys if key not in self._rows)

    @property
    def is_wanting(self) -> bool:
        """Whether something was noted that is to be fetched."""
        return bool(self._keys or self._parts)

    @property
    def is_lacking(self) -> bool:
        """Whether the run has asked for something that is not known."""
        return self._asked_in_vain > 0

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
        """Of the point reads that are known."""
        return self._rows.keys()

    def version(self, key: bytes) -> int:
        """Of what is known; ABSENT for what is not there."""
        row = self._rows.get(key)
        return ABSENT if row is None else row.version

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        if start >= stop:
            return
        found = self._ranges.setdefault((start, stop, reverse), RangeRead(start, stop, reverse))
        for row in found.rows:
            yield row.key, row.value
        if not found.is_complete:
            if found not in self._parts:
                self._parts.append(found)
            self._ask_in_vain()

    def take_wanted(self) -> tuple[FetchPlan, list[RangeRead]]:
        """What was noted, to be fetched; and the ranges, in the order of their pages."""
        keys, parts = self._keys, self._parts
        self._keys, self._parts = set(), []
        counts = {key for key in keys if key.startswith(COUNTED)}
        sequences = {key for key in keys if key.startswith(change_layout.SEQUENCES)}
        pages = [part.next_page() for part in parts]
        return FetchPlan(keys - counts - sequences, pages, counts, sequences), parts

    def add(self, wanted: FetchPlan, parts: list[RangeRead], fetched: FetchResult) -> None:
        self._rows.update(dict.fromkeys(wanted.keys))
        self._rows.update((row.key, row) for row in fetched.rows)
        for part, (rows, is_last) in zip(parts, fetched.pages, strict=True):
            part.add(rows, is_last=is_last)
        for key in wanted.counts:
            items, size = fetched.counts.get(key, (0, 0))
            if key.startswith(table_layout.COLLECTIONS):
                self._collections[key] = collection_size_value(size)
            else:
                self._figures[key] = statistics_value(items, size)
        for key in wanted.sequences:
            self._figures[key] = change_layout.pack_sequence(fetched.sequences.get(key, 0))

    def _note(self, key: bytes) -> None:
        self._keys.add(key)
        self._ask_in_vain()

    def _ask_in_vain(self) -> None:
        self._asked_in_vain += 1
        if self._asked_in_vain > ASKED_IN_VAIN_MAX:
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
"""What every server keeps in memory, or decides with: changed under an exclusive lock."""
UNSHARED: Final = (*FIGURES, change_layout.CHANGES)
"""What a draft leaves to its commit: those behind it do not see it."""


class CurrentView:
    """What the catalog, jobs and reads hold on to: whatever the run under way knows."""

    def __init__(self) -> None:
        self.known = FetchedView()

    def get(self, key: bytes) -> bytes | None:
        return self.known.get(key)

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        return self.known.range(start, stop, reverse=reverse)


def bucket_of(key: bytes) -> int:
    """What rows are distributed by: the first bits of a partition's hash, or of a log's number."""
    space = key[:1]
    if space == table_layout.ITEMS:
        start = table_layout.ITEM_PARTITION_BYTES
    elif space == table_layout.ENTRIES:
        start = table_layout.ENTRY_PARTITION_BYTES
    else:
        return 0
    hashed = key[start - PARTITION_HASH_BYTES : start - PARTITION_HASH_BYTES + BUCKET_BYTES]
    return int.from_bytes(hashed, "big") >> 1
