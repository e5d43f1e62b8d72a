"""What concerns the database as a whole: views, routines, circles, and what was left out."""

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
            strategy="Keep the aggregate in an item that writes or a stream keep up to date, or"
            " leave it to an analytical store."
            if is_analytical
            else "Treat what it answers as an access pattern, and store items the way it reads.",
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
            what=f"Foreign keys go round in a circle: {' → '.join([*members, members[0]])}.",
            strategy="Nothing has to be loaded in an order: items may point at what is not there"
            " yet.",
        )


def no_foreign_keys(inventory: Inventory) -> Iterator[Difficulty]:
    if len(inventory.tables) > 1 and not any(table.foreign_keys for table in inventory.tables):
        yield Difficulty(
            kind="foreign key",
            severity="care",
            what="No table has a foreign key, so that relationships are known to the application"
            " only.",
            strategy="Name them under references in [source]; `partita migrate analyze` lists"
            " those that the statements join by.",
        )


def left_out(inventory: Inventory) -> Iterator[Difficulty]:
    for skipped in inventory.skipped:
        yield Difficulty(
            kind="left out",
            severity="note",
            what=f"{skipped.name} is not in the inventory: {skipped.reason}.",
            strategy="Nothing, unless it holds what has to move.",
        )


def foreign_key_cycles(tables: list[SourceTable]) -> list[list[str]]:
    """The shortest circle through each table that is in one, each reported once."""
    targets = {
        table.name: sorted({key.referenced_table for key in table.foreign_keys} - {table.name})
        for table in tables
    }
    found: dict[frozenset[str], list[str]] = {}
    for start in sorted(targets):
        circle = _way_back(start, targets)
        if circle:
            found.setdefault(frozenset(circle), circle)
    return list(found.values())


def _way_back(start: str, targets: dict[str, list[str]]) -> list[str] | None:
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for target in targets.get(way[-1], []):
            if target == start:
                return way
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return None
