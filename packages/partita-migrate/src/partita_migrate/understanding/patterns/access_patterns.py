"""Access patterns: what an application asks of its data, how, and how often.

A person writes them in `patterns.toml`; `analyze` mines them from what the database has run. Both
end up here, in one form.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Category = Literal["write only", "by distinct value", "range of items"]
"""The whitepaper's three: writes, reads of what one value names, reads of a range."""

Operation = Literal["read", "insert", "update", "delete", "aggregate"]

KEY_MUST_HOLD = "the key must hold "
"""So begins a remark about a column that is compared in another form, such as lower case."""


class AccessPattern(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    description: str = ""
    category: Category
    operation: Operation
    table: str
    """The table whose rows are wanted or changed; columns below are "table.column"."""
    joins: list[str] = field(default_factory=list)
    """The other tables whose columns are wanted too."""
    through: list[str] = field(default_factory=list)
    """Intersection tables that lead from one to another, where the schema has several."""
    equality: list[str] = field(default_factory=list)
    range: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    is_descending: bool = False
    hierarchy: str = ""
    """A column by which the table refers to itself: wanted is all below what `equality` names."""
    limit: int | None = None
    filters: list[str] = field(default_factory=list)
    """Tested too, in ways that no key serves: inequality, NULL, the inside of a text, either-or."""
    columns: list[str] = field(default_factory=list)
    """What is read or written; empty for all."""
    items: float = 1
    """How many items one call reads or writes on average."""
    values: float = 1
    """How many values one call looks for at once (IN), each by a request of its own."""
    calls_per_second: float
    peak_per_second: float = 0.0
    """The most calls a second that are expected; 0 when nobody said."""
    transaction: str = ""
    """The name of a transaction: patterns of one name are written together or not at all."""
    is_consistent: bool = False
    source: Literal["written", "mined"] = "written"
    statement: str | None = None


class UnexplainedStatement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that the database has run and that could not be turned into a pattern."""

    statement: str
    calls: float
    reason: str


class IgnoredStatements(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Statements that ask nothing of the data, by what they are."""

    kind: str
    calls: float


class Patterns(Struct, frozen=True, kw_only=True, omit_defaults=True):
    origin: str = ""
    """In words: where the statements come from, and what their rates mean."""
    window_seconds: float = 0.0
    """How long the statements were counted; 0 when people wrote them."""
    patterns: list[AccessPattern] = field(default_factory=list)
    unexplained: list[UnexplainedStatement] = field(default_factory=list)
    ignored: list[IgnoredStatements] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    """What statements join as if by a foreign key that the schema does not declare."""
