"""THE write path: the only code that changes an item.

`write_item` gets the old item and the new one. It computes index entries, counts, collection sizes
and expiry, logs the change, and records all of it in one write batch. Everything that changes an
item (an operation, a transaction, the TTL sweep) decides the new item and calls this function, so
items, indexes, counts and capacity can never disagree.
"""

from __future__ import annotations

from partita.database.capacity.capacity_units import write_units
from partita.database.logs.change_log.change_records import log_change
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import CREATING, DELETING, Index, Table
from partita.database.tables.expiry_time import expires_at
from partita.database.tables.index_entries import IndexEntry, entry_of
from partita.database.tables.stored_item import StoredItem
from partita.database.tables.table_statistics import (
    add_collection_size,
    add_statistics,
    read_collection_size,
)
from partita.errors import ItemCollectionSizeLimitExceededException
from partita.foundation.service_limits import ITEM_COLLECTION_BYTES_MAX


class WriteEffect:
    """The changes of one write, and the units that it costs outside of a transaction.

    In a transaction, every unit counts twice.
    """

    __slots__ = ("collection_bytes", "index_units", "new", "old", "table_units")

    def __init__(self, old: StoredItem | None, new: StoredItem | None, table_units: int) -> None:
        self.old = old
        self.new = new
        self.table_units = table_units
        self.index_units: dict[str, int] = {}
        self.collection_bytes: int | None = None


def write_item(
    write_batch: WriteBatch,
    table: Table,
    key: bytes,
    old: StoredItem | None,
    new: StoredItem | None,
    *,
    expired: bool = False,
) -> WriteEffect:
    """Replace `old` by `new` under an item's key; either may be missing.

    `expired` marks a deletion by time to live, which stream records attribute to the service.
    """
    written = WriteEffect(old, new, write_units(max(_size(old), _size(new))))
    grown = 0
    if not _is_same(old, new):
        if new:
            write_batch.put(key, new.value(table.sort_attributes))
        else:
            write_batch.delete(key)
        grown = _count(write_batch, table, 0, old, new)
        if table.indexes:
            grown += _write_entries(write_batch, table, table_layout.place_of(key), written)
        if table.ttl_attribute is not None:
            _write_expiry(
                write_batch, table, table.ttl_attribute, table_layout.place_of(key), written
            )
        if table.stream is not None:
            log_change(
                write_batch, table.stream, table_layout.place_of(key), old, new, expired=expired
            )
        if table.capture is not None:
            log_change(
                write_batch, table.capture, table_layout.place_of(key), old, new, expired=expired
            )
    if table.local_indexes:
        written.collection_bytes = _grow_collection(write_batch, table, new or old, grown)
    return written


def _write_entries(
    write_batch: WriteBatch, table: Table, place: bytes, written: WriteEffect
) -> int:
    """Update all indexes; return the bytes by which local indexes grew."""
    grown = 0
    for index in table.indexes:
        if index.status == DELETING:
            continue
        old = entry_of(table, index, written.old, place) if written.old else None
        new = entry_of(table, index, written.new, place) if written.new else None
        if old != new:
            written.index_units[index.name] = _entry_units(old, new)
            entry_grown = replace_entry(write_batch, table, index, old, new)
            if index.is_local:
                grown += entry_grown
    return grown


def replace_entry(
    write_batch: WriteBatch,
    table: Table,
    index: Index,
    old: IndexEntry | None,
    new: IndexEntry | None,
) -> int:
    """Replace an index entry and count it; return the bytes by which the index grew."""
    # While an index is backfilled, an item's old entry may not be there yet.
    if index.status == CREATING and old and write_batch.get(old.key) is None:
        old = None
    if old and not (new and new.key == old.key):
        write_batch.delete(old.key)
    if new:
        write_batch.put(new.key, new.value)
    return _count(write_batch, table, index.number, old, new)


def _count(
    write_batch: WriteBatch,
    table: Table,
    index_number: int,
    old: StoredItem | IndexEntry | None,
    new: StoredItem | IndexEntry | None,
) -> int:
    grown = _size(new) - _size(old)
    items = (new is not None) - (old is not None)
    add_statistics(write_batch, table.number, index_number, items, grown)
    return grown


def _entry_units(old: IndexEntry | None, new: IndexEntry | None) -> int:
    """Returns the write units of a changed entry: those of its larger size.

    An entry whose key changed is deleted and put again, and costs both.
    """
    if old and new and old.key != new.key:
        return write_units(old.size) + write_units(new.size)
    return write_units(max(_size(old), _size(new)))


def _grow_collection(
    write_batch: WriteBatch, table: Table, stored: StoredItem | None, grown: int
) -> int | None:
    if stored is None:
        return None
    key = table_layout.collection_key(table, stored.item)
    if not grown:
        return read_collection_size(write_batch, key)
    size = add_collection_size(write_batch, key, grown)
    if grown > 0 and size > ITEM_COLLECTION_BYTES_MAX:
        raise ItemCollectionSizeLimitExceededException("Collection size exceeded.")
    return size


def _write_expiry(
    write_batch: WriteBatch, table: Table, attribute: str, place: bytes, written: WriteEffect
) -> None:
    old = expires_at(attribute, written.old.item) if written.old else None
    new = expires_at(attribute, written.new.item) if written.new else None
    if old != new:
        if old is not None:
            write_batch.delete(table_layout.expiry_key(table, old, place))
        if new is not None:
            write_batch.put(table_layout.expiry_key(table, new, place), b"")


def _size(stored: StoredItem | IndexEntry | None) -> int:
    return stored.size if stored else 0


def _is_same(old: StoredItem | None, new: StoredItem | None) -> bool:
    """True when a write changes nothing, even if the members of a map come in another order."""
    if old is None or new is None:
        return old is new
    return old.body == new.body or (old.size == new.size and old.item == new.item)
