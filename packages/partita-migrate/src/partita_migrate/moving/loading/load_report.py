"""The report of a load, and the facts of the state store that it is made of."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct, field

LANES, STAGED, READ_UNTIL, REPORT = "lanes", "staged", "read_until", "load"
READ_SINCE = "read_since"
"""Facts of the state store. READ_SINCE is when the first row was read, in seconds since 1970."""
LOAD_JSON = "load.json"
SAME_KEY = "another row makes an item with the same key"


class ReadLane(Struct, kw_only=True):
    """A range of a table's primary keys, and how far it has been read."""

    number: int
    table: str
    low: int | None = None
    high: int | None = None
    """The range of a single integer key, from `low` up to but not including `high`."""
    last: list[Any] | None = None
    """The key of the last row that was read, as the driver returned it."""
    rows: int = 0
    expected: int = 0
    is_done: bool = False


class RowCounts(Protocol):
    """The counts of one chunk that `TableLoad.add` sums up."""

    until: int
    imported: int
    skipped: int
    failed: int
    stay: int
    items: int


class TableLoad(Struct, kw_only=True, omit_defaults=True):
    """The outcome of a load for one table of the source, by rows."""

    table: str
    rows: int = 0
    expected: int = 0
    """The number of rows that the source counted in the same transactions."""
    imported: int = 0
    skipped: int = 0
    skipped_why: str = ""
    failed: int = 0
    stay: int = 0
    """Rows outside `--where`, which stay in the source."""
    items: int = 0
    written_until: int = 0

    @property
    def accounted(self) -> int:
        return self.imported + self.skipped + self.failed + self.stay

    def add(self, chunk: RowCounts) -> None:
        self.imported += chunk.imported
        self.skipped += chunk.skipped
        self.failed += chunk.failed
        self.stay += chunk.stay
        self.items += chunk.items
        self.written_until = chunk.until


class SourceCost(Struct, kw_only=True, omit_defaults=True):
    """The cost of reading for the source."""

    seconds: float = 0.0
    """How long the source was read."""
    rows: int = 0
    rows_per_second: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    """By how much the server's counters grew meanwhile; they include other sessions."""


class LoadReport(Struct, kw_only=True, omit_defaults=True):
    """The report of a load, stored as `load.json`."""

    source: str
    endpoint: str
    model: str
    is_dry_run: bool = False
    is_followed: bool = False
    seconds: float = 0.0
    position: int = 0
    where: dict[str, str] = field(default_factory=dict)
    files: str = ""
    """The folder or bucket of the import files, when items were written into files."""
    rejects: str = ""
    tables: list[TableLoad] = field(default_factory=list)
    on_source: SourceCost | None = None

    @property
    def failed(self) -> int:
        return sum(table.failed for table in self.tables)
