"""What the tests of streams share: tables with a stream, and reading its shards to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

VIEW_TYPES = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")
NO_SUCH_ARN = (
    "arn:aws:dynamodb:us-east-1:123456789012:table/no_such_table/stream/2026-01-01T00:00:00.000"
)

Item = dict[str, Any]


def with_stream(view_type: str = "NEW_AND_OLD_IMAGES") -> dict[str, Any]:
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": view_type}}


def arn_of(client: Any, table: str) -> str:
    return str(client.describe_table(TableName=table)["Table"]["LatestStreamArn"])


def shards_of(streams: Any, arn: str) -> list[Item]:
    shards: list[Item] = []
    asked: dict[str, str] = {}
    while True:
        page = streams.describe_stream(StreamArn=arn, **asked)["StreamDescription"]
        shards += page["Shards"]
        if "LastEvaluatedShardId" not in page:
            return shards
        asked = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}


def iterator_of(
    streams: Any, arn: str, shard_id: str, kind: str = "TRIM_HORIZON", **more: Any
) -> str:
    answer = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard_id, ShardIteratorType=kind, **more
    )
    return str(answer["ShardIterator"])


def records_from(streams: Any, iterator: str, **more: Any) -> list[Item]:
    """Returns all present records from an iterator on."""
    found: list[Item] = []
    while True:
        page = streams.get_records(ShardIterator=iterator, **more)
        found += page["Records"]
        if not page["Records"] or "NextShardIterator" not in page:
            return found
        iterator = page["NextShardIterator"]


def records_of(streams: Any, arn: str) -> list[Item]:
    """Returns all records of a stream, in the order of their sequence numbers."""
    found = [
        record
        for shard in shards_of(streams, arn)
        for record in records_from(streams, iterator_of(streams, arn, shard["ShardId"]))
    ]
    return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """The type and the text of the error that answers the request."""
    with pytest.raises(ClientError) as refused:
        call(**request)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]
