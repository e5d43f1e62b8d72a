"""Stage `plan`: reads the schema, relates its tables, and reports suitability and difficulties."""

from __future__ import annotations

from msgspec.structs import replace

from partita.errors import PartitaError
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.migration_plan import MigrationPlan, plan_inventory
from partita_migrate.understanding.planning.plan_page import plan_page
from partita_migrate.understanding.planning.readiness.server_readiness import check_server
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.schema.relationships import relate
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_collations import ask_collations
from partita_migrate.understanding.sources.source_connection import Ask, connect
from partita_migrate.workspace.migration_folder import INVENTORY, PLAN, Folder
from partita_migrate.workspace.stage_progress import Progress, silent

PAGE = "plan.md"


def plan(folder: Folder, *, ask: Ask | None = None, progress: Progress = silent) -> MigrationPlan:
    """Reads the source, and writes `inventory.json`, `plan.json` and `plan.md`."""
    goals = folder.section("goals", Goals)
    with connect(folder, ask) as source:
        schema = reflect(source, progress)
        checks = check_server(source, schema)
        ask_collations(folder, source, schema, progress)
    if not schema.tables:
        raise PartitaError(_nothing(schema))
    inventory = replace(schema, relationships=relate(schema.tables))
    folder.write_json(INVENTORY, inventory)
    planned = plan_inventory(inventory, goals, checks)
    folder.write_json(PLAN, planned)
    folder.write_text(PAGE, plan_page(inventory, planned))
    return planned


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
