"""The exact words of a statement: what it tests, joins, sorts by and changes.

A question is what both sides of a proof are asked: the statement runs on the source, and requests
are planned from its tests. Columns are those of the inventory; a table occurs once.
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
    """A statement that is not understood to the last word; the text says why."""


@dataclass(frozen=True)
class Parameter:
    """What the caller passes, by the name that requests know it by."""

    name: str
    ref: ColumnRef | None = None
    """The column that it is compared with or written to."""
    outer: ColumnRef | None = None
    """Inside EXISTS: the column of the row outside that it is taken from, not from the caller."""


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
    """As a key's field is told to hold the text that is compared: in lower or upper case; empty for
    the column as it is."""

    @property
    def is_equality(self) -> bool:
        return self.operator in ("=", "in")

    @property
    def is_fixing(self) -> bool:
        """Whether all rows that pass have the one value that is given."""
        return self.operator == "=" and not self.form

    def suffix(self, value: Parameter) -> str:
        """What a value's name has behind that of its column: the end of a range, and a number where
        the statement compares the column several times."""
        if value.outer is not None:
            return ""
        column = str(ColumnRef("", self.ref.column))
        found = value.name.removeprefix(str(self.ref)).removeprefix(column)
        return found if _SUFFIX.fullmatch(found) else ""

    @property
    def first_suffix(self) -> str:
        """Of several values together, the name of the first that is passed."""
        return next(
            (self.suffix(value) for value in self.values if isinstance(value, Parameter)), ""
        )


@dataclass(frozen=True)
class JoinedTable:
    table: str
    pairs: tuple[tuple[ColumnRef, ColumnRef], ...]
    """Of an earlier table, and of this one."""
    is_outer: bool = False


@dataclass(frozen=True)
class Sorting:
    ref: ColumnRef
    is_descending: bool = False


@dataclass(frozen=True)
class Existence:
    """Other rows that must be there for a row of the answer (EXISTS, IN), or must not."""

    question: ResolvedQuery
    """For them; what it takes from the row outside are parameters with `outer`."""
    is_negated: bool = False

    @property
    def taken(self) -> list[ColumnRef]:
        """The columns of the row outside."""
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
    """Of these groups, the tests of one must hold too (OR)."""
    order: tuple[Sorting, ...] = ()
    limit: int | Parameter | None = None
    offset: int | Parameter | None = None
    columns: tuple[ColumnRef, ...] = ()
    """What is read, in the order of the statement."""
    finish: str = ""
    """What the application does with the rows: counts, groups, drops repeats."""
    tree: exp.Expression | None = field(default=None, compare=False)
    """The statement, with the parameters by name and the columns alone in its list."""

    @property
    def tables(self) -> list[str]:
        return [self.table, *(join.table for join in self.joins)]

    @property
    def all_tests(self) -> tuple[ColumnTest, ...]:
        return (*self.tests, *(test for group in self.alternatives for test in group))

    def branches(self) -> list[ResolvedQuery]:
        """A question for each alternative; rows that several find belong to the answer once."""
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
        """The columns that joins make equal to this one."""
        found = {ref}
        pairs = [pair for join in self.joins for pair in join.pairs]
        while True:
            more = {one for pair in pairs if found & set(pair) for one in pair}
            if more <= found:
                return found
            found |= more


@dataclass(frozen=True)
class ColumnChange:
    """`SET column = value`, or column = column + value."""

    ref: ColumnRef
    value: Value
    sign: int = 0
    """1 and -1 add and subtract the value."""


@dataclass(frozen=True)
class Insertion:
    table: str
    columns: tuple[ColumnRef, ...]
    values: tuple[Value | None, ...]
    """None for what the source makes up."""
    on_conflict: OnConflict = ""
    """What becomes of a row that has the same key already."""
    conflict: tuple[str, ...] = ()
    """The columns of that key; empty when the statement does not name it."""
    changes: tuple[ColumnChange, ...] = ()
    """Of the row that is there."""
    tree: exp.Expression | None = field(default=None, compare=False)

    def parameters(self) -> Iterator[Parameter]:
        for value in [*self.values, *(change.value for change in self.changes)]:
            if isinstance(value, Parameter):
                yield value


@dataclass(frozen=True)
class Modification:
    """An UPDATE, or without changes a DELETE."""

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
