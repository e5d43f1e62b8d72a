"""The records of a shard as a trigger sees them, and how far it has come: all in the database."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from partita.database.changes import layout
from partita.database.changes.log import Change, read_changes
from partita.database.changes.streams import Shard, Stream, last_sequence, read_stream, streams_of
from partita.database.operations.context import ReadContext, WriteContext
from partita.database.operations.streams.records import lambda_record, sequence_number
from partita.database.operations.streams.streams import stream_arn
from partita.limits import STREAM_RECORDS_BYTES_MAX
from partita.settings import Trigger
from partita.streams.triggers.filters import Matches

logger = logging.getLogger(__name__)

PAGE_CHANGES_MAX = 200
"""How much is read at once: requests are answered in between."""
START = 0
"""The shard under whose number a trigger notes where it began."""

_decode = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True)
class Record:
    sequence: int
    created_at: float
    body: bytes

    @property
    def sequence_number(self) -> str:
        return sequence_number(self.sequence)


@dataclass(slots=True)
class Page:
    """What was read of a shard: the records that match, and where to go on."""

    position: int
    records: list[Record] = field(default_factory=list)
    is_last: bool = False
    """Whether nothing will ever follow."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stream as a trigger finds it."""

    stream: Stream
    start: int | None
    """None before the trigger has begun with it."""
    positions: dict[int, int]

    def position(self, shard: Shard) -> int:
        return self.positions.get(shard.number, max(shard.first, self.start or 0))

    def is_finished(self, shard: Shard) -> bool:
        return shard.last is not None and self.position(shard) > shard.last

    @property
    def is_over(self) -> bool:
        return self.stream.closed_at is not None and all(map(self.is_finished, self.shards))

    @property
    def shards(self) -> list[Shard]:
        return self.stream.readable_shards


def event_of(records: Sequence[Record]) -> bytes:
    return b'{"Records":[%b]}' % b",".join(record.body for record in records)


def find_sources(context: ReadContext, trigger: Trigger) -> list[Source]:
    """The streams of a trigger's table, the oldest first."""
    return [_source(context, trigger, one) for one in streams_of(context.snapshot, trigger.table)]


def _source(context: ReadContext, trigger: Trigger, stream: Stream) -> Source:
    positions = {}
    for number in (START, *(shard.number for shard in stream.shards)):
        key = layout.checkpoint_key(stream.number, number, trigger.name)
        value = context.snapshot.get(key)
        if value is not None:
            positions[number] = int.from_bytes(value, "big")
    return Source(stream, positions.pop(START, None), positions)


def starting_position(context: ReadContext, trigger: Trigger, stream: Stream, since: float) -> int:
    """Where a trigger, there since a time, begins with a stream that it sees for the first time."""
    if trigger.starting_position == "TRIM_HORIZON" or stream.created_at >= since:
        return 0
    return last_sequence(context.snapshot, stream.number) + 1


def read_page(
    context: ReadContext,
    source: Source,
    shard_number: int,
    position: int,
    matches: Matches | None,
    limit: int,
) -> Page | None:
    """The next changes of a shard; None when the shard is no longer there."""
    label = source.stream.label
    stream = read_stream(context.snapshot, source.stream.table_name, label)
    shards = stream.shards if stream else ()
    shard = next((shard for shard in shards if shard.number == shard_number), None)
    if stream is None or shard is None:
        return None
    if position <= shard.trimmed:
        logger.warning(
            "Changes of table %s were removed after a day, before a trigger saw them.",
            stream.table_name,
        )
        position = shard.trimmed + 1
    page = Page(position)
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


def save_position(
    context: WriteContext, trigger_name: str, stream: Stream, shard_number: int, position: int
) -> bytes:
    """Note how far a trigger has come; nothing, when what it read is gone meanwhile."""
    now = read_stream(context.write_batch, stream.table_name, stream.label)
    shards = now.readable_shards if now else []
    if shards and shard_number in (START, *(shard.number for shard in shards)):
        key = layout.checkpoint_key(stream.number, shard_number, trigger_name)
        context.write_batch.put(key, layout.pack_sequence(position))
    return b""
