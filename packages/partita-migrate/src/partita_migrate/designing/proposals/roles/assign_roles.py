"""Gives every table its role. The most specific rule comes first."""

from __future__ import annotations

from collections.abc import Callable

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.bypassed_tables import find_bypassed
from partita_migrate.designing.proposals.roles.collected_children import find_collected
from partita_migrate.designing.proposals.roles.embedded_tables import find_embedded
from partita_migrate.designing.proposals.roles.folded_parents import find_folded
from partita_migrate.designing.proposals.roles.merged_children import find_merged
from partita_migrate.designing.proposals.roles.same_shape_tables import find_twins
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.designing.proposals.roles.version_histories import find_versions

RULES: tuple[Callable[[DesignInputs, TableRoles], TableRoles], ...] = (
    find_twins,
    find_bypassed,
    find_versions,
    find_merged,
    find_collected,
    find_embedded,
    find_folded,
)


def assign_roles(inputs: DesignInputs) -> TableRoles:
    roles = TableRoles()
    for rule in RULES:
        roles = rule(inputs, roles)
    return roles
