"""Both sides of the proof of a write: a private copy of the source, and tables with its items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design, Entity, TableDesign
from partita_migrate.model.items.item_maker import ItemMaker
from partita_migrate.proving.read_proofs.answer_comparison import plain
from partita_migrate.proving.sandbox.design_tables import (
    create_tables,
    drop_tables,
    is_accepted,
    put_all,
    scan_items,
)
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient
from partita_migrate.proving.sandbox.source_snapshot import SourceSnapshot
from partita_migrate.row_store.row_store import primary_keys
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.source_connection import SourceDatabase

PREFIX = "partita-writes."

Key = tuple[str, str]
"""A table, and the text of an item's key."""


class WriteSides:
    """The private copy and the tables."""

    def __init__(
        self,
        design: Design,
        inventory: Inventory,
        copy: SourceDatabase,
        server: DynamoDBClient,
        space: Path,
        prefix: str,
    ) -> None:
        self.design = design
        self.inventory = inventory
        self.copy = copy
        self.server = server
        self.prefix = prefix
        self.snapshot = SourceSnapshot(copy, inventory, is_streamed=False)
        self.staging = StagedRows(space / "writes", inventory, design)
        self.maker = ItemMaker(self.staging, primary_keys(inventory))
        self.is_filled = False

    def close(self) -> None:
        self.drop()
        self.staging.close()

    def begin(self) -> None:
        """Creates the tables and fills them with the copy's items, unless they exist."""
        if self.is_filled:
            return
        create_tables(self.server, self.design, self.prefix)
        self.stage()
        items = ((f"{self.prefix}{name}", item) for (name, _), item in self.expected().items())
        for _ in put_all(self.server, items):
            pass
        self.is_filled = True

    def drop(self) -> None:
        if self.is_filled:
            drop_tables(self.server, self.design, self.prefix)
        self.is_filled = False

    def stage(self) -> None:
        for table in self.inventory.tables:
            if table.is_readable and table.columns:
                for _ in self.staging.fill(table.name, self.snapshot.rows(table)):
                    pass

    def entities(self, source: str) -> Iterator[tuple[TableDesign, Entity]]:
        return (pair for pair in self.design.entities() if pair[1].source == source)

    def expected(self) -> dict[Key, Item]:
        """Returns every item that the copy's rows make."""
        items: dict[Key, Item] = {}
        for table in self.inventory.tables:
            for row in self.staging.rows(table.name):
                items.update(self.items(table.name, row))
        return items

    def items(self, source: str, row: Item, written: set[str] | None = None) -> dict[Key, Item]:
        """Returns the items of a row, of all types or of those in `written`."""
        items: dict[Key, Item] = {}
        for home, entity in self.entities(source):
            if written is not None and entity.name not in written:
                continue
            item = self.maker.item(entity, row)
            if item is not None and is_accepted(home, item):
                items[home.name, key_text(home, item)] = item
        return items

    def _actual(self) -> dict[Key, Item]:
        return {
            (table.name, key_text(table, item)): item
            for table in self.design.tables
            for item in scan_items(self.server, f"{self.prefix}{table.name}")
        }

    def differences(self) -> list[str]:
        expected, actual = self.expected(), self._actual()
        shown: list[str] = []
        for key in expected.keys() - actual.keys():
            shown.append(f"missing in {key[0]}: {key[1]}")
        for key in actual.keys() - expected.keys():
            shown.append(f"too many in {key[0]}: {key[1]}")
        for key in expected.keys() & actual.keys():
            ours, theirs = expected[key], actual[key]
            names = {
                name
                for name in ours.keys() | theirs.keys()
                if plain(ours.get(name)) != plain(theirs.get(name))
            }
            if names:
                cells = ", ".join(
                    f"{name} is {plain(theirs.get(name))} and should be {plain(ours.get(name))}"
                    for name in sorted(names)
                )
                shown.append(f"{key[0]} {key[1]}: {cells}"[:300])
        if not shown:
            return []
        return [f"{len(shown)} items are not what the copy's rows make", *shown]

    def home(self, name: str) -> TableDesign:
        table = self.design.table(name)
        assert table is not None
        return table


def key_text(table: TableDesign, item: Item) -> str:
    return ", ".join(f"{key.name}={plain(item.get(key.name))}" for key in table.keys)
