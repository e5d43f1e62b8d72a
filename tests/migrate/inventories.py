"""The inventory of a source, as tests look at it."""

from __future__ import annotations

from partita.migrate.folder import Folder
from partita.migrate.understanding import sources
from partita.migrate.understanding.schema.inventory import Inventory, Table


def inventory_of(folder: Folder) -> Inventory:
    with sources.connect(folder) as source:
        return sources.reflect(source)


def table_of(inventory: Inventory, name: str) -> Table:
    table = inventory.table(name)
    assert table is not None
    return table
