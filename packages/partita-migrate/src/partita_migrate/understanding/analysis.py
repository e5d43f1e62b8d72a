"""The results of stage `analyze`, as `analysis.json` holds them."""

from __future__ import annotations

from msgspec import Struct, field

from partita.database.item.attribute_values import Item
from partita_migrate.workspace.migration_folder import ANALYSIS, Folder


class SizeDistribution(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Item sizes in bytes, by AWS's rules."""

    mean: float
    p50: int
    p95: int
    p99: int
    max: int
    p95_interval: tuple[int, int] | None = None
    """The 95% confidence interval of the 95th percentile; None when the percentile is exact."""
    histogram: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of an upper bound in bytes and a number of rows, in ascending order."""


class KeySkew(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The distribution of a table's rows over the values of some columns."""

    columns: list[str]
    distinct: int
    """Estimated for the whole table."""
    rows_per_value: float
    rows_per_value_max: int
    rows_per_call: float = 0.0
    """The rows that an average call finds if calls spread over the values as rows do: frequent
    values are looked up more often and have more rows."""
    top_share: float
    """The share of rows with the most frequent value."""
    entropy_bits: float
    top_value: str | None = None
    """The most frequent value; only for numbers, dates, booleans and enums, because a text can be
    personal."""
    null_share: float = 0.0
    """The share of rows with NULL in one of the columns. The other figures leave these rows out."""
    is_unique: bool = False
    is_distinct_exact: bool = False
    reads_per_second: float = 0.0
    """Reads of all patterns that pass a value of this key."""
    writes_per_second: float = 0.0
    is_hot: bool = False
    reason: str = ""


class ColumnFigures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    null_share: float
    bytes_mean: float
    """The mean size of values that are not NULL, by AWS's rules."""
    bytes_max: int
    least: str | None = None
    most: str | None = None


class TableAnalysis(Struct, frozen=True, kw_only=True, omit_defaults=True):
    table: str
    rows: int
    sampled: int
    confidence: str
    """A sentence about the accuracy of the figures, with its confidence level."""
    item_bytes: SizeDistribution
    columns: list[ColumnFigures]
    keys: list[KeySkew] = field(default_factory=list)
    growth_rows_per_day: float | None = None
    growth_reason: str = ""


class AnalysisProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part that could not be analyzed, with the reason. The other parts are not affected."""

    subject: str
    """A table, or "patterns"."""
    reason: str


class Analysis(Struct, frozen=True, kw_only=True, omit_defaults=True):
    tables: list[TableAnalysis]
    problems: list[AnalysisProblem] = field(default_factory=list)
    seed: int = 0
    sample_rows: int = 0
    """The number of rows to sample from the whole database."""
    examples: dict[str, list[Item]] = field(default_factory=dict)
    """A few rows of each table that belong together, for drawings."""

    def table(self, name: str) -> TableAnalysis | None:
        return next((table for table in self.tables if table.table == name), None)


def significant(figure: float, digits: int = 4) -> float:
    """Rounds to significant digits: more would pretend precision, and make two runs differ."""
    return float(f"{figure:.{digits}g}")


def read_analysis(folder: Folder) -> Analysis:
    """Returns an empty analysis if `analyze` has not been run."""
    return folder.read_json(ANALYSIS, Analysis) if folder.has(ANALYSIS) else Analysis(tables=[])
