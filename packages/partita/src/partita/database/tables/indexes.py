"""What an item looks like in an index: where its entry stands, and what is projected into it."""

from __future__ import annotations

from typing import NamedTuple

from partita.database.item.values import Item
from partita.database.tables import layout
from partita.database.tables.schema import ALL, INCLUDE, Index, Table
from partita.database.tables.stored import Stored, pack


class Entry(NamedTuple):
    key: bytes
    size: int
    value: bytes


def entry_of(table: Table, index: Index, stored: Stored, place: bytes) -> Entry | None:
    """The entry that an item has in an index, if it has all of the index's keys."""
    key = layout.entry_key(table, index, stored.item, place)
    if key is None:
        return None
    if index.projection_type != ALL:
        stored = pack(project(table, index, stored.item))
    return Entry(key, stored.size, stored.value(index.sort))


def project(table: Table, index: Index, item: Item) -> Item:
    # In one order, so that entries with equal contents are equal.
    return {name: item[name] for name in sorted(projected_names(table, index)) if name in item}


def projected_names(table: Table, index: Index) -> set[str]:
    """Attributes in an index that does not project all of them."""
    names = {name for name, _ in table.key_attributes + index.key_attributes}
    if index.projection_type == INCLUDE:
        names.update(index.non_key_attributes)
    return names
