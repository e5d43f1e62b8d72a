"""The rights that the operations of Kinesis need.

Shard iterators and list tokens contain the name of their stream, and need the right on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from partita.database.logs.event_log.event_streams import name_in_arn
from partita.database.operations.operation_context import DatabaseService, Request
from partita.errors import DynamoDBError
from partita.server.protocol.service_model import KINESIS_NAMES
from partita.server.security.rights.requested_rights import (
    Keys,
    RequestedRight,
    Rights,
    request_tags,
    resource_tags,
)
from partita.streams.kinesis_records import iterator_stream
from partita.streams.kinesis_resources import stream_arn, stream_name
from partita.streams.kinesis_shards import token_stream

ALL = "*"


def _by_name(request: Request) -> str:
    return stream_name(request)


def _by_created_name(request: Request) -> str:
    name: str = request["StreamName"]
    return name


def _by_iterator(request: Request) -> str:
    return iterator_stream(request["ShardIterator"])


def _by_token_or_name(request: Request) -> str:
    return token_stream(request["NextToken"]) if "NextToken" in request else stream_name(request)


def _by_arn(request: Request) -> str:
    return name_in_arn(request["ResourceARN"])


def _keys(service: DatabaseService, name: str, request: Request) -> Keys:
    stream = service.event_streams.find(name)
    keys = {**resource_tags(stream.tags if stream else {})}
    if isinstance(request.get("Tags"), dict):
        keys |= request_tags(request["Tags"])
    if request.get("TagKeys"):
        keys["aws:tagkeys"] = tuple(request["TagKeys"])
    return keys


def _on_stream(operation: str, find_name: Callable[[Request], str] = _by_name) -> Rights:
    action = f"kinesis:{operation}"

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        try:
            name = find_name(request)
        except DynamoDBError:
            # The operation will refuse the request for the same reason.
            return (RequestedRight(action, stream_arn(service, ALL)),)
        keys = partial(_keys, service, name, request)
        return (RequestedRight(action, stream_arn(service, name), keys),)

    return rights


def _on_all(operation: str) -> Rights:
    return lambda service, request: (
        RequestedRight(f"kinesis:{operation}", stream_arn(service, ALL)),
    )


RIGHTS: dict[str, Rights] = {
    KINESIS_NAMES + operation: _on_stream(operation, find_name)
    for find_name, operations in {
        _by_name: (
            *("AddTagsToStream", "DecreaseStreamRetentionPeriod", "DeleteStream"),
            *("DescribeStream", "DescribeStreamSummary", "GetShardIterator"),
            *("IncreaseStreamRetentionPeriod", "ListTagsForStream", "MergeShards"),
            *("PutRecord", "PutRecords", "RemoveTagsFromStream", "SplitShard"),
            *("UpdateMaxRecordSize", "UpdateShardCount", "UpdateStreamMode"),
        ),
        _by_created_name: ("CreateStream",),
        _by_iterator: ("GetRecords",),
        _by_token_or_name: ("ListShards",),
        _by_arn: ("ListTagsForResource", "TagResource", "UntagResource"),
    }.items()
    for operation in operations
}
RIGHTS |= {
    KINESIS_NAMES + operation: _on_all(operation) for operation in ("DescribeLimits", "ListStreams")
}
