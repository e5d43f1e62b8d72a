"""The columns that identify an item."""

from __future__ import annotations

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.understanding.schema.column_refs import ColumnRef


def identities(inputs: DesignInputs, entity: str) -> list[list[ColumnRef]]:
    """Returns the sets of columns that each identify an item. If there are none, all columns
    together."""
    stated = inputs.settings.natural_keys.get(entity)
    if stated:
        return [[ColumnRef(entity, name) for name in stated]]
    schema = inputs.schema
    keys = []
    for position, key in enumerate(schema.unique_keys(entity)):
        columns = [schema.column(ColumnRef(entity, name)) for name in key]
        # The first is the primary key. A unique index allows several rows with NULL, so with a
        # nullable column it does not identify them.
        if position and any(column is None or column.is_nullable for column in columns):
            continue
        keys.append(list(dict.fromkeys(schema.canonical(ColumnRef(entity, name)) for name in key)))
    return keys or [_every_column(inputs, entity)]


def is_identified(inputs: DesignInputs, entity: str) -> bool:
    """True when fewer than all columns identify a row."""
    if inputs.schema.table(entity).primary_key:
        return True
    return identities(inputs, entity) != [_every_column(inputs, entity)]


def _every_column(inputs: DesignInputs, entity: str) -> list[ColumnRef]:
    columns = inputs.schema.table(entity).columns
    return [inputs.schema.canonical(ColumnRef(entity, column.name)) for column in columns]


def is_unique_in_source(inputs: DesignInputs, entity: str) -> bool:
    """True when two rows can be given the same primary key, so that the source has to refuse the
    second. It cannot happen when the source generates the key."""
    key = inputs.schema.table(entity).primary_key
    columns = [inputs.schema.column(ColumnRef(entity, name)) for name in key]
    is_generated = any(column is not None and column.is_auto_increment for column in columns)
    return bool(key) and not is_generated and entity not in inputs.settings.natural_keys
