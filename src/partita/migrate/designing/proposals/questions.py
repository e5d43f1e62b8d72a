"""What access patterns ask of tables, whatever becomes of these."""

from __future__ import annotations

from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref

WRITES = ("insert", "update", "delete")


class Questions:
    def __init__(self, patterns: list[AccessPattern]) -> None:
        self.patterns = patterns
        self.columns = {
            Ref.parse(name)
            for pattern in patterns
            for name in (*pattern.equality, *pattern.range, *pattern.order_by)
        }
        """Those whose values patterns give, or sort by."""
        self._tables = {ref.table for ref in self.columns}

    def of(self, table: str) -> list[AccessPattern]:
        """The patterns that are about a table."""
        return [pattern for pattern in self.patterns if pattern.table == table]

    def ask_for(self, table: str) -> bool:
        """Whether one is about a table, or gives or sorts by a value of it."""
        return bool(self.of(table)) or table in self._tables

    def join(self, table: str) -> bool:
        return any(table in pattern.joins for pattern in self.patterns)

    def write(self, table: str) -> bool:
        return any(pattern.operation in WRITES for pattern in self.of(table))

    def want_latest(self, table: str, column: str) -> bool:
        name = str(Ref(table, column))
        return any(
            pattern.order_by[:1] == [name] and pattern.is_descending and pattern.limit == 1
            for pattern in self.patterns
        )

    def cross(self, table: str, ends: set[str]) -> bool:
        """Whether one finds what is at one end of an intersection by a value of the other end."""
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
        if not self.of(table) or not all(pattern.columns for pattern in joining):
            return None
        return {Ref.parse(name) for pattern in joining for name in pattern.columns}
