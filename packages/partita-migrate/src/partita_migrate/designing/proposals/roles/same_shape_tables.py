"""Finds tables of the same shape, such as one for each year: they become items of one table."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.understanding.schema.name_words import name_parts


def find_twins(inputs: DesignInputs, roles: TableRoles) -> TableRoles:
    schema = inputs.schema
    first_of: dict[tuple[object, ...], str] = {}
    twins: dict[str, str] = {}
    for table in schema.tables.values():
        if table.foreign_keys or len(table.columns) < 3 or schema.children(table.name):
            continue
        form = (
            name_parts(table.name)[0],
            tuple((column.name, column.type, column.kind) for column in table.columns),
            tuple(map(tuple, schema.unique_keys(table.name))),
        )
        first = first_of.setdefault(form, table.name)
        if first != table.name:
            twins[table.name] = first
    return replace(roles, twins=twins)
