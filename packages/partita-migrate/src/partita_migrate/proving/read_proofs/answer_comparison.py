"""Compares the answers of both sides: the same rows in the same order; rows that tie may be in any
order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

from partita.database.item.attribute_values import AttributeValue
from partita_migrate.proving.read_proofs.answer_rows import Row
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.literal_values import folded
from partita_migrate.understanding.statements.resolved_statements import ResolvedQuery

SHOWN_ROWS = 5


def difference(
    question: ResolvedQuery,
    sql: Sequence[Row],
    items: Sequence[Row],
    *,
    is_cut: bool,
    folds: Mapping[ColumnRef, str] | None = None,
) -> str:
    """Describes the difference in words; empty when there is none.

    `is_cut` says that a limit may cut through rows that tie. `folds` is how collations compare
    columns, for texts that tie although they differ.
    """
    ours, theirs = [_text(row) for row in sql], [_text(row) for row in items]
    if not question.order:
        if is_cut:
            # Without an order, any of the rows may be the first ones.
            return "" if len(ours) == len(theirs) else _counted(ours, theirs)
        return "" if Counter(ours) == Counter(theirs) else _counted(ours, theirs)
    places = [
        place
        for sorting in question.order
        for place, ref in enumerate(question.columns)
        if ref == sorting.ref
    ]
    column_folds = folds or {}

    def order_key(row: Row) -> str:
        cells = ((row[place], column_folds.get(question.columns[place], "")) for place in places)
        return _text(tuple(folded(cell, fold) if cell else cell for cell, fold in cells))

    keys = [order_key(row) for row in sql]
    their_keys = [order_key(row) for row in items]
    if keys != their_keys:
        if Counter(ours) == Counter(theirs):
            return "the same rows in another order"
        return _counted(ours, theirs)
    # A limit cuts through the rows that tie at its end, an offset through those at its beginning.
    torn = {keys[-1]} if keys and is_cut else set()
    torn |= {keys[0]} if keys and question.offset is not None else set()
    mine = Counter(pair for pair in zip(keys, ours, strict=True) if pair[0] not in torn)
    other = Counter(pair for pair in zip(their_keys, theirs, strict=True) if pair[0] not in torn)
    return "" if mine == other else _counted(ours, theirs)


def _counted(ours: Sequence[str], theirs: Sequence[str]) -> str:
    missing = sum((Counter(ours) - Counter(theirs)).values())
    surplus = sum((Counter(theirs) - Counter(ours)).values())
    return (
        f"SQL gives {len(ours)} rows, the requests {len(theirs)}: {missing} missing,"
        f" {surplus} too many"
    )


def _text(row: Row) -> str:
    return "\0".join(plain(value) for value in row)


def plain(value: AttributeValue | None) -> str:
    if value is None:
        return "NULL"
    ((kind, content),) = value.items()
    if kind == "N":
        return f"N{Decimal(content).normalize():f}"
    if kind == "SS":
        return f"SS{sorted(content)}"
    return f"{kind}{content}"


def format_row(row: Row, names: Sequence[str]) -> str:
    """Formats a row for people."""
    cells = (
        f"{name}={'NULL' if value is None else next(iter(value.values()))}"
        for name, value in zip(names, row, strict=False)
    )
    text = ", ".join(cells)
    return text if len(text) <= 300 else f"{text[:300]}…"
