"""The background job of Kinesis destinations: delivers captured changes to their streams."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import takewhile

from msgspec.structs import replace

from partita.database.changes import layout
from partita.database.changes.captures import (
    SHARD,
    Destination,
    captured_record,
    close_capture,
    partition_key,
)
from partita.database.changes.log import Change, read_changes
from partita.database.events.log import NewRecord, append_records
from partita.database.events.streams import CREATING, DELETING, EventStreams
from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.catalog import Catalog
from partita.database.tables.schema import Table
from partita.limits import MB, STREAM_RETENTION_SECONDS

PIECE_CHANGES = 200
PIECE_BYTES = 4 * MB
"""A destination gets at most this much at a time, but at least one change."""


class DestinationJobs:
    def __init__(
        self, catalog: Catalog, streams: EventStreams, snapshot: Snapshot, region: str
    ) -> None:
        self._catalog = catalog
        self._streams = streams
        self._snapshot = snapshot
        self._region = region

    def work(self, write_batch: WriteBatch) -> bool:
        """Deliver the next changes of every destination; True if there were any.

        All destinations get their turn in each piece, so that none waits for a busy one.
        """
        moved = [
            self._forward(write_batch, table, destination)
            or self._finish(write_batch, table, destination)
            for table in self._catalog
            for destination in table.destinations
            if not destination.is_over
        ]
        return any(moved)

    def _forward(self, write_batch: WriteBatch, table: Table, destination: Destination) -> bool:
        changes = self._next_changes(destination)
        if not changes:
            return False
        stream = self._streams.find(destination.stream_name)
        if stream is None or stream.status(write_batch.now()) in (CREATING, DELETING):
            # The stream may be created again. Until then, changes are kept as long as the service
            # keeps them; older ones are dropped.
            horizon = write_batch.now() - STREAM_RETENTION_SECONDS
            changes = list(takewhile(lambda change: change.created_at < horizon, changes))
        else:
            append_records(write_batch, stream, self._records(table, destination, changes))
        for change in changes:
            write_batch.delete(layout.change_key(destination.log, SHARD, change.sequence))
        return bool(changes)

    def _next_changes(self, destination: Destination) -> list[Change]:
        changes: list[Change] = []
        size = 0
        for change in read_changes(self._snapshot, destination.log, SHARD, 0):
            size += change.image_bytes
            if len(changes) == PIECE_CHANGES or (changes and size > PIECE_BYTES):
                break
            changes.append(change)
        return changes

    def _finish(self, write_batch: WriteBatch, table: Table, destination: Destination) -> bool:
        """Close the log of a disabled destination that has received everything."""
        committed = self._catalog.committed(table)
        # Once the disabling is on disk, all changes before it are on disk too.
        if committed is None or destination not in committed.destinations:
            return False
        if not destination.is_disabled or self._next_changes(destination):
            return False
        close_capture(write_batch, destination.log)
        over = replace(destination, is_over=True)
        self._catalog.save(write_batch, table.with_destination(over))
        return True

    def _records(
        self, table: Table, destination: Destination, changes: list[Change]
    ) -> Iterator[NewRecord]:
        for change in changes:
            content = captured_record(table.name, self._region, destination, change)
            yield NewRecord(partition_key(change), b64encode(content).decode())
