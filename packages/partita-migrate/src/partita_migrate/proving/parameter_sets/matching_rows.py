"""Finds rows that pass the constant conditions of a statement, such as `returned_at IS NULL`.

A write whose values are drawn from any other row changes nothing, and proves nothing.
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
    """Returns the tests on a table that need no parameter."""
    return [
        test
        for test in tests
        if test.ref.table == table
        and not test.form
        and test.operator in ("=", "in", "is null", "is not null")
        and all(isinstance(value, Constant) for value in test.values)
    ]


def passes(inventory: Inventory, tests: Sequence[ColumnTest], row: Item) -> bool:
    """True when a row passes all tests."""
    return all(_holds(inventory, test, row.get(test.ref.column)) for test in tests)


def matching_rows(
    staging: StagedRows, inventory: Inventory, statement: Modification
) -> list[tuple[str, Item]]:
    """Returns some (table, row) pairs that the statement would change."""
    tests = own_tests(statement.tests, statement.table)
    if not tests:
        return []
    rows = staging.spread(statement.table, ROWS_LOOKED_AT)
    passing = (row for row in rows if passes(inventory, tests, row))
    return [(statement.table, row) for row, _ in zip(passing, range(ROWS_WANTED), strict=False)]


def _holds(inventory: Inventory, test: ColumnTest, current: AttributeValue | None) -> bool:
    if test.operator in ("is null", "is not null"):
        return (current is None) == (test.operator == "is null")
    constants = [_literal(inventory, test.ref, value) for value in test.values]
    return current is not None and plain(current) in [plain(value) for value in constants]


def _literal(inventory: Inventory, ref: ColumnRef, value: object) -> AttributeValue | None:
    assert isinstance(value, Constant)
    table = inventory.table(ref.table)
    columns = table.columns if table is not None else []
    column = next((candidate for candidate in columns if candidate.name == ref.column), None)
    return literal_value(column, value.value, inventory.dialect) if column is not None else None
