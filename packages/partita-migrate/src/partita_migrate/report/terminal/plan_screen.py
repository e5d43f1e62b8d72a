"""Prints the result of `partita migrate plan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from partita_migrate.report.terminal.terminal_tables import ROWS_SHOWN_MAX, bullets, grid, more
from partita_migrate.understanding.plan_stage import PAGE
from partita_migrate.understanding.planning.difficulties.difficulty import SEVERITIES
from partita_migrate.understanding.planning.migration_plan import MigrationPlan
from partita_migrate.understanding.planning.plan_page import SEVERITY_TITLES, bytes_text, rows_text
from partita_migrate.understanding.schema.inventory import Inventory, read_inventory
from partita_migrate.workspace.migration_folder import INVENTORY, PLAN, Folder
from partita_migrate.workspace.readable_lists import number_of


def summarize(folder: Folder, plan: MigrationPlan) -> Iterator[RenderableType]:
    inventory = read_inventory(folder)
    yield Text(_source(inventory), style="bold")
    yield _candidates(inventory, plan)
    if rest := more(len(plan.candidates), PAGE):
        yield Text(rest)
    yield from bullets("Relationships", _relationships(inventory))
    yield from bullets("Challenges", [challenge.what for challenge in plan.challenges])
    yield from bullets("Difficulties", _difficulties(plan))
    obstacles = [
        difficulty.what for difficulty in plan.difficulties if difficulty.severity == "obstacle"
    ]
    yield from bullets("Obstacles", obstacles[:ROWS_SHOWN_MAX])
    yield from bullets("On this server", _server(plan))
    yield Text(f"Written: {INVENTORY}, {PLAN}, {PAGE}")


def _source(inventory: Inventory) -> str:
    rows = sum(table.row_count for table in inventory.tables)
    data_bytes = sum(table.data_bytes or 0 for table in inventory.tables)
    return (
        f"{inventory.database}, {inventory.dialect} {inventory.server_version}:"
        f" {number_of(len(inventory.tables), 'table')}, {number_of(rows, 'row')},"
        f" {bytes_text(data_bytes)}"
    )


def _candidates(inventory: Inventory, plan: MigrationPlan) -> RenderableType:
    tables = {table.name: table for table in inventory.tables}
    return grid(
        "Candidates",
        ["table", "rows", "bytes", "score", "verdict", "looks like"],
        (
            (
                candidate.table,
                rows_text(tables[candidate.table]),
                bytes_text(tables[candidate.table].data_bytes),
                str(candidate.score),
                candidate.verdict,
                candidate.workload or "",
            )
            for candidate in plan.candidates[:ROWS_SHOWN_MAX]
        ),
        numbers=["rows", "bytes", "score"],
    )


def _relationships(inventory: Inventory) -> list[str]:
    kinds = Counter(relationship.kind for relationship in inventory.relationships)
    return [f"{count} {kind}" for kind, count in sorted(kinds.items())]


def _difficulties(plan: MigrationPlan) -> list[str]:
    counts = Counter(difficulty.severity for difficulty in plan.difficulties)
    return [
        f"{counts[severity]:>4} {SEVERITY_TITLES[severity].lower()}"
        for severity in SEVERITIES
        if counts[severity]
    ]


def _server(plan: MigrationPlan) -> list[str]:
    missing = [check.sentence for check in plan.server if not check.is_ready]
    if plan.server and not missing:
        return ["The backup can be taken, changes can be followed, and statements are kept."]
    return missing
