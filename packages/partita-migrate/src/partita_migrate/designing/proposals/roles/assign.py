"""Gives every table its role. The most specific rule comes first."""

from __future__ import annotations

from collections.abc import Callable

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.roles.bypassed import find_bypassed
from partita_migrate.designing.proposals.roles.collected import find_collected
from partita_migrate.designing.proposals.roles.embedded import find_embedded
from partita_migrate.designing.proposals.roles.folded import find_folded
from partita_migrate.designing.proposals.roles.merged import find_merged
from partita_migrate.designing.proposals.roles.roles import Roles
from partita_migrate.designing.proposals.roles.twins import find_twins
from partita_migrate.designing.proposals.roles.versions import find_versions

RULES: tuple[Callable[[DesignInputs, Roles], Roles], ...] = (
    find_twins,
    find_bypassed,
    find_versions,
    find_merged,
    find_collected,
    find_embedded,
    find_folded,
)


def assign_roles(inputs: DesignInputs) -> Roles:
    roles = Roles()
    for rule in RULES:
        roles = rule(inputs, roles)
    return roles
