"""Statements after resolution: what they test, join, sort by and change.

Columns are those of the inventory, and a table occurs once. Planners make requests from these, and
proofs run the same statement on the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sqlglot import exp

from partita_migrate.understanding.schema.column_refs import ColumnRef

Operator = Literal[
    "=", "<", "<=", ">", ">=", "between", "in", "<>", "not in", "is null", "is not null",
    "begins_with", "contains",
]  # fmt: skip
_SUFFIX = re.compile(r"(\.from|\.to)?(\.\d+)?")
OnConflict = Literal["", "nothing", "update", "replace"]


class NotExact(Exception):
    """Raised for a statement that is not fully understood; the text says which part and why."""


@dataclass(frozen=True)
class Parameter:
    """A value that the caller passes, under the name that requests use for it."""

    name: str
    ref: ColumnRef | None = None
    """The column that the value is compared with or written to."""
    outer: ColumnRef | None = None
    """Inside EXISTS: the column of the outer row that supplies the value instead of the caller."""


@dataclass(frozen=True)
class Constant:
    value: Any


Value = Parameter | Constant


@dataclass(frozen=True)
class ColumnTest:
    ref: ColumnRef
    operator: Operator
    values: tuple[Value, ...] = ()
    form: str = ""
    """The form in which a key holds the compared text, such as `lower`; empty for the column
    itself."""

    @property
    def is_equality(self) -> bool:
        return self.operator in ("=", "in")

    @property
    def is_fixing(self) -> bool:
        """True when all rows that pass have the same value, the one that is passed."""
        return self.operator == "=" and not self.form

    def suffix(self, value: Parameter) -> str:
        """Returns what follows the column in a parameter's name: `.from` or `.to` for the end of a
        range, and `.2` when the statement compares the column again."""
        if value.outer is not None:
            return ""
        column = str(ColumnRef("", self.ref.column))
        suffix = value.name.removeprefix(str(self.ref)).removeprefix(column)
        return suffix if _SUFFIX.fullmatch(suffix) else ""

    @property
    def first_suffix(self) -> str:
        """Returns the suffix of the first parameter among several values."""
        return next(
            (self.suffix(value) for value in self.values if isinstance(value, Parameter)), ""
        )


@dataclass(frozen=True)
class JoinedTable:
    table: str
    pairs: tuple[tuple[ColumnRef, ColumnRef], ...]
    """Pairs of columns that must be equal: one of an earlier table, one of this table."""
    is_outer: bool = False


@dataclass(frozen=True)
class Sorting:
    ref: ColumnRef
    is_descending: bool = False


@dataclass(frozen=True)
class Existence:
    """A condition that other rows must exist for each row of the result (EXISTS, IN),
    or must not."""

    question: ResolvedQuery
    """The query for those rows; values from the outer row are parameters with `outer`."""
    is_negated: bool = False

    @property
    def outer_columns(self) -> list[ColumnRef]:
        """Returns the columns of the outer row that the query uses."""
        return [
            parameter.outer
            for parameter in self.question.parameters()
            if parameter.outer is not None
        ]


@dataclass(frozen=True)
class ResolvedQuery:
    table: str
    joins: tuple[JoinedTable, ...] = ()
    tests: tuple[ColumnTest, ...] = ()
    existences: tuple[Existence, ...] = ()
    alternatives: tuple[tuple[ColumnTest, ...], ...] = ()
    """Groups of tests, one of which must hold in addition to `tests` (OR)."""
    order: tuple[Sorting, ...] = ()
    limit: int | Parameter | None = None
    offset: int | Parameter | None = None
    columns: tuple[ColumnRef, ...] = ()
    """The columns that are read, in the order of the statement."""
    finish: str = ""
    """What the application does with the rows: it counts, groups or drops duplicates."""
    tree: exp.Expression | None = field(default=None, compare=False)
    """The parsed statement, with named parameters and without computed output columns."""

    @property
    def tables(self) -> list[str]:
        return [self.table, *(join.table for join in self.joins)]

    @property
    def all_tests(self) -> tuple[ColumnTest, ...]:
        return (*self.tests, *(test for group in self.alternatives for test in group))

    def branches(self) -> list[ResolvedQuery]:
        """Returns one query per alternative. Rows that several of them find occur once in the
        result."""
        return [
            replace(self, tests=(*self.tests, *group), alternatives=())
            for group in self.alternatives
        ]

    def parameters(self) -> Iterator[Parameter]:
        values = [value for test in self.all_tests for value in test.values]
        for value in [*values, self.limit, self.offset]:
            if isinstance(value, Parameter):
                yield value
        for existence in self.existences:
            yield from (
                parameter
                for parameter in existence.question.parameters()
                if parameter.outer is None
            )

    def same(self, ref: ColumnRef) -> set[ColumnRef]:
        """Returns the columns that joins make equal to this one, including itself."""
        columns = {ref}
        pairs = [pair for join in self.joins for pair in join.pairs]
        while True:
            connected = {column for pair in pairs if columns & set(pair) for column in pair}
            if connected <= columns:
                return columns
            columns |= connected


@dataclass(frozen=True)
class ColumnChange:
    """`SET column = value`, or `SET column = column + value`."""

    ref: ColumnRef
    value: Value
    sign: int = 0
    """1 when the value is added to the column, -1 when it is subtracted, 0 when it replaces it."""


@dataclass(frozen=True)
class Insertion:
    table: str
    columns: tuple[ColumnRef, ...]
    values: tuple[Value | None, ...]
    """None for a value that the source makes, such as a default."""
    on_conflict: OnConflict = ""
    """What happens when a row has the same key already."""
    conflict: tuple[str, ...] = ()
    """The columns of that key; empty when the statement does not name them."""
    changes: tuple[ColumnChange, ...] = ()
    """Changes to the existing row."""
    tree: exp.Expression | None = field(default=None, compare=False)

    def parameters(self) -> Iterator[Parameter]:
        for value in [*self.values, *(change.value for change in self.changes)]:
            if isinstance(value, Parameter):
                yield value


@dataclass(frozen=True)
class Modification:
    """An UPDATE, or a DELETE if there are no changes."""

    table: str
    tests: tuple[ColumnTest, ...]
    changes: tuple[ColumnChange, ...] = ()
    tree: exp.Expression | None = field(default=None, compare=False)

    def parameters(self) -> Iterator[Parameter]:
        test_values = [value for test in self.tests for value in test.values]
        for value in [*test_values, *(change.value for change in self.changes)]:
            if isinstance(value, Parameter):
                yield value


Statement = ResolvedQuery | Insertion | Modification
