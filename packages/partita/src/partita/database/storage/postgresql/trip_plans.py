"""Plans of round trips to PostgreSQL, as plain values: the rows to fetch, the rows to commit.

This module does not import the driver: compiled modules import it, also where the driver is not
installed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from partita.foundation.service_limits import MB

PAGE_ROWS: Final = 128
"""The size of a range's first page; each later page has four times as many rows, up to a limit."""
PAGE_ROWS_MAX: Final = 8192
PAGE_BYTES_MAX: Final = MB + MB // 2
"""More than the 1 MB of a Query's page, because index entries and sizes come with the items."""

ABSENT: Final = 0
"""The version of a key that does not exist."""


class StoredRow(NamedTuple):
    """A row, with the version of the commit that wrote it."""

    key: bytes
    value: bytes
    version: int


class RangePage(NamedTuple):
    """A request for the next rows of a range."""

    start: bytes
    stop: bytes
    reverse: bool
    rows_max: int
    bytes_max: int = PAGE_BYTES_MAX


class FetchPlan(NamedTuple):
    """Everything that one round trip fetches."""

    keys: Collection[bytes]
    ranges: Sequence[RangePage]
    counts: Collection[bytes]
    sequences: Collection[bytes]


class FetchResult(NamedTuple):
    """The result of a fetch."""

    rows: list[StoredRow]
    pages: list[tuple[list[StoredRow], bool]]
    """For each range its next rows, and True if they are the last ones."""
    counts: dict[bytes, tuple[int, int]]
    sequences: dict[bytes, int]
    catalog_version: int
    beat_age_seconds: float
    """The age of the heartbeat."""
    beat_at: float
    """The time of the heartbeat, by the database's clock."""
    schema_version: int


class LogEntry(NamedTuple):
    """An entry for a log; its key is a prefix and its sequence number."""

    log: bytes
    prefix: bytes
    number: int
    """Its position among the entries of this commit, counted from 1."""
    value: bytes


class FencingLease(NamedTuple):
    """A lease with its fencing token: a commit with an outdated token fails."""

    name: str
    token: int


@dataclass
class CommitPlan:
    """Everything that one transaction checks and writes."""

    token: int
    """Identifies the commit; also the version of the rows that it writes."""
    catalog_version: int
    checks: dict[bytes, int] = field(default_factory=dict)
    """The versions of the keys that were read."""
    changes: dict[bytes, bytes | None] = field(default_factory=dict)
    counts: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    removed_counts: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Ranges of keys whose counts are removed."""
    log_entries: list[LogEntry] = field(default_factory=list)
    followed: dict[bytes, bytes | None] = field(default_factory=dict)
    """The changes that are kept for recovery."""
    sequences: dict[bytes, int | None] = field(default_factory=dict)
    """Sequences to set or to remove (None), under an exclusive lock; usually `log_entries` advance
    them."""
    lease: FencingLease | None = None
    moves_catalog: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.checks or self.changes or self.counts or self.log_entries)
