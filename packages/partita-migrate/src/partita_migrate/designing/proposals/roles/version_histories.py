"""Finds tables with a row for every version of their parent: both become one item collection."""

from __future__ import annotations

import re
from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.table_roles import TableRoles, VersionHistory
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink

_VERSION = re.compile(r"(?i)(^|_)(version|revision|rev|edition)(_?(no|nr|num|number|id))?$")


def find_versions(inputs: DesignInputs, roles: TableRoles) -> TableRoles:
    versions: dict[str, VersionHistory] = {}
    for table in inputs.schema.tables.values():
        for link in inputs.schema.parents(table.name):
            if any(version.parent == link.parent for version in versions.values()):
                continue
            number = _version_column(inputs, table, link)
            if number is not None:
                versions[table.name] = VersionHistory(link.parent, number, link)
    return replace(roles, versions=versions)


def _version_column(inputs: DesignInputs, table: SourceTable, link: ForeignKeyLink) -> str | None:
    """Returns the column that numbers the versions of one parent."""
    rest = [name for name in table.primary_key if name not in link.key.columns]
    if len(rest) != 1 or not set(link.key.columns) < set(table.primary_key):
        return None
    ref = ColumnRef(table.name, rest[0])
    column = inputs.schema.column(ref)
    if column is None or column.kind != "integer" or inputs.schema.link_of(ref):
        return None
    if _VERSION.search(ref.column) or inputs.usage.wants_latest(*ref):
        return ref.column
    return None
