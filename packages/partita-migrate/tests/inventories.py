"""The inventory of a source, as tests look at it."""

from __future__ import annotations

from partita_migrate.folder import Folder
from partita_migrate.understanding.schema.inventory import Inventory, Table
from partita_migrate.understanding.sources.connection import connect
from partita_migrate.understanding.sources.reflection import reflect


def inventory_of(folder: Folder) -> Inventory:
    with connect(folder) as source:
        return reflect(source)


def table_of(inventory: Inventory, name: str) -> Table:
    table = inventory.table(name)
    assert table is not None
    return table
