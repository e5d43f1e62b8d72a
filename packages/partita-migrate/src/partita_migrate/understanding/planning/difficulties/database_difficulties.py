"""Finds difficulties of the database as a whole: views, routines, cycles, and objects that were
left out."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.workspace.readable_lists import listed, number_of


def views(inventory: Inventory) -> Iterator[Difficulty]:
    for view in inventory.views:
        is_analytical = view in inventory.analytical_views
        yield Difficulty(
            kind="analytical" if is_analytical else "view",
            severity="care" if is_analytical else "note",
            what=f"The view {view} "
            + ("groups or aggregates rows." if is_analytical else "joins or renames columns."),
            strategy="Keep the aggregate in an item that writers or a stream consumer update, or"
            " leave it to an analytical store."
            if is_analytical
            else "Treat the view as an access pattern, and store items in the form that it has.",
        )


def routines(inventory: Inventory) -> Iterator[Difficulty]:
    if inventory.routines:
        yield Difficulty(
            kind="routine",
            severity="care",
            what=f"{number_of(len(inventory.routines), 'stored routine')}"
            f" ({listed(inventory.routines)}) hold logic inside the database.",
            strategy="Move the logic into the application.",
        )


def cycles(inventory: Inventory) -> Iterator[Difficulty]:
    for members in foreign_key_cycles(inventory.tables):
        yield Difficulty(
            kind="foreign key",
            severity="note",
            what=f"Foreign keys form a cycle: {' → '.join([*members, members[0]])}.",
            strategy="No order of loading is needed: items can refer to items that do not exist"
            " yet.",
        )


def no_foreign_keys(inventory: Inventory) -> Iterator[Difficulty]:
    if len(inventory.tables) > 1 and not any(table.foreign_keys for table in inventory.tables):
        yield Difficulty(
            kind="foreign key",
            severity="care",
            what="No table has a foreign key, so only the application knows the relationships."
            " only.",
            strategy="Name them under references in [source]; `partita migrate analyze` lists"
            " the joins of the statements.",
        )


def left_out(inventory: Inventory) -> Iterator[Difficulty]:
    for skipped in inventory.skipped:
        yield Difficulty(
            kind="left out",
            severity="note",
            what=f"{skipped.name} is not in the inventory: {skipped.reason}.",
            strategy="None, unless it has data that must move.",
        )


def foreign_key_cycles(tables: list[SourceTable]) -> list[list[str]]:
    """Returns the shortest cycle through each table that is in one, each cycle once."""
    targets = {
        table.name: sorted({key.referenced_table for key in table.foreign_keys} - {table.name})
        for table in tables
    }
    cycles: dict[frozenset[str], list[str]] = {}
    for start in sorted(targets):
        cycle = _shortest_cycle(start, targets)
        if cycle:
            cycles.setdefault(frozenset(cycle), cycle)
    return list(cycles.values())


def _shortest_cycle(start: str, targets: dict[str, list[str]]) -> list[str] | None:
    # Breadth-first, so the first cycle found is the shortest.
    paths = [[start]]
    visited: set[str] = set()
    while paths:
        path = paths.pop(0)
        for target in targets.get(path[-1], []):
            if target == start:
                return path
            if target not in visited:
                visited.add(target)
                paths.append([*path, target])
    return None
