"""What is asked of PostgreSQL and what comes back, as plain values.

Nothing here needs the driver: compiled modules import these, and they are also loaded where it is
not installed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from partita.limits import MB

PAGE_ROWS: Final = 128
"""Of the first page of a range; each later one has four times as many, up to a limit."""
PAGE_ROWS_MAX: Final = 8192
PAGE_BYTES_MAX: Final = MB + MB // 2
"""A page of a Query ends at 1 MB; index entries and sizes come with it."""

ABSENT: Final = 0
"""The version of what is not there."""


class Row(NamedTuple):
    key: bytes
    value: bytes
    version: int


class RangePage(NamedTuple):
    """The next part of a range that is wanted."""

    start: bytes
    stop: bytes
    reverse: bool
    rows_max: int
    bytes_max: int = PAGE_BYTES_MAX


class Wanted(NamedTuple):
    keys: Collection[bytes]
    ranges: Sequence[RangePage]
    counts: Collection[bytes]
    sequences: Collection[bytes]


class Fetched(NamedTuple):
    rows: list[Row]
    pages: list[tuple[list[Row], bool]]
    """For each range its next rows, and whether they are the last."""
    counts: dict[bytes, tuple[int, int]]
    sequences: dict[bytes, int]
    catalog_version: int
    beat_age_seconds: float
    """How long ago the heartbeat was moved."""
    beat_at: float
    """When that was, by the clock of the database."""
    schema_version: int


class LogEntry(NamedTuple):
    """A change for a log: its key begins with a prefix and ends with its sequence number."""

    log: bytes
    prefix: bytes
    number: int
    """From 1, within this commit."""
    value: bytes


class Lease(NamedTuple):
    name: str
    token: int


@dataclass
class CommitPlan:
    """What one transaction does."""

    token: int
    """Also the version of what is written: no other commit has it."""
    catalog_version: int
    checks: dict[bytes, int] = field(default_factory=dict)
    """The versions of what was read."""
    changes: dict[bytes, bytes | None] = field(default_factory=dict)
    counts: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    removed_counts: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Ranges of their keys."""
    log_entries: list[LogEntry] = field(default_factory=list)
    followed: dict[bytes, bytes | None] = field(default_factory=dict)
    """Those of the changes that are kept for recovery."""
    sequences: dict[bytes, int | None] = field(default_factory=dict)
    """Under an exclusive lock, logs are set or removed; otherwise their entries move them."""
    lease: Lease | None = None
    moves_catalog: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.checks or self.changes or self.counts or self.log_entries)
