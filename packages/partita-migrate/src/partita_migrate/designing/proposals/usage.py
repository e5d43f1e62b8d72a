"""How access patterns use each table of the source, whatever becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import Ref

WRITES = ("insert", "update", "delete")
DATES = ("date", "datetime")
"""Kinds of columns: what is written now has the current one."""
KEY_LOAD = 0.5
"""How much of a partition's writes one key may take, so that an uneven load still fits."""


@dataclass(frozen=True)
class PatternUsage:
    patterns: list[AccessPattern]

    @cached_property
    def columns(self) -> set[Ref]:
        """Those whose values patterns give, or sort by."""
        return {
            Ref.parse(name)
            for pattern in self.patterns
            for name in (*pattern.equality, *pattern.range, *pattern.order_by)
        }

    @cached_property
    def _tables(self) -> set[str]:
        return {ref.table for ref in self.columns}

    def patterns_of(self, table: str) -> list[AccessPattern]:
        """Those that are about a table."""
        return [pattern for pattern in self.patterns if pattern.table == table]

    def is_asked_for(self, table: str) -> bool:
        """Whether a pattern is about a table, or gives or sorts by a value of it."""
        return bool(self.patterns_of(table)) or table in self._tables

    def is_joined(self, table: str) -> bool:
        return any(table in pattern.joins for pattern in self.patterns)

    def is_written(self, table: str) -> bool:
        return any(pattern.operation in WRITES for pattern in self.patterns_of(table))

    def wants_latest(self, table: str, column: str) -> bool:
        """Whether a pattern reads only the row with the greatest value of a column."""
        name = str(Ref(table, column))
        return any(
            pattern.order_by[:1] == [name] and pattern.is_descending and pattern.limit == 1
            for pattern in self.patterns
        )

    def crosses(self, table: str, ends: set[str]) -> bool:
        """Whether a pattern finds what is at one end of an intersection table by the other end."""
        return any(
            pattern.table in ends
            and (not pattern.through or table in pattern.through)
            and any(
                ref.table in ends and ref.table != pattern.table
                for ref in map(Ref.parse, (*pattern.equality, *pattern.range))
            )
            for pattern in self.patterns
        )

    def columns_read(self, table: str) -> set[Ref] | None:
        """What patterns read of a table that has items of its own; None for all of it."""
        joining = [pattern for pattern in self.patterns if table in pattern.joins]
        if not self.patterns_of(table) or not all(pattern.columns for pattern in joining):
            return None
        return {Ref.parse(name) for pattern in joining for name in pattern.columns}
