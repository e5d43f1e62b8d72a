"""ListStreams, DescribeStream, GetShardIterator, GetRecords: the API of DynamoDB Streams.

Error messages are DynamoDB Local's where no recording of the service exists.
"""

from __future__ import annotations

import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any, NamedTuple

from partita.database.logs.change_log import change_log_layout
from partita.database.logs.change_log.change_records import created_at, read_changes
from partita.database.logs.change_log.change_streams import (
    ChangeStream,
    ChangeStreamShard,
    all_streams,
    last_sequence,
    read_stream,
    streams_of,
)
from partita.database.operations.operation_context import DatabaseService, ReadContext, Request
from partita.database.operations.response_members import (
    answer,
    encode,
    member,
    raw_list,
    raw_member,
)
from partita.database.operations.streams.stream_records import (
    api_record,
    sequence_number,
    sequence_of,
    size_bytes,
)
from partita.errors import (
    INVALID,
    ExpiredIteratorException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
    ValidationException,
)
from partita.foundation.service_limits import (
    DESCRIBE_STREAM_PAGE_MAX,
    LIST_STREAMS_PAGE_MAX,
    SHARD_ITERATOR_SECONDS,
    STREAM_RECORDS_BYTES_MAX,
    STREAM_RECORDS_MAX,
)

_ARN = re.compile(
    r"arn:aws:dynamodb:[\w-]+:\d*:table/(?P<table>[\w.-]+)/stream/(?P<label>[\w.:-]+)", re.ASCII
)
_POSITION = struct.Struct(">IQQ")
ITERATOR_VERSION = "1"

STREAMS_LIMIT = "Limit cannot be greater than the maximum allowed size: {}"
SHARDS_LIMIT = "Limit cannot be greater than the maximum: {}"
RECORDS_LIMIT = "Limit should be less than or equal to {}"
INVALID_ARN = "Invalid StreamArn"
INVALID_ITERATOR = "Invalid ShardIterator"
INVALID_SEQUENCE_NUMBER = f"{INVALID}Invalid SequenceNumber"
NO_SHARD = "Requested resource not found: Shard does not exist"
TRIMMED = "The data you are trying to access has been trimmed"
EXPIRED = "The provided iterator exceeds the maximum age allowed."
FILTER_TYPE = (
    "1 validation error detected: Value null at 'shardFilter.type' failed to satisfy constraint: "
    "Member must not be null"
)


class IteratorPosition(NamedTuple):
    """The position of an iterator, just before the change with this sequence number."""

    table_name: str
    label: str
    shard_number: int
    sequence: int
    made_at: float


def stream_arn(service: DatabaseService, stream: ChangeStream) -> str:
    return f"{service.table_arn(stream.table_name)}/stream/{stream.label}"


# ListStreams and DescribeStream


def list_streams(context: ReadContext, request: Request) -> bytes:
    limit = _limit(request, LIST_STREAMS_PAGE_MAX, STREAMS_LIMIT)
    after = ("", "")
    if "ExclusiveStartStreamArn" in request:
        after = _parse_arn(request["ExclusiveStartStreamArn"])
    if "TableName" in request:
        streams = streams_of(context.snapshot, request["TableName"])
    else:
        streams = all_streams(context.snapshot)
    following = [stream for stream in streams if (stream.table_name, stream.label) > after]
    page = [_stream(context.service, stream) for stream in following[:limit]]
    response: dict[str, Any] = {"Streams": page}
    if len(following) > limit:
        response["LastEvaluatedStreamArn"] = page[-1]["StreamArn"]
    return encode(response)


def _stream(service: DatabaseService, stream: ChangeStream) -> dict[str, str]:
    return {
        "StreamArn": stream_arn(service, stream),
        "TableName": stream.table_name,
        "StreamLabel": stream.label,
    }


def describe_stream(context: ReadContext, request: Request) -> bytes:
    limit = _limit(request, DESCRIBE_STREAM_PAGE_MAX, SHARDS_LIMIT)
    parent_id = _requested_parent(request.get("ShardFilter"))
    stream = _find_stream(context, request["StreamArn"])
    after = request.get("ExclusiveStartShardId", "")
    shards = sorted(
        (
            shard
            for shard in stream.readable_shards
            if shard.shard_id > after and parent_id in (None, shard.parent_id)
        ),
        key=lambda shard: shard.shard_id,
    )
    description: dict[str, Any] = {
        **_stream(context.service, stream),
        "StreamStatus": _status(context.service, stream),
        "StreamViewType": stream.view_type,
        "CreationRequestDateTime": round(stream.created_at, 3),
        "KeySchema": [
            {"AttributeName": name, "KeyType": kind}
            for name, kind in zip(stream.key_names, ("HASH", "RANGE"), strict=False)
        ],
        "Shards": [_shard(shard) for shard in shards[:limit]],
    }
    if len(shards) > limit:
        description["LastEvaluatedShardId"] = shards[limit - 1].shard_id
    return encode({"StreamDescription": description})


def _requested_parent(shard_filter: dict[str, str] | None) -> str | None:
    """Returns the shard whose children are requested, or None for all shards."""
    if shard_filter is None:
        return None
    if "Type" not in shard_filter:
        raise ValidationException(FILTER_TYPE)
    if "ShardId" not in shard_filter:
        raise ValidationException(FILTER_TYPE.replace("type", "shardId"))
    return shard_filter["ShardId"]


def _status(service: DatabaseService, stream: ChangeStream) -> str:
    changed_at = stream.created_at if stream.closed_at is None else stream.closed_at
    is_changing = service.clock() < changed_at + service.transient_seconds
    if stream.closed_at is None:
        return "ENABLING" if is_changing else "ENABLED"
    return "DISABLING" if is_changing else "DISABLED"


def _shard(shard: ChangeStreamShard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": sequence_number(shard.first)}
    if shard.last is not None:
        numbers["EndingSequenceNumber"] = sequence_number(shard.last)
    described: dict[str, Any] = {"ShardId": shard.shard_id, "SequenceNumberRange": numbers}
    if shard.parent_id is not None:
        described["ParentShardId"] = shard.parent_id
    return described


# GetShardIterator


def get_shard_iterator(context: ReadContext, request: Request) -> bytes:
    kind = request["ShardIteratorType"]
    _check_position_members(request, kind)
    stream = _find_stream(context, request["StreamArn"])
    shard = stream.shard(request["ShardId"])
    if shard is None:
        raise ResourceNotFoundException(NO_SHARD)
    sequence = _START[kind](context, stream, shard, request)
    return encode({"ShardIterator": _iterator(context.service, stream, shard, sequence)})


def _check_position_members(request: Request, kind: str) -> None:
    for name, needed in (
        ("SequenceNumber", kind.endswith("SEQUENCE_NUMBER")),
        ("Timestamp", kind == "AT_TIMESTAMP"),
    ):
        if needed and name not in request:
            raise ValidationException(f"{INVALID}Invalid {name}")
        if not needed and name in request:
            raise ValidationException(
                f"{INVALID}{name} should not be passed for this iterator type"
            )


def _at_horizon(
    context: ReadContext, stream: ChangeStream, shard: ChangeStreamShard, request: Request
) -> int:
    return max(shard.first, shard.trimmed + 1)


def _at_latest(
    context: ReadContext, stream: ChangeStream, shard: ChangeStreamShard, request: Request
) -> int:
    return _last(context, stream, shard) + 1


def _at_sequence(
    context: ReadContext, stream: ChangeStream, shard: ChangeStreamShard, request: Request
) -> int:
    sequence = sequence_of(request["SequenceNumber"])
    last = max(shard.first, _last(context, stream, shard))
    if sequence is None or not shard.first <= sequence <= last:
        raise ValidationException(INVALID_SEQUENCE_NUMBER)
    if sequence <= shard.trimmed:
        raise TrimmedDataAccessException(TRIMMED)
    return sequence


def _after_sequence(
    context: ReadContext, stream: ChangeStream, shard: ChangeStreamShard, request: Request
) -> int:
    return _at_sequence(context, stream, shard, request) + 1


def _at_timestamp(
    context: ReadContext, stream: ChangeStream, shard: ChangeStreamShard, request: Request
) -> int:
    """Returns the first change at or after a time.

    Changes are ordered by time, so this is a binary search.
    """
    moment = request["Timestamp"]
    if moment > context.service.clock():
        raise ValidationException(f"{INVALID}Timestamp must not be in the future")
    low, high = _at_horizon(context, stream, shard, request), _last(context, stream, shard) + 1
    while low < high:
        middle = (low + high) // 2
        start, stop = change_log_layout.change_range(stream.number, shard.number, middle)
        entry = next(context.snapshot.range(start, stop), None)
        if entry is None or int(created_at(entry[1])) >= moment:
            high = middle
        else:
            low = change_log_layout.change_sequence(entry[0]) + 1
    return low


_START: dict[str, Callable[[ReadContext, ChangeStream, ChangeStreamShard, Request], int]] = {
    "TRIM_HORIZON": _at_horizon,
    "LATEST": _at_latest,
    "AT_SEQUENCE_NUMBER": _at_sequence,
    "AFTER_SEQUENCE_NUMBER": _after_sequence,
    "AT_TIMESTAMP": _at_timestamp,
}


def _last(context: ReadContext, stream: ChangeStream, shard: ChangeStreamShard) -> int:
    """Returns an upper bound of the sequence numbers in a shard."""
    if shard.last is not None:
        return shard.last
    return last_sequence(context.snapshot, stream.number)


# GetRecords


def get_records(context: ReadContext, request: Request) -> bytes:
    limit = _limit(request, STREAM_RECORDS_MAX, RECORDS_LIMIT)
    position = _parse_iterator(request["ShardIterator"])
    if context.service.clock() > position.made_at + SHARD_ITERATOR_SECONDS:
        raise ExpiredIteratorException(EXPIRED)
    stream = read_stream(context.snapshot, position.table_name, position.label)
    shards = stream.readable_shards if stream else []
    shard = next((shard for shard in shards if shard.number == position.shard_number), None)
    if stream is None or shard is None:
        raise ResourceNotFoundException(NO_SHARD)
    if position.sequence <= shard.trimmed:
        raise TrimmedDataAccessException(TRIMMED)
    records: list[bytes] = []
    total_bytes, sequence = 0, position.sequence
    for change in read_changes(context.snapshot, stream.number, shard.number, sequence):
        total_bytes += size_bytes(change)
        if records and (len(records) == limit or total_bytes > STREAM_RECORDS_BYTES_MAX):
            break
        records.append(api_record(stream, change, context.service.region))
        sequence = change.sequence + 1
    else:
        if shard.last is not None:
            return answer([raw_member("Records", raw_list(records))])
    following = _iterator(context.service, stream, shard, sequence)
    return answer(
        [raw_member("Records", raw_list(records)), member("NextShardIterator", following)]
    )


def _iterator(
    service: DatabaseService, stream: ChangeStream, shard: ChangeStreamShard, sequence: int
) -> str:
    packed = _POSITION.pack(shard.number, sequence, int(service.clock() * 1000))
    place = urlsafe_b64encode(packed).decode()
    return f"{stream_arn(service, stream)}|{ITERATOR_VERSION}|{place}"


def _parse_iterator(iterator: str) -> IteratorPosition:
    arn, _, rest = iterator.partition("|")
    version, _, place = rest.partition("|")
    try:
        number, sequence, made_at_ms = _POSITION.unpack(urlsafe_b64decode(place))
        table_name, label = _parse_arn(arn)
    except (Base64Error, ValueError, struct.error, ValidationException):
        raise ValidationException(INVALID_ITERATOR) from None
    if version != ITERATOR_VERSION:
        raise ValidationException(INVALID_ITERATOR)
    return IteratorPosition(table_name, label, number, sequence, made_at_ms / 1000)


# Shared


def _limit(request: Request, most: int, text: str) -> int:
    limit: int = request.get("Limit", most)
    if limit > most:
        raise ValidationException(INVALID + text.format(most))
    return limit


def _find_stream(context: ReadContext, arn: str) -> ChangeStream:
    stream = read_stream(context.snapshot, *_parse_arn(arn))
    if stream is None:
        raise ResourceNotFoundException(f"Requested resource not found: Stream: {arn} not found")
    return stream


def _parse_arn(arn: str) -> tuple[str, str]:
    """Returns the table name and the label; as with tables, any region and account is accepted."""
    match = _ARN.fullmatch(arn)
    if match is None:
        # A malformed ARN is invalid on AWS, but not found on DynamoDB Local (ScyllaDB Alternator's
        # tests).
        raise ValidationException(INVALID_ARN)
    return match["table"], match["label"]
