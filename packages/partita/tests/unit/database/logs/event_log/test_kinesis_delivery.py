"""Captured changes that cannot be delivered, and the statuses of destinations over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita import testing
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.logs.change_log import change_log_layout
from partita.database.storage.engine import prefix_end
from partita.testing.private_database import Database

ARN = "arn:aws:kinesis:us-east-1:123456789012:stream/changes"
LINK = {"TableName": "orders", "StreamArn": ARN}


@pytest.fixture
def database() -> Iterator[Database]:
    """A table whose changes go to a stream that has just been deleted."""
    with testing.database() as database:
        link(database)
        database.session().client("kinesis").delete_stream(StreamName="changes")
        yield database
        assert list(check(CheckedFolder(database._engine.snapshot()))) == []


def link(database: Database) -> None:
    client = database.client()
    client.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    database.session().client("kinesis").create_stream(StreamName="changes", ShardCount=1)
    database.clock.advance(minutes=1)
    client.enable_kinesis_streaming_destination(**LINK)


def put(database: Database, *keys: str) -> None:
    client = database.client()
    for key in keys:
        client.put_item(TableName="orders", Item={"pk": {"S": key}})
    database.settle()


def keys_under(database: Database, *spaces: bytes) -> int:
    snapshot = database._engine.snapshot()
    return sum(1 for space in spaces for _ in snapshot.range(space, prefix_end(space)))


def arrived(database: Database) -> list[Any]:
    kinesis = database.session().client("kinesis")
    iterator = kinesis.get_shard_iterator(
        StreamName="changes", ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    records: list[Any] = kinesis.get_records(ShardIterator=iterator)["Records"]
    return records


def test_changes_wait_for_a_day(database: Database) -> None:
    put(database, "a", "b")
    database.clock.advance(hours=20)
    put(database, "c")
    assert keys_under(database, change_log_layout.CHANGES) == 3
    database.clock.advance(hours=5)
    database.settle()
    assert keys_under(database, change_log_layout.CHANGES) == 1
    database.session().client("kinesis").create_stream(StreamName="changes", ShardCount=1)
    database.settle()
    assert [b'"c"' in record["Data"] for record in arrived(database)] == [True]
    assert keys_under(database, change_log_layout.CHANGES) == 0


def test_a_deleted_table_takes_them_along(database: Database) -> None:
    put(database, *(str(number) for number in range(300)))
    database.client().delete_table(TableName="orders")
    for _ in range(3):
        database.settle()
    spaces = (change_log_layout.CHANGES, change_log_layout.SEQUENCES, change_log_layout.CHECKPOINTS)
    assert keys_under(database, *spaces) == 0


def test_a_disabled_destination_leaves_nothing_behind() -> None:
    with testing.database() as database:
        link(database)
        put(database, "a", "b")
        database.client().disable_kinesis_streaming_destination(**LINK)
        put(database, "c")
        assert len(arrived(database)) == 2
        spaces = (
            change_log_layout.CHANGES,
            change_log_layout.SEQUENCES,
            change_log_layout.CHECKPOINTS,
        )
        assert keys_under(database, *spaces) == 0
        assert list(check(CheckedFolder(database._engine.snapshot()))) == []


def test_statuses_last_when_they_are_asked_to() -> None:
    with testing.database(transient_seconds=10) as database:
        client = database.client()

        def status() -> str:
            described = client.describe_kinesis_streaming_destination(TableName="orders")
            return str(described["KinesisDataStreamDestinations"][0]["DestinationStatus"])

        link(database)
        assert status() == "ENABLING"
        database.clock.advance(seconds=10)
        assert status() == "ACTIVE"
        client.disable_kinesis_streaming_destination(**LINK)
        database.settle()
        assert status() == "DISABLING"
        database.clock.advance(seconds=10)
        assert status() == "DISABLED"
