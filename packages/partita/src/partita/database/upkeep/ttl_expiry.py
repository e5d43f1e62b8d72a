"""Time to live: deletes expired items, through the same write path as all other deletions."""

from __future__ import annotations

from itertools import islice

from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.expiry_time import expires_at
from partita.database.tables.read_path import load
from partita.database.tables.write_path import write_item
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
