"""GetShardIterator: where reading begins."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .refusals import VALIDATION
from .stream_reading import (
    NO_SUCH_ARN,
    arn_of,
    iterator_of,
    records_from,
    refusal,
    shards_of,
    with_stream,
)

SEQUENCE_NUMBER = "100000000000000000001"


@pytest.fixture
def shard(client: Any, streams: Any, table: Any) -> dict[str, Any]:
    """A shard with three records: `put` adds one more to it."""
    name = table(**with_stream("NEW_IMAGE"))
    arn = arn_of(client, name)

    def put(number: int) -> None:
        client.put_item(TableName=name, Item={"pk": {"S": "one"}, "n": {"N": str(number)}})

    for number in range(3):
        put(number)
    (found,) = [
        shard["ShardId"]
        for shard in shards_of(streams, arn)
        if records_from(streams, iterator_of(streams, arn, shard["ShardId"]))
    ]
    return {"arn": arn, "id": found, "put": put}


def numbers(streams: Any, iterator: str) -> list[int]:
    records = records_from(streams, iterator)
    return [int(record["dynamodb"]["NewImage"]["n"]["N"]) for record in records]


def sequence_numbers(streams: Any, shard: dict[str, Any]) -> list[str]:
    records = records_from(streams, iterator_of(streams, shard["arn"], shard["id"]))
    return [record["dynamodb"]["SequenceNumber"] for record in records]


def at(streams: Any, shard: dict[str, Any], kind: str, **more: Any) -> list[int]:
    return numbers(streams, iterator_of(streams, shard["arn"], shard["id"], kind, **more))


def test_trim_horizon_is_the_oldest_record(streams: Any, shard: Any) -> None:
    assert at(streams, shard, "TRIM_HORIZON") == [0, 1, 2]


def test_latest_is_behind_the_newest_record(streams: Any, shard: Any) -> None:
    iterator = iterator_of(streams, shard["arn"], shard["id"], "LATEST")
    assert numbers(streams, iterator) == []
    shard["put"](3)
    assert numbers(streams, iterator) == [3]


def test_at_and_after_a_sequence_number(streams: Any, shard: Any) -> None:
    second = sequence_numbers(streams, shard)[1]
    assert at(streams, shard, "AT_SEQUENCE_NUMBER", SequenceNumber=second) == [1, 2]
    assert at(streams, shard, "AFTER_SEQUENCE_NUMBER", SequenceNumber=second) == [2]


def test_every_shard_can_be_read_from_its_first_sequence_number(
    client: Any, streams: Any, table: Any
) -> None:
    # Also one in which nothing was ever written (Alternator's tests, on AWS)
    arn = arn_of(client, table(**with_stream()))
    for shard in shards_of(streams, arn):
        first = shard["SequenceNumberRange"]["StartingSequenceNumber"]
        for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
            iterator = iterator_of(streams, arn, shard["ShardId"], kind, SequenceNumber=first)
            assert records_from(streams, iterator) == []


def test_at_a_time(streams: Any, shard: Any) -> None:
    assert at(streams, shard, "AT_TIMESTAMP", Timestamp=time.time() - 3600) == [0, 1, 2]
    time.sleep(1.1)
    between = time.time()
    time.sleep(1.1)
    shard["put"](3)
    assert at(streams, shard, "AT_TIMESTAMP", Timestamp=between) == [3]
    assert at(streams, shard, "AT_TIMESTAMP", Timestamp=time.time()) == []


def test_a_time_that_has_not_come_is_refused(streams: Any, shard: Any) -> None:
    # Model
    request = {"StreamArn": shard["arn"], "ShardId": shard["id"]}
    refused = refusal(
        streams.get_shard_iterator,
        **request,
        ShardIteratorType="AT_TIMESTAMP",
        Timestamp=time.time() + 3600,
    )
    assert refused[0] == VALIDATION


@pytest.mark.parametrize(
    ("kind", "more", "text"),
    [
        ("AT_SEQUENCE_NUMBER", {}, "Invalid SequenceNumber"),
        ("AFTER_SEQUENCE_NUMBER", {}, "Invalid SequenceNumber"),
        ("AT_SEQUENCE_NUMBER", {"SequenceNumber": "9" * 30}, "Invalid SequenceNumber"),
        ("AT_SEQUENCE_NUMBER", {"SequenceNumber": "x" * 30}, "Invalid SequenceNumber"),
        (
            "LATEST",
            {"SequenceNumber": SEQUENCE_NUMBER},
            "SequenceNumber should not be passed for this iterator type",
        ),
        (
            "TRIM_HORIZON",
            {"SequenceNumber": SEQUENCE_NUMBER},
            "SequenceNumber should not be passed for this iterator type",
        ),
        ("LATEST", {"Timestamp": 1}, "Timestamp should not be passed for this iterator type"),
        ("AT_TIMESTAMP", {}, "Invalid Timestamp"),
    ],
)
def test_the_kind_of_iterator_says_what_it_needs(
    streams: Any, shard: Any, kind: str, more: dict[str, Any], text: str
) -> None:
    # DynamoDB Local
    request = {"StreamArn": shard["arn"], "ShardId": shard["id"], "ShardIteratorType": kind}
    assert refusal(streams.get_shard_iterator, **request, **more) == (
        VALIDATION,
        f"One or more parameter values were invalid: {text}",
    )


@pytest.mark.parametrize("kind", ["NOPE", ""])
def test_there_are_five_kinds(streams: Any, shard: Any, kind: str) -> None:
    request = {"StreamArn": shard["arn"], "ShardId": shard["id"], "ShardIteratorType": kind}
    code, text = refusal(streams.get_shard_iterator, **request)
    assert code == VALIDATION
    assert "Member must satisfy enum value set" in text


def test_a_sequence_number_has_21_to_40_digits(streams: Any, shard: Any) -> None:
    request = {"StreamArn": shard["arn"], "ShardId": shard["id"]}
    for number in ("1", "1" * 41):
        refused = refusal(
            streams.get_shard_iterator,
            **request,
            ShardIteratorType="AT_SEQUENCE_NUMBER",
            SequenceNumber=number,
        )
        assert refused[0] == VALIDATION
        assert "at 'sequenceNumber' failed to satisfy constraint" in refused[1]


def test_a_shard_that_there_is_not(streams: Any, shard: Any) -> None:
    request = {"StreamArn": shard["arn"], "ShardId": "shardId-" + "0" * 28}
    assert refusal(streams.get_shard_iterator, **request, ShardIteratorType="LATEST") == (
        "ResourceNotFoundException",
        "Requested resource not found: Shard does not exist",
    )


def test_a_stream_that_there_is_not(streams: Any, shard: Any) -> None:
    request = {"StreamArn": NO_SUCH_ARN, "ShardId": shard["id"], "ShardIteratorType": "LATEST"}
    assert refusal(streams.get_shard_iterator, **request)[0] == "ResourceNotFoundException"


def test_all_that_is_required_is_told_of(streams: Any) -> None:
    code, text = refusal(streams.get_shard_iterator)
    assert code == VALIDATION
    assert text.startswith("3 validation errors detected: ")
    for name in ("streamArn", "shardId", "shardIteratorType"):
        assert f"Value null at '{name}' failed to satisfy constraint: Member must not" in text
