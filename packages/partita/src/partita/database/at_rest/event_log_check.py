"""Checks the event log: records in order, without gaps, in the right shards.

The open shards of a stream cover all hash keys. The records of a shard are numbered without gaps,
from the first that was not trimmed to the last.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Iterator

import msgspec

from partita.database.at_rest.captures_check import capture_logs
from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding
from partita.database.logs.event_log import event_log_layout as events_layout
from partita.database.logs.event_log.event_records import RecordBatch, read_batches, read_tail
from partita.database.logs.event_log.event_streams import EventStream, decode_stream
from partita.database.logs.event_log.sequence_numbers import parse_sequence_number
from partita.database.logs.event_log.shard_splits import HASH_KEYS, EventShard
from partita.database.tables import table_layout
from partita.errors import StorageError


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    """A record as GetRecords returns it."""

    SequenceNumber: str
    ApproximateArrivalTimestamp: float
    Data: str
    PartitionKey: str


_decode_records = msgspec.json.Decoder(list[_Record]).decode


def event_streams_are_readable(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Every stream can be read, is stored under its own name and has a unique number."""
    last = int.from_bytes(folder.snapshot.get(table_layout.NUMBERS_KEY) or b"", "big")
    taken = {table.number for table in folder.tables}
    taken |= {stream.number for stream in folder.streams}
    taken.update(log for table in folder.tables for log in capture_logs(table))
    for key, value in folder.under(events_layout.STREAMS):
        try:
            stream = decode_stream(key, value)
        except StorageError as error:
            folder.has_unreadable_entries = True
            yield CheckFinding("event log", "a stream cannot be read", found=str(error))
            continue
        folder.event_streams.append(stream)
        expected = events_layout.stream_key(stream.name)
        if expected != key:
            yield CheckFinding(
                _of(stream), "it is stored under another name", expected.hex(), key.hex()
            )
        if stream.number in taken or not 0 < stream.number <= last:
            limit = f"a unique number up to {last}"
            yield CheckFinding(_of(stream), "its number is wrong", limit, f"{stream.number}")
        taken.add(stream.number)


def event_prefixes(folder: CheckedFolder) -> list[bytes]:
    """All prefixes that the keys of streams may have, including streams that are being removed."""
    deleted = [
        events_layout.deleted_stream(key)
        for key, _ in folder.under(events_layout.DELETED)
        if len(key) == len(events_layout.deleted_key(0))
    ]
    prefixes = [events_layout.stream_key(stream.name) for stream in folder.event_streams]
    prefixes += map(events_layout.deleted_key, deleted)
    for number in deleted:
        prefixes += events_layout.data_prefixes(number)
    for stream in folder.event_streams:
        for shard in stream.shards:
            prefixes.append(events_layout.tail_key(stream.number, shard.number))
            prefixes.append(events_layout.batches_prefix(stream.number, shard.number))
    return prefixes


def open_shards_share_all_hash_keys(folder: CheckedFolder) -> Iterator[CheckFinding]:
    for stream in folder.event_streams:
        after = 0
        for shard in stream.open_shards:
            if shard.first_hash_key != after:
                where = f"{_of(stream)}, {shard.shard_id}"
                yield CheckFinding(
                    where, "its first hash key is wrong", f"{after}", shard.hash_keys[0]
                )
            after = shard.last_hash_key + 1
        if after != HASH_KEYS:
            yield CheckFinding(
                _of(stream), "no open shard has its last hash keys", found=f"{after}"
            )
        numbers = [shard.number for shard in stream.shards]
        if len(set(numbers)) < len(numbers) or not max(numbers) < stream.next_shard_number:
            limit = f"different ones below {stream.next_shard_number}"
            yield CheckFinding(_of(stream), "its shards have wrong numbers", limit, f"{numbers}")


def records_are_in_order(folder: CheckedFolder) -> Iterator[CheckFinding]:
    for stream in folder.event_streams:
        for shard in stream.shards:
            where = f"{_of(stream)}, {shard.shard_id}"
            try:
                yield from _order_of(folder, stream, shard, where)
            except (struct.error, msgspec.MsgspecError, ValueError) as error:
                yield CheckFinding(where, "a record cannot be read", found=str(error))


def _order_of(
    folder: CheckedFolder, stream: EventStream, shard: EventShard, where: str
) -> Iterator[CheckFinding]:
    tail = read_tail(folder.snapshot, stream, shard)
    expected, arrived_at = shard.trimmed + 1, 0.0
    for batch in read_batches(folder.snapshot, stream, shard, 0):
        if batch.first != expected:
            found = f"{batch.first}"
            yield CheckFinding(where, "records are missing or repeated", f"{expected}", found)
        if not arrived_at <= batch.arrived_at <= tail.arrived_at:
            yield CheckFinding(where, "the times of its records decrease", found=f"{batch.first}")
        yield from _records_are_right(folder, shard, batch, where)
        expected, arrived_at = batch.first + batch.count, batch.arrived_at
    if expected != tail.last + 1:
        yield CheckFinding(where, "its last number is wrong", f"{expected - 1}", f"{tail.last}")
    if shard.last not in (None, tail.last):
        yield CheckFinding(
            where, "it was closed at another number", f"{tail.last}", f"{shard.last}"
        )


def _records_are_right(
    folder: CheckedFolder, shard: EventShard, batch: RecordBatch, where: str
) -> Iterator[CheckFinding]:
    records = _decode_records(b"[%b]" % batch.bodies(0, batch.count))
    folder.records += len(records)
    if len(records) != batch.count:
        found = f"{len(records)}"
        yield CheckFinding(where, "a batch has a wrong number of records", f"{batch.count}", found)
        return
    for position, record in enumerate(records):
        by_position = _decode_records(b"[%b]" % batch.bodies(position, position + 1))
        if by_position != [record]:
            yield CheckFinding(
                where, "a record is not where it should be", f"{batch.first + position}"
            )
        if abs(record.ApproximateArrivalTimestamp - batch.arrived_at) > 0.0005:
            yield CheckFinding(where, "a record's time is not that of its batch", f"{batch.first}")
        b64decode(record.Data, validate=True)
        parsed = parse_sequence_number(record.SequenceNumber)
        expected = (int(shard.opened_at), shard.number, batch.first + position)
        if parsed is None or parsed[:3] != expected:
            yield CheckFinding(where, "a sequence number is wrong", f"{expected}", f"{parsed}")


def _of(stream: EventStream) -> str:
    return f"event stream {stream.name}"
