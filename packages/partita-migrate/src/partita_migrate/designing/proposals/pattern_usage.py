"""Answers how the access patterns use each table of the source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef

WRITES = ("insert", "update", "delete")
DATES = ("date", "datetime")
"""Kinds of columns in which new rows have the current date."""
KEY_LOAD = 0.5
"""The share of a partition's write units that one key may use, so that an uneven load still
fits."""


@dataclass(frozen=True)
class PatternUsage:
    patterns: list[AccessPattern]

    @cached_property
    def columns(self) -> set[ColumnRef]:
        """Returns the columns whose values patterns pass or sort by."""
        return {
            ColumnRef.parse(name)
            for pattern in self.patterns
            for name in (*pattern.equality, *pattern.range, *pattern.order_by)
        }

    @cached_property
    def _tables(self) -> set[str]:
        return {ref.table for ref in self.columns}

    def patterns_of(self, table: str) -> list[AccessPattern]:
        """Returns the patterns whose main table this is."""
        return [pattern for pattern in self.patterns if pattern.table == table]

    def is_asked_for(self, table: str) -> bool:
        """True when a pattern is about the table, or passes or sorts by one of its columns."""
        return bool(self.patterns_of(table)) or table in self._tables

    def is_joined(self, table: str) -> bool:
        return any(table in pattern.joins for pattern in self.patterns)

    def is_written(self, table: str) -> bool:
        return any(pattern.operation in WRITES for pattern in self.patterns_of(table))

    def rows_written_per_second(self, table: str) -> float:
        return sum(
            pattern.calls_per_second * pattern.items
            for pattern in self.patterns_of(table)
            if pattern.operation in WRITES
        )

    def wants_latest(self, table: str, column: str) -> bool:
        """True when a pattern reads only the row with the greatest value of a column."""
        name = str(ColumnRef(table, column))
        return any(
            pattern.order_by[:1] == [name] and pattern.is_descending and pattern.limit == 1
            for pattern in self.patterns
        )

    def crosses(self, table: str, ends: set[str]) -> bool:
        """True when a pattern finds rows at one end of an intersection table by values of the other
        end."""
        return any(
            pattern.table in ends
            and (not pattern.through or table in pattern.through)
            and any(
                ref.table in ends and ref.table != pattern.table
                for ref in map(ColumnRef.parse, (*pattern.equality, *pattern.range))
            )
            for pattern in self.patterns
        )

    def columns_read(self, table: str) -> set[ColumnRef] | None:
        """Returns the columns that joins read from a table with items of its own; None for all
        columns."""
        joining = [pattern for pattern in self.patterns if table in pattern.joins]
        if not self.patterns_of(table) or not all(pattern.columns for pattern in joining):
            return None
        return {ColumnRef.parse(name) for pattern in joining for name in pattern.columns}
