"""Maps an item of the target to its row, and a change of the item to a change of the row.

Each column has one entity that decides its value on the way back: the first one that holds it as an
attribute of its own rows. Copies in other items, guards and kept aggregates are made of rows again
and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import (
    Entity,
    ItemAttribute,
    TableDesign,
    columns_of,
    type_attribute,
)
from partita_migrate.moving.move import Move
from partita_migrate.moving.target_access.item_positions import OWN, is_tombstone
from partita_migrate.moving.way_back.values_to_columns import normalized
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceColumn, SourceTable, is_derived


class DesiredRow(NamedTuple):
    """A row as it should become; without `row` it should be deleted."""

    table: str
    key: Item
    """The columns of its primary key."""
    row: Item | None
    key_text: str = ""


class UnmappableItem(Exception):
    """Raised for an item that no row can represent."""


class RowMapper:
    """Finds the row of an item, and what the row has to become."""

    def __init__(self, move: Move) -> None:
        self.move = move
        self.tables: dict[str, SourceTable] = {table.name: table for table in move.origin.tables}
        self.columns: dict[str, dict[str, SourceColumn]] = {
            name: {column.name: column for column in table.columns if not is_derived(column)}
            for name, table in self.tables.items()
        }
        self._owned: dict[int, dict[str, str]] = {}
        """By the number of an entity, the columns that it decides and the attributes that hold
        them."""
        self.main_entities: dict[str, int] = {}
        """By table, the entity whose items are created and deleted together with the table's
        rows."""
        for table in self.tables.values():
            self._assign(table)
        self.pending: dict[tuple[str, str], DesiredRow] = {}
        """Rows that are asked for and not written yet."""
        self._types = {table.name: type_attribute(table) for table in move.design.tables}

    def _assign(self, table: SourceTable) -> None:
        """Decides for each column of a table which entity's items decide its value on the way
        back."""
        if not table.primary_key:
            return
        holders = {
            number: _own_columns(entity)
            for number, (_, entity) in enumerate(self.move.entities)
            if entity.source == table.name and entity.holds_rows
        }
        whole = {
            number: columns_held
            for number, columns_held in holders.items()
            if columns_held.keys() >= set(table.primary_key)
        }
        if not whole:
            return
        undecided = set(self.columns[table.name])
        home = max(whole, key=lambda number: (len(whole[number]), -number))
        self.main_entities[table.name] = home
        for number in sorted(whole, key=lambda one: one != home):
            mine = {name: whole[number][name] for name in whole[number] if name in undecided}
            self._owned[number] = mine
            undecided -= mine.keys()

    def without_way_back(self) -> list[str]:
        """Returns a sentence for each table whose rows cannot be made of items again."""
        sentences = []
        for name, table in self.tables.items():
            if name not in self.main_entities:
                inside = sorted({e.name for _, e in self.move.entities if _reads(e, name)})
                where = f"; they are inside {', '.join(inside)}" if inside else ""
                why = "have no items of their own" if table.primary_key else "have no primary key"
                if any(e.source == name and e.unless for _, e in self.move.entities):
                    why, where = "have items only while no other row forbids them", ""
                sentences.append(f"Rows of {name} {why}{where}.")
        return sentences

    # Items.

    def entity_of(self, table: TableDesign, item: Item) -> int:
        """Returns the number of an item's entity, by its type attribute or its constants."""
        kind = self._types[table.name]
        candidates = [
            number for number, (home, _) in enumerate(self.move.entities) if home.name == table.name
        ]
        if kind is not None:
            type_name = item.get(kind, {}).get("S")
            for number in candidates:
                if self.move.entities[number][1].name == type_name:
                    return number
            raise UnmappableItem(f"its {kind} is {type_name!r}, which is not in the design")
        for number in candidates:
            entity = self.move.entities[number][1]
            constants = [
                attribute for attribute in entity.attributes if attribute.constant is not None
            ]
            if all(
                item.get(attribute.name) == {attribute.type: attribute.constant}
                for attribute in constants
            ):
                return number
        raise UnmappableItem("it does not look like an item of the design")

    def desired_rows(
        self, table: TableDesign, old: Item | None, new: Item | None
    ) -> Iterator[DesiredRow]:
        """Yields what a change of an item asks of rows, in the order of writing: a row under an old
        key goes first."""
        old = None if old is not None and is_tombstone(old) else old
        new = None if new is not None and is_tombstone(new) else new
        before = self._before(table, old)
        after = self._desired_row(table, old, new) if new is not None else None
        if before is not None and (
            after is None or (before.table, before.key_text) != (after.table, after.key_text)
        ):
            yield before
        if after is not None:
            yield after

    def _before(self, table: TableDesign, old: Item | None) -> DesiredRow | None:
        """Returns the deletion of the row whose item is gone."""
        if old is None:
            return None
        try:
            number = self.entity_of(table, old)
            entity = self.move.entities[number][1]
            if self.main_entities.get(entity.source) != number:
                return self._emptied(number, entity, old)
            key = self._key(number, entity, old)
        except UnmappableItem:
            # It was not carried over while it existed either.
            return None
        return DesiredRow(entity.source, key, None, self.move.state.key_text(entity.source, key))

    def _emptied(self, number: int, entity: Entity, old: Item) -> DesiredRow | None:
        """Clears the columns that were held by an item beside the row's main item."""
        if not self._owned.get(number):
            return None
        key = self._key_of_own(entity, old)
        text = self.move.state.key_text(entity.source, key)
        current = self._current_row(entity.source, text)
        if current is None:
            return None
        keys = self.tables[entity.source].primary_key
        gone = self._owned[number].keys() - set(keys)
        row = {name: value for name, value in current.items() if name not in gone}
        return DesiredRow(entity.source, key, row, text)

    def _desired_row(self, table: TableDesign, old: Item | None, new: Item) -> DesiredRow | None:
        """Returns the row that an item asks for; None for items that decide no column."""
        number = self.entity_of(table, new)
        entity = self.move.entities[number][1]
        self._check_attributes(entity, old, new)
        if entity.is_guard or not self._owned.get(number):
            return None
        is_main = self.main_entities[entity.source] == number
        key = self._key(number, entity, new) if is_main else self._key_of_own(entity, new)
        text = self.move.state.key_text(entity.source, key)
        current = self._current_row(entity.source, text)
        if current is None and not is_main:
            raise UnmappableItem(f"{entity.source} has no row for it")
        row = dict(current) if current is not None else {}
        columns = self.columns[entity.source]
        for name, attribute in self._owned[number].items():
            row.pop(name, None)
            value = new.get(attribute)
            # A JSON null is a value; it is not the same as a column that is NULL.
            if value is not None and ("NULL" not in value or columns[name].kind == "json"):
                row[name] = normalized(columns[name], value)
        row.update(key)
        return DesiredRow(entity.source, key, row, text)

    def _current_row(self, table: str, text: str) -> Item | None:
        if (table, text) in self.pending:
            return self.pending[table, text].row
        stored = self.move.state.find(table, text)
        return stored.row if stored is not None else None

    def key_in(self, entity: Entity, item: Item) -> str | None:
        """Returns the state store's key of the row that an item belongs to; None without one."""
        try:
            key = self._key_of_own(entity, item)
        except UnmappableItem:
            return None
        return self.move.state.key_text(entity.source, key)

    def _key(self, number: int, entity: Entity, item: Item) -> Item:
        return self._key_from(entity, self._owned[number], item)

    def _key_of_own(self, entity: Entity, item: Item) -> Item:
        return self._key_from(entity, _own_columns(entity), item)

    def _key_from(self, entity: Entity, attributes: dict[str, str], item: Item) -> Item:
        columns = self.columns[entity.source]
        key = {}
        for name in self.tables[entity.source].primary_key:
            value = item.get(attributes.get(name, ""))
            if value is None:
                raise UnmappableItem(f"it has no {name}, the primary key of {entity.source}")
            key[name] = normalized(columns[name], value)
        return key

    def _check_attributes(self, entity: Entity, old: Item | None, new: Item) -> None:
        """Raises when an item has attributes that no row can hold."""
        attributes = {attribute.name: attribute for attribute in entity.attributes}
        strange = sorted(new.keys() - attributes.keys() - set(OWN))
        strange = [name for name in strange if (old or {}).get(name) != new[name]]
        if strange:
            raise UnmappableItem(f"the design has no attribute {strange[0]} of {entity.name}")
        for name, attribute in attributes.items():
            without_items = [
                ref.table
                for ref in _joined_columns(entity, attribute)
                if self._has_no_items(ref.table)
            ]
            if without_items and (old or {}).get(name) != new.get(name):
                raise UnmappableItem(
                    f"its {name} is made of rows of {without_items[0]}, which have no items of"
                    " their own"
                )

    def _has_no_items(self, table: str) -> bool:
        return table in self.tables and table not in self.main_entities


def _own_columns(entity: Entity) -> dict[str, str]:
    """Returns the columns of the entity's own rows, with the attributes that hold them
    unchanged."""
    columns: dict[str, str] = {}
    for attribute in entity.attributes:
        if attribute.column is None or attribute.through or attribute.when:
            continue
        ref = ColumnRef.parse(attribute.column)
        if ref.table == entity.source:
            columns.setdefault(ref.column, attribute.name)
    return columns


def _joined_columns(entity: Entity, attribute: ItemAttribute) -> list[ColumnRef]:
    if attribute.template is not None or attribute.constant is not None or not attribute.through:
        return []
    return columns_of(entity, attribute)


def _reads(entity: Entity, table: str) -> bool:
    refs = (ref for attribute in entity.attributes for ref in columns_of(entity, attribute))
    return any(ref.table == table for ref in refs)
