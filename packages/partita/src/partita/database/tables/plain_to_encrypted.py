"""Turns the data of a plain folder into the storage keys of an encrypted one.

Each table gets a secret, and a keyed hash replaces its partition keys in items, index entries,
expiries and item collections. The shards of a stream divide the hashes of partition keys, which
change here, so each open stream is closed as if it had been disabled, and a new one is opened.
Everything else is copied unchanged, except for data that background jobs would remove and for the
records of backups, which belong to the old folder's archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from partita.database.item.key_encoding import keyed_partition
from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.logs.change_log.change_streams import all_streams, close_stream, open_stream
from partita.database.logs.event_log import event_log_layout as event_layout
from partita.database.logs.event_log.event_streams import EventStreams
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.write_batch import LatestState, WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import TableCatalog, next_table_number
from partita.database.tables.definition.table_schema import CREATING, DELETING, Table
from partita.database.tables.index_entries import entry_of
from partita.database.tables.stored_item import unpack
from partita.errors import StorageError
from partita.foundation.clock import Clock

Pair = tuple[bytes, bytes]

UNCHANGED: Final = (
    *(table_layout.NUMBERS_KEY, table_layout.TOKENS, table_layout.TOKEN_TIMES),
    *(change_layout.STREAMS, event_layout.STREAMS),
)
OF_STREAMS: Final = (
    *(change_layout.SEQUENCES, change_layout.CHECKPOINTS, change_layout.CHANGES),
    *(event_layout.TAILS, event_layout.RECORDS),
)
"""Spaces in whose keys the number of a stream comes next."""
_NUMBER_BYTES: Final = 4


def check_rekeying(snapshot: Snapshot) -> None:
    """Refuse a folder with work in progress that depends on the old storage keys."""
    for table in TableCatalog(snapshot):
        for index in table.indexes:
            if index.status == CREATING:
                raise StorageError(
                    f"The index {index.name} of table {table.name} is being backfilled: start the "
                    "server, and stop it when the index is ACTIVE."
                )
        if table.capture is not None:
            raise StorageError(
                f"Changes of table {table.name} go to a Kinesis stream: disable that with "
                "DisableKinesisStreamingDestination, and enable it again afterwards."
            )


class _Ended(LatestState):
    """The state of a folder that no server writes to."""

    def __init__(self, snapshot: Snapshot, clock: Clock) -> None:
        super().__init__(clock)
        self._snapshot = snapshot

    def get(self, key: bytes) -> bytes | None:
        return self._snapshot.get(key)

    def is_held(self, key: bytes) -> bool:
        return False


def rekeyed(snapshot: Snapshot, new_secret: Callable[[], bytes], clock: Clock) -> Iterator[Pair]:
    changes = WriteBatch(_Ended(snapshot, clock))
    for space in UNCHANGED:
        yield from snapshot.range(space, prefix_end(space))
    numbers = [stream.number for stream in all_streams(snapshot)]
    numbers += [stream.number for stream in EventStreams(snapshot)]
    for space in OF_STREAMS:
        for number in numbers:
            prefix = space + number.to_bytes(_NUMBER_BYTES, "big")
            yield from snapshot.range(prefix, prefix_end(prefix))
    for table in TableCatalog(snapshot):
        # Point-in-time recovery ends: a table's past is in the archive of the old folder.
        secret = msgspec.structs.replace(
            _with_new_stream(changes, table),
            key_secret=new_secret(),
            recovery=None,
            destinations=(),
        )
        yield table_layout.catalog_key(table.name), msgspec.json.encode(secret)
        for index_number in (0, *(index.number for index in table.indexes)):
            key = table_layout.statistics_key(table.number, index_number)
            counts = snapshot.get(key)
            if counts is not None:
                yield key, counts
        yield from _items(snapshot, table, secret)
        yield from _collections(snapshot, table, secret)
        yield from _expiries(snapshot, table, secret)
    for key, value in changes.changes.items():
        assert value is not None
        yield key, value


def _with_new_stream(changes: WriteBatch, table: Table) -> Table:
    if table.stream is None or table.stream_view_type is None:
        return table
    close_stream(changes, table.name, table.stream)
    stream = open_stream(
        changes,
        next_table_number(changes),
        table.name,
        table.stream_view_type,
        table.key_names,
        changes.now(),
        is_from_the_start=False,
        partitions=len(table.stream.shards),
    )
    return msgspec.structs.replace(table, stream=stream, stream_label=stream.label)


def _items(snapshot: Snapshot, table: Table, secret: Table) -> Iterator[Pair]:
    """Yields items and their index entries."""
    prefix = table_layout.items_prefix(table.number)
    for _, value in snapshot.range(prefix, prefix_end(prefix)):
        stored = unpack(value)
        key = table_layout.item_key(secret, stored.item)
        yield key, value
        for index in secret.indexes:
            if index.status == DELETING:
                continue
            entry = entry_of(secret, index, stored, table_layout.place_of(key))
            if entry is not None:
                yield entry.key, entry.value


def _collections(snapshot: Snapshot, table: Table, secret: Table) -> Iterator[Pair]:
    prefix = table_layout.collections_prefix(table.number)
    for key, value in snapshot.range(prefix, prefix_end(prefix)):
        yield prefix + keyed_partition(secret.key_secret, (key[len(prefix) :],)), value


def _expiries(snapshot: Snapshot, table: Table, secret: Table) -> Iterator[Pair]:
    prefix = table_layout.expiries_prefix(table)
    for key, value in snapshot.range(prefix, prefix_end(prefix)):
        place = table_layout.expiry_place(key)
        item = snapshot.get(table_layout.item_key_at(table, place))
        if item is not None:
            new_place = table_layout.place_of(table_layout.item_key(secret, unpack(item).item))
            yield key[: -len(place)] + new_place, value
