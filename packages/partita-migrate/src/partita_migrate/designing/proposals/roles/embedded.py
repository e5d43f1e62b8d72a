"""Tables whose rows are copied to where they are referred to need no items of their own."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.roles import Roles
from partita_migrate.understanding.schema.column_refs import Ref


def find_embedded(inputs: DesignInputs, roles: Roles) -> Roles:
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
                    f"{table} needs no items of its own: its names are in the sets that refer to"
                    " it, and no pattern asks for it alone."
                )
                continue
        if table in lookups and usage.is_joined(table) and not schema.parents(table):
            embedded[table] = (
                f"{table} is a lookup table: its columns are copied to where they are read,"
                " and no pattern asks for it alone."
            )
    return replace(roles, embedded=embedded)


def _is_held_by_members(inputs: DesignInputs, roles: Roles, table: str) -> bool:
    """Whether the members of sets hold all that a table has."""
    held = {ref for one in roles.collected.values() for ref in one.columns}
    return all(
        Ref(table, column.name) in held or Ref(table, column.name) in inputs.schema.natural
        for column in inputs.schema.table(table).columns
    )
