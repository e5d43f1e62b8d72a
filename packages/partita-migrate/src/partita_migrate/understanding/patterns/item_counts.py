"""Estimates how many items a call touches, if neither people nor the server have counted them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from partita_migrate.understanding.analysis import Analysis, KeySkew, significant
from partita_migrate.understanding.patterns.access_patterns import AccessPattern, Patterns
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory


def with_items(patterns: Patterns, inventory: Inventory, analysis: Analysis) -> Patterns:
    """Completes patterns without an item count from the sampled rows."""
    counting = _Counting(inventory, analysis)
    counted = [
        pattern if pattern.items else replace(pattern, items=counting.items(pattern))
        for pattern in patterns.patterns
    ]
    return replace(patterns, patterns=counted)


class _Counting:
    def __init__(self, inventory: Inventory, analysis: Analysis) -> None:
        self._inventory = inventory
        self._analysis = analysis

    def items(self, pattern: AccessPattern) -> float:
        if pattern.operation == "insert":
            return 1.0
        rows = self._found(pattern)
        # Rows of a joined table are read along with the row that they belong to.
        beside = [self._rows_for_one(table, pattern.table, pattern) for table in pattern.joins]
        rows *= max([1.0, *beside])
        # An aggregate applies its limit after it has counted all rows.
        if pattern.limit is not None and pattern.operation != "aggregate":
            rows = min(rows, pattern.limit)
        return max(1.0, significant(rows))

    def _found(self, pattern: AccessPattern) -> float:
        """Returns the rows of the table that the values of a call find."""
        if not pattern.equality:
            return float(self._rows(pattern.table))
        columns_by_table: dict[str, set[str]] = {}
        for name in pattern.equality:
            ref = ColumnRef.parse(name)
            columns_by_table.setdefault(ref.table, set()).add(ref.column)
        own = columns_by_table.pop(pattern.table, None)
        counts = [self._rows_per_call(pattern.table, own)] if own else []
        counts += [
            self._rows_per_call(table, columns) * self._rows_for_one(pattern.table, table, pattern)
            for table, columns in columns_by_table.items()
        ]
        return min(counts)

    def _rows(self, name: str) -> int:
        measured, table = self._analysis.table(name), self._inventory.table(name)
        return measured.rows if measured else table.row_count or 0 if table else 1

    def _rows_for_one(self, table: str, other: str, pattern: AccessPattern) -> float:
        """Returns the rows of a table for one row of another, which they refer to directly or by a
        table in between."""
        children = [table, *pattern.through, *(table.name for table in self._inventory.tables)]
        for child in dict.fromkeys(children):
            columns = self._reference(child, other)
            if columns and (child == table or self._reference(child, table)):
                return self._rows_per_value(child, set(columns))
        return 1.0

    def _reference(self, child: str, parent: str) -> list[str]:
        """Returns the columns by which one table refers to another."""
        table = self._inventory.table(child)
        keys = table.foreign_keys if table else []
        return next((key.columns for key in keys if key.referenced_table == parent), [])

    def _rows_per_value(self, name: str, columns: Iterable[str]) -> float:
        """Returns the rows of the most selective key among the given columns."""
        return min((key.rows_per_value for key in self._keys(name, columns)), default=1.0)

    def _rows_per_call(self, name: str, columns: Iterable[str]) -> float:
        """Returns the same, weighted by calls: values are looked up as often as they occur."""
        counts = (key.rows_per_call or key.rows_per_value for key in self._keys(name, columns))
        return min(counts, default=1.0)

    def _keys(self, name: str, columns: Iterable[str]) -> list[KeySkew]:
        measured = self._analysis.table(name)
        keys = measured.keys if measured else []
        return [key for key in keys if set(columns).issuperset(key.columns)]
