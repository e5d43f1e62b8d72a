"""The counter's reader takes nothing twice and leaves nothing out, whatever call fails."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

import pytest

from page_hit_counter.counting.visit_stream import StreamReader
from partita.client import Client, ClientError

NOON = 1_588_766_400.0


class Kinesis(Client):
    """Closed shards `a` and `b` with two records each, and their open child `c` with one."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        """The operations that fail, and the shards whose records cannot be read."""

    async def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self._fail_if(operation)
        if operation == "ListShards":
            child = {"ShardId": "c", "ParentShardId": "a", "AdjacentParentShardId": "b"}
            return {"Shards": [{"ShardId": "a"}, {"ShardId": "b"}, child]}
        if operation == "GetShardIterator":
            sequence_number = request.get("StartingSequenceNumber", "-1")
            return {"ShardIterator": f"{request['ShardId']} {int(sequence_number) + 1}"}
        assert operation == "GetRecords"
        name, first = request["ShardIterator"].split()
        self._fail_if(name)
        numbers = range(int(first), 1 if name == "c" else 2)
        answer: dict[str, Any] = {"Records": [_record(name, number) for number in numbers]}
        if name == "c":
            answer["NextShardIterator"] = f"c {numbers.stop}"
        return answer

    def _fail_if(self, what: str) -> None:
        if what in self.failing:
            raise ClientError("InternalFailure", "on purpose", 500, {})


def _record(shard: str, number: int) -> dict[str, Any]:
    return {
        "SequenceNumber": str(number),
        "PartitionKey": "key",
        "Data": b64encode(f"{shard}{number}".encode()).decode(),
        "ApproximateArrivalTimestamp": NOON,
    }


class Reading:
    def __init__(self) -> None:
        self.kinesis = Kinesis()
        self.positions: dict[str, str] = {}
        self.read_shards: list[str] = []
        self.taken: list[bytes] = []
        self.reader = StreamReader(
            self.kinesis, "pagehits", self.positions, self.read_shards, lambda: NOON
        )

    async def read(self) -> None:
        await self.reader.read(lambda record, watermark: self.taken.append(record.data))

    async def fail(self, *failing: str) -> None:
        self.kinesis.failing = set(failing)
        with pytest.raises(ClientError):
            await self.read()
        self.kinesis.failing = set()


def test_children_are_read_after_both_parents() -> None:
    async def run() -> None:
        reading = Reading()
        await reading.read()
        assert reading.taken == [b"a0", b"a1", b"b0", b"b1"]
        assert (reading.positions, reading.read_shards) == ({}, ["a", "b"])
        assert reading.reader.watermark == 0.0, "nothing of the child was read yet"
        await reading.read()
        assert reading.taken[4:] == [b"c0"]
        assert reading.positions == {"c": "0"}
        await reading.read()
        assert len(reading.taken) == 5

    asyncio.run(run())


def test_a_shard_that_cannot_be_read_leaves_the_others_where_they_were() -> None:
    async def run() -> None:
        reading = Reading()
        await reading.fail("b")
        assert (reading.taken, reading.positions, reading.read_shards) == ([], {}, [])
        await reading.read()
        assert reading.taken == [b"a0", b"a1", b"b0", b"b1"]

    asyncio.run(run())


def test_a_finished_shard_is_not_read_again_when_its_children_cannot_be_listed() -> None:
    async def run() -> None:
        reading = Reading()
        await reading.fail("a", "b")
        await reading.fail("ListShards")
        await reading.read()
        await reading.read()
        assert reading.taken == [b"a0", b"a1", b"b0", b"b1", b"c0"]

    asyncio.run(run())
