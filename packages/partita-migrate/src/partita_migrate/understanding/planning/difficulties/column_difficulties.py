"""Columns that do not fit an item as they are: large values, special types, computed values."""

from __future__ import annotations

from collections.abc import Iterator

from partita.foundation.service_limits import ITEM_BYTES_MAX, KB
from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty, listed
from partita_migrate.understanding.planning.difficulties.type_difficulties import TYPE_CARE
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn, SourceTable

LARGE_ROW_BYTES = 100 * KB
SUSPICIOUS_ROW_BYTES = 4 * KB
FEW_PAGES_BYTES = 64 * KB
"""Servers allocate whole pages, so the row size of a smaller table is unknown."""


def types(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    for care in TYPE_CARE:
        columns = [
            column.name for column in table.columns if care.applies(column, inventory.dialect)
        ]
        if columns:
            yield Difficulty(
                kind="type",
                severity=care.severity,
                table=table.name,
                columns=columns,
                what=f"{listed(columns)} of {table.name}: {care.what}",
                strategy=care.strategy,
            )


def large_values(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    columns = large_columns(table)
    if not columns:
        return
    names = [column.name for column in columns]
    mean = row_bytes(table)
    is_large = mean > LARGE_ROW_BYTES
    has_binary = any(column.kind == "binary" for column in columns)
    yield Difficulty(
        kind="large values",
        severity="obstacle" if is_large else "care" if has_binary else "note",
        table=table.name,
        columns=names,
        what=f"{listed(names)} of {table.name} may hold more than an item's 400 KB"
        + (f"; rows take {mean / KB:,.0f} KB on average." if is_large else "."),
        strategy="Keep large values in S3 and their address in the item, or compress them or cut"
        " them into several items; `partita migrate analyze` says how large they are.",
    )


def generated(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    names = [column.name for column in table.columns if column.is_generated]
    if names:
        yield Difficulty(
            kind="generated column",
            severity="note",
            table=table.name,
            columns=names,
            what=f"The database computes {listed(names)} of {table.name}.",
            strategy="Compute the value in the application when an item is written, or leave it"
            " out.",
        )


def large_columns(table: SourceTable) -> list[SourceColumn]:
    """Returns the columns whose values may exceed the size of an item.

    A text or JSON column without a limit counts only if the rows are large and no binary or long
    text explains that; most such columns hold little.
    """
    kept = [column for column in table.columns if not column.is_generated]
    certain = [column for column in kept if _is_made_for_large_values(column)]
    return certain or [column for column in kept if _has_large_rows(table, column)]


def _is_made_for_large_values(column: SourceColumn) -> bool:
    limit = bytes_max(column)
    if column.kind == "binary":
        return limit is None or limit > ITEM_BYTES_MAX
    return column.kind == "string" and limit is not None and limit > ITEM_BYTES_MAX


def _has_large_rows(table: SourceTable, column: SourceColumn) -> bool:
    is_unlimited = column.kind == "json" or (column.kind == "string" and bytes_max(column) is None)
    has_many_pages = (table.data_bytes or 0) > FEW_PAGES_BYTES
    return is_unlimited and has_many_pages and row_bytes(table) > SUSPICIOUS_ROW_BYTES


def bytes_max(column: SourceColumn) -> int | None:
    # UTF-8 takes up to four bytes per character. MySQL gives the length of TEXT in bytes already.
    if column.length_max is None or "text" in column.type.lower() or column.kind == "binary":
        return column.length_max
    return column.length_max * 4


def row_bytes(table: SourceTable) -> float:
    """Returns the mean bytes per row in the source, or 0 for a table without rows."""
    return (table.data_bytes or 0) / table.row_count if table.row_count else 0.0
