"""The inventory of a source, as tests look at it."""

from __future__ import annotations

from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_connection import connect
from partita_migrate.workspace.migration_folder import Folder


def inventory_of(folder: Folder) -> Inventory:
    with connect(folder) as source:
        return reflect(source)


def table_of(inventory: Inventory, name: str) -> SourceTable:
    table = inventory.table(name)
    assert table is not None
    return table
