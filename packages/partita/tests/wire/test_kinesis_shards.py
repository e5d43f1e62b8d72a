"""Kinesis: shards are listed, split, merged and resized, and records keep their order."""

from __future__ import annotations

import json
import random
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest

from partita.foundation.service_limits import (
    DESCRIBE_EVENT_SHARDS_PAGE_MAX,
    EVENT_SHARDS_MAX,
    LIST_EVENT_SHARDS_PAGE_MAX,
)

from .event_reading import (
    ACCOUNT,
    HASH_KEYS,
    iterator_of,
    open_shards,
    put,
    records_in,
    records_of,
    shards_of,
)
from .refusals import refusal

Create = Callable[..., str]
INVALID, NOT_FOUND = "InvalidArgumentException", "ResourceNotFoundException"
FIRST, SECOND, THIRD = (f"shardId-{number:012d}" for number in range(3))
MIDDLE = str(HASH_KEYS // 2)


def split(kinesis: Any, name: str, shard: str = FIRST, hash_key: str = MIDDLE) -> None:
    kinesis.split_shard(StreamName=name, ShardToSplit=shard, NewStartingHashKey=hash_key)


def merge(kinesis: Any, name: str, lower: str, upper: str) -> None:
    kinesis.merge_shards(StreamName=name, ShardToMerge=lower, AdjacentShardToMerge=upper)


def resize(kinesis: Any, name: str, count: int) -> dict[str, Any]:
    answer: dict[str, Any] = kinesis.update_shard_count(
        StreamName=name, TargetShardCount=count, ScalingType="UNIFORM_SCALING"
    )
    return answer


def assert_all_hash_keys_are_shared(shards: list[dict[str, Any]]) -> None:
    ranges = [shard["HashKeyRange"] for shard in shards]
    starts = [int(one["StartingHashKey"]) for one in ranges]
    ends = [int(one["EndingHashKey"]) for one in ranges]
    assert starts == [0, *(end + 1 for end in ends[:-1])]
    assert ends[-1] == HASH_KEYS - 1


def test_a_shard_is_split(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    put(kinesis, name, b"before")
    split(kinesis, name)
    parent, lower, upper = shards_of(kinesis, name)
    ending = parent["SequenceNumberRange"]["EndingSequenceNumber"]
    [record] = records_in(kinesis, name, FIRST)
    assert int(record["SequenceNumber"]) < int(ending)
    assert [child["ParentShardId"] for child in (lower, upper)] == [FIRST, FIRST]
    assert lower["HashKeyRange"]["EndingHashKey"] == str(HASH_KEYS // 2 - 1)
    assert upper["HashKeyRange"]["StartingHashKey"] == MIDDLE
    assert_all_hash_keys_are_shared(open_shards(kinesis, name))
    [receipt] = put(kinesis, name, b"after")
    assert receipt["ShardId"] in (SECOND, THIRD)


def test_shards_are_merged(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(2)
    merge(kinesis, name, FIRST, SECOND)
    [child] = open_shards(kinesis, name)
    assert (child["ParentShardId"], child["AdjacentParentShardId"]) == (FIRST, SECOND)
    assert_all_hash_keys_are_shared([child])
    assert put(kinesis, name, b"x")[0]["ShardId"] == child["ShardId"]


def test_the_end_of_a_closed_shard_names_its_children(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    put(kinesis, name, b"1", b"2")
    iterator = iterator_of(kinesis, name, FIRST)
    split(kinesis, name)
    page = kinesis.get_records(ShardIterator=iterator, Limit=1)
    assert "ChildShards" not in page
    page = kinesis.get_records(ShardIterator=page["NextShardIterator"], Limit=1)
    assert "NextShardIterator" not in page
    assert [child["ShardId"] for child in page["ChildShards"]] == [SECOND, THIRD]
    assert [child["ParentShards"] for child in page["ChildShards"]] == [[FIRST], [FIRST]]
    assert page["ChildShards"][1]["HashKeyRange"] == {
        "StartingHashKey": MIDDLE,
        "EndingHashKey": str(HASH_KEYS - 1),
    }
    latest = kinesis.get_records(ShardIterator=iterator_of(kinesis, name, FIRST, "LATEST"))
    assert latest["Records"] == []
    assert "NextShardIterator" not in latest
    merge(kinesis, name, SECOND, THIRD)
    page = kinesis.get_records(ShardIterator=iterator_of(kinesis, name, THIRD))
    assert page["ChildShards"][0]["ParentShards"] == [SECOND, THIRD]


@pytest.mark.parametrize("hash_key", ["0", "1", str(HASH_KEYS - 1), str(HASH_KEYS)])
def test_where_a_shard_cannot_be_split(kinesis: Any, event_stream: Create, hash_key: str) -> None:
    name = event_stream()
    refused = refusal(
        kinesis.split_shard, StreamName=name, ShardToSplit=FIRST, NewStartingHashKey=hash_key
    )
    assert refused == (
        INVALID,
        f"NewStartingHashKey {hash_key} used in SplitShard() on shard {FIRST} in stream {name} "
        f"under account {ACCOUNT} is not both greater than one plus the shard's StartingHashKey 0 "
        f"and less than the shard's EndingHashKey {HASH_KEYS - 1}.",
    )


def test_which_shards_cannot_be_split_or_merged(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(3)
    # The shard with the lower hash keys comes first (kinesalite).
    for lower, upper in ((FIRST, THIRD), (SECOND, FIRST), (FIRST, FIRST)):
        assert refusal(
            kinesis.merge_shards, StreamName=name, ShardToMerge=lower, AdjacentShardToMerge=upper
        ) == (
            INVALID,
            f"Shards {lower} and {upper} in stream {name} under account {ACCOUNT} are not an "
            "adjacent pair of shards eligible for merging",
        )
    absent = "shardId-000000000009"
    assert refusal(
        kinesis.split_shard, StreamName=name, ShardToSplit=absent, NewStartingHashKey="5"
    ) == (
        NOT_FOUND,
        f"Could not find shard {absent} in stream {name} under account {ACCOUNT}.",
    )
    # A name that no shard can have is told before a stream is looked for (kinesalite).
    for wrong in ("x", "shardId--1", "shardId-2147483648"):
        assert refusal(
            kinesis.split_shard, StreamName="no-stream", ShardToSplit=wrong, NewStartingHashKey="5"
        ) == (
            NOT_FOUND,
            f"Could not find shard {wrong} in stream no-stream under account {ACCOUNT}.",
        )
    merge(kinesis, name, FIRST, SECOND)
    code, text = refusal(
        kinesis.split_shard, StreamName=name, ShardToSplit=FIRST, NewStartingHashKey="5"
    )
    assert code == INVALID
    assert "has already been merged or split" in text


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (4, 7), (5, 3), (6, 3), (3, 3)])
def test_shards_are_counted_anew(
    kinesis: Any, event_stream: Create, before: int, after: int
) -> None:
    name = event_stream(before)
    answer = resize(kinesis, name, after)
    assert (answer["CurrentShardCount"], answer["TargetShardCount"]) == (before, after)
    shards = open_shards(kinesis, name)
    assert_all_hash_keys_are_shared(shards)
    assert [int(shard["HashKeyRange"]["StartingHashKey"]) for shard in shards] == [
        number * (HASH_KEYS // after) for number in range(after)
    ]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (4, 1), (5, 2)])
def test_how_far_shards_can_be_counted_anew(
    kinesis: Any, event_stream: Create, before: int, after: int
) -> None:
    name = event_stream(before)
    refused = refusal(
        kinesis.update_shard_count,
        StreamName=name,
        TargetShardCount=after,
        ScalingType="UNIFORM_SCALING",
    )
    assert refused[0] == "LimitExceededException"
    assert len(open_shards(kinesis, name)) == before


def test_parents_before_children_is_the_order_of_every_key(
    kinesis: Any, event_stream: Create
) -> None:
    """Records stay in order when shards are split and merged between the writes."""
    name, chance = event_stream(2), random.Random(7)
    for number in range(30):
        records = [{"Data": b"%d" % number, "PartitionKey": f"k{key}"} for key in range(10)]
        kinesis.put_records(StreamName=name, Records=records)
        shards = open_shards(kinesis, name)
        if number % 3 == 0:
            shard = chance.choice(shards)
            keys = [int(key) for key in shard["HashKeyRange"].values()]
            split(kinesis, name, shard["ShardId"], str(sum(keys) // 2))
        elif number % 3 == 1:
            place = chance.randrange(len(shards) - 1)
            merge(kinesis, name, shards[place]["ShardId"], shards[place + 1]["ShardId"])
    by_key: dict[str, list[int]] = {}
    for record in records_of(kinesis, name):
        by_key.setdefault(record["PartitionKey"], []).append(int(record["Data"]))
    assert by_key == {f"k{key}": list(range(30)) for key in range(10)}


# ListShards and DescribeStream


def ids(page: dict[str, Any]) -> list[str]:
    return [shard["ShardId"] for shard in page["Shards"]]


def test_shards_are_listed_in_pages(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(5)
    page = kinesis.list_shards(StreamName=name, MaxResults=2)
    found = ids(page)
    while "NextToken" in page:
        page = kinesis.list_shards(NextToken=page["NextToken"], MaxResults=2)
        found += ids(page)
    assert found == [f"shardId-{number:012d}" for number in range(5)]
    assert ids(kinesis.list_shards(StreamName=name, ExclusiveStartShardId=THIRD)) == found[3:]
    described = kinesis.describe_stream(StreamName=name, Limit=2, ExclusiveStartShardId=FIRST)
    assert described["StreamDescription"]["HasMoreShards"]
    assert ids(described["StreamDescription"]) == found[1:3]


def test_the_pages_of_a_list_and_of_a_description(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(700)
    resize(kinesis, name, 350)
    for most in ({}, {"MaxResults": 10_000}):
        page = kinesis.list_shards(StreamName=name, **most)
        assert len(ids(page)) == LIST_EVENT_SHARDS_PAGE_MAX
    assert len(ids(kinesis.list_shards(NextToken=page["NextToken"]))) == 50
    for limit in ({}, {"Limit": 10_000}):
        described = kinesis.describe_stream(StreamName=name, **limit)["StreamDescription"]
        assert len(ids(described)) == DESCRIBE_EVENT_SHARDS_PAGE_MAX
        assert described["HasMoreShards"]


@pytest.mark.parametrize(
    "forged",
    [
        {"Type": "X"},
        {"Type": 5},
        {"Type": []},
        {"Type": "AT_TIMESTAMP", "Timestamp": "x"},
        {"Type": "AFTER_SHARD_ID", "ShardId": 5},
        {"Type": "AFTER_SHARD_ID"},
    ],
)
def test_a_token_with_a_filter_that_cannot_be_is_refused(
    kinesis: Any, event_stream: Create, forged: dict[str, Any]
) -> None:
    token = kinesis.list_shards(StreamName=event_stream(2), MaxResults=1)["NextToken"]
    content = {**json.loads(urlsafe_b64decode(token)), "shard_filter": forged}
    text = urlsafe_b64encode(json.dumps(content).encode()).decode()
    assert refusal(kinesis.list_shards, NextToken=text)[0] == INVALID


def test_lists_that_cannot_be(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(2)
    assert refusal(kinesis.list_shards) == (
        INVALID,
        "Either NextToken or StreamName should be provided.",
    )
    token = kinesis.list_shards(StreamName=name, MaxResults=1)["NextToken"]
    for member, value in {
        "StreamName": name,
        "StreamARN": f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/{name}",
        "ExclusiveStartShardId": FIRST,
        "StreamCreationTimestamp": 1,
        "ShardFilter": {"Type": "AT_LATEST"},
    }.items():
        assert refusal(kinesis.list_shards, NextToken=token, **{member: value}) == (
            INVALID,
            f"NextToken and {member} cannot be provided together.",
        )
    assert refusal(kinesis.list_shards, NextToken="x")[0] == INVALID
    for incomplete in ("AFTER_SHARD_ID", "AT_TIMESTAMP", "FROM_TIMESTAMP"):
        refused = refusal(kinesis.list_shards, StreamName=name, ShardFilter={"Type": incomplete})
        assert refused[0] == INVALID
    created_at = {"StreamName": name, "StreamCreationTimestamp": 1_000_000_000}
    assert refusal(kinesis.list_shards, **created_at)[0] == NOT_FOUND


def test_every_filter(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    time.sleep(0.05)
    before = time.time()
    time.sleep(0.05)
    split(kinesis, name)

    def listed(kind: str, **more: Any) -> list[str]:
        shard_filter = {"Type": kind, **more}
        return ids(kinesis.list_shards(StreamName=name, ShardFilter=shard_filter))

    assert listed("FROM_TRIM_HORIZON") == [FIRST, SECOND, THIRD]
    assert listed("AT_LATEST") == [SECOND, THIRD]
    assert listed("AT_TRIM_HORIZON") == [FIRST]
    assert listed("AFTER_SHARD_ID", ShardId=SECOND) == [THIRD]
    assert listed("AT_TIMESTAMP", Timestamp=repr(before)) == [FIRST]
    assert listed("AT_TIMESTAMP", Timestamp=repr(time.time())) == [SECOND, THIRD]
    assert listed("FROM_TIMESTAMP", Timestamp=repr(before)) == [FIRST, SECOND, THIRD]
    assert listed("FROM_TIMESTAMP", Timestamp=repr(time.time())) == [SECOND, THIRD]


def test_there_is_a_limit_of_shards(kinesis: Any, event_stream: Create) -> None:
    limits = kinesis.describe_limits()
    assert limits["ShardLimit"] == EVENT_SHARDS_MAX
    left = EVENT_SHARDS_MAX - limits["OpenShardCount"]
    refused = refusal(kinesis.create_stream, StreamName="too-large", ShardCount=left + 1)
    assert refused[0] == "LimitExceededException"
    assert f"Current shard count for the account: {EVENT_SHARDS_MAX - left}. " in refused[1]
    name = event_stream(left)
    assert len(ids(kinesis.list_shards(StreamName=name))) == left
    refused = refusal(
        kinesis.split_shard, StreamName=name, ShardToSplit=FIRST, NewStartingHashKey="5"
    )
    assert refused[0] == "LimitExceededException"
