"""Kinesis: streams are created, described, listed, changed and deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from partita.foundation.service_limits import (
    EVENT_RETENTION_HOURS_MAX,
    EVENT_RETENTION_HOURS_MIN,
    EVENT_SHARDS_ON_DEMAND,
    LIST_EVENT_STREAMS_PAGE_MAX,
    ON_DEMAND_STREAMS_MAX,
)

from .event_reading import ACCOUNT, open_shards, put, records_of
from .refusals import refusal

INVALID = "InvalidArgumentException"
NOT_FOUND = "ResourceNotFoundException"
Create = Callable[..., str]


def summary_of(kinesis: Any, name: str) -> dict[str, Any]:
    answer = kinesis.describe_stream_summary(StreamName=name)
    summary: dict[str, Any] = answer["StreamDescriptionSummary"]
    return summary


def test_a_new_stream_is_described(kinesis: Any, event_stream: Create) -> None:
    before = int(time.time())
    name = event_stream(2)
    described = kinesis.describe_stream(StreamName=name)["StreamDescription"]
    shards = described.pop("Shards")
    assert before <= described.pop("StreamCreationTimestamp").timestamp() <= time.time()
    assert described == {
        "StreamName": name,
        "StreamARN": f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/{name}",
        "StreamStatus": "ACTIVE",
        "StreamModeDetails": {"StreamMode": "PROVISIONED"},
        "HasMoreShards": False,
        "RetentionPeriodHours": EVENT_RETENTION_HOURS_MIN,
        "EnhancedMonitoring": [{"ShardLevelMetrics": []}],
        "EncryptionType": "NONE",
    }
    assert [shard["ShardId"] for shard in shards] == [
        "shardId-000000000000",
        "shardId-000000000001",
    ]
    half = 1 << 127
    assert [shard["HashKeyRange"] for shard in shards] == [
        {"StartingHashKey": "0", "EndingHashKey": str(half - 1)},
        {"StartingHashKey": str(half), "EndingHashKey": str(2 * half - 1)},
    ]
    for shard in shards:
        assert len(shard["SequenceNumberRange"]["StartingSequenceNumber"]) == 56
        assert shard.keys() == {"ShardId", "HashKeyRange", "SequenceNumberRange"}


def test_its_summary_counts_open_shards(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(3)
    kinesis.merge_shards(
        StreamName=name,
        ShardToMerge="shardId-000000000000",
        AdjacentShardToMerge="shardId-000000000001",
    )
    summary = summary_of(kinesis, name)
    assert summary["OpenShardCount"] == 2
    assert summary["ConsumerCount"] == 0
    assert summary["MaxRecordSizeInKiB"] == 1024


def test_a_stream_may_be_named_by_its_arn(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    arn = summary_of(kinesis, name)["StreamARN"]
    assert kinesis.describe_stream(StreamARN=arn)["StreamDescription"]["StreamName"] == name
    kinesis.put_record(StreamARN=arn, StreamName=name, Data=b"x", PartitionKey="k")
    assert len(records_of(kinesis, name)) == 1
    assert refusal(kinesis.describe_stream, StreamARN=arn, StreamName="other")[0] == INVALID


def test_a_stream_that_there_is_not(kinesis: Any) -> None:
    text = f"Stream no-such-stream under account {ACCOUNT} not found."
    named = {"StreamName": "no-such-stream"}
    assert refusal(kinesis.describe_stream, **named) == (NOT_FOUND, text)
    assert refusal(kinesis.describe_stream_summary, **named) == (NOT_FOUND, text)
    assert refusal(kinesis.delete_stream, **named) == (NOT_FOUND, text)
    assert refusal(kinesis.list_shards, **named) == (NOT_FOUND, text)
    put_record = {**named, "Data": b"", "PartitionKey": "k"}
    assert refusal(kinesis.put_record, **put_record) == (NOT_FOUND, text)


def test_a_request_without_a_stream(kinesis: Any) -> None:
    assert refusal(kinesis.describe_stream) == (
        "ValidationException",
        "1 validation error detected: Value null at 'streamName' failed to satisfy constraint: "
        "Member must not be null",
    )


def test_a_name_is_given_once(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    assert refusal(kinesis.create_stream, StreamName=name, ShardCount=1) == (
        "ResourceInUseException",
        f"Stream {name} under account {ACCOUNT} already exists.",
    )


@pytest.mark.parametrize(
    "request_",
    [
        {"StreamName": "", "ShardCount": 1},
        {"StreamName": "a b", "ShardCount": 1},
        {"StreamName": "a" * 129, "ShardCount": 1},
        {"StreamName": "a", "ShardCount": 0},
        {"StreamName": "a", "StreamModeDetails": {"StreamMode": "PROVISIONED"}},
        {"ShardCount": 1},
        {"StreamName": "a", "ShardCount": 1, "StreamModeDetails": {"StreamMode": "x"}},
        {"StreamName": "a", "ShardCount": 1, "StreamModeDetails": {"StreamMode": "ON_DEMAND"}},
        {"StreamName": "a", "ShardCount": 1, "MaxRecordSizeInKiB": 10_241},
    ],
)
def test_what_is_no_stream(kinesis: Any, request_: dict[str, Any]) -> None:
    assert refusal(kinesis.create_stream, **request_)[0] == "ValidationException"


@pytest.mark.parametrize(
    "more", [{"WarmThroughputMiBps": 1}, {"RecordDistributionStrategy": "AUTO"}]
)
def test_what_is_not_built_is_refused(kinesis: Any, more: dict[str, Any]) -> None:
    assert refusal(kinesis.create_stream, StreamName="a", ShardCount=1, **more)[0] == INVALID


def test_a_stream_on_demand(kinesis: Any, event_stream: Create) -> None:
    before = kinesis.describe_limits()["OnDemandStreamCount"]
    name = event_stream(None, StreamModeDetails={"StreamMode": "ON_DEMAND"})
    summary = summary_of(kinesis, name)
    assert summary["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}
    assert summary["OpenShardCount"] == EVENT_SHARDS_ON_DEMAND
    limits = kinesis.describe_limits()
    assert limits["OnDemandStreamCount"] == before + 1
    assert limits["OnDemandStreamCountLimit"] == ON_DEMAND_STREAMS_MAX
    first = "shardId-000000000000"
    assert refusal(
        kinesis.split_shard, StreamName=name, ShardToSplit=first, NewStartingHashKey="100"
    ) == (
        "ValidationException",
        f"Request is invalid. Stream {name} under account {ACCOUNT} is in On-Demand mode.",
    )
    provisioned = {"StreamMode": "PROVISIONED"}
    kinesis.update_stream_mode(StreamARN=summary["StreamARN"], StreamModeDetails=provisioned)
    assert summary_of(kinesis, name)["StreamModeDetails"] == provisioned
    kinesis.update_shard_count(StreamName=name, TargetShardCount=2, ScalingType="UNIFORM_SCALING")
    assert len(open_shards(kinesis, name)) == 2


def test_a_stream_without_mode_and_shards_is_on_demand(kinesis: Any, event_stream: Create) -> None:
    summary = summary_of(kinesis, event_stream(None))
    assert summary["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}
    assert summary["OpenShardCount"] == EVENT_SHARDS_ON_DEMAND


def test_streams_are_listed_in_pages(kinesis: Any, event_stream: Create) -> None:
    made = {event_stream() for _ in range(3)}
    first = min(made)
    page = kinesis.list_streams(ExclusiveStartStreamName=first[:-1], Limit=2)
    assert page["HasMoreStreams"]
    following = kinesis.list_streams(NextToken=page["NextToken"])
    assert not following["HasMoreStreams"]
    named = page["StreamNames"] + following["StreamNames"]
    assert named == sorted(named)
    assert made <= set(named)
    assert [one["StreamName"] for one in page["StreamSummaries"]] == page["StreamNames"]
    assert {one["StreamStatus"] for one in page["StreamSummaries"]} == {"ACTIVE"}
    again = kinesis.list_streams(ExclusiveStartStreamName=page["StreamNames"][-1])
    assert again["StreamNames"] == following["StreamNames"]
    assert refusal(kinesis.list_streams, NextToken="!")[0] == INVALID


def test_a_page_has_a_hundred_streams(kinesis: Any, event_stream: Create) -> None:
    for _ in range(LIST_EVENT_STREAMS_PAGE_MAX + 1):
        event_stream()
    for limit in ({}, {"Limit": 10_000}):
        assert len(kinesis.list_streams(**limit)["StreamNames"]) == LIST_EVENT_STREAMS_PAGE_MAX


def test_the_retention_grows_and_shrinks(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    longest = EVENT_RETENTION_HOURS_MAX
    kinesis.increase_stream_retention_period(StreamName=name, RetentionPeriodHours=longest)
    assert summary_of(kinesis, name)["RetentionPeriodHours"] == longest
    kinesis.decrease_stream_retention_period(StreamName=name, RetentionPeriodHours=48)
    assert summary_of(kinesis, name)["RetentionPeriodHours"] == 48


@pytest.mark.parametrize(
    ("operation", "hours", "text"),
    [
        (
            "increase_stream_retention_period",
            23,
            "Minimum allowed retention period is 24 hours. "
            "Requested retention period (23 hours) is too short.",
        ),
        (
            "increase_stream_retention_period",
            8761,
            "Maximum allowed retention period is 8760 hours. "
            "Requested retention period (8761 hours) is too long.",
        ),
        (
            "decrease_stream_retention_period",
            25,
            "Requested retention period (25 hours) for stream {} can not be longer than existing "
            "retention period (24 hours). Use IncreaseRetentionPeriod API.",
        ),
        (
            "decrease_stream_retention_period",
            23,
            "Minimum allowed retention period is 24 hours. "
            "Requested retention period (23 hours) is too short.",
        ),
    ],
)
def test_a_retention_that_cannot_be(
    kinesis: Any, event_stream: Create, operation: str, hours: int, text: str
) -> None:
    name = event_stream()
    call = getattr(kinesis, operation)
    refused = refusal(call, StreamName=name, RetentionPeriodHours=hours)
    assert refused == (INVALID, text.format(name))


@pytest.mark.parametrize("hours", [0, -1])
def test_a_retention_has_an_hour_at_least(kinesis: Any, hours: int) -> None:
    """The error is raised before the stream is looked up."""
    for call in (
        kinesis.increase_stream_retention_period,
        kinesis.decrease_stream_retention_period,
    ):
        assert refusal(call, StreamName="no-stream", RetentionPeriodHours=hours) == (
            "ValidationException",
            f"1 validation error detected: Value '{hours}' at 'retentionPeriodHours' failed to "
            "satisfy constraint: Member must have value greater than or equal to 1",
        )


def test_a_retention_cannot_be_increased_to_less(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    kinesis.increase_stream_retention_period(StreamName=name, RetentionPeriodHours=30)
    assert refusal(
        kinesis.increase_stream_retention_period, StreamName=name, RetentionPeriodHours=29
    ) == (
        INVALID,
        f"Requested retention period (29 hours) for stream {name} can not be shorter than existing "
        "retention period (30 hours). Use DecreaseRetentionPeriod API.",
    )


def test_a_stream_of_the_same_name_begins_empty(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    put(kinesis, name, b"old")
    iterator = kinesis.get_shard_iterator(
        StreamName=name, ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    kinesis.delete_stream(StreamName=name)
    assert refusal(kinesis.describe_stream_summary, StreamName=name)[0] == NOT_FOUND
    kinesis.create_stream(StreamName=name, ShardCount=1)
    assert records_of(kinesis, name) == []
    assert refusal(kinesis.get_records, ShardIterator=iterator)[0] == NOT_FOUND


@pytest.mark.parametrize(
    "operation",
    ["subscribe_to_shard", "register_stream_consumer", "start_stream_encryption"],
)
def test_an_operation_that_is_not_built_is_unknown(kinesis: Any, operation: str) -> None:
    assert refusal(getattr(kinesis, operation))[0] == "UnknownOperationException"


def test_errors_name_their_type_alone(raw: Any) -> None:
    headers = {
        "X-Amz-Target": "Kinesis_20131202.DescribeStream",
        "Content-Type": "application/x-amz-json-1.1",
    }
    status, answered, body = raw("", {"StreamName": "no-such-stream"}, headers=headers)
    assert status == 400
    assert answered["content-type"] == "application/x-amz-json-1.1"
    assert body["__type"] == NOT_FOUND
