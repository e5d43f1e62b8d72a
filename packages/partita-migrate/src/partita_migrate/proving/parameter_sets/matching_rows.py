"""Rows that pass what a statement says by itself: `returned_at IS NULL`, `status = 'open'`.

A write whose values are drawn from other rows changes nothing, which proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.proving.read_proofs.answer_comparison import plain
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.statements.literal_values import literal_value
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    Modification,
)

ROWS_LOOKED_AT = 5000
ROWS_WANTED = 4


def own_tests(tests: Sequence[ColumnTest], table: str) -> list[ColumnTest]:
    """Those on a table that need nothing of the caller."""
    return [
        test
        for test in tests
        if test.ref.table == table
        and not test.form
        and test.operator in ("=", "in", "is null", "is not null")
        and all(isinstance(value, Constant) for value in test.values)
    ]


def passes(inventory: Inventory, tests: Sequence[ColumnTest], row: Item) -> bool:
    return all(_holds(inventory, test, row.get(test.ref.column)) for test in tests)


def taken_rows(
    staging: StagedRows, inventory: Inventory, statement: Modification
) -> list[tuple[str, Item]]:
    """(table, row) of some that the statement would change."""
    tests = own_tests(statement.tests, statement.table)
    if not tests:
        return []
    rows = staging.spread(statement.table, ROWS_LOOKED_AT)
    found = (row for row in rows if passes(inventory, tests, row))
    return [(statement.table, row) for row, _ in zip(found, range(ROWS_WANTED), strict=False)]


def _holds(inventory: Inventory, test: ColumnTest, held: AttributeValue | None) -> bool:
    if test.operator in ("is null", "is not null"):
        return (held is None) == (test.operator == "is null")
    wanted = [_literal(inventory, test.ref, one) for one in test.values]
    return held is not None and plain(held) in [plain(one) for one in wanted]


def _literal(inventory: Inventory, ref: ColumnRef, value: object) -> AttributeValue | None:
    assert isinstance(value, Constant)
    table = inventory.table(ref.table)
    columns = table.columns if table is not None else []
    column = next((one for one in columns if one.name == ref.column), None)
    return literal_value(column, value.value, inventory.dialect) if column is not None else None
