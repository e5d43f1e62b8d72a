"""Folds a side of a many-to-many relationship into the items of the association.

This is a rule of the denormalized design. The side is never written by itself; every item of the
association repeats its columns, and it has no items of its own.
"""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.foreign_key_graph import SchemaGraph
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink


def find_folded(inputs: DesignInputs, roles: TableRoles) -> TableRoles:
    if inputs.kind != "denormalized":
        return roles
    folded: dict[str, ForeignKeyLink] = {}
    for table in inputs.schema.tables:
        link = _association(inputs, roles, table)
        if link is not None and _is_only_read_by_key(inputs, table):
            folded[table] = link
    return replace(roles, folded=folded)


def _association(inputs: DesignInputs, roles: TableRoles, table: str) -> ForeignKeyLink | None:
    """Returns the only foreign key to a table, if an intersection table has it."""
    links = inputs.schema.children(table)
    if len(links) != 1 or not roles.is_free(table) or not roles.is_free(links[0].child):
        return None
    has_versions = any(version.parent == table for version in roles.versions.values())
    if has_versions or inputs.schema.sides(links[0].child) is None:
        return None
    return links[0]


def _is_only_read_by_key(inputs: DesignInputs, table: str) -> bool:
    usage = inputs.usage
    patterns = usage.patterns_of(table)
    if usage.is_written(table) or not (patterns or usage.is_joined(table)):
        return False
    return all(_is_by_key(inputs.schema, pattern, table) for pattern in patterns)


def _is_by_key(schema: SchemaGraph, pattern: AccessPattern, table: str) -> bool:
    given_columns = {schema.canonical(ColumnRef.parse(name)) for name in pattern.equality}
    key = {schema.canonical(ColumnRef(table, name)) for name in schema.table(table).primary_key}
    return bool(key) and given_columns == key
