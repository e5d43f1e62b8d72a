"""Stage `plan`: what is there, how it belongs together, what suits, what is in the way."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from partita.errors import PartitaError
from partita.migrate.folder import INVENTORY, PLAN, Folder
from partita.migrate.progress import Progress, silent
from partita.migrate.understanding.planning.difficulties import find_difficulties
from partita.migrate.understanding.planning.difficulties.challenges import (
    find_challenges,
    transfer_hours,
)
from partita.migrate.understanding.planning.difficulties.difficulty import Difficulty
from partita.migrate.understanding.planning.goals import Goals
from partita.migrate.understanding.planning.page import plan_page
from partita.migrate.understanding.planning.recovery import Step, plan_recovery
from partita.migrate.understanding.planning.suitability import Suitability, score
from partita.migrate.understanding.schema.inventory import Inventory, Relationship
from partita.migrate.understanding.schema.relationships import relate
from partita.migrate.understanding.sources import connect, reflect
from partita.migrate.understanding.sources.connection import Ask

PAGE = "plan.md"


class Plan(Struct, frozen=True, kw_only=True):
    """What the other stages and the people who decide need to know first."""

    goals: Goals
    transfer_hours: float
    candidates: list[Suitability]
    groups: list[list[str]]
    """Tables that belong together and are best moved together."""
    challenges: list[Difficulty]
    """Of the whitepaper's table 3."""
    difficulties: list[Difficulty]
    recovery: list[Step]


def plan(folder: Folder, *, ask: Ask | None = None, progress: Progress = silent) -> Plan:
    """Read the source, and write `inventory.json`, `plan.json` and `plan.md`."""
    goals = folder.section("goals", Goals)
    with connect(folder, ask) as source:
        found = reflect(source, progress)
    if not found.tables:
        raise PartitaError(_nothing(found))
    inventory = replace(found, relationships=relate(found.tables))
    folder.write_json(INVENTORY, inventory)
    planned = plan_inventory(inventory, goals)
    folder.write_json(PLAN, planned)
    folder.write_text(PAGE, plan_page(inventory, planned))
    return planned


def plan_inventory(inventory: Inventory, goals: Goals) -> Plan:
    """All of the plan that needs no connection."""
    difficulties = find_difficulties(inventory)
    return Plan(
        goals=goals,
        transfer_hours=round(transfer_hours(inventory, goals), 3),
        candidates=score(inventory, goals),
        groups=group(inventory),
        challenges=find_challenges(inventory, goals, difficulties),
        difficulties=difficulties,
        recovery=plan_recovery(inventory, goals),
    )


def group(inventory: Inventory) -> list[list[str]]:
    """Tables connected by relationships, the largest group first; lookup tables connect nothing."""
    groups = {table.name: {table.name} for table in inventory.tables}
    for one in inventory.relationships:
        if one.kind != "lookup":
            _join(groups, one)
    distinct = {min(members): sorted(members) for members in groups.values()}
    return sorted(distinct.values(), key=lambda members: (-len(members), members))


def _join(groups: dict[str, set[str]], one: Relationship) -> None:
    joined = groups[one.parent] | groups[one.child]
    for member in joined:
        groups[member] = joined


def _nothing(inventory: Inventory) -> str:
    if inventory.skipped:
        return (
            f"{inventory.database} has no table to migrate:"
            f" {inventory.skipped[0].name} is {inventory.skipped[0].reason}."
        )
    return (
        f"{inventory.database} has no tables; check the database, and the schemas and rights of"
        " its user."
    )
