"""Kinesis: ListShards, SplitShard, MergeShards, UpdateShardCount."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Literal, TypedDict

import msgspec
from msgspec.structs import replace

from partita.database.logs.event_log.event_records import read_tail
from partita.database.logs.event_log.event_retention import HOUR
from partita.database.logs.event_log.event_streams import ON_DEMAND, UPDATING, EventStream
from partita.database.logs.event_log.shard_splits import EventShard, Resharding
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.response_members import encode
from partita.errors import (
    ExpiredNextTokenException,
    InvalidArgumentException,
    LimitExceededException,
    ResourceNotFoundException,
    ValidationException,
)
from partita.foundation.service_limits import EVENT_TOKEN_SECONDS, LIST_EVENT_SHARDS_PAGE_MAX
from partita.streams.kinesis_resources import (
    NO_BODY,
    active_stream,
    find_shard,
    find_stream,
    shard_number,
    stream_arn,
    stream_name,
    stream_phrase,
)
from partita.streams.kinesis_streams import (
    INVALID_TOKEN,
    check_shard_limit,
    described_shard,
    in_transition,
    page_limit,
    visible_shards,
)

TOKEN_OR_NAME = "Either NextToken or StreamName should be provided."
TOKEN_ALONE = "NextToken and {} cannot be provided together."
# Reported by clients of the service, except for StreamCreationTimestamp.
NOT_WITH_TOKEN = (
    *("StreamName", "StreamARN", "ExclusiveStartShardId", "StreamCreationTimestamp"),
    "ShardFilter",
)
GROWTH_SECONDS = 10.0
ON_DEMAND_SHARDS_MAX = 200
"""From the Kinesis guide, "On-demand mode": a stream takes up to 200 MB a second."""
FILTER_MEMBERS = {
    "AFTER_SHARD_ID": "ShardId",
    "AT_TIMESTAMP": "Timestamp",
    "FROM_TIMESTAMP": "Timestamp",
}


# ListShards


class _ShardFilter(TypedDict, total=False):
    """A ShardFilter, with types that are checked when a token is decoded, which may be forged."""

    Type: Literal[
        "AFTER_SHARD_ID",
        "AT_LATEST",
        "AT_TIMESTAMP",
        "AT_TRIM_HORIZON",
        "FROM_TIMESTAMP",
        "FROM_TRIM_HORIZON",
    ]
    ShardId: str
    Timestamp: float


class _ListShardsToken(msgspec.Struct):
    """A NextToken: where the next page of a list of shards begins."""

    stream: str
    number: int
    after: str
    made_at: float
    shard_filter: _ShardFilter = {}


def list_shards(context: ReadContext, request: Request) -> bytes:
    service = context.service
    page_start, stream = _page_start(service, request)
    limit = page_limit(request, "MaxResults", LIST_EVENT_SHARDS_PAGE_MAX)
    passes = _filter(service, stream, page_start.shard_filter)
    shards = [
        shard
        for shard in visible_shards(service, stream)
        if shard.shard_id > page_start.after and passes(shard)
    ]
    page: dict[str, Any] = {"Shards": [described_shard(shard) for shard in shards[:limit]]}
    if len(shards) > limit:
        token = replace(page_start, after=shards[limit - 1].shard_id, made_at=service.clock())
        page["NextToken"] = urlsafe_b64encode(msgspec.json.encode(token)).decode()
    return encode(page)


def _page_start(service: DatabaseService, request: Request) -> tuple[_ListShardsToken, EventStream]:
    """Returns the token of a request; for a request without one, a token of the first page."""
    if "NextToken" not in request:
        if "StreamName" not in request and "StreamARN" not in request:
            raise InvalidArgumentException(TOKEN_OR_NAME)
        stream = find_stream(service, stream_name(request))
        created_at = request.get("StreamCreationTimestamp", stream.created_at)
        if int(created_at) != int(stream.created_at):
            raise ResourceNotFoundException(f"{stream_phrase(service, stream.name)} not found.")
        after = request.get("ExclusiveStartShardId", "")
        shard_filter = request.get("ShardFilter", {})
        return _ListShardsToken(stream.name, stream.number, after, 0.0, shard_filter), stream
    for member in NOT_WITH_TOKEN:
        if member in request:
            raise InvalidArgumentException(TOKEN_ALONE.format(member))
    token = _token(request["NextToken"])
    if service.clock() > token.made_at + EVENT_TOKEN_SECONDS:
        raise ExpiredNextTokenException(
            f"The NextToken has expired: it is valid for {EVENT_TOKEN_SECONDS} seconds."
        )
    stream = find_stream(service, token.stream)
    if stream.number != token.number:
        raise ResourceNotFoundException(f"{stream_phrase(service, stream.name)} not found.")
    return token, stream


def _token(text: str) -> _ListShardsToken:
    try:
        return msgspec.json.decode(urlsafe_b64decode(text), type=_ListShardsToken)
    except ValueError:
        raise InvalidArgumentException(INVALID_TOKEN) from None


def token_stream(text: str) -> str:
    """Returns the name of the stream whose shards a token continues to list."""
    return _token(text).stream


def _filter(
    service: DatabaseService, stream: EventStream, shard_filter: _ShardFilter
) -> Callable[[EventShard], bool]:
    kind = shard_filter.get("Type", "FROM_TRIM_HORIZON")
    needed = FILTER_MEMBERS.get(kind)
    if needed is not None and needed not in shard_filter:
        raise InvalidArgumentException(f"{needed} is required for a ShardFilter of type {kind}.")
    horizon = max(stream.created_at, service.clock() - stream.retention_hours * HOUR)
    moment = shard_filter.get("Timestamp", horizon)
    filters: dict[str, Callable[[EventShard], bool]] = {
        "FROM_TRIM_HORIZON": lambda shard: True,
        "AFTER_SHARD_ID": lambda shard: shard.shard_id > shard_filter["ShardId"],
        "AT_LATEST": lambda shard: shard.is_open,
        "AT_TRIM_HORIZON": lambda shard: _was_open(shard, horizon),
        "AT_TIMESTAMP": lambda shard: _was_open(shard, moment),
        "FROM_TIMESTAMP": lambda shard: shard.closed_at is None or shard.closed_at >= moment,
    }
    return filters[kind]


def _was_open(shard: EventShard, moment: float) -> bool:
    return shard.opened_at <= moment and (shard.closed_at is None or shard.closed_at >= moment)


# SplitShard, MergeShards, UpdateShardCount


def split_shard(context: WriteContext, request: Request) -> bytes:
    service = context.service
    stream, [shard] = _stream_and_shards(service, request, "ShardToSplit")
    check_shard_limit(service, 1)
    hash_key = int(request["NewStartingHashKey"])
    if not shard.first_hash_key + 1 < hash_key < shard.last_hash_key:
        first, last = shard.hash_keys
        raise InvalidArgumentException(
            f"NewStartingHashKey {hash_key} used in SplitShard() on shard {shard.shard_id} in "
            f"stream {stream.name} under account {service.account_id} is not both greater than one "
            f"plus the shard's StartingHashKey {first} and less than the shard's EndingHashKey "
            f"{last}."
        )
    return _reshard(context, stream, lambda cut: cut.split(shard, hash_key))


def merge_shards(context: WriteContext, request: Request) -> bytes:
    service = context.service
    stream, shards = _stream_and_shards(service, request, "ShardToMerge", "AdjacentShardToMerge")
    lower, upper = shards
    if lower.last_hash_key + 1 != upper.first_hash_key:
        raise InvalidArgumentException(
            f"Shards {lower.shard_id} and {upper.shard_id} in stream {stream.name} under account "
            f"{service.account_id} are not an adjacent pair of shards eligible for merging"
        )
    return _reshard(context, stream, lambda cut: cut.merge(lower, upper))


def update_shard_count(context: WriteContext, request: Request) -> bytes:
    service = context.service
    stream = _provisioned_stream(service, request)
    count, target = len(stream.open_shards), request["TargetShardCount"]
    if target > 2 * count:
        raise LimitExceededException(_too_far("up over double", count, target))
    if target < count / 2:
        raise LimitExceededException(_too_far("down below half", count, target))
    check_shard_limit(service, target - count)
    _reshard(context, stream, lambda cut: cut.resize(target))
    return encode(
        {
            "StreamName": stream.name,
            "StreamARN": stream_arn(service, stream.name),
            "CurrentShardCount": count,
            "TargetShardCount": target,
        }
    )


def _too_far(direction: str, count: int, target: int) -> str:
    return (
        f"UpdateShardCount cannot scale {direction} your current open shard count. "
        f"Current open shard count: {count} Target shard count: {target}"
    )


def _stream_and_shards(
    service: DatabaseService, request: Request, *members: str
) -> tuple[EventStream, list[EventShard]]:
    """Returns the stream and the shards that some members name.

    The service refuses a malformed shard name before it looks for the stream.
    """
    name = stream_name(request)
    numbers = [shard_number(service, name, request[member]) for member in members]
    stream = _provisioned_stream(service, request)
    shards = [find_shard(service, stream, number) for number in numbers]
    for shard in shards:
        if not shard.is_open:
            raise InvalidArgumentException(
                f"Shard {shard.shard_id} in stream {stream.name} under account "
                f"{service.account_id} has already been merged or split, and thus is not eligible "
                "for merging or splitting."
            )
    return stream, shards


def _provisioned_stream(service: DatabaseService, request: Request) -> EventStream:
    stream = active_stream(service, request)
    if stream.mode == ON_DEMAND:
        raise ValidationException(
            f"Request is invalid. {stream_phrase(service, stream.name)} is in On-Demand mode."
        )
    return stream


def split_hot_shards(
    context: WriteContext, stream: EventStream, hot: list[EventShard]
) -> EventStream:
    """Splits the hot shards of an on-demand stream in the middle, up to the limit of shards.

    New shards are not split again for a while, until their load is known.
    """
    now = context.service.clock()
    room = ON_DEMAND_SHARDS_MAX - len(stream.open_shards)
    due = [
        shard
        for shard in hot
        if now - shard.opened_at >= GROWTH_SECONDS
        and shard.last_hash_key - shard.first_hash_key > 2
    ][: max(0, room)]
    if not due:
        return stream

    def split(cut: Resharding) -> None:
        for shard in due:
            cut.split(shard, (shard.first_hash_key + shard.last_hash_key) // 2 + 1)

    return _save_resharded(context, stream, split)


def _reshard(
    context: WriteContext, stream: EventStream, change: Callable[[Resharding], None]
) -> bytes:
    _save_resharded(context, stream, change)
    return NO_BODY


def _save_resharded(
    context: WriteContext, stream: EventStream, change: Callable[[Resharding], None]
) -> EventStream:
    lasts = {
        shard.number: read_tail(context.write_batch, stream, shard).last
        for shard in stream.open_shards
    }
    cut = Resharding(stream.shards, lasts, stream.next_shard_number, context.service.clock())
    change(cut)
    changed = replace(stream, shards=cut.shards, next_shard_number=cut.next_number)
    changed = in_transition(context.service, changed, UPDATING)
    context.service.event_streams.save(context.write_batch, changed)
    return changed
