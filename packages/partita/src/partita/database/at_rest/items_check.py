"""Checks the items of a table, its index entries, item collections and expiries.

Looks from every item for its index entries, collection and expiry, and from these back for an item.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding, at
from partita.database.item.attribute_values import Item, normalize_item
from partita.database.item.item_sizes import item_size
from partita.database.item.page_bytes import page_bytes
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_key
from partita.database.tables.definition.table_schema import CREATING, DELETING, Index, Table
from partita.database.tables.expiry_time import expires_at
from partita.database.tables.index_entries import IndexEntry, entry_of
from partita.database.tables.stored_item import HEADER_BYTES, StoredItem, decode, unpack_sizes
from partita.database.tables.table_statistics import (
    TableStatistics,
    read_collection_size,
    read_statistics,
)
from partita.errors import ValidationException
from partita.foundation.service_limits import ITEM_BYTES_MAX

STRAYS_AT_ONCE = 100_000
"""The number of suspicious keys in memory at a time; for more, the items are read again."""


@dataclass(slots=True)
class Recount:
    """The counts of a table or index, computed from its items."""

    items: int = 0
    size_bytes: int = 0
    is_complete: bool = True
    """False when a value could not be read and was not counted."""

    def add(self, size_bytes: int) -> None:
        self.items += 1
        self.size_bytes += size_bytes


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A stored item, with its size computed again."""

    key: bytes
    value: bytes
    stored: StoredItem
    place: bytes


class _Unreadable(Exception):
    """Raised for a value that is not an item of its table."""


def items_are_right(folder: CheckedFolder, table: Table) -> Iterator[CheckFinding]:
    """All invariants of single items hold, and the table's counts are right."""
    recount = Recount()
    for key, value in folder.under(table_layout.items_prefix(table.number)):
        folder.items += 1
        try:
            row = _item_row(table, key, value)
        except _Unreadable as reason:
            recount.is_complete = False
            yield CheckFinding(f"{at(table)}, storage key {key.hex()}", str(reason))
            continue
        recount.add(row.stored.size)
        for invariant in ITEM_INVARIANTS:
            yield from invariant(folder, table, row)
    yield from _counts_are_right(folder, table, None, recount)


def an_item_lies_under_its_key(
    folder: CheckedFolder, table: Table, row: ItemRow
) -> Iterator[CheckFinding]:
    expected = table_layout.item_key(table, row.stored.item)
    if expected != row.key:
        where = at(table, row.stored.item)
        yield CheckFinding(where, "it is stored under the wrong key", expected.hex(), row.key.hex())
    elif folder.snapshot.get(expected) != row.value:
        yield CheckFinding(at(table, row.stored.item), "it is not found by its key")


def its_sizes_are_right(
    folder: CheckedFolder, table: Table, row: ItemRow
) -> Iterator[CheckFinding]:
    """The size that counts towards limits, and the one that counts towards a page."""
    item = row.stored.item
    expected = (row.stored.size, page_bytes(item, table.sort_attributes))
    found = unpack_sizes(row.value)
    if found != expected:
        yield CheckFinding(at(table, item), "its stored sizes are wrong", f"{expected}", f"{found}")


def it_is_not_too_large(
    folder: CheckedFolder, table: Table, row: ItemRow
) -> Iterator[CheckFinding]:
    if row.stored.size > ITEM_BYTES_MAX:
        where = at(table, row.stored.item)
        limit = f"at most {ITEM_BYTES_MAX} bytes"
        yield CheckFinding(where, "it is too large", limit, f"{row.stored.size}")


def it_has_its_entries(folder: CheckedFolder, table: Table, row: ItemRow) -> Iterator[CheckFinding]:
    """Every index has the entry that the write path makes of the item.

    While an index is being backfilled, an entry may be missing.
    """
    for index, entry in _entries(table, row):
        found = folder.snapshot.get(entry.key)
        if found == entry.value:
            continue
        where = at(table, row.stored.item, index)
        if found is None:
            if index.status != CREATING:
                yield CheckFinding(where, "the item has no entry in the index")
        elif _readable_row(table, entry.key, found):
            yield CheckFinding(
                where, "the entry does not match the item", _text(entry.value), _text(found)
            )


def its_expiry_is_noted(
    folder: CheckedFolder, table: Table, row: ItemRow
) -> Iterator[CheckFinding]:
    if table.ttl_attribute is None or not table.ttl_is_indexed:
        return
    when = expires_at(table.ttl_attribute, row.stored.item)
    if when is not None:
        if folder.snapshot.get(table_layout.expiry_key(table, when, row.place)) is None:
            yield CheckFinding(at(table, row.stored.item), "its expiry is missing", f"{when}")


def _entries(table: Table, row: ItemRow) -> Iterator[tuple[Index, IndexEntry]]:
    for index in table.indexes:
        if index.status != DELETING:
            entry = entry_of(table, index, row.stored, row.place)
            if entry:
                yield index, entry


# Entries, collections, expiries: back to the items


def entries_belong_to_items(folder: CheckedFolder, table: Table) -> Iterator[CheckFinding]:
    """Every index entry belongs to an item, and the index's counts are right.

    An index that is being deleted is not kept up to date.
    """
    for index in table.indexes:
        if index.status != DELETING:
            recount = Recount()
            for key, value in folder.under(table_layout.entries_prefix(table.number, index.number)):
                folder.entries += 1
                try:
                    item = _read(table, value)
                except _Unreadable as reason:
                    recount.is_complete = False
                    where = f"{at(table, None, index)}, storage key {key.hex()}"
                    yield CheckFinding(where, str(reason))
                    continue
                recount.add(item_size(item))
                yield from _entry_has_an_item(folder, table, index, key, item)
            yield from _counts_are_right(folder, table, index, recount)


def _entry_has_an_item(
    folder: CheckedFolder, table: Table, index: Index, key: bytes, projected: Item
) -> Iterator[CheckFinding]:
    item_key = table_layout.item_key(table, projected)
    value = folder.snapshot.get(item_key)
    if value is None:
        yield CheckFinding(at(table, projected, index), "the entry has no item")
    elif row := _readable_row(table, item_key, value):
        expected = table_layout.entry_key(table, index, row.stored.item, row.place)
        if expected != key:
            where = at(table, projected, index)
            expected_key = expected.hex() if expected else "no entry"
            yield CheckFinding(where, "the item has no such entry", expected_key, key.hex())


def _counts_are_right(
    folder: CheckedFolder, table: Table, index: Index | None, recount: Recount
) -> Iterator[CheckFinding]:
    if not recount.is_complete:
        return
    expected = TableStatistics(recount.items, recount.size_bytes)
    where = at(table, None, index)
    try:
        found = read_statistics(folder.snapshot, table.number, index.number if index else 0)
    except struct.error:
        yield CheckFinding(where, "its counts cannot be read")
        return
    if found != expected:
        yield CheckFinding(where, "its counts are wrong", _counts(expected), _counts(found))


def _counts(statistics: TableStatistics) -> str:
    return f"{statistics.item_count} items of {statistics.size_bytes} bytes"


def collections_have_their_sizes(folder: CheckedFolder, table: Table) -> Iterator[CheckFinding]:
    """A table with local indexes has the size of every item collection, and no others."""
    if not table.local_indexes:
        return
    collections = 0
    # Items of one partition are neighbors.
    for key, group in groupby(_readable_items(folder, table), lambda row: _collection(table, row)):
        collections += 1
        size = 0
        for row in group:
            size += _collection_bytes(table, row)
        found = read_collection_size(folder.snapshot, key)
        if found != size:
            where = at(table, row.stored.item)
            yield CheckFinding(where, "the size of its collection is wrong", f"{size}", f"{found}")
    noted = sum(1 for _ in folder.under(table_layout.collections_prefix(table.number)))
    if noted != collections:
        yield from _stray_collections(folder, table)


def _stray_collections(folder: CheckedFolder, table: Table) -> Iterator[CheckFinding]:
    pairs = folder.under(table_layout.collections_prefix(table.number))
    while strays := {key for key, _ in islice(pairs, STRAYS_AT_ONCE)}:
        for row in _readable_items(folder, table):
            strays.discard(_collection(table, row))
        for key in sorted(strays):
            yield CheckFinding(
                f"{at(table)}, storage key {key.hex()}", "the collection has no items"
            )


def _collection(table: Table, row: ItemRow) -> bytes:
    return table_layout.collection_key(table, row.stored.item)


def _collection_bytes(table: Table, row: ItemRow) -> int:
    entries = (entry.size for index, entry in _entries(table, row) if index.is_local)
    return row.stored.size + sum(entries)


def expiries_belong_to_items(folder: CheckedFolder, table: Table) -> Iterator[CheckFinding]:
    """Every expiry entry belongs to an item."""
    if table.ttl_attribute is None:
        return
    for key, _ in folder.under(table_layout.expiries_prefix(table)):
        place = table_layout.expiry_place(key)
        item_key = table_layout.item_key_at(table, place)
        value = folder.snapshot.get(item_key)
        if value is None:
            where = f"{at(table)}, storage key {key.hex()}"
            yield CheckFinding(where, "an expiry entry has no item")
        elif row := _readable_row(table, item_key, value):
            when = expires_at(table.ttl_attribute, row.stored.item)
            if when is None or table_layout.expiry_key(table, when, place) != key:
                where = at(table, row.stored.item)
                expected = "no expiry" if when is None else f"{when}"
                yield CheckFinding(where, "its expiry entry is wrong", expected, key.hex())


# Reading what may be damaged


class _Value(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON types of DynamoDB's ten types of values."""

    S: str | UnsetType = UNSET
    N: str | UnsetType = UNSET
    B: str | UnsetType = UNSET
    SS: list[str] | UnsetType = UNSET
    NS: list[str] | UnsetType = UNSET
    BS: list[str] | UnsetType = UNSET
    M: dict[str, _Value] | UnsetType = UNSET
    L: list[_Value] | UnsetType = UNSET
    BOOL: bool | UnsetType = UNSET
    NULL: bool | UnsetType = UNSET


_check_types: Callable[[bytes], Any] = msgspec.json.Decoder(dict[str, _Value]).decode


def _item_row(table: Table, key: bytes, value: bytes) -> ItemRow:
    item = _read(table, value)
    stored = StoredItem(value[HEADER_BYTES:], item_size(item), item)
    return ItemRow(key, value, stored, table_layout.place_of(key))


def _readable_items(folder: CheckedFolder, table: Table) -> Iterator[ItemRow]:
    for key, value in folder.under(table_layout.items_prefix(table.number)):
        if row := _readable_row(table, key, value):
            yield row


def _readable_row(table: Table, key: bytes, value: bytes) -> ItemRow | None:
    """None for a value that cannot be read, which `items_are_right` reports."""
    try:
        return _item_row(table, key, value)
    except _Unreadable:
        return None


def _read(table: Table, value: bytes) -> Item:
    """Returns the item in a stored value; it must be well-formed, normalized and have a key."""
    body = value[HEADER_BYTES:]
    try:
        _check_types(body)
        item = decode(body)
        if normalize_item(item) != item:
            raise _Unreadable("its values are not in normal form")
    except (msgspec.MsgspecError, ValidationException, ValueError, RecursionError) as error:
        raise _Unreadable(f"it cannot be read: {error}") from error
    try:
        check_key(table, {name: item[name] for name in table.key_names if name in item})
    except (ValidationException, ValueError) as error:
        raise _Unreadable(f"its key does not fit the table: {error}") from error
    return item


def _text(value: bytes) -> str:
    return f"{unpack_sizes(value)} {value[HEADER_BYTES:].decode(errors='replace')}"


ITEM_INVARIANTS = (
    an_item_lies_under_its_key,
    its_sizes_are_right,
    it_is_not_too_large,
    it_has_its_entries,
    its_expiry_is_noted,
)
