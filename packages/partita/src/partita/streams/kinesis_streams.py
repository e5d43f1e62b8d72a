"""Kinesis: CreateStream, DescribeStream, DescribeStreamSummary, ListStreams, DeleteStream, and the
operations that change settings of a stream."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from msgspec.structs import replace

from partita.database.logs.event_log.event_streams import (
    ACTIVE,
    CREATING,
    DELETING,
    ON_DEMAND,
    PROVISIONED,
    UPDATING,
    EventStream,
)
from partita.database.logs.event_log.sequence_numbers import ending_number, starting_number
from partita.database.logs.event_log.shard_splits import EventShard, first_shards, shard_id
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.response_members import encode
from partita.database.tables.definition.table_catalog import next_table_number
from partita.errors import (
    InvalidArgumentException,
    LimitExceededException,
    ResourceInUseException,
    ValidationException,
)
from partita.foundation.service_limits import (
    DESCRIBE_EVENT_SHARDS_PAGE_MAX,
    EVENT_RECORD_KIB_MAX,
    EVENT_RETENTION_HOURS_MAX,
    EVENT_RETENTION_HOURS_MIN,
    EVENT_SHARDS_MAX,
    EVENT_SHARDS_ON_DEMAND,
    LIST_EVENT_STREAMS_PAGE_MAX,
    ON_DEMAND_STREAMS_MAX,
)
from partita.streams.kinesis_resources import (
    NO_BODY,
    active_stream,
    stream_arn,
    stream_of,
    stream_phrase,
)
from partita.streams.kinesis_tags import check_tags

INVALID_TOKEN = "Invalid NextToken."
NOT_SUPPORTED = "{} is not supported."
SHARD_COUNT_NEEDED = "ShardCount is required for a stream in PROVISIONED mode."
# The service's description does not contain this bound.
HOURS_NEEDED = (
    "1 validation error detected: Value '{}' at 'retentionPeriodHours' failed to satisfy "
    "constraint: Member must have value greater than or equal to 1"
)
# The text is CloudFormation's.
SHARD_COUNT_NOT_TAKEN = "ShardCount is not expected when StreamMode=ON_DEMAND"


def create_stream(context: WriteContext, request: Request) -> bytes:
    service, name = context.service, request["StreamName"]
    mode = _mode(request)
    count = _shard_count(request, mode)
    _refuse_unsupported_settings(request)
    tags = check_tags(service, name, {}, request.get("Tags", {}))
    if service.event_streams.find(name) is not None:
        raise ResourceInUseException(f"{stream_phrase(service, name)} already exists.")
    check_shard_limit(service, count)
    now = service.clock()
    stream = EventStream(
        number=next_table_number(context.write_batch),
        name=name,
        created_at=now,
        mode=mode,
        shards=first_shards(count, now),
        next_shard_number=count,
        retention_hours=EVENT_RETENTION_HOURS_MIN,
        record_kib_max=request.get("MaxRecordSizeInKiB", EVENT_RECORD_KIB_MAX),
        tags=tags,
    )
    service.event_streams.save(context.write_batch, in_transition(service, stream, CREATING))
    return NO_BODY


def _mode(request: Request) -> str:
    """Returns the mode; ON_DEMAND for a request without mode and shard count, as in LocalStack."""
    default = PROVISIONED if "ShardCount" in request else ON_DEMAND
    mode: str = request.get("StreamModeDetails", {}).get("StreamMode", default)
    return mode


def _shard_count(request: Request, mode: str) -> int:
    count: int | None = request.get("ShardCount")
    if mode == ON_DEMAND:
        if count is not None:
            raise ValidationException(SHARD_COUNT_NOT_TAKEN)
        return EVENT_SHARDS_ON_DEMAND
    if count is None:
        raise ValidationException(SHARD_COUNT_NEEDED)
    return count


def _refuse_unsupported_settings(request: Request) -> None:
    if request.get("RecordDistributionStrategy", "USER_PARTITION_KEY") == "AUTO":
        raise InvalidArgumentException(NOT_SUPPORTED.format("RecordDistributionStrategy AUTO"))
    if "WarmThroughputMiBps" in request:
        raise InvalidArgumentException(NOT_SUPPORTED.format("WarmThroughputMiBps"))


def check_shard_limit(service: DatabaseService, added: int) -> None:
    count = _open_shard_count(service)
    if count + added > EVENT_SHARDS_MAX:
        raise LimitExceededException(
            f"This request would exceed the shard limit for the account {service.account_id} in "
            f"{service.region}. Current shard count for the account: {count}. "
            f"Limit: {EVENT_SHARDS_MAX}. Number of additional shards that would have resulted from "
            f"this request: {added}. Refer to the AWS Service Limits page "
            "(http://docs.aws.amazon.com/general/latest/gr/aws_service_limits.html) for current "
            "limits and how to request higher limits."
        )


def _open_shard_count(service: DatabaseService) -> int:
    return sum(len(stream.open_shards) for stream in service.event_streams)


def in_transition(service: DatabaseService, stream: EventStream, transition: str) -> EventStream:
    if not service.transient_seconds:
        return replace(stream, transition=ACTIVE)
    settles_at = service.clock() + service.transient_seconds
    return replace(stream, transition=transition, settles_at=settles_at)


# Describing and listing


def describe_stream(context: ReadContext, request: Request) -> bytes:
    service = context.service
    stream = stream_of(service, request)
    limit = page_limit(request, "Limit", DESCRIBE_EVENT_SHARDS_PAGE_MAX)
    after = request.get("ExclusiveStartShardId", "")
    shards = [shard for shard in visible_shards(service, stream) if shard.shard_id > after]
    description = _described(service, stream)
    description["Shards"] = [described_shard(shard) for shard in shards[:limit]]
    description["HasMoreShards"] = len(shards) > limit
    return encode({"StreamDescription": description})


def describe_stream_summary(context: ReadContext, request: Request) -> bytes:
    stream = stream_of(context.service, request)
    summary = _described(context.service, stream)
    summary["OpenShardCount"] = len(stream.open_shards)
    summary["ConsumerCount"] = 0
    summary["MaxRecordSizeInKiB"] = stream.record_kib_max
    return encode({"StreamDescriptionSummary": summary})


def _described(service: DatabaseService, stream: EventStream) -> dict[str, Any]:
    return {
        **_summarized(service, stream),
        "RetentionPeriodHours": stream.retention_hours,
        "EnhancedMonitoring": [{"ShardLevelMetrics": []}],
        "EncryptionType": "NONE",
    }


def _summarized(service: DatabaseService, stream: EventStream) -> dict[str, Any]:
    return {
        "StreamName": stream.name,
        "StreamARN": stream_arn(service, stream.name),
        "StreamStatus": stream.status(service.clock()),
        "StreamModeDetails": {"StreamMode": stream.mode},
        "StreamCreationTimestamp": int(stream.created_at),
    }


def page_limit(request: Request, member: str, most: int) -> int:
    """Returns the limit of a request, at most `most`: the service accepts larger ones silently."""
    limit: int = request.get(member, most)
    return min(limit, most)


def visible_shards(service: DatabaseService, stream: EventStream) -> tuple[EventShard, ...]:
    """Returns the shards of a stream; a stream that is being created shows none."""
    return () if stream.status(service.clock()) == CREATING else stream.shards


def described_shard(shard: EventShard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": starting_number(shard)}
    if not shard.is_open:
        numbers["EndingSequenceNumber"] = ending_number(shard)
    description: dict[str, Any] = {"ShardId": shard.shard_id}
    if shard.parent is not None:
        description["ParentShardId"] = shard_id(shard.parent)
    if shard.adjacent_parent is not None:
        description["AdjacentParentShardId"] = shard_id(shard.adjacent_parent)
    description["HashKeyRange"] = described_hash_keys(shard)
    description["SequenceNumberRange"] = numbers
    return description


def described_hash_keys(shard: EventShard) -> dict[str, str]:
    first, last = shard.hash_keys
    return {"StartingHashKey": first, "EndingHashKey": last}


def list_streams(context: ReadContext, request: Request) -> bytes:
    service = context.service
    limit = page_limit(request, "Limit", LIST_EVENT_STREAMS_PAGE_MAX)
    after = request.get("ExclusiveStartStreamName", "")
    if "NextToken" in request:
        after = _name_in_token(request["NextToken"])
    names = [name for name in service.event_streams.names() if name > after]
    streams = [service.event_streams.find(name) for name in names[:limit]]
    page: dict[str, Any] = {
        "StreamNames": names[:limit],
        "HasMoreStreams": len(names) > limit,
        "StreamSummaries": [_summarized(service, stream) for stream in streams if stream],
    }
    if len(names) > limit:
        page["NextToken"] = b64encode(names[limit - 1].encode()).decode()
    return encode(page)


def _name_in_token(token: str) -> str:
    try:
        return b64decode(token, validate=True).decode()
    except ValueError:
        raise InvalidArgumentException(INVALID_TOKEN) from None


def describe_limits(context: ReadContext, request: Request) -> bytes:
    service = context.service
    on_demand = sum(stream.mode == ON_DEMAND for stream in service.event_streams)
    return encode(
        {
            "ShardLimit": EVENT_SHARDS_MAX,
            "OpenShardCount": _open_shard_count(service),
            "OnDemandStreamCount": on_demand,
            "OnDemandStreamCountLimit": ON_DEMAND_STREAMS_MAX,
        }
    )


# Changes


def delete_stream(context: WriteContext, request: Request) -> bytes:
    service = context.service
    stream = stream_of(service, request)
    if service.transient_seconds:
        service.event_streams.save(context.write_batch, in_transition(service, stream, DELETING))
    else:
        service.event_streams.remove(context.write_batch, stream)
    return NO_BODY


def update_stream_mode(context: WriteContext, request: Request) -> bytes:
    _refuse_unsupported_settings(request)
    stream = active_stream(context.service, request)
    mode = request["StreamModeDetails"]["StreamMode"]
    return _save(context, replace(stream, mode=mode), UPDATING)


def update_max_record_size(context: WriteContext, request: Request) -> bytes:
    stream = active_stream(context.service, request)
    return _save(context, replace(stream, record_kib_max=request["MaxRecordSizeInKiB"]), UPDATING)


def increase_stream_retention_period(context: WriteContext, request: Request) -> bytes:
    stream, hours = _stream_and_hours(context.service, request)
    if hours < stream.retention_hours:
        raise InvalidArgumentException(
            f"Requested retention period ({hours} hours) for stream {stream.name} can not be "
            f"shorter than existing retention period ({stream.retention_hours} hours). "
            "Use DecreaseRetentionPeriod API."
        )
    return _save(context, replace(stream, retention_hours=hours), UPDATING)


def decrease_stream_retention_period(context: WriteContext, request: Request) -> bytes:
    stream, hours = _stream_and_hours(context.service, request)
    if hours > stream.retention_hours:
        raise InvalidArgumentException(
            f"Requested retention period ({hours} hours) for stream {stream.name} can not be "
            f"longer than existing retention period ({stream.retention_hours} hours). "
            "Use IncreaseRetentionPeriod API."
        )
    return _save(context, replace(stream, retention_hours=hours), UPDATING)


def _stream_and_hours(service: DatabaseService, request: Request) -> tuple[EventStream, int]:
    hours: int = request["RetentionPeriodHours"]
    if hours < 1:
        raise ValidationException(HOURS_NEEDED.format(hours))
    stream = active_stream(service, request)
    if hours < EVENT_RETENTION_HOURS_MIN:
        raise InvalidArgumentException(
            f"Minimum allowed retention period is {EVENT_RETENTION_HOURS_MIN} hours. "
            f"Requested retention period ({hours} hours) is too short."
        )
    if hours > EVENT_RETENTION_HOURS_MAX:
        raise InvalidArgumentException(
            f"Maximum allowed retention period is {EVENT_RETENTION_HOURS_MAX} hours. "
            f"Requested retention period ({hours} hours) is too long."
        )
    return stream, hours


def _save(context: WriteContext, stream: EventStream, transition: str) -> bytes:
    service = context.service
    service.event_streams.save(context.write_batch, in_transition(service, stream, transition))
    return NO_BODY
