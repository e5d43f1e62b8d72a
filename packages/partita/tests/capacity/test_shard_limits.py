"""Kinesis's limits of a shard and a second, with `--capacity enforce`, on a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from partita import testing

STREAM = "visits"
ONCE = Config(retries={"total_max_attempts": 1})
EXCEEDED = "ProvisionedThroughputExceededException"


@pytest.fixture
def database() -> Iterator[Any]:
    with testing.database(capacity="enforce") as opened:
        # A second lasts until the test says so.
        opened.clock.set(1_900_000_000)
        yield opened


def kinesis(database: Any, shards: int | None = 1) -> Any:
    client = database.session().client("kinesis", config=ONCE)
    mode = "ON_DEMAND" if shards is None else "PROVISIONED"
    more = {} if shards is None else {"ShardCount": shards}
    client.create_stream(StreamName=STREAM, StreamModeDetails={"StreamMode": mode}, **more)
    return client


def put(client: Any, count: int, size: int = 10, key: str = "k") -> int:
    """Puts a number of records, and returns how many were refused."""
    records = [{"Data": b"x" * (size - len(key)), "PartitionKey": key}] * count
    answer = client.put_records(StreamName=STREAM, Records=records)
    refused = [one for one in answer["Records"] if "ErrorCode" in one]
    assert len(refused) == answer["FailedRecordCount"]
    for one in refused:
        assert one["ErrorCode"] == EXCEEDED
        assert one["ErrorMessage"] == (
            "Rate exceeded for shard shardId-000000000000 in stream visits under account "
            "123456789012."
        )
    return len(refused)


def test_a_shard_takes_a_thousand_records_a_second(database: Any) -> None:
    client = kinesis(database)
    assert put(client, 500) == 0
    assert put(client, 500) == 0
    assert put(client, 500) == 500
    with pytest.raises(ClientError, match=EXCEEDED):
        client.put_record(StreamName=STREAM, Data=b"x", PartitionKey="k")
    database.clock.advance(seconds=1)
    assert put(client, 500) == 0


def test_a_shard_takes_a_megabyte_a_second(database: Any) -> None:
    client = kinesis(database)
    assert put(client, 5, 256 * 1024) == 1
    database.clock.advance(seconds=1)
    assert put(client, 4, 256 * 1024) == 0


def test_every_shard_has_limits_of_its_own(database: Any) -> None:
    client = kinesis(database, 2)
    shards = client.list_shards(StreamName=STREAM)["Shards"]
    for shard in shards:
        for _ in range(2):
            first = shard["HashKeyRange"]["StartingHashKey"]
            records = [{"Data": b"x", "PartitionKey": "k", "ExplicitHashKey": first}] * 500
            answer = client.put_records(StreamName=STREAM, Records=records)
            assert answer["FailedRecordCount"] == 0


def iterator(client: Any) -> str:
    answer = client.get_shard_iterator(
        StreamName=STREAM, ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
    )
    return str(answer["ShardIterator"])


def test_a_shard_is_read_five_times_a_second(database: Any) -> None:
    client = kinesis(database)
    for _ in range(5):
        client.get_records(ShardIterator=iterator(client))
    with pytest.raises(ClientError, match=EXCEEDED):
        client.get_records(ShardIterator=iterator(client))
    database.clock.advance(seconds=1)
    client.get_records(ShardIterator=iterator(client))


def test_what_was_read_beyond_two_megabytes_is_paid_for_later(database: Any) -> None:
    client = kinesis(database)
    for _ in range(5):
        assert put(client, 4, 256 * 1024) == 0
        database.clock.advance(seconds=1)
    # Five megabytes, which are more on the wire.
    assert len(client.get_records(ShardIterator=iterator(client))["Records"]) == 20
    for _ in range(2):
        database.clock.advance(seconds=1)
        with pytest.raises(ClientError, match=EXCEEDED):
            client.get_records(ShardIterator=iterator(client))
    database.clock.advance(seconds=3)
    client.get_records(ShardIterator=iterator(client))


def test_nothing_is_limited_unless_it_is_enforced() -> None:
    with testing.database() as database:
        client = kinesis(database)
        assert [put(client, 500) for _ in range(5)] == [0] * 5


def test_a_stream_on_demand_grows_with_its_load(database: Any) -> None:
    client = kinesis(database, None)

    def open_shards() -> int:
        shards = client.list_shards(StreamName=STREAM)["Shards"]
        return sum("EndingSequenceNumber" not in one["SequenceNumberRange"] for one in shards)

    assert open_shards() == 4
    database.clock.advance(seconds=60)
    records = [{"Data": b"x", "PartitionKey": str(number)} for number in range(500)]
    for _ in range(8):
        client.put_records(StreamName=STREAM, Records=records)
    grown = open_shards()
    assert grown > 4
    # A little later it takes twice what it took.
    database.clock.advance(seconds=1)
    failed = [
        client.put_records(StreamName=STREAM, Records=records)["FailedRecordCount"]
        for _ in range(12)
    ]
    assert sum(failed) == 0
    # No key is lost: parents come before their children.
    numbers = {shard["ShardId"] for shard in client.list_shards(StreamName=STREAM)["Shards"]}
    assert len(numbers) > grown
