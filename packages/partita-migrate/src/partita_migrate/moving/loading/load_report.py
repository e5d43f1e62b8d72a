"""What a load has come to: facts of the state store, and its report."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct, field

LANES, STAGED, READ_UNTIL, REPORT = "lanes", "staged", "read_until", "load"
READ_SINCE = "read_since"
"""Facts of the state store. READ_SINCE: when the first row was read, in seconds since 1970."""
LOAD_JSON = "load.json"
SAME_KEY = "another row makes an item with the same key"


class ReadLane(Struct, kw_only=True):
    """A range of a table's primary keys, and how far it has been read."""

    number: int
    table: str
    low: int | None = None
    high: int | None = None
    """Of a table whose key is one number; the lowest is in the lane, the highest is not."""
    last: list[Any] | None = None
    """The key of the last row that was read, as the driver has it."""
    rows: int = 0
    expected: int = 0
    is_done: bool = False


class RowCounts(Protocol):
    until: int
    imported: int
    skipped: int
    failed: int
    stay: int
    items: int


class TableLoad(Struct, kw_only=True, omit_defaults=True):
    table: str
    rows: int = 0
    expected: int = 0
    """As the source counted them in the same transactions."""
    imported: int = 0
    skipped: int = 0
    skipped_why: str = ""
    failed: int = 0
    stay: int = 0
    """Outside the part that is moved."""
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
    """What reading has cost the source."""

    seconds: float = 0.0
    """For which it was read."""
    rows: int = 0
    rows_per_second: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    """By how much they grew meanwhile, in its own words; other sessions are in them too."""


class LoadReport(Struct, kw_only=True, omit_defaults=True):
    source: str
    endpoint: str
    model: str
    is_dry_run: bool = False
    is_followed: bool = False
    seconds: float = 0.0
    position: int = 0
    where: dict[str, str] = field(default_factory=dict)
    files: str = ""
    """Where they are, when the items went into files."""
    rejects: str = ""
    tables: list[TableLoad] = field(default_factory=list)
    on_source: SourceCost | None = None

    @property
    def failed(self) -> int:
        return sum(one.failed for one in self.tables)
