"""DescribeStream: a stream's settings, status and shards."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import VALIDATION
from .stream_reading import NO_SUCH_ARN, VIEW_TYPES, arn_of, refusal, shards_of, with_stream


def describe(streams: Any, arn: str, **request: Any) -> dict[str, Any]:
    return dict(streams.describe_stream(StreamArn=arn, **request)["StreamDescription"])


@pytest.mark.parametrize("view_type", VIEW_TYPES)
def test_a_new_stream(client: Any, streams: Any, table: Any, view_type: str) -> None:
    name = table(sk="N", **with_stream(view_type))
    table_description = client.describe_table(TableName=name)["Table"]
    description = describe(streams, table_description["LatestStreamArn"])
    shards = description.pop("Shards")
    created_at = description.pop("CreationRequestDateTime")
    assert created_at == table_description["CreationDateTime"]
    assert description == {
        "StreamArn": table_description["LatestStreamArn"],
        "StreamLabel": table_description["LatestStreamLabel"],
        "StreamStatus": "ENABLED",
        "StreamViewType": view_type,
        "TableName": name,
        "KeySchema": table_description["KeySchema"],
    }
    assert len(shards) == 4
    for shard in shards:
        assert 28 <= len(shard["ShardId"]) <= 65
        assert shard["SequenceNumberRange"].keys() == {"StartingSequenceNumber"}
        assert shard["SequenceNumberRange"]["StartingSequenceNumber"].isdecimal()
        assert "ParentShardId" not in shard


@pytest.mark.parametrize(
    ("read", "write", "count"), [(1, 1, 1), (3000, 1, 2), (3000, 1000, 2), (1, 9000, 10)]
)
def test_a_stream_has_one_shard_for_each_partition(
    client: Any, streams: Any, table: Any, read: int, write: int, count: int
) -> None:
    # recorded
    units = {"ReadCapacityUnits": read, "WriteCapacityUnits": write}
    arn = arn_of(client, table(**with_stream(), ProvisionedThroughput=units))
    assert len(shards_of(streams, arn)) == count


def test_a_stream_that_is_switched_on_later_has_one_shard_for_each_partition(
    client: Any, streams: Any, table: Any
) -> None:
    small = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    for more, count in (({}, 4), ({"ProvisionedThroughput": small}, 1)):
        name = table(**more)
        client.update_table(TableName=name, **with_stream())
        assert len(shards_of(streams, arn_of(client, name))) == count


def test_shards_come_page_by_page_in_the_order_of_their_names(
    client: Any, streams: Any, table: Any
) -> None:
    arn = arn_of(client, table(**with_stream()))
    whole = [shard["ShardId"] for shard in shards_of(streams, arn)]
    paged: list[str] = []
    asked: dict[str, str] = {}
    while True:
        page = describe(streams, arn, Limit=1, **asked)
        paged += [shard["ShardId"] for shard in page["Shards"]]
        if "LastEvaluatedShardId" not in page:
            break
        assert page["LastEvaluatedShardId"] == paged[-1]
        asked = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}
    assert paged == whole == sorted(whole)
    assert describe(streams, arn, ExclusiveStartShardId=whole[-1])["Shards"] == []


def test_a_page_may_begin_after_a_shard_that_there_is_not(
    client: Any, streams: Any, table: Any
) -> None:
    # Alternator's tests, on AWS
    arn = arn_of(client, table(**with_stream()))
    assert describe(streams, arn, ExclusiveStartShardId="z" * 40)["Shards"] == []


def test_a_stream_that_is_switched_off_has_only_closed_shards(
    client: Any, streams: Any, table: Any
) -> None:
    name = table(**with_stream("KEYS_ONLY"))
    arn = arn_of(client, name)
    client.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
    description = describe(streams, arn)
    assert description["StreamStatus"] == "DISABLED"
    assert description["StreamViewType"] == "KEYS_ONLY"
    for shard in description["Shards"]:
        numbers = shard["SequenceNumberRange"]
        assert int(numbers["StartingSequenceNumber"]) <= int(numbers["EndingSequenceNumber"])


def test_a_deleted_table_has_left_its_stream(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    arn = arn_of(client, name)
    client.delete_table(TableName=name)
    assert describe(streams, arn)["StreamStatus"] == "DISABLED"


def test_shards_without_children_have_none(client: Any, streams: Any, table: Any) -> None:
    arn = arn_of(client, table(**with_stream()))
    parent = shards_of(streams, arn)[0]["ShardId"]
    filtered = {"Type": "CHILD_SHARDS", "ShardId": parent}
    assert describe(streams, arn, ShardFilter=filtered)["Shards"] == []


@pytest.mark.parametrize("shard_filter", [{}, {"Type": "PARENTS"}, {"Type": "CHILD_SHARDS"}])
def test_a_filter_says_of_what_and_which(
    client: Any, streams: Any, table: Any, shard_filter: dict[str, str]
) -> None:
    arn = arn_of(client, table(**with_stream()))
    request = {"StreamArn": arn, "ShardFilter": shard_filter}
    assert refusal(streams.describe_stream, **request)[0] == VALIDATION


def test_a_stream_that_there_is_not(streams: Any) -> None:
    assert refusal(streams.describe_stream, StreamArn=NO_SUCH_ARN) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Stream: {NO_SUCH_ARN} not found",
    )


def test_what_is_no_arn(streams: Any) -> None:
    # Alternator's tests, on AWS: a ValidationException
    assert refusal(streams.describe_stream, StreamArn="x" * 50) == (
        VALIDATION,
        "Invalid StreamArn",
    )


def test_the_arn_is_required(streams: Any) -> None:
    assert refusal(streams.describe_stream) == (
        VALIDATION,
        "1 validation error detected: Value null at 'streamArn' failed to satisfy constraint: "
        "Member must not be null",
    )


@pytest.mark.parametrize("limit", [0, 101])
def test_a_page_has_between_1_and_100_shards(
    client: Any, streams: Any, table: Any, limit: int
) -> None:
    arn = arn_of(client, table(**with_stream()))
    assert refusal(streams.describe_stream, StreamArn=arn, Limit=limit)[0] == VALIDATION
