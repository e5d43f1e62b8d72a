"""Event records: appended in one write batch, and read as the bytes that were stored.

The records that one request puts into a shard are stored in batches of limited size, as the JSON
of the wire protocol. Within a shard they are numbered without gaps, and their times never go back.
A page of records joins stored bytes and decodes nothing.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import md5
from math import floor
from typing import NamedTuple

import orjson

from partita.database.logs.event_log import event_log_layout
from partita.database.logs.event_log.event_streams import EventStream
from partita.database.logs.event_log.sequence_numbers import STEP, sequence_number
from partita.database.logs.event_log.shard_splits import HASH_KEY_BYTES, EventShard
from partita.database.storage.engine import Reader, Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.foundation.service_limits import KB

BATCH_BYTES_MAX = 64 * KB
"""Larger batches are divided, so that reading a few records does not mean reading many."""

_TAIL = struct.Struct(">Qd")
_HEADER = struct.Struct(">dI")
_OFFSET_BYTES = 4

_RECORD = b'{"SequenceNumber":"%b","ApproximateArrivalTimestamp":%b,"Data":"%b","PartitionKey":%b}'


class NewRecord(NamedTuple):
    """A record to append."""

    partition_key: str
    data: str
    """The data in base64."""
    explicit_hash_key: str | None = None


Receipt = tuple[bytes, bytes]
"""The sequence number of a new record, and the id of its shard."""


class ShardTail(NamedTuple):
    """The end of a shard."""

    last: int
    """The sequence number of the last record; 0 before the first."""
    arrived_at: float


def read_tail(reader: Reader, stream: EventStream, shard: EventShard) -> ShardTail:
    value = reader.get(event_log_layout.tail_key(stream.number, shard.number))
    return ShardTail(0, 0.0) if value is None else ShardTail(*_TAIL.unpack(value))


# Appending


class _ShardAppend:
    """The records that one request appends to a shard."""

    __slots__ = (
        *("arrived_at", "bodies", "last", "number", "shard", "shard_id", "size", "stream"),
        "time",
    )

    def __init__(self, write_batch: WriteBatch, stream: EventStream, shard: EventShard) -> None:
        tail = read_tail(write_batch, stream, shard)
        self.stream = stream
        self.shard = shard
        self.shard_id = shard.shard_id.encode()
        self.last = tail.last
        # Whole milliseconds, as responses show them: a reader who asks for AT_TIMESTAMP with the
        # time of a record must find that record.
        self.arrived_at = max(floor(write_batch.now() * 1000) / 1000, tail.arrived_at)
        self.number = sequence_number(shard, tail.last, self.arrived_at)
        self.time = b"%.3f" % self.arrived_at
        self.bodies: list[bytes] = []
        self.size = 0

    def add(self, write_batch: WriteBatch, record: NewRecord) -> Receipt:
        self.number += STEP
        number = b"%d" % self.number
        key = orjson.dumps(record.partition_key)
        body = _RECORD % (number, self.time, record.data.encode(), key)
        if self.bodies and self.size + len(body) > BATCH_BYTES_MAX:
            self.put_batch(write_batch)
        self.bodies.append(body)
        self.size += len(body) + 1
        return number, self.shard_id

    def put_batch(self, write_batch: WriteBatch) -> None:
        count = len(self.bodies)
        ends, end = [], -1
        for body in self.bodies:
            end += len(body) + 1
            ends.append(end)
        header = _HEADER.pack(self.arrived_at, count)
        offsets = struct.pack(f">{count}I", *ends)
        key = event_log_layout.batch_key(self.stream.number, self.shard.number, self.last + 1)
        write_batch.put(key, b"".join((header, offsets, b",".join(self.bodies))))
        self.last += count
        self.bodies, self.size = [], 0

    def finish(self, write_batch: WriteBatch) -> None:
        self.put_batch(write_batch)
        key = event_log_layout.tail_key(self.stream.number, self.shard.number)
        write_batch.put(key, _TAIL.pack(self.last, self.arrived_at))


def append_records(
    write_batch: WriteBatch, stream: EventStream, records: Iterable[NewRecord]
) -> list[Receipt]:
    """Append records to their shards, in their order."""
    shards, first_hashes = stream.open_shards, stream.first_hashes
    appends: dict[int, _ShardAppend] = {}
    receipts = []
    for record in records:
        place = bisect_right(first_hashes, hash_of(record)) - 1
        append = appends.get(place)
        if append is None:
            append = appends[place] = _ShardAppend(write_batch, stream, shards[place])
        receipts.append(append.add(write_batch, record))
    for append in appends.values():
        append.finish(write_batch)
    return receipts


def shard_for(stream: EventStream, record: NewRecord) -> EventShard:
    """Returns the open shard that a record belongs to."""
    return stream.open_shards[bisect_right(stream.first_hashes, hash_of(record)) - 1]


def hash_of(record: NewRecord) -> bytes:
    """Returns the hash key that decides a record's shard: explicit, or MD5 of the partition key."""
    if record.explicit_hash_key is not None:
        return int(record.explicit_hash_key).to_bytes(HASH_KEY_BYTES, "big")
    return md5(record.partition_key.encode(), usedforsecurity=False).digest()


# Reading


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A stored batch: `first` is the sequence number of its first record."""

    first: int
    count: int
    arrived_at: float
    value: bytes

    @property
    def bodies_start(self) -> int:
        return _HEADER.size + _OFFSET_BYTES * self.count

    def end(self, position: int) -> int:
        """Returns where the record at a position ends, as an offset from the first record."""
        at = _HEADER.size + _OFFSET_BYTES * position
        return int.from_bytes(self.value[at : at + _OFFSET_BYTES], "big")

    def bodies(self, start: int, stop: int) -> bytes:
        """Returns the records from `start` up to `stop`, joined by commas."""
        begin = self.end(start - 1) + 1 if start else 0
        base = self.bodies_start
        # A damaged batch yields nothing. Compiled code raises an error for a slice that ends
        # before it begins.
        end = max(begin, self.end(stop - 1))
        return self.value[base + begin : base + end]


class EventRecordPage(NamedTuple):
    """The records of one GetRecords, and the position after them."""

    bodies: list[bytes]
    """Records as JSON; an element may have several, joined by commas."""
    sequence: int
    """The sequence number of the record after the page."""
    arrived_at: float | None
    """The time when the last record of the page arrived; None for an empty page."""


def unpack_batch(key: bytes, value: bytes) -> RecordBatch:
    arrived_at, count = _HEADER.unpack_from(value)
    return RecordBatch(event_log_layout.batch_first(key), count, arrived_at, value)


def read_batches(
    snapshot: Snapshot, stream: EventStream, shard: EventShard, sequence: int
) -> Iterator[RecordBatch]:
    """Yields the batches of a shard, beginning with the one that contains a record."""
    start, stop = event_log_layout.batch_range(stream.number, shard.number)
    key = event_log_layout.batch_key(stream.number, shard.number, sequence + 1)
    holding = next(snapshot.range(start, key, reverse=True), None)
    for key, value in snapshot.range(holding[0] if holding else start, stop):
        yield unpack_batch(key, value)


def read_page(
    snapshot: Snapshot,
    stream: EventStream,
    shard: EventShard,
    sequence: int,
    records_max: int,
    bytes_max: int,
) -> EventRecordPage:
    """Returns records from a sequence number on, at least one if the shard has any."""
    bodies: list[bytes] = []
    arrived_at = None
    for batch in read_batches(snapshot, stream, shard, sequence):
        start = max(0, sequence - batch.first)
        stop = min(batch.count, start + records_max)
        if start >= batch.count:
            continue
        taken = batch.bodies(start, stop)
        while len(taken) > bytes_max and (stop > start + 1 or bodies):
            stop = (start + stop) // 2
            if stop == start:
                return EventRecordPage(bodies, sequence, arrived_at)
            taken = batch.bodies(start, stop)
        bodies.append(taken)
        sequence, arrived_at = batch.first + stop, batch.arrived_at
        records_max -= stop - start
        bytes_max -= len(taken)
        if stop < batch.count or not records_max:
            break
    return EventRecordPage(bodies, sequence, arrived_at)
