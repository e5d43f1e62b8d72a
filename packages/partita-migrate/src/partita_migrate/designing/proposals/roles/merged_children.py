"""Merges one-to-one children that are only read with their parent into the parent's items."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink


def find_merged(inputs: DesignInputs, roles: TableRoles) -> TableRoles:
    merged: dict[str, ForeignKeyLink] = {}
    for table in inputs.schema.tables:
        if not roles.is_free(table) or inputs.usage.is_asked_for(table):
            continue
        if not inputs.usage.is_joined(table) or inputs.schema.children(table):
            continue
        for link in inputs.schema.parents(table):
            keys = map(set, inputs.schema.unique_keys(table))
            if link.parent != table and set(link.key.columns) in keys:
                merged[table] = link
                break
    return replace(roles, merged=merged)
