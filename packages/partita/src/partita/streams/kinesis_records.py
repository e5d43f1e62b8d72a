"""Kinesis: PutRecord, PutRecords, GetShardIterator, GetRecords."""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from partita.database.logs.event_log.event_records import (
    NewRecord,
    append_records,
    read_batches,
    read_page,
    read_tail,
    shard_for,
)
from partita.database.logs.event_log.event_streams import ON_DEMAND, EventStream, name_in_arn
from partita.database.logs.event_log.sequence_numbers import (
    LAST_SEQUENCE,
    SHORT_NUMBERS,
    parse_sequence_number,
)
from partita.database.logs.event_log.shard_splits import HASH_KEYS, EventShard, shard_id
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.response_members import (
    answer,
    encode,
    member,
    raw_list,
    raw_member,
)
from partita.errors import (
    DryRunOperationException,
    DynamoDBError,
    ExpiredIteratorException,
    InvalidArgumentException,
    ProvisionedThroughputExceededException,
    ResourceNotFoundException,
    ValidationException,
)
from partita.foundation.service_limits import (
    EVENT_ITERATOR_SECONDS,
    EVENT_RECORD_BYTES_MAX,
    GET_RECORDS_BYTES_MAX,
    GET_RECORDS_MAX,
    KB,
    PUT_RECORDS_BYTES_MAX,
)
from partita.streams.kinesis_resources import (
    readable_stream,
    shard_number,
    stream_name,
    stream_phrase,
)
from partita.streams.kinesis_shards import split_hot_shards
from partita.streams.kinesis_streams import described_hash_keys

INVALID_ITERATOR = "Invalid ShardIterator."
DRY_RUN = "Request would have succeeded, but DryRun flag is set."
RECORDS_TOO_LARGE = f"Records size exceeds {PUT_RECORDS_BYTES_MAX >> 20} MB limit"
ITERATOR_VERSION = 1
_POSITION = struct.Struct(">QIIQQ")
_RECEIPT = b'{"SequenceNumber":"%b","ShardId":"%b"}'


# PutRecord and PutRecords


def put_record(context: WriteContext, request: Request) -> bytes:
    service = context.service
    stream = readable_stream(service, request)
    record = _new_record(stream, request, _record_bytes(request), "data")
    _check_ordering(service, stream, request)
    _refuse_dry_run(request)
    stream, [refusal] = _charge(context, stream, [record], [_record_bytes(request)])
    if refusal is not None:
        raise ProvisionedThroughputExceededException(refusal)
    [receipt] = append_records(context.write_batch, stream, [record])
    return _RECEIPT % receipt


def put_records(context: WriteContext, request: Request) -> bytes:
    stream = readable_stream(context.service, request)
    records, sizes = [], []
    for position, entry in enumerate(request["Records"], 1):
        size = _record_bytes(entry)
        sizes.append(size)
        records.append(_new_record(stream, entry, size, f"records.{position}.member.data"))
    if sum(sizes) > PUT_RECORDS_BYTES_MAX:
        raise InvalidArgumentException(RECORDS_TOO_LARGE)
    _refuse_dry_run(request)
    stream, refusals = _charge(context, stream, records, sizes)
    admitted = [
        record for record, refusal in zip(records, refusals, strict=True) if refusal is None
    ]
    receipts = map(_RECEIPT.__mod__, append_records(context.write_batch, stream, admitted))
    results = (next(receipts) if refusal is None else _failed(refusal) for refusal in refusals)
    failed = len(records) - len(admitted)
    return b'{"FailedRecordCount":%d,"Records":[%b]}' % (failed, b",".join(results))


def _charge(
    context: WriteContext, stream: EventStream, records: list[NewRecord], sizes: list[int]
) -> tuple[EventStream, list[str | None]]:
    """Charges records to the throughput of their shards.

    Returns for each record why it is refused, or None. In an on-demand stream, hot shards are split
    before their limit is reached; the stream is returned with its new shards.
    """
    service = context.service
    if not service.ledger.is_enforced:
        return stream, [None] * len(records)
    now, refusals = service.clock(), list[str | None]()
    hot: dict[int, EventShard] = {}
    for record, size in zip(records, sizes, strict=True):
        shard = shard_for(stream, record)
        meter = service.throughput.meter(stream.number, shard.number)
        is_admitted = meter.take_record(size, now)
        refusals.append(None if is_admitted else _rate_exceeded(service, stream, shard))
        if stream.mode == ON_DEMAND and meter.is_hot():
            hot[shard.number] = shard
    return split_hot_shards(context, stream, list(hot.values())) if hot else stream, refusals


def _rate_exceeded(service: DatabaseService, stream: EventStream, shard: EventShard) -> str:
    return (
        f"Rate exceeded for shard {shard.shard_id} in stream {stream.name} under account "
        f"{service.account_id}."
    )


def _failed(refusal: str) -> bytes:
    return encode({"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": refusal})


def _new_record(stream: EventStream, entry: Request, size: int, path: str) -> NewRecord:
    explicit_hash_key = entry.get("ExplicitHashKey")
    if explicit_hash_key is not None and int(explicit_hash_key) >= HASH_KEYS:
        raise InvalidArgumentException(
            "Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. "
            f"Specified value was {explicit_hash_key}"
        )
    if size > stream.record_kib_max * KB:
        raise _too_large(stream, entry, size, path)
    return NewRecord(entry["PartitionKey"], entry["Data"], explicit_hash_key)


def _record_bytes(entry: Request) -> int:
    """Returns the size of the key and the data; the data is base64 that was validated before."""
    data: str = entry["Data"]
    return len(entry["PartitionKey"].encode()) + len(data) // 4 * 3 - data.count("=")


def _too_large(stream: EventStream, entry: Request, size: int, path: str) -> DynamoDBError:
    if size - len(entry["PartitionKey"].encode()) > EVENT_RECORD_BYTES_MAX:
        return ValidationException(
            f"1 validation error detected: Value at '{path}' failed to satisfy constraint: "
            f"Member must have length less than or equal to {EVENT_RECORD_BYTES_MAX}"
        )
    return InvalidArgumentException(
        f"Record size of {size} bytes exceeds the maximum record size of "
        f"{stream.record_kib_max} KiB of stream {stream.name}."
    )


def _check_ordering(service: DatabaseService, stream: EventStream, request: Request) -> None:
    """Checks that SequenceNumberForOrdering is not in the future.

    It needs no other effect, because records are stored in the order in which they arrive.
    """
    number = request.get("SequenceNumberForOrdering")
    if number is None:
        return
    if int(number) <= SHORT_NUMBERS:
        return
    parsed = parse_sequence_number(number)
    if parsed is None or parsed.second > service.clock():
        raise InvalidArgumentException(
            f"ExclusiveMinimumSequenceNumber {number} used in PutRecord on stream {stream.name} "
            f"under account {service.account_id} is invalid."
        )


def _refuse_dry_run(request: Request) -> None:
    if request.get("DryRun"):
        raise DryRunOperationException(DRY_RUN)


# GetShardIterator


class ShardPosition(NamedTuple):
    """The position of an iterator: before the record with a sequence number."""

    stream_number: int
    shard_number: int
    sequence: int
    made_at: float
    stream_name: str


def get_shard_iterator(context: ReadContext, request: Request) -> bytes:
    service = context.service
    number = shard_number(service, stream_name(request), request["ShardId"])
    try:
        stream = readable_stream(service, request)
    except ResourceNotFoundException:
        raise _no_shard(service, stream_name(request), number) from None
    shard = stream.shard(number)
    if shard is None:
        raise _no_shard(service, stream.name, number)
    kind = request["ShardIteratorType"]
    if (has_number := "StartingSequenceNumber" in request) != kind.endswith("SEQUENCE_NUMBER"):
        if kind != "AT_TIMESTAMP":
            raise InvalidArgumentException(_position_members(kind, has_number))
    sequence = _START[kind](context, stream, shard, request)
    _refuse_dry_run(request)
    return answer([member("ShardIterator", _iterator(service, stream, shard, sequence))])


def _position_members(kind: str, has_number: bool) -> str:
    phrase = "and also a" if has_number else "and no"
    return (
        "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and "
        "StartingSequenceNumber or (2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. "
        f"Request specified {kind} {phrase} StartingSequenceNumber."
    )


def _at_horizon(
    context: ReadContext, stream: EventStream, shard: EventShard, request: Request
) -> int:
    return shard.trimmed + 1


def _at_latest(
    context: ReadContext, stream: EventStream, shard: EventShard, request: Request
) -> int:
    return read_tail(context.snapshot, stream, shard).last + 1


def _at_sequence(
    context: ReadContext, stream: EventStream, shard: EventShard, request: Request
) -> int:
    number = request["StartingSequenceNumber"]
    parsed = parse_sequence_number(number)
    invalid = (
        f"StartingSequenceNumber {number} used in GetShardIterator on shard {shard.shard_id} in "
        f"stream {stream.name} under account {context.service.account_id} is invalid"
    )
    if parsed is None:
        raise InvalidArgumentException(f"{invalid}.")
    if parsed.shard != shard.number:
        raise InvalidArgumentException(
            f"Invalid StartingSequenceNumber. It encodes {shard_id(parsed.shard)}, while it was "
            f"used in a call to a shard with {shard.shard_id}"
        )
    if parsed.opened_second != int(shard.opened_at):
        raise InvalidArgumentException(f"{invalid} because it did not come from this stream.")
    is_the_end = parsed.sequence == LAST_SEQUENCE and not shard.is_open
    if not is_the_end and parsed.sequence > read_tail(context.snapshot, stream, shard).last:
        raise InvalidArgumentException(f"{invalid}.")
    return parsed.sequence


def _after_sequence(
    context: ReadContext, stream: EventStream, shard: EventShard, request: Request
) -> int:
    return _at_sequence(context, stream, shard, request) + 1


def _at_timestamp(
    context: ReadContext, stream: EventStream, shard: EventShard, request: Request
) -> int:
    """Finds the first record of that time or later; records are in time order."""
    if "Timestamp" not in request:
        raise InvalidArgumentException(
            "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. "
            "Current request has no timestamp parameter."
        )
    moment, now = request["Timestamp"], context.service.clock()
    if moment > now:
        raise InvalidArgumentException(
            "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
            f"timestampInMillis: {int(moment * 1000)}, currentTimestampInMillis: {int(now * 1000)}"
        )
    low, high = shard.trimmed + 1, read_tail(context.snapshot, stream, shard).last + 1
    while low < high:
        batch = next(read_batches(context.snapshot, stream, shard, (low + high) // 2))
        if batch.arrived_at >= moment:
            high = max(low, batch.first)
        else:
            low = batch.first + batch.count
    return low


_START: dict[str, Callable[[ReadContext, EventStream, EventShard, Request], int]] = {
    "TRIM_HORIZON": _at_horizon,
    "LATEST": _at_latest,
    "AT_SEQUENCE_NUMBER": _at_sequence,
    "AFTER_SEQUENCE_NUMBER": _after_sequence,
    "AT_TIMESTAMP": _at_timestamp,
}


# GetRecords


def get_records(context: ReadContext, request: Request) -> bytes:
    service = context.service
    position = _parse_iterator(request["ShardIterator"])
    now = service.clock()
    if now > position.made_at + EVENT_ITERATOR_SECONDS:
        raise ExpiredIteratorException(_expired(position.made_at, now))
    if "StreamARN" in request and name_in_arn(request["StreamARN"]) != position.stream_name:
        raise InvalidArgumentException(INVALID_ITERATOR)
    stream, shard = _place(service, position)
    _refuse_dry_run(request)
    is_enforced = service.ledger.is_enforced
    meter = service.throughput.meter(stream.number, shard.number) if is_enforced else None
    if meter is not None and not meter.take_read(now):
        raise ProvisionedThroughputExceededException(_rate_exceeded(service, stream, shard))
    limit = request.get("Limit", GET_RECORDS_MAX)
    sequence = max(position.sequence, shard.trimmed + 1)
    page = read_page(context.snapshot, stream, shard, sequence, limit, GET_RECORDS_BYTES_MAX)
    if meter is not None:
        meter.read_bytes.take(sum(map(len, page.bodies)))
    members = [raw_member("Records", raw_list(page.bodies))]
    behind_ms = 0
    if page.arrived_at is not None:
        if page.sequence <= read_tail(context.snapshot, stream, shard).last:
            behind_ms = max(0, int((now - page.arrived_at) * 1000))
    members.append(member("MillisBehindLatest", behind_ms))
    if shard.last is not None and page.sequence > shard.last:
        members.append(member("ChildShards", _children(stream, shard)))
    else:
        members.append(
            member("NextShardIterator", _iterator(service, stream, shard, page.sequence))
        )
    return answer(members)


def _place(service: DatabaseService, position: ShardPosition) -> tuple[EventStream, EventShard]:
    stream = service.event_streams.find(position.stream_name)
    shard = stream.shard(position.shard_number) if stream else None
    if stream is None or shard is None or stream.number != position.stream_number:
        raise _no_shard(service, position.stream_name, position.shard_number)
    return stream, shard


def _children(stream: EventStream, shard: EventShard) -> list[dict[str, object]]:
    return [
        {
            "ShardId": child.shard_id,
            "ParentShards": [shard_id(parent) for parent in child.parents],
            "HashKeyRange": described_hash_keys(child),
        }
        for child in stream.children(shard.number)
    ]


def _iterator(
    service: DatabaseService, stream: EventStream, shard: EventShard, sequence: int
) -> str:
    made_at_ms = int(service.clock() * 1000)
    packed = _POSITION.pack(ITERATOR_VERSION, stream.number, shard.number, sequence, made_at_ms)
    return b64encode(packed + stream.name.encode()).decode()


def _parse_iterator(iterator: str) -> ShardPosition:
    try:
        packed = b64decode(iterator, validate=True)
        version, stream, shard, sequence, made_at_ms = _POSITION.unpack_from(packed)
        name = packed[_POSITION.size :].decode()
    except (Base64Error, ValueError, struct.error):
        raise InvalidArgumentException(INVALID_ITERATOR) from None
    if version != ITERATOR_VERSION or not name or sequence > LAST_SEQUENCE + 1:
        raise InvalidArgumentException(INVALID_ITERATOR)
    return ShardPosition(stream, shard, sequence, made_at_ms / 1000, name)


def iterator_stream(iterator: str) -> str:
    """Returns the name of the stream that an iterator reads."""
    return _parse_iterator(iterator).stream_name


def _expired(made_at: float, now: float) -> str:
    return (
        f"Iterator expired. The iterator was created at time {_formatted(made_at)} while right now "
        f"it is {_formatted(now)} which is further in the future than the tolerated delay of "
        f"{EVENT_ITERATOR_SECONDS * 1000} milliseconds."
    )


def _formatted(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")


def _no_shard(service: DatabaseService, name: str, number: int) -> ResourceNotFoundException:
    stream = stream_phrase(service, name).replace("Stream", "stream", 1)
    return ResourceNotFoundException(f"Shard {shard_id(number)} in {stream} does not exist")
