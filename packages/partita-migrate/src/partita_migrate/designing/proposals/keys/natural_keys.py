"""Replaces generated numbers by natural keys: unique columns that patterns look up by."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable

NATURAL_KINDS = ("string", "uuid", "enum", "integer", "decimal", "date", "datetime")


def with_natural_keys(inputs: DesignInputs) -> DesignInputs:
    """Returns the inputs with a schema that has natural keys in place of generated ones."""
    natural: dict[ColumnRef, ColumnRef] = {}
    for table in inputs.schema.tables.values():
        surrogate = _surrogate(inputs, table)
        natural_key = _natural_key(inputs, table) if surrogate is not None else None
        if surrogate is not None and natural_key is not None:
            natural[surrogate] = natural_key
    return replace(inputs, schema=inputs.schema.with_natural_keys(natural))


def _surrogate(inputs: DesignInputs, table: SourceTable) -> ColumnRef | None:
    """Returns the numeric primary key of a table, if no pattern looks up by it."""
    if len(table.primary_key) != 1:
        return None
    surrogate = ColumnRef(table.name, table.primary_key[0])
    column = inputs.schema.column(surrogate)
    if column is None or not (column.is_auto_increment or column.kind == "integer"):
        return None
    is_used = any(inputs.schema.origin(ref) == surrogate for ref in inputs.usage.columns)
    return None if is_used else surrogate


def _natural_key(inputs: DesignInputs, table: SourceTable) -> ColumnRef | None:
    for key in inputs.schema.unique_keys(table.name)[1:]:
        natural = ColumnRef(table.name, key[0])
        column = inputs.schema.column(natural)
        if len(key) > 1 or column is None or column.is_nullable:
            continue
        if column.kind not in NATURAL_KINDS:
            continue
        # A table such as tags (id, name) is only reached through intersection tables: its name can
        # stand for the number in keys.
        is_named = column.kind == "string" and _is_only_referred_to(inputs, table.name)
        if natural in inputs.usage.columns or is_named:
            return natural
    return None


def _is_only_referred_to(inputs: DesignInputs, table: str) -> bool:
    """True when the table only occurs as the other end of intersection tables."""
    links = inputs.schema.children(table)
    return (
        bool(links)
        and not inputs.usage.patterns_of(table)
        and all(inputs.schema.sides(link.child) for link in links)
    )
