"""Kinesis: GetShardIterator and GetRecords, from every place in a shard."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from partita.foundation.service_limits import GET_RECORDS_BYTES_MAX, GET_RECORDS_MAX

from .event_reading import ACCOUNT, iterator_of, put, records_from, records_of
from .refusals import refusal

Create = Callable[..., str]
INVALID, NOT_FOUND = "InvalidArgumentException", "ResourceNotFoundException"
SHARD = "shardId-000000000000"


def data(records: list[dict[str, Any]]) -> list[bytes]:
    return [record["Data"] for record in records]


@pytest.fixture
def five(kinesis: Any, event_stream: Create) -> tuple[str, list[str]]:
    """A stream with the records 0 to 4, in two requests, and their sequence numbers."""
    name = event_stream()
    receipts = put(kinesis, name, b"0", b"1", b"2") + put(kinesis, name, b"3", b"4")
    return name, [receipt["SequenceNumber"] for receipt in receipts]


def test_from_the_horizon(kinesis: Any, five: tuple[str, list[str]]) -> None:
    found = records_from(kinesis, iterator_of(kinesis, five[0], SHARD))
    assert data(found) == [b"0", b"1", b"2", b"3", b"4"]
    assert [record["SequenceNumber"] for record in found] == five[1]


@pytest.mark.parametrize("place", range(5))
def test_at_and_after_every_record(kinesis: Any, five: tuple[str, list[str]], place: int) -> None:
    name, numbers = five
    for kind, first in (("AT_SEQUENCE_NUMBER", place), ("AFTER_SEQUENCE_NUMBER", place + 1)):
        iterator = iterator_of(kinesis, name, SHARD, kind, StartingSequenceNumber=numbers[place])
        expected = [b"%d" % number for number in range(first, 5)]
        assert data(records_from(kinesis, iterator)) == expected


def test_at_the_start_of_the_shard(kinesis: Any, five: tuple[str, list[str]]) -> None:
    name, _ = five
    [shard] = kinesis.list_shards(StreamName=name)["Shards"]
    start = shard["SequenceNumberRange"]["StartingSequenceNumber"]
    iterator = iterator_of(kinesis, name, SHARD, "AT_SEQUENCE_NUMBER", StartingSequenceNumber=start)
    assert len(records_from(kinesis, iterator)) == 5


def test_the_latest_are_those_that_come_afterwards(
    kinesis: Any, five: tuple[str, list[str]]
) -> None:
    iterator = iterator_of(kinesis, five[0], SHARD, "LATEST")
    assert records_from(kinesis, iterator) == []
    put(kinesis, five[0], b"new")
    assert data(records_from(kinesis, iterator)) == [b"new"]


def test_at_a_time(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    for number in range(4):
        put(kinesis, name, b"%d" % number, b"%d" % number)
        time.sleep(0.02)
    found = records_of(kinesis, name)
    times = [record["ApproximateArrivalTimestamp"].timestamp() for record in found]
    assert times == sorted(times)
    for position, moment in enumerate(times):
        iterator = iterator_of(kinesis, name, SHARD, "AT_TIMESTAMP", Timestamp=repr(moment))
        first = position - position % 2
        assert data(records_from(kinesis, iterator)) == data(found)[first:]
    long_ago = iterator_of(kinesis, name, SHARD, "AT_TIMESTAMP", Timestamp=1)
    assert len(records_from(kinesis, long_ago)) == 8
    now = iterator_of(kinesis, name, SHARD, "AT_TIMESTAMP", Timestamp=repr(time.time() - 0.001))
    assert records_from(kinesis, now) == []


def test_a_time_that_cannot_be(kinesis: Any, event_stream: Create) -> None:
    asked = {"StreamName": event_stream(), "ShardId": SHARD, "ShardIteratorType": "AT_TIMESTAMP"}
    assert refusal(kinesis.get_shard_iterator, **asked) == (
        INVALID,
        "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. "
        "Current request has no timestamp parameter.",
    )
    code, text = refusal(kinesis.get_shard_iterator, **asked, Timestamp=time.time() + 60)
    assert code == INVALID
    assert text.startswith("The timestampInMillis parameter cannot be greater than the current")


@pytest.mark.parametrize("kind", ["TRIM_HORIZON", "LATEST"])
def test_a_number_where_none_belongs(kinesis: Any, five: tuple[str, list[str]], kind: str) -> None:
    name, numbers = five
    asked = {"StreamName": name, "ShardId": SHARD, "ShardIteratorType": kind}
    assert refusal(kinesis.get_shard_iterator, **asked, StartingSequenceNumber=numbers[0]) == (
        INVALID,
        "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and "
        "StartingSequenceNumber or (2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. "
        f"Request specified {kind} and also a StartingSequenceNumber.",
    )


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
def test_no_number_where_one_belongs(kinesis: Any, event_stream: Create, kind: str) -> None:
    asked = {"StreamName": event_stream(), "ShardId": SHARD, "ShardIteratorType": kind}
    code, text = refusal(kinesis.get_shard_iterator, **asked)
    assert code == INVALID
    assert text.endswith(f"Request specified {kind} and no StartingSequenceNumber.")


def test_numbers_that_are_none_of_the_shard(kinesis: Any, event_stream: Create) -> None:
    name = event_stream(2)
    [receipt] = put(kinesis, name, b"x")
    number, shard = receipt["SequenceNumber"], receipt["ShardId"]
    other = f"shardId-{1 - int(shard[-1]):012d}"

    def refused(shard: str, number: str) -> str:
        code, text = refusal(
            kinesis.get_shard_iterator,
            StreamName=name,
            ShardId=shard,
            ShardIteratorType="AT_SEQUENCE_NUMBER",
            StartingSequenceNumber=number,
        )
        assert code == INVALID
        return text

    used = f"StartingSequenceNumber {{}} used in GetShardIterator on shard {shard} in stream {name}"
    assert refused(other, number) == (
        f"Invalid StartingSequenceNumber. It encodes {shard}, while it was used in a call to a "
        f"shard with {other}"
    )
    assert refused(shard, "5") == f"{used.format(5)} under account {ACCOUNT} is invalid."
    elsewhere = str(int(number) + (1 << 148))
    assert refused(shard, elsewhere) == (
        f"{used.format(elsewhere)} under account {ACCOUNT} is invalid because it did not come from "
        "this stream."
    )
    # One that was never given.
    assert refused(shard, str(int(number) + (1 << 80))).endswith("is invalid.")


def test_shards_that_there_are_not(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()

    def refused(stream: str, shard: str) -> tuple[str, str]:
        return refusal(
            kinesis.get_shard_iterator,
            StreamName=stream,
            ShardId=shard,
            ShardIteratorType="LATEST",
        )

    assert refused(name, "shard") == (
        NOT_FOUND,
        f"Could not find shard shard in stream {name} under account {ACCOUNT}.",
    )
    assert refused(name, "shardId-000000000005") == (
        NOT_FOUND,
        f"Shard shardId-000000000005 in stream {name} under account {ACCOUNT} does not exist",
    )
    assert refused("absent", SHARD) == (
        NOT_FOUND,
        f"Shard {SHARD} in stream absent under account {ACCOUNT} does not exist",
    )
    # The service takes the number alone.
    assert kinesis.get_shard_iterator(StreamName=name, ShardId="0", ShardIteratorType="LATEST")


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_a_page_has_as_many_records_as_asked_for(
    kinesis: Any, five: tuple[str, list[str]], limit: int
) -> None:
    iterator: str | None = iterator_of(kinesis, five[0], SHARD)
    pages: list[list[bytes]] = []
    while sum(map(len, pages)) < 5:
        page = kinesis.get_records(ShardIterator=iterator, Limit=limit)
        iterator = page["NextShardIterator"]
        pages.append(data(page["Records"]))
        is_last = sum(map(len, pages)) == 5
        assert page["MillisBehindLatest"] == 0 if is_last else page["MillisBehindLatest"] >= 0
    assert [one for page in pages for one in page] == [b"0", b"1", b"2", b"3", b"4"]
    assert all(len(page) == limit for page in pages[:-1])


def test_a_reader_is_told_how_far_behind_it_is(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    put(kinesis, name, b"0", b"1")
    time.sleep(0.1)
    page = kinesis.get_records(ShardIterator=iterator_of(kinesis, name, SHARD), Limit=1)
    assert page["MillisBehindLatest"] >= 100
    page = kinesis.get_records(ShardIterator=page["NextShardIterator"], Limit=1)
    assert page["MillisBehindLatest"] == 0


def test_a_page_has_ten_thousand_records(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    for _ in range(GET_RECORDS_MAX // 500 + 1):
        put(kinesis, name, *[b"x"] * 500)
    page = kinesis.get_records(ShardIterator=iterator_of(kinesis, name, SHARD))
    assert len(page["Records"]) == GET_RECORDS_MAX
    rest = kinesis.get_records(ShardIterator=page["NextShardIterator"])
    assert len(rest["Records"]) == 500


def test_a_page_has_ten_megabytes(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    size = 900_000
    for number in range(4):
        put(kinesis, name, *(b"%d" % (number * 4 + one) + b"x" * size for one in range(4)))
    iterator = iterator_of(kinesis, name, SHARD)
    found: list[int] = []
    while len(found) < 16:
        page = kinesis.get_records(ShardIterator=iterator)
        assert sum(len(record["Data"]) for record in page["Records"]) <= GET_RECORDS_BYTES_MAX
        assert len(page["Records"]) > 1
        found += [int(record["Data"].rstrip(b"x")) for record in page["Records"]]
        iterator = page["NextShardIterator"]
    assert found == list(range(16))


@pytest.mark.parametrize(
    "iterator",
    [
        *("x", "AAAA", "AAAAAAAAAAIAAAABAAAAAQAAAAAAAAAFAAABoeIXc5Jh"),
        # A record that no shard can have.
        "AAAAAAAAAAEAAAABAAAAAP//////////AAABoeIXc5Jh",
    ],
)
def test_what_is_no_iterator(kinesis: Any, iterator: str) -> None:
    assert refusal(kinesis.get_records, ShardIterator=iterator) == (
        INVALID,
        "Invalid ShardIterator.",
    )


def test_an_iterator_is_of_its_stream(kinesis: Any, event_stream: Create) -> None:
    name = event_stream()
    arn = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    iterator = iterator_of(kinesis, name, SHARD)
    assert kinesis.get_records(ShardIterator=iterator, StreamARN=arn)["Records"] == []
    refused = refusal(kinesis.get_records, ShardIterator=iterator, StreamARN=f"{arn}-other")
    assert refused == (INVALID, "Invalid ShardIterator.")


@pytest.mark.parametrize("limit", [0, 10_001])
def test_the_limit_is_between_1_and_10000(kinesis: Any, event_stream: Create, limit: int) -> None:
    iterator = iterator_of(kinesis, event_stream(), SHARD)
    refused = refusal(kinesis.get_records, ShardIterator=iterator, Limit=limit)
    assert refused[0] == "ValidationException"


def test_a_dry_run_reads_nothing(kinesis: Any, five: tuple[str, list[str]]) -> None:
    asked = {"StreamName": five[0], "ShardId": SHARD, "ShardIteratorType": "LATEST"}
    code = "DryRunOperationException"
    assert refusal(kinesis.get_shard_iterator, **asked, DryRun=True)[0] == code
    iterator = iterator_of(kinesis, five[0], SHARD)
    assert refusal(kinesis.get_records, ShardIterator=iterator, DryRun=True)[0] == code
