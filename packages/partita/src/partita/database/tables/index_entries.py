"""Index entries: the storage key of an item in an index, and the attributes projected into it."""

from __future__ import annotations

from typing import NamedTuple

from partita.database.item.attribute_values import Item
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import ALL, INCLUDE, Index, Table
from partita.database.tables.stored_item import StoredItem, pack


class IndexEntry(NamedTuple):
    """An item in an index: its storage key, its size, and the stored value."""

    key: bytes
    size: int
    value: bytes


def entry_of(table: Table, index: Index, stored: StoredItem, place: bytes) -> IndexEntry | None:
    """Returns an item's entry in an index, or None if it lacks one of the index's keys.

    `place` is the item's own storage key without its table.
    """
    key = table_layout.entry_key(table, index, stored.item, place)
    if key is None:
        return None
    if index.projection_type != ALL:
        stored = pack(project(table, index, stored.item))
    return IndexEntry(key, stored.size, stored.value(index.sort))


def project(table: Table, index: Index, item: Item) -> Item:
    # The order is fixed, so that entries with equal contents have equal bytes.
    return {name: item[name] for name in sorted(projected_names(table, index)) if name in item}


def projected_names(table: Table, index: Index) -> set[str]:
    """Returns the attributes in an index that does not project all of them."""
    names = {name for name, _ in table.key_attributes + index.key_attributes}
    if index.projection_type == INCLUDE:
        names.update(index.non_key_attributes)
    return names
