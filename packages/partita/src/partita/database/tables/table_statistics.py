"""Item counts and sizes of tables, indexes and item collections.

They are updated in the commit that changes an item, so they are always exact.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from partita.database.storage.engine import Reader
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout

_PAIR: Final = struct.Struct(">qq")
_SIZE: Final = struct.Struct(">q")
"""Signed: a draft that is decided on older counts can be below zero until it is applied."""


class TableStatistics(NamedTuple):
    """The number of items in a table or index, and their size."""

    item_count: int = 0
    size_bytes: int = 0


def read_statistics(reader: Reader, table_number: int, index_number: int = 0) -> TableStatistics:
    value = reader.get(table_layout.statistics_key(table_number, index_number))
    return TableStatistics(*_PAIR.unpack(value)) if value else TableStatistics()


def add_statistics(
    write_batch: WriteBatch, table_number: int, index_number: int, items: int, size_bytes: int
) -> None:
    if items or size_bytes:
        key = table_layout.statistics_key(table_number, index_number)
        value = write_batch.get(key)
        item_count, total_bytes = _PAIR.unpack(value) if value else (0, 0)
        write_batch.put(key, _PAIR.pack(item_count + items, total_bytes + size_bytes))


def statistics_value(items: int, size_bytes: int) -> bytes:
    return _PAIR.pack(items, size_bytes)


def statistics_delta(read: bytes | None, decided: bytes) -> tuple[int, int]:
    """Returns the items and bytes that a write added to the counts that it read."""
    items_read, bytes_read = _PAIR.unpack(read) if read else (0, 0)
    items_decided, bytes_decided = _PAIR.unpack(decided)
    return items_decided - items_read, bytes_decided - bytes_read


def moved_statistics(read: bytes | None, decided: bytes, latest: bytes | None) -> bytes:
    """Returns the latest counts plus what a write added to the older counts that it read."""
    items, size_bytes = _PAIR.unpack(latest) if latest else (0, 0)
    more_items, more_bytes = statistics_delta(read, decided)
    return _PAIR.pack(items + more_items, size_bytes + more_bytes)


def collection_size_in(value: bytes | None) -> int:
    return int.from_bytes(value, "big", signed=True) if value else 0


def collection_size_value(size_bytes: int) -> bytes | None:
    """Returns the stored size of a collection; None for an empty one, which is not stored."""
    return _SIZE.pack(size_bytes) if size_bytes else None


def read_collection_size(reader: Reader, collection_key: bytes) -> int:
    return collection_size_in(reader.get(collection_key))


def add_collection_size(write_batch: WriteBatch, collection_key: bytes, size_bytes: int) -> int:
    size = read_collection_size(write_batch, collection_key) + size_bytes
    value = collection_size_value(size)
    if value is None:
        write_batch.delete(collection_key)
    else:
        write_batch.put(collection_key, value)
    return size
