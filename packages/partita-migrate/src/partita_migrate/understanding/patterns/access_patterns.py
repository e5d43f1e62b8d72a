"""Access patterns: what an application reads and writes, how, and how often.

A person writes them in `patterns.toml`, and `analyze` mines them from the statements that the
database has run. Both become the same form.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Category = Literal["write only", "by distinct value", "range of items"]
"""The whitepaper's categories: writes, reads of the rows that one value identifies, reads of a
range."""

Operation = Literal["read", "insert", "update", "delete", "aggregate"]

KEY_MUST_HOLD = "the key must hold "
"""The beginning of a remark about a column that is compared in another form, such as lower case."""


class AccessPattern(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One access pattern. All its columns are "table.column"."""

    name: str
    description: str = ""
    category: Category
    operation: Operation
    table: str
    """The table whose rows are read or changed."""
    joins: list[str] = field(default_factory=list)
    """Other tables whose columns are read too."""
    through: list[str] = field(default_factory=list)
    """Intersection tables, or columns of foreign keys, that say which way leads from one table to
    another."""
    equality: list[str] = field(default_factory=list)
    range: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    is_descending: bool = False
    hierarchy: str = ""
    """A column by which the table refers to itself: everything below the rows of `equality` is
    read."""
    limit: int | None = None
    filters: list[str] = field(default_factory=list)
    """Columns with tests that no key serves: inequality, NULL, the inside of a text, OR."""
    columns: list[str] = field(default_factory=list)
    """The columns that are read or written; empty for all."""
    items: float = 1
    """The average number of items that one call reads or writes."""
    values: float = 1
    """The number of values that one call looks up at once (IN), each with a request of its own."""
    calls_per_second: float
    peak_per_second: float = 0.0
    """The expected maximum of calls per second; 0 if it is not stated."""
    transaction: str = ""
    """The name of a transaction. Patterns with the same name are written together or not at all."""
    is_consistent: bool = False
    source: Literal["written", "mined"] = "written"
    statement: str | None = None


class UnexplainedStatement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that the database has run but that could not be turned into a pattern."""

    statement: str
    calls: float
    reason: str


class IgnoredStatements(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Statements that do not access the data, by kind."""

    kind: str
    calls: float


class Patterns(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All access patterns, with what mining could not use."""

    origin: str = ""
    """A sentence: where the statements come from, and what their rates mean."""
    window_seconds: float = 0.0
    """The time over which the statements were counted; 0 for written patterns."""
    patterns: list[AccessPattern] = field(default_factory=list)
    unexplained: list[UnexplainedStatement] = field(default_factory=list)
    ignored: list[IgnoredStatements] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    """Joins of columns that no foreign key connects."""
