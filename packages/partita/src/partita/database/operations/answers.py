"""Parts of responses that several operations share: capacity, item collections, joined items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from partita.database.capacity.units import Consumed
from partita.database.expressions.projection import Projection
from partita.database.tables.schema import Table
from partita.database.tables.stored import Stored
from partita.database.tables.write_path import Written
from partita.limits import GB

encode: Final = orjson.dumps


def member(name: str, value: Any) -> bytes:
    """One member of a JSON object whose value is still to be encoded."""
    return b'"%b":%b' % (name.encode(), encode(value))


def raw_member(name: str, json: bytes) -> bytes:
    """One member of a JSON object whose value is JSON already."""
    return b'"%b":%b' % (name.encode(), json)


def raw_list(items: Iterable[bytes]) -> bytes:
    return b"[%b]" % b",".join(items)


def answer(members: Sequence[bytes]) -> bytes:
    return b"{%b}" % b",".join(members)


def projected(stored: Stored, projection: Projection | None) -> bytes:
    """An item as JSON: its stored bytes, or what a projection keeps of it."""
    return encode(projection.project(stored.item)) if projection else stored.body


def consumed_by_write(table: Table, written: Iterable[Written], factor: int = 1) -> Consumed:
    """The units that writes to one table consume; `factor` is 2 in a transaction."""
    consumed = Consumed()
    for one in written:
        consumed.table += one.table_units * factor
        for name, units in one.index_units.items():
            index = table.index(name)
            assert index is not None
            consumed.add_index(name, units * factor, is_local=index.is_local)
    return consumed


def item_collections_metrics(table: Table, written: Iterable[Written]) -> list[dict[str, Any]]:
    """The item collections that writes to one table touched, each once, with their final sizes."""
    collections = {}
    for one in written:
        if metrics := item_collection_metrics(table, one):
            collections[encode(metrics["ItemCollectionKey"])] = metrics
    return list(collections.values())


def item_collection_metrics(table: Table, written: Written) -> dict[str, Any] | None:
    """Only tables with a local index have item collections to measure."""
    stored = written.new or written.old
    if written.collection_bytes is None or stored is None:
        return None
    name = table.partition.name
    size_gb = written.collection_bytes // GB
    return {
        "ItemCollectionKey": {name: stored.item[name]},
        "SizeEstimateRangeGB": [float(size_gb), float(size_gb + 1)],
    }
