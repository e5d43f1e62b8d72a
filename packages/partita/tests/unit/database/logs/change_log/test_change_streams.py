"""Shards in time: they roll over, split, close, are trimmed and go, on the database's clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita import testing
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check
from partita.database.logs.change_log import change_streams as shards_module

TABLE = "orders"
SHARDS_AT_FIRST = 4
"""The number of partitions of an on-demand table."""


class Bench:
    """A table with a stream, and its clock."""

    def __init__(self, database: Any, **more: Any) -> None:
        session = database.session()
        self.database = database
        self.clock = database.clock
        self.client = session.client("dynamodb")
        self.streams = session.client("dynamodbstreams")
        self.client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            **(more or {"BillingMode": "PAY_PER_REQUEST"}),
        )
        self.arn = self.client.describe_table(TableName=TABLE)["Table"]["LatestStreamArn"]

    def put(self, key: str, number: int = 0) -> None:
        item = {"pk": {"S": key}, "n": {"N": str(number)}}
        self.client.put_item(TableName=TABLE, Item=item)

    def pass_hours(self, hours: float) -> None:
        self.clock.advance(hours=hours)
        self.database.settle()

    def shards(self, **request: Any) -> list[dict[str, Any]]:
        answer = self.streams.describe_stream(StreamArn=self.arn, **request)
        return list(answer["StreamDescription"]["Shards"])

    def open_shards(self) -> list[dict[str, Any]]:
        closed = "EndingSequenceNumber"
        return [shard for shard in self.shards() if closed not in shard["SequenceNumberRange"]]

    def iterator(self, shard_id: str, kind: str = "TRIM_HORIZON", **more: Any) -> str:
        answer = self.streams.get_shard_iterator(
            StreamArn=self.arn, ShardId=shard_id, ShardIteratorType=kind, **more
        )
        return str(answer["ShardIterator"])

    def page(self, iterator: str) -> dict[str, Any]:
        return dict(self.streams.get_records(ShardIterator=iterator))

    def records(self) -> list[dict[str, Any]]:
        pages = [self.page(self.iterator(shard["ShardId"])) for shard in self.shards()]
        found = [record for page in pages for record in page["Records"]]
        return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))

    def written(self) -> list[str]:
        return [record["dynamodb"]["Keys"]["pk"]["S"] for record in self.records()]

    def findings(self) -> list[str]:
        snapshot = self.database._engine.snapshot()
        return [str(finding) for finding in check(CheckedFolder(snapshot))]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with testing.database() as database:
        database.clock.set(1_800_000_000)
        made = Bench(database)
        yield made
        assert made.findings() == []


def code(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        call(**request)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]


def test_after_four_hours_every_shard_goes_on_in_a_child(bench: Bench) -> None:
    bench.put("a", 1)
    before = [shard["ShardId"] for shard in bench.shards()]
    bench.pass_hours(3.9)
    assert [shard["ShardId"] for shard in bench.shards()] == before
    bench.pass_hours(0.2)
    bench.put("a", 2)
    shards = bench.shards()
    parents, children = shards[: len(before)], shards[len(before) :]
    assert [shard["ShardId"] for shard in parents] == before
    assert [shard["ParentShardId"] for shard in children] == before
    assert children == bench.open_shards()
    for parent, child in zip(parents, children, strict=True):
        last = int(parent["SequenceNumberRange"]["EndingSequenceNumber"])
        assert int(child["SequenceNumberRange"]["StartingSequenceNumber"]) == last + 1
        asked = {"Type": "CHILD_SHARDS", "ShardId": parent["ShardId"]}
        assert bench.shards(ShardFilter=asked) == [child]
    assert bench.written() == ["a", "a"]
    (place,) = [
        number for number, shard in enumerate(parents)
        if bench.page(bench.iterator(shard["ShardId"]))["Records"]
    ]  # fmt: skip
    page = bench.page(bench.iterator(children[place]["ShardId"]))
    assert len(page["Records"]) == 1, "the item has changed from one line of shards to another"


def test_a_reader_of_a_closed_shard_is_led_to_its_end(bench: Bench) -> None:
    held = {shard["ShardId"]: bench.iterator(shard["ShardId"]) for shard in bench.shards()}
    bench.put("a")
    bench.clock.advance(minutes=14)
    held = {name: bench.page(one)["NextShardIterator"] for name, one in held.items()}
    bench.pass_hours(0.2)
    bench.put("a", 2)
    for _ in range(15):
        held = {name: bench.page(one)["NextShardIterator"] for name, one in held.items()}
        bench.pass_hours(0.24)
    pages = [bench.page(iterator) for iterator in held.values()]
    assert not any("NextShardIterator" in page for page in pages)


def test_full_shards_split_in_two(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_module, "SHARD_CHANGES_MAX", 10)
    for number in range(10 * SHARDS_AT_FIRST):
        bench.put(f"k{number % 16}", number)
    bench.database.settle()
    assert len(bench.open_shards()) == SHARDS_AT_FIRST
    bench.put("one more")
    bench.database.settle()
    children = bench.open_shards()
    assert len(children) == 2 * SHARDS_AT_FIRST
    parents = [shard["ParentShardId"] for shard in children]
    assert all(parents.count(parent) == 2 for parent in parents)
    for number in range(16):
        bench.put(f"k{number}", 100)
    seen: dict[str, str] = {}
    for shard in bench.shards():
        for record in bench.page(bench.iterator(shard["ShardId"]))["Records"]:
            key = record["dynamodb"]["Keys"]["pk"]["S"]
            # In its own shard or in a child of it.
            assert shard.get("ParentShardId") == seen.get(key) or shard["ShardId"] == seen[key]
            seen[key] = shard["ShardId"]


def test_shards_do_not_split_for_ever(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_module, "SHARD_CHANGES_MAX", 0)
    monkeypatch.setattr(shards_module, "SHARDS_BY_LOAD_MAX", 2 * SHARDS_AT_FIRST)
    for number in range(4):
        bench.put("a", number)
        bench.database.settle()
    assert len(bench.open_shards()) == 2 * SHARDS_AT_FIRST


def test_a_table_with_more_partitions_has_more_shards(bench: Bench) -> None:
    before = [shard["ShardId"] for shard in bench.open_shards()]
    for number in range(8):
        bench.put(f"k{number}", 1)
    bench.client.update_table(
        TableName=TABLE, WarmThroughput={"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 9_000}
    )
    bench.database.settle()
    children = bench.open_shards()
    # Nine partitions: every shard goes on in three, so that none has two parents.
    assert len(children) == 3 * SHARDS_AT_FIRST
    parents = [shard["ParentShardId"] for shard in children]
    assert all(parents.count(parent) == 3 for parent in before)
    for number in range(8):
        bench.put(f"k{number}", 2)
    shard_of: dict[str, str] = {}
    for shard in bench.shards():
        for record in bench.page(bench.iterator(shard["ShardId"]))["Records"]:
            key = record["dynamodb"]["Keys"]["pk"]["S"]
            if key in shard_of:
                assert shard["ParentShardId"] == shard_of[key]
            shard_of[key] = shard["ShardId"]
    bench.database.settle()
    assert bench.open_shards() == children


def test_a_provisioned_table_that_goes_on_demand_has_four_shards() -> None:
    with testing.database() as database:
        database.clock.set(1_800_000_000)
        units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
        small = Bench(database, ProvisionedThroughput=units)
        assert len(small.open_shards()) == 1
        small.put("a", 1)
        small.client.update_table(TableName=TABLE, BillingMode="PAY_PER_REQUEST")
        database.settle()
        small.put("a", 2)
        assert len(small.open_shards()) == 4
        assert small.written() == ["a", "a"]
        assert small.findings() == []


def test_there_are_no_more_shards_than_ranges_of_hashes() -> None:
    with testing.database() as database:
        units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1_000_000}
        large = Bench(database, ProvisionedThroughput=units)
        count, page = 0, large.shards()
        while page:
            count += len(page)
            page = large.shards(ExclusiveStartShardId=page[-1]["ShardId"])
        assert count == shards_module.HASH_BYTES
        assert large.findings() == []


def test_records_are_kept_for_a_day(bench: Bench) -> None:
    bench.put("first")
    bench.pass_hours(1)
    bench.put("second")
    bench.pass_hours(22.9)
    assert bench.written() == ["first", "second"]
    bench.pass_hours(0.2)
    assert bench.written() == ["second"]
    bench.pass_hours(1)
    assert bench.written() == []


def test_a_long_log_is_trimmed_piece_by_piece(bench: Bench) -> None:
    for start in range(0, 1000, 25):
        puts = [
            {"PutRequest": {"Item": {"pk": {"S": f"k{start + number}"}}}} for number in range(25)
        ]
        bench.client.batch_write_item(RequestItems={TABLE: puts})
    bench.pass_hours(20)
    bench.put("kept")
    bench.pass_hours(5)
    assert bench.written() == ["kept"]


def test_what_was_trimmed_cannot_be_read(bench: Bench) -> None:
    bench.put("a", 1)
    (record,) = bench.records()
    number = record["dynamodb"]["SequenceNumber"]
    (shard_id,) = [
        shard["ShardId"] for shard in bench.shards()
        if bench.page(bench.iterator(shard["ShardId"]))["Records"]
    ]  # fmt: skip
    bench.pass_hours(23.9)
    iterator = bench.iterator(shard_id)
    bench.pass_hours(0.2)
    trimmed = ("TrimmedDataAccessException", "The data you are trying to access has been trimmed")
    assert code(bench.page, iterator=iterator) == trimmed
    more = {"shard_id": shard_id, "kind": "AT_SEQUENCE_NUMBER", "SequenceNumber": number}
    assert code(bench.iterator, **more) == trimmed
    assert bench.page(bench.iterator(shard_id))["Records"] == []


def test_an_iterator_is_good_for_15_minutes(bench: Bench) -> None:
    iterator = bench.iterator(bench.shards()[0]["ShardId"])
    bench.clock.advance(minutes=15)
    following = bench.page(iterator)["NextShardIterator"]
    bench.clock.advance(seconds=1)
    assert code(bench.page, iterator=iterator)[0] == "ExpiredIteratorException"
    assert bench.page(following)["Records"] == []


def test_closed_shards_go_when_they_are_a_day_old(bench: Bench) -> None:
    before = {shard["ShardId"] for shard in bench.shards()}
    bench.put("a")
    bench.pass_hours(4)
    assert before < {shard["ShardId"] for shard in bench.shards()}
    bench.pass_hours(24.1)
    left = bench.shards()
    assert not before & {shard["ShardId"] for shard in left}
    # Their children still say where they came from.
    assert before == {shard["ParentShardId"] for shard in left[: len(before)]}


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_closed_stream_goes_when_it_is_a_day_old(bench: Bench, is_deleted: bool) -> None:
    bench.put("a")
    if is_deleted:
        bench.client.delete_table(TableName=TABLE)
    else:
        off = {"StreamEnabled": False}
        bench.client.update_table(TableName=TABLE, StreamSpecification=off)
    bench.pass_hours(23.9)
    assert bench.written() == ["a"]
    bench.pass_hours(0.2)
    assert bench.streams.list_streams()["Streams"] == []
    with pytest.raises(bench.streams.exceptions.ResourceNotFoundException):
        bench.shards()


def test_a_stream_at_the_same_moment_has_another_label(bench: Bench) -> None:
    for _ in range(2):
        off = {"StreamEnabled": False}
        bench.client.update_table(TableName=TABLE, StreamSpecification=off)
        again = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        bench.client.update_table(TableName=TABLE, StreamSpecification=again)
    listed = bench.streams.list_streams(TableName=TABLE)["Streams"]
    labels = [stream["StreamLabel"] for stream in listed]
    assert len(set(labels)) == 3
    assert bench.client.describe_table(TableName=TABLE)["Table"]["LatestStreamLabel"] == labels[-1]


def test_while_a_status_lasts_the_stream_is_enabling_and_disabling() -> None:
    with testing.database(transient_seconds=10) as database:
        bench = Bench(database)

        def status() -> str:
            description = bench.streams.describe_stream(StreamArn=bench.arn)
            return str(description["StreamDescription"]["StreamStatus"])

        assert status() == "ENABLING"
        bench.clock.advance(seconds=11)
        assert status() == "ENABLED"
        off = {"StreamEnabled": False}
        bench.client.update_table(TableName=TABLE, StreamSpecification=off)
        assert status() == "DISABLING"
        bench.clock.advance(seconds=11)
        assert status() == "DISABLED"
