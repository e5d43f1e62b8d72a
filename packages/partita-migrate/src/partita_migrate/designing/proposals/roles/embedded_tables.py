"""Finds tables whose rows are copied to where they are referred to, so that they need no items."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.understanding.schema.column_refs import ColumnRef


def find_embedded(inputs: DesignInputs, roles: TableRoles) -> TableRoles:
    schema, usage = inputs.schema, inputs.usage
    lookups = {
        relationship.parent
        for relationship in schema.inventory.relationships
        if relationship.kind == "lookup"
    }
    embedded: dict[str, str] = {}
    for table in schema.tables:
        if not roles.is_free(table) or usage.is_asked_for(table):
            continue
        links = schema.children(table)
        if links and all(link.child in roles.collected for link in links):
            if _is_held_by_members(inputs, roles, table):
                embedded[table] = (
                    f"{table} needs no items of its own: the sets that refer to it hold its"
                    " names, and no pattern reads it alone."
                )
                continue
        if table in lookups and usage.is_joined(table) and not schema.parents(table):
            embedded[table] = (
                f"{table} is a lookup table: its columns are copied to where they are read,"
                " and no pattern reads it alone."
            )
    return replace(roles, embedded=embedded)


def _is_held_by_members(inputs: DesignInputs, roles: TableRoles, table: str) -> bool:
    """True when the members of sets hold everything that the table has."""
    copied = {ref for child in roles.collected.values() for ref in child.columns}
    return all(
        ColumnRef(table, column.name) in copied
        or ColumnRef(table, column.name) in inputs.schema.natural
        for column in inputs.schema.table(table).columns
    )
