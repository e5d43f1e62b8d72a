"""TTL expiry: deletes expired items, through the same write path as all other deletions.

The write path keeps an index of expiries while a table has a TTL attribute. After TTL was enabled,
the items that existed before are added to it.
"""

from __future__ import annotations

from itertools import islice

from msgspec.structs import replace

from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.expiry_time import expires_at
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import StoredItem
from partita.database.tables.write_path import write_item
from partita.database.upkeep.table_walk import TableWalk
from partita.foundation.service_limits import EXPIRED_SECONDS_MAX


def expire_items(
    write_batch: WriteBatch, catalog: TableCatalog, snapshot: Snapshot, now: float, keys_max: int
) -> bool:
    """Delete some expired items of the first table that has any; True if there were any.

    Like the service, this ignores items that expired more than five years ago.
    """
    for table in catalog:
        if table.ttl_attribute is None or not table.ttl_is_indexed:
            continue
        start = table_layout.expiry_key(table, max(0, int(now) - EXPIRED_SECONDS_MAX), b"")
        stop = table_layout.expiry_key(table, int(now), b"")
        expired = [key for key, _ in islice(snapshot.range(start, stop), keys_max)]
        if sum(_expire(write_batch, table, table.ttl_attribute, key) for key in expired):
            return True
    return False


def _expire(write_batch: WriteBatch, table: Table, attribute: str, expiry_key: bytes) -> bool:
    """Delete one item, unless it was changed in the meantime or a transaction holds it."""
    place = table_layout.expiry_place(expiry_key)
    key = table_layout.item_key_at(table, place)
    if write_batch.get(expiry_key) is None or write_batch.is_held(key):
        return False
    stored = load(write_batch, key)
    when = expires_at(attribute, stored.item) if stored else None
    if when is not None and table_layout.expiry_key(table, when, place) == expiry_key:
        write_item(write_batch, table, key, stored, None, expired=True)
    else:
        write_batch.delete(expiry_key)
    return True


def index_expiries(write_batch: WriteBatch, catalog: TableCatalog, walk: TableWalk) -> bool:
    """Add existing items of the first table that needs it to its expiry index.

    True if there was such a table.
    """
    for table in catalog:
        if table.ttl_attribute is not None and not table.ttl_is_indexed:
            committed = catalog.committed(table)
            if committed and committed.ttl_changes == table.ttl_changes:
                _add_expiries(write_batch, catalog, walk, table, table.ttl_attribute)
            return True
    return False


def _add_expiries(
    write_batch: WriteBatch, catalog: TableCatalog, walk: TableWalk, table: Table, attribute: str
) -> None:
    def add_expiry(key: bytes, stored: StoredItem) -> None:
        when = expires_at(attribute, stored.item)
        if when is not None:
            place = table_layout.place_of(key)
            write_batch.put(table_layout.expiry_key(table, when, place), b"")

    if walk.has_visited_all(write_batch, table, f"expiries {table.ttl_changes}", add_expiry):
        catalog.save(write_batch, replace(table, ttl_is_indexed=True))
