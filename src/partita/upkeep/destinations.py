"""The background job of Kinesis destinations: captured changes become records of their streams."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import takewhile

from msgspec.structs import replace

from partita.changes import layout
from partita.changes.captures import (
    SHARD,
    Destination,
    captured_record,
    close_capture,
    forget_position,
    is_wanted,
    partition_key,
    read_position,
    save_position,
)
from partita.changes.log import Change, read_changes
from partita.events.log import NewRecord, append_records
from partita.events.streams import CREATING, DELETING, EventStreams
from partita.limits import MB, STREAM_RETENTION_SECONDS
from partita.storage.commits import Draft
from partita.storage.engine import Snapshot
from partita.tables.catalog import Catalog
from partita.tables.schema import Table

PIECE_CHANGES = 200
PIECE_BYTES = 4 * MB
"""A destination gets so much at a time, and one change at least."""


class DestinationJobs:
    def __init__(
        self, catalog: Catalog, streams: EventStreams, snapshot: Snapshot, region: str
    ) -> None:
        self._catalog = catalog
        self._streams = streams
        self._snapshot = snapshot
        self._region = region

    def work(self, draft: Draft) -> bool:
        return self._finish_disabled(draft) or self._forward_changes(draft)

    def _finish_disabled(self, draft: Draft) -> bool:
        """Be done with one that is disabled and has got everything."""
        for table, destination in self._destinations():
            if destination.last is not None:
                if read_position(draft, destination) > destination.last:
                    self._finish(draft, table, destination)
                    return True
        return False

    def _forward_changes(self, draft: Draft) -> bool:
        """Bring each destination its next changes, so that none waits for another's."""
        moved = [
            self._forward(draft, table, destination) for table, destination in self._destinations()
        ]
        return any(moved)

    def _destinations(self) -> Iterator[tuple[Table, Destination]]:
        for table in self._catalog:
            for destination in table.destinations:
                if not destination.is_over:
                    yield table, destination

    def _forward(self, draft: Draft, table: Table, destination: Destination) -> bool:
        changes = self._next_changes(destination, read_position(draft, destination))
        if not changes:
            return False
        stream = self._streams.find(destination.stream_name)
        if stream is None or stream.status(draft.now()) in (CREATING, DELETING):
            # It may come back; until then changes wait, for as long as the service keeps them.
            horizon = draft.now() - STREAM_RETENTION_SECONDS
            changes = list(takewhile(lambda change: change.created_at < horizon, changes))
        else:
            append_records(draft, stream, self._records(table, destination, changes))
        if not changes:
            return False
        save_position(draft, destination, changes[-1].sequence + 1)
        waiting = _waiting(table, destination.log)
        for change in changes:
            if not any(is_wanted(draft, one, change.sequence) for one in waiting):
                draft.delete(layout.change_key(destination.log, SHARD, change.sequence))
        return True

    def _next_changes(self, destination: Destination, position: int) -> list[Change]:
        found: list[Change] = []
        size = 0
        for change in read_changes(self._snapshot, destination.log, SHARD, position):
            size += change.image_bytes
            is_beyond = destination.last is not None and change.sequence > destination.last
            if is_beyond or len(found) == PIECE_CHANGES or (found and size > PIECE_BYTES):
                break
            found.append(change)
        return found

    def _records(
        self, table: Table, destination: Destination, changes: list[Change]
    ) -> Iterator[NewRecord]:
        for change in changes:
            content = captured_record(table.name, self._region, destination, change)
            yield NewRecord(partition_key(change), b64encode(content).decode())

    def _finish(self, draft: Draft, table: Table, destination: Destination) -> None:
        table = table.with_destination(replace(destination, is_over=True))
        forget_position(draft, destination)
        is_open = table.capture is not None and table.capture.number == destination.log
        if not is_open and not _waiting(table, destination.log):
            close_capture(draft, destination.log)
        self._catalog.save(draft, table)


def _waiting(table: Table, log: int) -> list[Destination]:
    return [one for one in table.destinations if one.log == log and not one.is_over]
