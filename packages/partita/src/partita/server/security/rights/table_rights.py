"""The rights that operations on tables and streams need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from partita.database.logs.event_log.event_streams import name_in_arn
from partita.database.operations.operation_context import DatabaseService, table_name
from partita.server.security.rights.item_rights import (
    PREFIX,
    find_table,
    source_arn,
    table_arn,
    tags_of,
)
from partita.server.security.rights.requested_rights import (
    Keys,
    Request,
    RequestedRight,
    Rights,
    policy_of,
    request_tags,
)

STREAM: Final = "stream/"


def _tag_map(request: Request) -> dict[str, str]:
    return {tag.get("Key", ""): tag.get("Value", "") for tag in request.get("Tags", ())}


def _keys(service: DatabaseService, name: str, request: Request) -> Keys:
    keys = {**tags_of(find_table(service, name)), **request_tags(_tag_map(request))}
    if request.get("TagKeys"):
        keys["aws:tagkeys"] = tuple(request["TagKeys"])
    return keys


def _on_table(action: str) -> Rights:
    """Makes the rights of an operation that names a table, and perhaps one of its indexes."""

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        name = request["TableName"]
        arn = source_arn(service, name, request.get("IndexName"))
        keys = partial(_keys, service, name, request)
        return (RequestedRight(PREFIX + action, arn, keys, policy_of(find_table(service, name))),)

    return rights


def enable_kinesis(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    """Returns the rights to enable a Kinesis destination.

    The changes of the table are written to the stream from then on, so the caller needs the right
    to write there. (Developer guide, "Using IAM policies for Kinesis Data Streams and DynamoDB")
    """
    stream = f"arn:aws:kinesis:{service.region}:{service.account_id}:stream/"
    stream += name_in_arn(request["StreamArn"])
    return (
        *_on_table("EnableKinesisStreamingDestination")(service, request),
        RequestedRight("kinesis:DescribeStream", stream),
        RequestedRight("kinesis:PutRecords", stream),
    )


def create_table(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    name = request["TableName"]
    arn, keys = table_arn(service, name), partial(_keys, service, name, request)
    needs = [RequestedRight(f"{PREFIX}CreateTable", arn, keys)]
    if request.get("Tags"):
        needs.append(RequestedRight(f"{PREFIX}TagResource", arn, keys))
    if "ResourcePolicy" in request:
        needs.append(RequestedRight(f"{PREFIX}PutResourcePolicy", arn, keys))
    return needs


def _on_resource(action: str) -> Rights:
    """Makes the rights of an operation that names a table or a stream by its ARN.

    The account and the region in the ARN do not matter.
    """
    return lambda service, request: (
        _on_named(service, PREFIX + action, request["ResourceArn"], request),
    )


def _on_named(
    service: DatabaseService, action: str, resource: str, request: Request
) -> RequestedRight:
    """Returns the right on a table, or on its index or stream. A stream has its own policy."""
    name, slash, rest = table_name(resource).partition("/")
    table = find_table(service, name)
    kept = policy_of(table)
    if rest.startswith(STREAM):
        kept = table.stream_policies.get(rest.removeprefix(STREAM)) if table else None
    arn = f"{table_arn(service, name)}{slash}{rest}"
    return RequestedRight(action, arn, partial(_keys, service, name, request), kept)


def _on_all(action: str, kind: str = "table/*") -> Rights:
    """Makes the rights of an operation on no particular table. AWS's denials name `table/*`."""

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        arn = service.table_arn("").removesuffix("table/") + kind if kind != "*" else kind
        return (RequestedRight(PREFIX + action, arn),)

    return rights


def _optional_table(action: str) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        of = _on_table(action) if "TableName" in request else _on_all(action)
        return of(service, request)

    return rights


# Streams


def list_streams(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    name = request.get("TableName", "*")
    return (RequestedRight(f"{PREFIX}ListStreams", f"{service.table_arn(name)}/stream/*"),)


def _on_stream(action: str, named: Callable[[Request], str]) -> Rights:
    return lambda service, request: (_on_named(service, PREFIX + action, named(request), {}),)


def _in_iterator(request: Request) -> str:
    """Returns the stream of a shard iterator, which consists of its ARN, a bar and a position."""
    arn: str = request["ShardIterator"].partition("|")[0]
    return arn


def _stream_arn(request: Request) -> str:
    arn: str = request["StreamArn"]
    return arn


RIGHTS: Final[dict[str, Rights]] = {
    "CreateTable": create_table,
    "DeleteResourcePolicy": _on_resource("DeleteResourcePolicy"),
    "DeleteTable": _on_table("DeleteTable"),
    "DescribeContributorInsights": _on_table("DescribeContributorInsights"),
    "DescribeEndpoints": _on_all("DescribeEndpoints", "*"),
    "DescribeKinesisStreamingDestination": _on_table("DescribeKinesisStreamingDestination"),
    "DescribeLimits": _on_all("DescribeLimits", "*"),
    "DescribeStream": _on_stream("DescribeStream", _stream_arn),
    "DescribeTable": _on_table("DescribeTable"),
    "DescribeTableReplicaAutoScaling": _on_table("DescribeTableReplicaAutoScaling"),
    "DescribeTimeToLive": _on_table("DescribeTimeToLive"),
    "DisableKinesisStreamingDestination": _on_table("DisableKinesisStreamingDestination"),
    "EnableKinesisStreamingDestination": enable_kinesis,
    "GetRecords": _on_stream("GetRecords", _in_iterator),
    "GetResourcePolicy": _on_resource("GetResourcePolicy"),
    "GetShardIterator": _on_stream("GetShardIterator", _stream_arn),
    "ListContributorInsights": _optional_table("ListContributorInsights"),
    "ListStreams": list_streams,
    "ListTables": _on_all("ListTables"),
    "ListTagsOfResource": _on_resource("ListTagsOfResource"),
    "PutResourcePolicy": _on_resource("PutResourcePolicy"),
    "TagResource": _on_resource("TagResource"),
    "UntagResource": _on_resource("UntagResource"),
    "UpdateContributorInsights": _on_table("UpdateContributorInsights"),
    "UpdateKinesisStreamingDestination": _on_table("UpdateKinesisStreamingDestination"),
    "UpdateTable": _on_table("UpdateTable"),
    "UpdateTableReplicaAutoScaling": _on_table("UpdateTableReplicaAutoScaling"),
    "UpdateTimeToLive": _on_table("UpdateTimeToLive"),
}
