"""The background job of Kinesis destinations: delivers captured changes to their streams."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import takewhile

from msgspec.structs import replace

from partita.database.logs.change_log import change_log_layout
from partita.database.logs.change_log.change_records import ChangeRecord, read_changes
from partita.database.logs.change_log.kinesis_captures import (
    SHARD,
    KinesisDestination,
    captured_record,
    close_capture,
    partition_key,
)
from partita.database.logs.event_log.event_records import NewRecord, append_records
from partita.database.logs.event_log.event_streams import CREATING, DELETING, EventStreams
from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.database.tables.definition.table_schema import Table
from partita.foundation.service_limits import MB, STREAM_RETENTION_SECONDS

PIECE_CHANGES = 200
PIECE_BYTES = 4 * MB
"""A destination gets at most this much at a time, but at least one change."""


class KinesisDelivery:
    """Moves changes from the captures of tables to the event streams of their destinations."""

    def __init__(
        self, catalog: TableCatalog, streams: EventStreams, snapshot: Snapshot, region: str
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

    def _forward(
        self, write_batch: WriteBatch, table: Table, destination: KinesisDestination
    ) -> bool:
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
            write_batch.delete(
                change_log_layout.change_key(destination.log, SHARD, change.sequence)
            )
        return bool(changes)

    def _next_changes(self, destination: KinesisDestination) -> list[ChangeRecord]:
        changes: list[ChangeRecord] = []
        size = 0
        for change in read_changes(self._snapshot, destination.log, SHARD, 0):
            size += change.image_bytes
            if len(changes) == PIECE_CHANGES or (changes and size > PIECE_BYTES):
                break
            changes.append(change)
        return changes

    def _finish(
        self, write_batch: WriteBatch, table: Table, destination: KinesisDestination
    ) -> bool:
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
        self, table: Table, destination: KinesisDestination, changes: list[ChangeRecord]
    ) -> Iterator[NewRecord]:
        for change in changes:
            content = captured_record(table.name, self._region, destination, change)
            yield NewRecord(partition_key(change), b64encode(content).decode())
