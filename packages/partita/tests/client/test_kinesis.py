"""A Kinesis stream as a source: which iterators are requested, and when."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

import pytest

from partita.client import Client, ClientError
from partita.client.consumer.kinesis_source import TRIM_HORIZON, KinesisShard, KinesisStream

SHARD = KinesisShard("shard")


class Kinesis(Client):
    """A shard of numbered records. An iterator is the number of the next one."""

    def __init__(self, count: int, *, is_closed: bool = False) -> None:
        self.count = count
        self.is_closed = is_closed
        self.errors: list[ClientError] = []
        """The errors of the next reads."""
        self.starts: list[str] = []

    async def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation == "GetShardIterator":
            start = request.get("StartingSequenceNumber", request["ShardIteratorType"])
            self.starts.append(start)
            return {"ShardIterator": str(int(start) + 1 if start.isdigit() else 0)}
        assert operation == "GetRecords"
        if self.errors:
            raise self.errors.pop()
        first = int(request["ShardIterator"])
        stop = min(first + request["Limit"], self.count)
        page: dict[str, Any] = {"Records": [_record(number) for number in range(first, stop)]}
        page["MillisBehindLatest"] = 1000 * (self.count - stop)
        if not self.is_closed or stop < self.count:
            page["NextShardIterator"] = str(stop)
        return page


def _record(number: int) -> dict[str, Any]:
    data = b64encode(b"%d" % number).decode()
    return {
        "SequenceNumber": str(number),
        "PartitionKey": "key",
        "Data": data,
        "ApproximateArrivalTimestamp": 1,
    }


def refusal(code: str) -> ClientError:
    return ClientError(code, "", 400, {})


def test_one_iterator_is_enough_for_who_reads_on() -> None:
    kinesis = Kinesis(3)

    async def read() -> None:
        stream, position, read = KinesisStream(kinesis, "stream"), TRIM_HORIZON, []
        for _ in range(4):
            page = await stream.read(SHARD, position, 2)
            read.append(([record.data for record in page.records], page.is_behind, page.is_last))
            position = page.position
        assert position == "2"
        nothing: tuple[list[bytes], bool, bool] = ([], False, False)
        assert read == [([b"0", b"1"], True, False), ([b"2"], False, False), nothing, nothing]

    asyncio.run(read())
    assert kinesis.starts == [TRIM_HORIZON]


def test_who_goes_back_gets_the_records_again() -> None:
    kinesis = Kinesis(4, is_closed=True)

    async def read() -> None:
        stream = KinesisStream(kinesis, "stream")
        first = await stream.read(SHARD, TRIM_HORIZON, 2)
        await stream.read(SHARD, first.position, 1)
        again = await stream.read(SHARD, first.position, 10)
        assert [record.data for record in again.records] == [b"2", b"3"]
        assert again.is_last

    asyncio.run(read())
    assert kinesis.starts == [TRIM_HORIZON, "1"]


def test_an_iterator_that_expired_is_replaced_by_position() -> None:
    kinesis = Kinesis(4)

    async def read() -> None:
        stream = KinesisStream(kinesis, "stream")
        first = await stream.read(SHARD, TRIM_HORIZON, 2)
        kinesis.errors.append(refusal("ExpiredIteratorException"))
        page = await stream.read(SHARD, first.position, 2)
        assert [record.data for record in page.records] == [b"2", b"3"]

    asyncio.run(read())
    assert kinesis.starts == [TRIM_HORIZON, "1"]


def test_after_a_failure_the_same_records_come() -> None:
    kinesis = Kinesis(4)

    async def read() -> None:
        stream = KinesisStream(kinesis, "stream")
        first = await stream.read(SHARD, TRIM_HORIZON, 2)
        kinesis.errors.append(refusal("InternalFailure"))
        with pytest.raises(ClientError):
            await stream.read(SHARD, first.position, 2)
        page = await stream.read(SHARD, first.position, 2)
        assert [record.data for record in page.records] == [b"2", b"3"]

    asyncio.run(read())
