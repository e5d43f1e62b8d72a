"""Loading items into a table that nobody reads yet: the write path of restores and imports.

Values are stored as another table or an import produced them, so a table without indexes is loaded
without decoding an item. Index entries, counts and collection sizes are computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.storage.engine import Reader
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.index_entries import entry_of
from partita.database.tables.stored_item import unpack, unpack_sizes
from partita.database.tables.table_statistics import (
    collection_size_value,
    read_collection_size,
    read_statistics,
    statistics_value,
)

Pair = tuple[bytes, bytes]
ITEMS: Final = 0
"""The index number under which the counts of the table itself are stored."""


class BulkLoad:
    """A table that is being loaded, with its counts so far.

    The caller passes every item once, in the order of storage keys.
    """

    def __init__(self, reader: Reader, table: Table, *, is_resumed: bool) -> None:
        self._reader = reader
        self._table = table
        self._counts: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        for number in (ITEMS, *(index.number for index in table.indexes)):
            figures = read_statistics(reader, table.number, number) if is_resumed else (0, 0)
            self._counts[number], self._sizes[number] = figures
        self._collection = b""
        """The storage key of the item collection that the last item belongs to."""
        self._collection_bytes = 0
        """The size of that collection so far."""
        self._is_resumed = is_resumed

    def pairs(self, items: Sequence[Pair]) -> list[Pair]:
        """Returns the keys and values to store for the next items and their index entries."""
        prefix = table_layout.items_prefix(self._table.number)
        made = [(prefix + place, value) for place, value in items]
        return made + self.entries(items)

    def entries(self, items: Sequence[Pair]) -> list[Pair]:
        """Returns the keys and values of index entries, for items that are stored already."""
        self._counts[ITEMS] += len(items)
        self._sizes[ITEMS] += sum(unpack_sizes(value)[0] for _, value in items)
        return self._entries(items) if self._table.indexes else []

    def figures(self) -> list[Pair]:
        """Returns the keys and values of the counts of the table and its indexes so far."""
        return [
            (
                table_layout.statistics_key(self._table.number, number),
                statistics_value(self._counts[number], self._sizes[number]),
            )
            for number in self._counts
            if self._counts[number]
        ]

    def _entries(self, items: Sequence[Pair]) -> list[Pair]:
        table = self._table
        made: list[Pair] = []
        collections: dict[bytes, bytes] = {}
        for place, value in items:
            stored = unpack(value)
            collection_bytes = stored.size
            for index in table.indexes:
                entry = entry_of(table, index, stored, place)
                if entry is None:
                    continue
                made.append((entry.key, entry.value))
                self._counts[index.number] += 1
                self._sizes[index.number] += entry.size
                if index.is_local:
                    collection_bytes += entry.size
            if table.local_indexes:
                key = table_layout.collection_key(table, stored.item)
                size = collection_size_value(self._collection_size(key, collection_bytes))
                if size is not None:
                    collections[key] = size
        made.extend(collections.items())
        made.sort()
        return made

    def _collection_size(self, key: bytes, more: int) -> int:
        if key != self._collection:
            self._collection = key
            stored_size = read_collection_size(self._reader, key) if self._is_resumed else 0
            self._collection_bytes = stored_size
        self._collection_bytes += more
        return self._collection_bytes
