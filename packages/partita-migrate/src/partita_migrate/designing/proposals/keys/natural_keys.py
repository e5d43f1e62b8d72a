"""Natural keys in place of generated numbers: a unique column that patterns ask for instead."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.understanding.schema.column_refs import Ref
from partita_migrate.understanding.schema.inventory import Table

NATURAL_KINDS = ("string", "uuid", "enum", "integer", "decimal", "date", "datetime")


def with_natural_keys(inputs: DesignInputs) -> DesignInputs:
    """The same inputs, whose schema has the natural keys in place of the generated ones."""
    natural: dict[Ref, Ref] = {}
    for table in inputs.schema.tables.values():
        surrogate = _surrogate(inputs, table)
        found = _natural_key(inputs, table) if surrogate is not None else None
        if surrogate is not None and found is not None:
            natural[surrogate] = found
    return replace(inputs, schema=inputs.schema.with_natural_keys(natural))


def _surrogate(inputs: DesignInputs, table: Table) -> Ref | None:
    """A number that is the primary key and that no pattern asks for."""
    if len(table.primary_key) != 1:
        return None
    surrogate = Ref(table.name, table.primary_key[0])
    column = inputs.schema.column(surrogate)
    if column is None or not (column.is_auto_increment or column.kind == "integer"):
        return None
    asked = any(inputs.schema.origin(ref) == surrogate for ref in inputs.usage.columns)
    return None if asked else surrogate


def _natural_key(inputs: DesignInputs, table: Table) -> Ref | None:
    for key in inputs.schema.unique_keys(table.name)[1:]:
        natural = Ref(table.name, key[0])
        column = inputs.schema.column(natural)
        if len(key) > 1 or column is None or column.is_nullable:
            continue
        if column.kind not in NATURAL_KINDS:
            continue
        is_named = column.kind == "string" and _is_only_referred_to(inputs, table.name)
        if natural in inputs.usage.columns or is_named:
            return natural
    return None


def _is_only_referred_to(inputs: DesignInputs, table: str) -> bool:
    """Whether a table is only ever the other end of an intersection table."""
    links = inputs.schema.children(table)
    return (
        bool(links)
        and not inputs.usage.patterns_of(table)
        and all(inputs.schema.sides(link.child) for link in links)
    )
