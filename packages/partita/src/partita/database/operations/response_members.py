"""Members of responses that several operations have: capacity, item collections, items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from partita.database.capacity.capacity_units import ConsumedCapacity
from partita.database.expressions.projection import Projection
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.stored_item import StoredItem
from partita.database.tables.write_path import WriteEffect
from partita.foundation.service_limits import GB

encode: Final = orjson.dumps


def member(name: str, value: Any) -> bytes:
    """A member of a JSON object; the value is encoded."""
    return b'"%b":%b' % (name.encode(), encode(value))


def raw_member(name: str, json: bytes) -> bytes:
    """A member of a JSON object whose value is JSON already."""
    return b'"%b":%b' % (name.encode(), json)


def raw_list(items: Iterable[bytes]) -> bytes:
    return b"[%b]" % b",".join(items)


def answer(members: Sequence[bytes]) -> bytes:
    return b"{%b}" % b",".join(members)


def projected(stored: StoredItem, projection: Projection | None) -> bytes:
    """An item as JSON: its stored bytes, or the attributes in a projection."""
    return encode(projection.project(stored.item)) if projection else stored.body


def consumed_by_write(
    table: Table, written: Iterable[WriteEffect], factor: int = 1
) -> ConsumedCapacity:
    """Write units that writes to one table consume; `factor` is 2 in a transaction."""
    consumed = ConsumedCapacity()
    for write in written:
        consumed.table += write.table_units * factor
        for name, units in write.index_units.items():
            index = table.index(name)
            assert index is not None
            consumed.add_index(name, units * factor, is_local=index.is_local)
    return consumed


def item_collections_metrics(table: Table, written: Iterable[WriteEffect]) -> list[dict[str, Any]]:
    """The ItemCollectionMetrics of writes to one table: each collection once, with its new size."""
    collections = {}
    for write in written:
        if metrics := item_collection_metrics(table, write):
            collections[encode(metrics["ItemCollectionKey"])] = metrics
    return list(collections.values())


def item_collection_metrics(table: Table, written: WriteEffect) -> dict[str, Any] | None:
    """The ItemCollectionMetrics of one write; None in tables without a local index."""
    stored = written.new or written.old
    if written.collection_bytes is None or stored is None:
        return None
    name = table.partition.name
    size_gb = written.collection_bytes // GB
    return {
        "ItemCollectionKey": {name: stored.item[name]},
        "SizeEstimateRangeGB": [float(size_gb), float(size_gb + 1)],
    }
