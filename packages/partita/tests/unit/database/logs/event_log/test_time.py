"""Event streams over time: records are removed, iterators and tokens expire, statuses settle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita import testing
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.logs.event_log import event_log_layout
from partita.database.storage.engine import prefix_end
from partita.foundation.service_limits import (
    EVENT_ITERATOR_SECONDS,
    EVENT_RETENTION_HOURS_MIN,
    EVENT_TOKEN_SECONDS,
)
from partita.testing.private_database import Database

FIRST = "shardId-000000000000"
MIDDLE = str(1 << 127)


@pytest.fixture
def database() -> Iterator[Database]:
    with testing.database() as database:
        yield database
        assert list(check(CheckedFolder(database._engine.snapshot()))) == []


@pytest.fixture
def kinesis(database: Database) -> Any:
    kinesis = database.session().client("kinesis")
    kinesis.create_stream(StreamName="visits", ShardCount=1)
    return kinesis


def put(kinesis: Any, *data: bytes) -> None:
    records = [{"Data": one, "PartitionKey": "k"} for one in data]
    kinesis.put_records(StreamName="visits", Records=records)


def iterator(kinesis: Any, shard: str = FIRST, kind: str = "TRIM_HORIZON") -> str:
    answer = kinesis.get_shard_iterator(StreamName="visits", ShardId=shard, ShardIteratorType=kind)
    return str(answer["ShardIterator"])


def data(kinesis: Any, shard: str = FIRST) -> list[bytes]:
    page = kinesis.get_records(ShardIterator=iterator(kinesis, shard))
    return [record["Data"] for record in page["Records"]]


def code(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**request)
    return str(refused.value.response["Error"]["Code"])


def pass_hours(database: Database, hours: float) -> None:
    database.clock.advance(hours=hours)
    database.settle()


def keys_left(database: Database) -> int:
    snapshot = database._engine.snapshot()
    spaces = (event_log_layout.TAILS, event_log_layout.DELETED, event_log_layout.RECORDS)
    return sum(1 for space in spaces for _ in snapshot.range(space, prefix_end(space)))


def test_records_are_kept_for_a_day(database: Database, kinesis: Any) -> None:
    put(kinesis, b"1")
    database.clock.advance(hours=12)
    put(kinesis, b"2")
    pass_hours(database, EVENT_RETENTION_HOURS_MIN - 12.1)
    assert data(kinesis) == [b"1", b"2"]
    pass_hours(database, 0.2)
    assert data(kinesis) == [b"2"]
    put(kinesis, b"3")
    pass_hours(database, 100)
    assert data(kinesis) == []
    put(kinesis, b"4")
    assert data(kinesis) == [b"4"]


def test_a_longer_retention_keeps_them_longer(database: Database, kinesis: Any) -> None:
    kinesis.increase_stream_retention_period(StreamName="visits", RetentionPeriodHours=48)
    put(kinesis, b"1")
    pass_hours(database, 47)
    assert data(kinesis) == [b"1"]
    kinesis.decrease_stream_retention_period(StreamName="visits", RetentionPeriodHours=24)
    pass_hours(database, 0.1)
    assert data(kinesis) == []


def test_an_iterator_whose_records_have_gone_goes_on_behind_them(
    database: Database, kinesis: Any
) -> None:
    put(kinesis, b"1")
    database.clock.advance(hours=24)
    put(kinesis, b"2")
    old = iterator(kinesis)
    database.clock.advance(seconds=60)
    database.settle()
    page = kinesis.get_records(ShardIterator=old)
    assert [record["Data"] for record in page["Records"]] == [b"2"]


def test_many_batches_go_in_pieces(database: Database, kinesis: Any) -> None:
    for number in range(250):
        put(kinesis, b"%d" % number)
    pass_hours(database, 25)
    assert data(kinesis) == []
    # The shard remembers where it ends.
    assert keys_left(database) == 1


def test_a_closed_shard_goes_with_its_records(database: Database, kinesis: Any) -> None:
    put(kinesis, b"1")
    database.clock.advance(hours=1)
    kinesis.split_shard(StreamName="visits", ShardToSplit=FIRST, NewStartingHashKey=MIDDLE)
    pass_hours(database, 23.5)
    shards = kinesis.list_shards(StreamName="visits")["Shards"]
    assert shards[0]["ShardId"] == FIRST
    assert data(kinesis) == []
    pass_hours(database, 1)
    shards = kinesis.list_shards(StreamName="visits")["Shards"]
    assert [shard["ShardId"][-1] for shard in shards] == ["1", "2"]
    assert shards[0]["ParentShardId"] == FIRST
    assert code(iterator, kinesis=kinesis) == "ResourceNotFoundException"


def test_an_iterator_lasts_five_minutes(database: Database, kinesis: Any) -> None:
    old = iterator(kinesis)
    database.clock.advance(seconds=EVENT_ITERATOR_SECONDS - 30)
    assert kinesis.get_records(ShardIterator=old)["Records"] == []
    database.clock.advance(seconds=31)
    with pytest.raises(kinesis.exceptions.ExpiredIteratorException) as expired:
        kinesis.get_records(ShardIterator=old)
    text = expired.value.response["Error"]["Message"]
    assert text.startswith("Iterator expired. The iterator was created at time ")
    assert text.endswith("further in the future than the tolerated delay of 300000 milliseconds.")


def test_a_token_lasts_five_minutes(database: Database, kinesis: Any) -> None:
    kinesis.split_shard(StreamName="visits", ShardToSplit=FIRST, NewStartingHashKey=MIDDLE)
    token = kinesis.list_shards(StreamName="visits", MaxResults=1)["NextToken"]
    database.clock.advance(seconds=EVENT_TOKEN_SECONDS - 30)
    assert len(kinesis.list_shards(NextToken=token)["Shards"]) == 2
    database.clock.advance(seconds=31)
    assert code(kinesis.list_shards, NextToken=token) == "ExpiredNextTokenException"


def test_times_never_go_back_within_a_shard(database: Database, kinesis: Any) -> None:
    put(kinesis, b"1")
    now = database.clock()
    database.clock.set(now - 3600)
    put(kinesis, b"2")
    page = kinesis.get_records(ShardIterator=iterator(kinesis))
    first, second = (record["ApproximateArrivalTimestamp"] for record in page["Records"])
    assert first == second


def test_a_deleted_stream_leaves_nothing(database: Database, kinesis: Any) -> None:
    for number in range(250):
        put(kinesis, b"%d" % number)
    assert keys_left(database) == 251
    kinesis.delete_stream(StreamName="visits")
    database.settle()
    assert keys_left(database) == 0
    kinesis.create_stream(StreamName="visits", ShardCount=1)
    assert data(kinesis) == []


def test_statuses_last_when_they_are_asked_to() -> None:
    with testing.database(transient_seconds=10) as database:
        kinesis = database.session().client("kinesis")

        def status() -> str:
            summary = kinesis.describe_stream_summary(StreamName="visits")
            return str(summary["StreamDescriptionSummary"]["StreamStatus"])

        def settled() -> None:
            database.clock.advance(seconds=10)
            database.settle()

        record = {"StreamName": "visits", "Data": b"", "PartitionKey": "k"}
        kinesis.create_stream(StreamName="visits", ShardCount=1)
        assert status() == "CREATING"
        assert kinesis.list_shards(StreamName="visits")["Shards"] == []
        assert code(kinesis.put_record, **record) == "ResourceNotFoundException"
        split = {"StreamName": "visits", "ShardToSplit": FIRST, "NewStartingHashKey": MIDDLE}
        assert code(kinesis.split_shard, **split) == "ResourceInUseException"
        settled()
        assert status() == "ACTIVE"
        kinesis.split_shard(**split)
        assert status() == "UPDATING"
        put(kinesis, b"1")
        settled()
        kinesis.delete_stream(StreamName="visits")
        assert status() == "DELETING"
        assert code(kinesis.put_record, **record) == "ResourceNotFoundException"
        settled()
        assert kinesis.list_streams()["StreamNames"] == []
        assert keys_left(database) == 0
