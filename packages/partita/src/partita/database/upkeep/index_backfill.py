"""Index backfill: gives the items of a table their entries in a new index; removes old indexes.

A backfill starts when the creation of the index is committed: by then the snapshot has every item
that was decided before, and the write path adds the entries of all later ones.
"""

from __future__ import annotations

from msgspec.structs import replace

from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import ACTIVE, CREATING, DELETING, Index, Table
from partita.database.tables.index_entries import entry_of
from partita.database.tables.stored_item import StoredItem
from partita.database.tables.write_path import replace_entry
from partita.database.upkeep.table_walk import TableWalk


def change_indexes(
    write_batch: WriteBatch, catalog: TableCatalog, walk: TableWalk, now: float
) -> bool:
    """Do one piece of the first index that is created or deleted; True if there was one."""
    for table in catalog:
        if table.status(now) != ACTIVE:
            continue
        for index in table.indexes:
            if index.status == CREATING:
                committed = catalog.committed(table)
                if committed and committed.index(index.name) == index:
                    _backfill(write_batch, catalog, walk, table, index)
                return True
            if index.status == DELETING:
                _drop(write_batch, catalog, table, index)
                return True
    return False


def _backfill(
    write_batch: WriteBatch, catalog: TableCatalog, walk: TableWalk, table: Table, index: Index
) -> None:
    """Add the entries of the table's next items.

    The index becomes ACTIVE one piece after the last: by then all of its entries are committed.
    """

    def add_entry(key: bytes, stored: StoredItem) -> None:
        entry = entry_of(table, index, stored, table_layout.place_of(key))
        if entry and write_batch.get(entry.key) is None:
            replace_entry(write_batch, table, index, None, entry)

    if walk.has_visited_all(write_batch, table, f"index {index.number}", add_entry):
        catalog.save(write_batch, table.with_index(replace(index, status=ACTIVE)))


def _drop(write_batch: WriteBatch, catalog: TableCatalog, table: Table, index: Index) -> None:
    """Remove an index from the table; its entries are removed later, as leftovers."""
    for prefix in table_layout.index_prefixes(table.number, index.number):
        write_batch.put(table_layout.leftover_key(prefix), b"")
    others = tuple(other for other in table.indexes if other.number != index.number)
    used = {name for other in others for name, _ in other.key_attributes}
    used.update(table.key_names)
    types = {name: kind for name, kind in table.attribute_types.items() if name in used}
    catalog.save(write_batch, replace(table, indexes=others, attribute_types=types))
