"""What `analyze` measured: the file `analysis.json`."""

from __future__ import annotations

from msgspec import Struct, field

from partita.database.item.attribute_values import Item
from partita_migrate.workspace.migration_folder import ANALYSIS, Folder


class SizeDistribution(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Item sizes in bytes, computed by AWS's rules."""

    mean: float
    p50: int
    p95: int
    p99: int
    max: int
    p95_interval: tuple[int, int] | None = None
    """Interval of the 95th percentile of all rows with 95% confidence; None when it is exact."""
    histogram: list[tuple[int, int]] = field(default_factory=list)
    """(upper bound in bytes, rows), in ascending order."""


class KeySkew(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the rows of a table are distributed over the values of some columns."""

    columns: list[str]
    distinct: int
    """Estimated for the whole table."""
    rows_per_value: float
    rows_per_value_max: int
    rows_per_call: float = 0.0
    """Rows that a call finds on average when calls are distributed as rows are. It exceeds
    `rows_per_value`, because frequent values are asked for more often and have more rows."""
    top_share: float
    """Share of the rows with the most frequent value."""
    entropy_bits: float
    top_value: str | None = None
    """The most frequent value, kept only for numbers, dates, booleans and enums: a text may be
    personal."""
    null_share: float = 0.0
    """Share of the rows that lack one of the columns; the other figures cover the rest."""
    is_unique: bool = False
    is_distinct_exact: bool = False
    reads_per_second: float = 0.0
    """Reads of all patterns that name a value of this key."""
    writes_per_second: float = 0.0
    is_hot: bool = False
    reason: str = ""


class ColumnFigures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    null_share: float
    bytes_mean: float
    """Mean size of the values that are not NULL, by AWS's rules."""
    bytes_max: int
    least: str | None = None
    most: str | None = None


class TableAnalysis(Struct, frozen=True, kw_only=True, omit_defaults=True):
    table: str
    rows: int
    sampled: int
    confidence: str
    """A sentence on how far the figures may be off, and with what probability."""
    item_bytes: SizeDistribution
    columns: list[ColumnFigures]
    keys: list[KeySkew] = field(default_factory=list)
    growth_rows_per_day: float | None = None
    growth_reason: str = ""


class AnalysisProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part that could not be analyzed, with the reason; the other parts are complete."""

    subject: str
    """Name of a table, "patterns" or "examples"."""
    reason: str


class Analysis(Struct, frozen=True, kw_only=True, omit_defaults=True):
    tables: list[TableAnalysis]
    problems: list[AnalysisProblem] = field(default_factory=list)
    seed: int = 0
    sample_rows: int = 0
    """Rows of the whole database that the settings asked for."""
    examples: dict[str, list[Item]] = field(default_factory=dict)
    """A few rows of each table that belong together, for drawings."""

    def table(self, name: str) -> TableAnalysis | None:
        return next((table for table in self.tables if table.table == name), None)


def significant(number: float, digits: int = 6) -> float:
    """Rounds a figure to significant digits, so that files of two runs can be compared."""
    return float(f"{number:.{digits}g}")


def read_analysis(folder: Folder) -> Analysis:
    """Reads the analysis; returns an empty one when `analyze` has not been run."""
    return folder.read_json(ANALYSIS, Analysis) if folder.has(ANALYSIS) else Analysis(tables=[])
