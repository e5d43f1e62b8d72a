"""How many items a call touches, where neither people nor the server have counted."""

from __future__ import annotations

from msgspec.structs import replace

from partita.migrate.analysis import Analysis, TableAnalysis
from partita.migrate.inventory import Inventory
from partita.migrate.patterns import AccessPattern, Patterns


def with_items(patterns: Patterns, inventory: Inventory, analysis: Analysis) -> Patterns:
    """Patterns that do not say how many items they touch get what the sampled rows tell."""
    known = [
        pattern if pattern.items else replace(pattern, items=_items(pattern, inventory, analysis))
        for pattern in patterns.patterns
    ]
    return replace(patterns, patterns=known)


def _items(pattern: AccessPattern, inventory: Inventory, analysis: Analysis) -> float:
    if pattern.operation == "insert":
        return 1.0
    table = inventory.table(pattern.table)
    found = analysis.table(pattern.table)
    rows = float(found.rows if found else table.row_count if table else 1)
    prefix = f"{pattern.table}."
    own = {name.removeprefix(prefix) for name in pattern.equality if name.startswith(prefix)}
    if own:
        rows = _rows_per_value(own, found, rows)
    elif pattern.equality:
        # Found through another table, whose rows lead to a few of this one.
        rows = 1.0
    if pattern.limit is not None:
        rows = min(rows, pattern.limit)
    return max(1.0, float(f"{rows:.4g}"))


def _rows_per_value(columns: set[str], found: TableAnalysis | None, rows: float) -> float:
    """Of the key that narrows most among those that the call names."""
    keys = found.keys if found else []
    named = [key.rows_per_value for key in keys if columns.issuperset(key.columns)]
    return min(named, default=1.0 if rows else 0.0)
