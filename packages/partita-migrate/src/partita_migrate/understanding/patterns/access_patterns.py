"""Access patterns: what an application reads and writes, and how often.

People write them in `patterns.toml`; `analyze` mines them from the statements that the database has
run. Both end up in this form.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Category = Literal["write only", "by distinct value", "range of items"]
"""The categories of AWS's whitepaper: writes, reads by a distinct value, reads of a range."""

Operation = Literal["read", "insert", "update", "delete", "aggregate"]

KEY_MUST_HOLD = "the key must hold "
"""Prefix of the remark about a column that is compared through a function such as lower()."""


class AccessPattern(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    description: str = ""
    category: Category
    operation: Operation
    table: str
    """The table whose rows are read or changed; columns in the lists below are "table.column"."""
    joins: list[str] = field(default_factory=list)
    """Other tables whose columns are read too."""
    through: list[str] = field(default_factory=list)
    """Intersection tables on the way to a joined table, where the schema has several ways."""
    equality: list[str] = field(default_factory=list)
    range: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    is_descending: bool = False
    hierarchy: str = ""
    """A column by which the table refers to itself: the pattern reads the subtree below the row
    that `equality` finds."""
    limit: int | None = None
    filters: list[str] = field(default_factory=list)
    """Columns that are tested in ways that no key supports: inequality, NULL, part of a
    text, OR."""
    columns: list[str] = field(default_factory=list)
    """The columns that are read or written; empty for all."""
    items: float = 1
    """Average number of items that one call reads or writes."""
    values: float = 1
    """Number of values that one call looks up at once (IN); each becomes a request."""
    calls_per_second: float
    peak_per_second: float = 0.0
    """The peak of calls per second; 0 when unknown."""
    transaction: str = ""
    """Patterns with the same transaction name are written together or not at all."""
    is_consistent: bool = False
    source: Literal["written", "mined"] = "written"
    statement: str | None = None


class UnexplainedStatement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement of the database that could not be turned into a pattern, with the reason."""

    statement: str
    calls: float
    reason: str


class IgnoredStatements(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Statements that do not access data, counted by kind."""

    kind: str
    calls: float


class Patterns(Struct, frozen=True, kw_only=True, omit_defaults=True):
    origin: str = ""
    """A sentence on where the statements come from and what their rates mean."""
    window_seconds: float = 0.0
    """The time over which statements were counted; 0 for patterns that people wrote."""
    patterns: list[AccessPattern] = field(default_factory=list)
    unexplained: list[UnexplainedStatement] = field(default_factory=list)
    ignored: list[IgnoredStatements] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    """Joins that look like foreign keys that the schema does not declare."""
