"""Resolved statements: exactly what a statement tests, joins, sorts by and changes.

Both sides of a proof start from a resolved statement: the statement runs on the source, and the
requests are planned from its tests. Columns are those of the inventory, and each table occurs once.
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
    """Raised for a statement that is not understood completely. The text says why."""


@dataclass(frozen=True)
class Parameter:
    """A value that the caller passes, with the name that requests use for it."""

    name: str
    ref: ColumnRef | None = None
    """The column that it is compared with or written to."""
    outer: ColumnRef | None = None
    """Inside EXISTS: the outer row's column with the value, which then does not come from the
    caller."""


@dataclass(frozen=True)
class Constant:
    """A value that the statement itself contains."""

    value: Any


Value = Parameter | Constant


@dataclass(frozen=True)
class ColumnTest:
    """A test of one column, such as `price < ?`."""

    ref: ColumnRef
    operator: Operator
    values: tuple[Value, ...] = ()
    form: str = ""
    """The format in which a key holds the compared text, such as lower or upper case; empty for the
    column as it is."""

    @property
    def is_equality(self) -> bool:
        return self.operator in ("=", "in")

    @property
    def is_fixing(self) -> bool:
        """True when all rows that pass have the same given value."""
        return self.operator == "=" and not self.form

    def suffix(self, value: Parameter) -> str:
        """Returns the suffix of a value's name after its column: the end of a range, and a number
        if the statement compares the column several times."""
        if value.outer is not None:
            return ""
        column = str(ColumnRef("", self.ref.column))
        suffix = value.name.removeprefix(str(self.ref)).removeprefix(column)
        return suffix if _SUFFIX.fullmatch(suffix) else ""

    @property
    def first_suffix(self) -> str:
        """Returns the suffix of the first value that the caller passes."""
        return next(
            (self.suffix(value) for value in self.values if isinstance(value, Parameter)), ""
        )


@dataclass(frozen=True)
class JoinedTable:
    """A table that the query joins."""

    table: str
    pairs: tuple[tuple[ColumnRef, ColumnRef], ...]
    """Pairs of a column of an earlier table and a column of this one."""
    is_outer: bool = False


@dataclass(frozen=True)
class Sorting:
    """A column of the order."""

    ref: ColumnRef
    is_descending: bool = False


@dataclass(frozen=True)
class Existence:
    """Other rows that must exist for a row of the answer (EXISTS, IN), or must not exist."""

    query: ResolvedQuery
    """The query for those rows. Values from the outer row are parameters with `outer`."""
    is_negated: bool = False

    @property
    def taken(self) -> list[ColumnRef]:
        """Returns the columns of the outer row that the query needs."""
        return [
            parameter.outer for parameter in self.query.parameters() if parameter.outer is not None
        ]


@dataclass(frozen=True)
class ResolvedQuery:
    """A SELECT, resolved."""

    table: str
    joins: tuple[JoinedTable, ...] = ()
    tests: tuple[ColumnTest, ...] = ()
    existences: tuple[Existence, ...] = ()
    alternatives: tuple[tuple[ColumnTest, ...], ...] = ()
    """Groups of tests, of which the tests of at least one group must hold too (OR)."""
    order: tuple[Sorting, ...] = ()
    limit: int | Parameter | None = None
    offset: int | Parameter | None = None
    columns: tuple[ColumnRef, ...] = ()
    """The columns that are read, in the order of the statement."""
    finish: str = ""
    """The application's work on the rows: counting, grouping, dropping duplicates."""
    tree: exp.Expression | None = field(default=None, compare=False)
    """The statement, with named parameters and plain columns in its list."""

    @property
    def tables(self) -> list[str]:
        return [self.table, *(join.table for join in self.joins)]

    @property
    def all_tests(self) -> tuple[ColumnTest, ...]:
        return (*self.tests, *(test for group in self.alternatives for test in group))

    def branches(self) -> list[ResolvedQuery]:
        """Returns a query for each alternative. A row that several of them find belongs to the
        answer once."""
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
                parameter for parameter in existence.query.parameters() if parameter.outer is None
            )

    def same(self, ref: ColumnRef) -> set[ColumnRef]:
        """Returns the columns that joins make equal to this one."""
        equal_columns = {ref}
        pairs = [pair for join in self.joins for pair in join.pairs]
        while True:
            more = {column for pair in pairs if equal_columns & set(pair) for column in pair}
            if more <= equal_columns:
                return equal_columns
            equal_columns |= more


@dataclass(frozen=True)
class ColumnChange:
    """A change: `SET column = value`, or column = column + value."""

    ref: ColumnRef
    value: Value
    sign: int = 0
    """1 adds the value, -1 subtracts it."""


@dataclass(frozen=True)
class Insertion:
    """An INSERT of one row, resolved."""

    table: str
    columns: tuple[ColumnRef, ...]
    values: tuple[Value | None, ...]
    """None for values that the source generates."""
    on_conflict: OnConflict = ""
    """What happens to an existing row with the same key."""
    conflict: tuple[str, ...] = ()
    """The columns of that key; empty if the statement does not name them."""
    changes: tuple[ColumnChange, ...] = ()
    """The changes of the existing row."""
    tree: exp.Expression | None = field(default=None, compare=False)

    def parameters(self) -> Iterator[Parameter]:
        for value in [*self.values, *(change.value for change in self.changes)]:
            if isinstance(value, Parameter):
                yield value


@dataclass(frozen=True)
class Modification:
    """An UPDATE, or a DELETE if it has no changes."""

    table: str
    tests: tuple[ColumnTest, ...]
    changes: tuple[ColumnChange, ...] = ()
    tree: exp.Expression | None = field(default=None, compare=False)

    def parameters(self) -> Iterator[Parameter]:
        tested = [value for test in self.tests for value in test.values]
        for value in [*tested, *(change.value for change in self.changes)]:
            if isinstance(value, Parameter):
                yield value


Statement = ResolvedQuery | Insertion | Modification
