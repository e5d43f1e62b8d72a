"""Loading items into a table that nobody reads yet: the write path of a restore.

Values are put as another table stored them, under the same key schema, so nothing is decoded where
there are no indexes. Figures are counted once for each load.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import layout
from partita.database.tables.indexes import entry_of
from partita.database.tables.schema import Table
from partita.database.tables.statistics import add_collection_size, add_statistics
from partita.database.tables.stored import unpack, unpack_sizes


def load_items(write_batch: WriteBatch, table: Table, items: Sequence[tuple[bytes, bytes]]) -> None:
    """Add items that the table does not have: their places, and their stored values."""
    prefix = layout.items_prefix(table.number)
    total_bytes = 0
    for place, value in items:
        write_batch.put(prefix + place, value)
        total_bytes += unpack_sizes(value)[0]
    add_statistics(write_batch, table.number, 0, len(items), total_bytes)
    if table.indexes:
        _load_entries(write_batch, table, items)


def _load_entries(
    write_batch: WriteBatch, table: Table, items: Sequence[tuple[bytes, bytes]]
) -> None:
    counts = dict.fromkeys((index.number for index in table.indexes), 0)
    sizes = dict(counts)
    for place, value in items:
        stored = unpack(value)
        collection_bytes = stored.size
        for index in table.indexes:
            entry = entry_of(table, index, stored, place)
            if entry is None:
                continue
            write_batch.put(entry.key, entry.value)
            counts[index.number] += 1
            sizes[index.number] += entry.size
            if index.is_local:
                collection_bytes += entry.size
        if table.local_indexes:
            key = layout.collection_key(table, stored.item)
            add_collection_size(write_batch, key, collection_bytes)
    for number, count in counts.items():
        add_statistics(write_batch, table.number, number, count, sizes[number])
