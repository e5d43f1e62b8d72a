"""Values that callers pass, rows that requests return, and how the source compares them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from partita.database.item.attribute_values import AttributeValue
from partita_migrate.model.items.item_maker import order
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.literal_values import folded
from partita_migrate.understanding.statements.resolved_statements import Parameter

Values = Mapping[str, AttributeValue | None]
"""A caller's values by parameter name."""
Row = tuple[AttributeValue | None, ...]
Cells = dict[ColumnRef, AttributeValue | None]
"""Columns of one row, as far as requests have returned them."""


class RequestNotPossible(Exception):
    """Raised for a request that cannot even be sent; the message says why."""


def comparable(value: AttributeValue, fold: str) -> tuple[int, Any]:
    """Returns a key that sorts as the source sorts the value; `fold` is how its collation compares
    texts."""
    if "BOOL" in value:
        return 0, Decimal(int(value["BOOL"]))
    if fold and "S" in value:
        return 1, folded(value, fold)["S"]
    kind, plain = order(value)
    return kind, plain


def nulls_before(dialect: str) -> int:
    """Returns -1 where NULL sorts before all values, and 1 where it sorts after them."""
    return 1 if dialect == "postgresql" else -1


def count_of(limit: int | Parameter | None, values: Values) -> int | None:
    if not isinstance(limit, Parameter):
        return limit
    value = values.get(limit.name)
    return int(Decimal(value["N"])) if value is not None else None
