"""Each kind of damage to an event log or a capture, done by hand, is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from partita import testing
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.logs.change_log import change_log_layout as log_layout
from partita.database.logs.event_log import event_log_layout
from partita.database.logs.event_log.event_streams import EventStream, decode_stream
from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.engine import Changes, Snapshot, prefix_end
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import decode_table

Damage = Callable[[Snapshot, EventStream], Changes]


@pytest.fixture
def engine() -> Iterator[BranchEngine]:
    """A stream with a closed and two open shards and twelve records in four batches, and a table
    with three changes on the way to a stream that is gone."""
    with testing.database() as database:
        session = database.session()
        kinesis, dynamodb = session.client("kinesis"), session.client("dynamodb")
        kinesis.create_stream(StreamName="visits", ShardCount=1)

        def put(*keys: str) -> None:
            records = [{"Data": b"x", "PartitionKey": key} for key in keys]
            kinesis.put_records(StreamName="visits", Records=records)

        put("a", "b", "c")
        put("d", "e", "f")
        middle = str(1 << 127)
        shard = "shardId-000000000000"
        kinesis.split_shard(StreamName="visits", ShardToSplit=shard, NewStartingHashKey=middle)
        put("a", "b", "c", "d", "e", "f")
        dynamodb.create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        kinesis.create_stream(StreamName="gone", ShardCount=1)
        arn = "arn:aws:kinesis:us-east-1:123456789012:stream/gone"
        dynamodb.enable_kinesis_streaming_destination(TableName="orders", StreamArn=arn)
        kinesis.delete_stream(StreamName="gone")
        for key in "abc":
            dynamodb.put_item(TableName="orders", Item={"pk": {"S": key}})
        yield database._engine


@pytest.fixture
def after(engine: BranchEngine) -> Callable[[Damage], list[str]]:
    """Returns the findings after a damage, as text."""

    def found(damage: Damage) -> list[str]:
        snapshot = engine.snapshot()
        engine.commit(damage(snapshot, stream_in(snapshot)))
        engine.refresh()
        return findings(engine)

    return found


After = Callable[[Damage], list[str]]


def findings(engine: BranchEngine) -> list[str]:
    return [finding.what for finding in check(CheckedFolder(engine.snapshot()))]


def stream_in(snapshot: Snapshot) -> EventStream:
    key = event_log_layout.stream_key("visits")
    value = snapshot.get(key)
    assert value is not None
    return decode_stream(key, value)


def batches(snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
    return list(snapshot.range(event_log_layout.RECORDS, prefix_end(event_log_layout.RECORDS)))


def captured(snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
    return list(snapshot.range(log_layout.CHANGES, prefix_end(log_layout.CHANGES)))


def saved(stream: EventStream, **changed: Any) -> Changes:
    return {
        event_log_layout.stream_key(stream.name): msgspec.json.encode(replace(stream, **changed))
    }


def test_a_log_that_is_as_it_should_be(engine: BranchEngine) -> None:
    folder = CheckedFolder(engine.snapshot())
    assert list(check(folder)) == []
    assert folder.records == 12


def test_a_batch_is_missing(after: After) -> None:
    assert "records are missing or repeated" in after(lambda s, _: {batches(s)[0][0]: None})


def test_the_last_batch_is_missing(after: After) -> None:
    assert after(lambda s, _: {batches(s)[1][0]: None}) == ["its last number is wrong"]


def test_a_batch_is_there_twice(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        return {event_log_layout.batch_key(stream.number, 0, 7): batches(snapshot)[0][1]}

    assert "a sequence number is wrong" in after(damage)


@pytest.mark.parametrize("at", [0, 10, 14, 40, 120])
def test_a_byte_of_a_batch_is_another(after: After, at: int) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        key, value = batches(snapshot)[0]
        return {key: value[:at] + bytes([value[at] ^ 0x55]) + value[at + 1 :]}

    assert after(damage) != []


def test_a_tail_is_wrong(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        return {event_log_layout.tail_key(stream.number, 1): None}

    assert "its last number is wrong" in after(damage)


def test_a_shard_was_closed_elsewhere(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        closed, *others = stream.shards
        return saved(stream, shards=(replace(closed, last=5), *others))

    assert after(damage) == ["it was closed at another number"]


def test_hash_keys_are_missing(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        return saved(stream, shards=stream.shards[:2])

    assert "no open shard has its last hash keys" in after(damage)


def test_hash_keys_are_shared_wrongly(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        *others, last = stream.shards
        return saved(stream, shards=(*others, replace(last, hash_keys=("5", last.hash_keys[1]))))

    assert "its first hash key is wrong" in after(damage)


def test_a_number_that_was_never_given(after: After) -> None:
    assert "its number is wrong" in after(lambda _, stream: saved(stream, number=77))


def test_a_stream_that_cannot_be_read(after: After) -> None:
    damage: Damage = lambda _, stream: {event_log_layout.stream_key(stream.name): b"{"}  # noqa: E731
    assert "a stream cannot be read" in after(damage)


def test_a_stream_under_another_name(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        key = event_log_layout.stream_key(stream.name)
        return {key: None, event_log_layout.stream_key("other"): snapshot.get(key)}

    assert "it is stored under another name" in after(damage)


def test_records_of_no_stream(after: After) -> None:
    damage: Damage = lambda _, stream: {event_log_layout.batch_key(99, 0, 1): b""}  # noqa: E731
    assert after(damage) == ["they belong to no table or index"]


def test_a_captured_change_is_missing(after: After) -> None:
    assert after(lambda s, _: {captured(s)[1][0]: None}) == ["captured changes are missing"]


def test_a_captured_change_that_was_never_numbered(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        key, value = captured(snapshot)[-1]
        return {key[:-1] + b"\x09": value}

    assert after(damage) == ["captured changes are missing"]


def test_a_capture_without_a_destination(after: After) -> None:
    def damage(snapshot: Snapshot, stream: EventStream) -> Changes:
        key = table_layout.catalog_key("orders")
        value = snapshot.get(key)
        assert value is not None
        table = decode_table(key, value)
        return {key: msgspec.json.encode(replace(table, capture=None))}

    assert after(damage) == ["its capture is not that of its destinations"]
