"""Which rights the operations of Kinesis need. A position in a stream is a right on that stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from partita.database.events.streams import name_in_arn
from partita.database.operations.context import Request, Service
from partita.errors import DynamoDBError
from partita.server.protocol.model import KINESIS_NAMES
from partita.server.security.rights.needs import (
    Keys,
    Need,
    Rights,
    request_tags,
    resource_tags,
)
from partita.streams.kinesis.records import iterator_stream
from partita.streams.kinesis.resources import stream_arn, stream_name
from partita.streams.kinesis.shards import token_stream

ALL = "*"


def _named(request: Request) -> str:
    return stream_name(request)


def _created(request: Request) -> str:
    name: str = request["StreamName"]
    return name


def _by_iterator(request: Request) -> str:
    return iterator_stream(request["ShardIterator"])


def _listed(request: Request) -> str:
    return token_stream(request["NextToken"]) if "NextToken" in request else stream_name(request)


def _by_arn(request: Request) -> str:
    return name_in_arn(request["ResourceARN"])


def _keys(service: Service, name: str, request: Request) -> Keys:
    stream = service.event_streams.find(name)
    keys = {**resource_tags(stream.tags if stream else {})}
    if isinstance(request.get("Tags"), dict):
        keys |= request_tags(request["Tags"])
    if request.get("TagKeys"):
        keys["aws:tagkeys"] = tuple(request["TagKeys"])
    return keys


def _on_stream(operation: str, named: Callable[[Request], str] = _named) -> Rights:
    action = f"kinesis:{operation}"

    def rights(service: Service, request: Request) -> Sequence[Need]:
        try:
            name = named(request)
        except DynamoDBError:
            # The operation refuses it too.
            return (Need(action, stream_arn(service, ALL)),)
        keys = partial(_keys, service, name, request)
        return (Need(action, stream_arn(service, name), keys),)

    return rights


def _on_all(operation: str) -> Rights:
    return lambda service, request: (Need(f"kinesis:{operation}", stream_arn(service, ALL)),)


RIGHTS: dict[str, Rights] = {
    KINESIS_NAMES + operation: _on_stream(operation, named)
    for named, operations in {
        _named: (
            *("AddTagsToStream", "DecreaseStreamRetentionPeriod", "DeleteStream"),
            *("DescribeStream", "DescribeStreamSummary", "GetShardIterator"),
            *("IncreaseStreamRetentionPeriod", "ListTagsForStream", "MergeShards"),
            *("PutRecord", "PutRecords", "RemoveTagsFromStream", "SplitShard"),
            *("UpdateMaxRecordSize", "UpdateShardCount", "UpdateStreamMode"),
        ),
        _created: ("CreateStream",),
        _by_iterator: ("GetRecords",),
        _listed: ("ListShards",),
        _by_arn: ("ListTagsForResource", "TagResource", "UntagResource"),
    }.items()
    for operation in operations
}
RIGHTS |= {
    KINESIS_NAMES + operation: _on_all(operation) for operation in ("DescribeLimits", "ListStreams")
}
