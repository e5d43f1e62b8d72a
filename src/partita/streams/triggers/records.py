"""The change log of a table as a trigger reads it: shards, and the records that match."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from partita.client.shards import Page
from partita.database.changes.log import Change, read_changes
from partita.database.changes.streams import Stream, read_stream, streams_of
from partita.database.database import Database
from partita.database.operations.context import ReadContext
from partita.database.operations.streams.records import lambda_record, sequence_number
from partita.database.operations.streams.streams import stream_arn
from partita.limits import STREAM_RECORDS_BYTES_MAX
from partita.settings import Trigger
from partita.streams.triggers.filters import Matches, compile_filters

logger = logging.getLogger(__name__)

PAGE_CHANGES_MAX = 200
"""How much is read at once: requests are answered in between."""

_decode = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True)
class Record:
    sequence: int
    created_at: float
    body: bytes

    @property
    def sequence_number(self) -> str:
        return sequence_number(self.sequence)


RecordPage = Page[int, Record]
"""Its position is the sequence of the next change."""


@dataclass(frozen=True, slots=True)
class LogShard:
    """A shard of one of a table's streams, of which there may be several after one another."""

    stream: Stream
    number: int
    name: str
    """The id that the API knows; streams that were opened at the same time may share it."""
    first: int
    last: int | None
    parents: tuple[str, ...]

    @property
    def shard_id(self) -> str:
        return _id_in(self.stream, self.name)


class ChangeLog:
    """Of a trigger's table: all streams that it has had lately, as if they were one."""

    def __init__(self, database: Database, trigger: Trigger) -> None:
        self._database = database
        self._trigger = trigger
        self._matches = compile_filters(trigger.filter_patterns)
        self._is_warned = False

    async def shards(self) -> list[LogShard]:
        streams = list(streams_of(self._database.reads.snapshot, self._trigger.table))
        if not streams and not self._is_warned:
            self._is_warned = True
            logger.warning(
                "The trigger %s waits for a stream of table %s.",
                self._trigger.name,
                self._trigger.table,
            )
        return list(shards_of(streams))

    async def read(self, shard: LogShard, position: int, limit: int) -> RecordPage | None:
        return read_page(self._database.reads, shard, position, self._matches, limit)


def shards_of(streams: Iterable[Stream]) -> Iterator[LogShard]:
    """The first shards of a stream are children of the last ones of the stream before, so that the
    changes of an item stay in order when the stream of its table is closed and another opened."""
    last_ids: tuple[str, ...] = ()
    for stream in streams:
        shards = stream.readable_shards
        names = {shard.shard_id for shard in shards}
        for shard in shards:
            parents = last_ids
            if shard.parent_id is not None and shard.parent_id in names:
                parents = (_id_in(stream, shard.parent_id),)
            yield LogShard(stream, shard.number, shard.shard_id, shard.first, shard.last, parents)
        with_children = {shard.parent_id for shard in shards}
        last_ids = tuple(_id_in(stream, name) for name in names - with_children) or last_ids


def _id_in(stream: Stream, name: str) -> str:
    return f"{stream.label}/{name}"


def event_of(records: Sequence[Record]) -> bytes:
    return b'{"Records":[%b]}' % b",".join(record.body for record in records)


def read_page(
    context: ReadContext, log_shard: LogShard, position: int, matches: Matches | None, limit: int
) -> RecordPage | None:
    """The next changes of a shard; None when the shard is no longer there."""
    opened = log_shard.stream
    stream = read_stream(context.snapshot, opened.table_name, opened.label)
    shards = stream.shards if stream else ()
    shard = next((shard for shard in shards if shard.number == log_shard.number), None)
    if stream is None or shard is None:
        return None
    if position <= shard.trimmed:
        logger.warning(
            "Changes of table %s were removed after a day, before a trigger saw them.",
            stream.table_name,
        )
        position = shard.trimmed + 1
    page: RecordPage = Page(position)
    read_bytes = 0
    arn = stream_arn(context.service, stream)
    changes = read_changes(context.snapshot, stream.number, shard.number, position)
    for count, change in enumerate(changes):
        if len(page.records) == limit or count == PAGE_CHANGES_MAX:
            return page
        record = _record(context, stream, change, arn)
        read_bytes += len(record.body)
        if count and read_bytes > STREAM_RECORDS_BYTES_MAX:
            return page
        if matches is None or matches(_decode(record.body)):
            page.records.append(record)
        page.position = change.sequence + 1
    if shard.last is not None:
        page.is_last = True
        page.position = shard.last + 1
    return page


def _record(context: ReadContext, stream: Stream, change: Change, arn: str) -> Record:
    body = lambda_record(stream, change, context.service.region, arn)
    return Record(change.sequence, change.created_at, body)
