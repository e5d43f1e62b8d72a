"""Makes the plan from the inventory and the goals; no connection is needed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from partita_migrate.understanding.planning.difficulties import find_difficulties
from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty
from partita_migrate.understanding.planning.difficulties.server_difficulties import find_unready
from partita_migrate.understanding.planning.difficulties.whitepaper_challenges import (
    find_challenges,
    transfer_hours,
)
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.readiness.readiness_check import ServerCheck
from partita_migrate.understanding.planning.recovery_plan import RecoveryStep, plan_recovery
from partita_migrate.understanding.planning.suitability import Suitability, score
from partita_migrate.understanding.schema.inventory import Inventory, Relationship


class MigrationPlan(Struct, frozen=True, kw_only=True):
    """What the other stages, and the people who decide, need to know first."""

    goals: Goals
    transfer_hours: float
    candidates: list[Suitability]
    groups: list[list[str]]
    """Tables that are related and best moved together."""
    challenges: list[Difficulty]
    """The challenges of the whitepaper's table 3."""
    difficulties: list[Difficulty]
    recovery: list[RecoveryStep]
    server: list[ServerCheck] = field(default_factory=list)
    """Results of the readiness checks."""


def plan_inventory(
    inventory: Inventory, goals: Goals, checks: Sequence[ServerCheck] = ()
) -> MigrationPlan:
    """Makes the whole plan; `checks` are the results of the server's readiness checks."""
    difficulties = [*find_difficulties(inventory), *find_unready(checks, goals)]
    return MigrationPlan(
        goals=goals,
        transfer_hours=round(transfer_hours(inventory, goals), 3),
        candidates=score(inventory, goals),
        groups=group(inventory),
        challenges=find_challenges(inventory, goals, difficulties),
        difficulties=difficulties,
        recovery=plan_recovery(inventory, goals, checks),
        server=list(checks),
    )


def group(inventory: Inventory) -> list[list[str]]:
    """Groups tables that relationships connect, the largest group first; lookup tables do not
    count."""
    groups = {table.name: {table.name} for table in inventory.tables}
    for relationship in inventory.relationships:
        if relationship.kind != "lookup":
            _join(groups, relationship)
    distinct = {min(members): sorted(members) for members in groups.values()}
    return sorted(distinct.values(), key=lambda members: (-len(members), members))


def _join(groups: dict[str, set[str]], relationship: Relationship) -> None:
    joined = groups[relationship.parent] | groups[relationship.child]
    for member in joined:
        groups[member] = joined
