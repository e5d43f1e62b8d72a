"""Samples rows of each table that belong together: every row comes with the rows that it refers
to."""

from __future__ import annotations

from collections.abc import Iterable

from partita.database.item.attribute_values import Item
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.schema.inventory import Inventory


def sample(
    staging: StagedRows, inventory: Inventory, count: int, required: Iterable[tuple[str, Item]] = ()
) -> dict[str, list[Item]]:
    """Returns by table `count` rows from all over it, with the rows that they refer to.

    `required` has further (table, row) pairs that must be included.
    """
    samples: dict[str, dict[str, Item]] = {table.name: {} for table in inventory.tables}
    waiting = [
        (table.name, row)
        for table in inventory.tables
        if staging.count(table.name)
        for row in staging.spread(table.name, count)
    ]
    waiting += required
    tables = {table.name: table for table in inventory.tables}
    while waiting:
        name, row = waiting.pop()
        sampled = samples[name]
        text = repr(row)
        if text in sampled:
            continue
        sampled[text] = row
        for key in tables[name].foreign_keys:
            if key.referenced_table not in tables:
                continue
            pairs = zip(key.columns, key.referenced_columns, strict=False)
            values = [(target, row[own]) for own, target in pairs if own in row]
            if len(values) == len(key.referenced_columns):
                columns, cells = zip(*values, strict=True)
                parents = staging.matching(key.referenced_table, list(columns), list(cells))
                waiting += [(key.referenced_table, parent) for parent in parents]
    return {name: list(rows.values()) for name, rows in samples.items()}
