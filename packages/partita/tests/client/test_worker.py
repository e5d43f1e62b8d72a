"""A worker over shards and leases in memory: order, failures, checkpoints, lost leases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from partita.client.consumer.consumer_worker import ConsumerLeaseLost, ConsumerWorker
from partita.client.consumer.stream_shards import ShardPage, consume_shard, ready_shards
from partita.errors import PartitaError

SECONDS_MAX = 20


class Shard(NamedTuple):
    shard_id: str
    parents: tuple[str, ...] = ()


@dataclass
class Lease:
    shard_id: str
    position: int = 0
    end: int = 3

    @property
    def is_over(self) -> bool:
        return self.position == self.end


class Stream:
    """Shards with three records each, and the leases of its one worker."""

    def __init__(self, *shards: Shard) -> None:
        self.listed = list(shards)
        self.leases = {shard.shard_id: Lease(shard.shard_id) for shard in shards}
        self.looks = 0
        self.lost: set[str] = set()
        self.given_back: list[str] = []

    async def shards(self) -> list[Shard]:
        self.looks += 1
        if self.looks == 1:
            raise PartitaError("not yet")
        return self.listed

    async def read(self, shard: Shard, position: int, limit: int) -> ShardPage[int, str]:
        stop = min(position + limit, 3)
        records = [f"{shard.shard_id}{number}" for number in range(position, stop)]
        return ShardPage(stop, records, is_last=stop == 3)

    async def find(
        self, list_shards: Callable[[], Awaitable[list[Shard]]]
    ) -> list[tuple[Shard, Lease]]:
        return [(shard, self.leases[shard.shard_id]) for shard in await list_shards()]

    def takeable(self, leases: list[Lease], held: int) -> list[Lease]:
        return [lease for lease in leases if lease.shard_id not in self.lost]

    async def take(self, lease: Lease) -> Lease:
        return lease

    async def renew(self, lease: Lease) -> None:
        if lease.shard_id in self.lost:
            raise ConsumerLeaseLost(lease.shard_id)

    async def give_back(self, lease: Lease) -> None:
        self.given_back.append(lease.shard_id)

    @property
    def is_over(self) -> bool:
        return all(lease.is_over for lease in self.leases.values())


Process = Callable[[Lease, ShardPage[int, str]], Awaitable[None]]


def work(stream: Stream, process: Process, is_enough: Callable[[], bool], limit: int = 2) -> None:
    """Runs a worker until a condition is true."""

    async def consume(shard: Shard, lease: Lease) -> None:
        await consume_shard(
            lease.position,
            lambda position: stream.read(shard, position, limit),
            lambda page: process(lease, page),
        )

    async def run() -> None:
        seconds = {"look_seconds": 0.01, "rest_seconds": 0.01, "renew_seconds": 0.01}
        task = asyncio.create_task(
            ConsumerWorker("worker", stream, stream, consume, **seconds).run()
        )
        async with asyncio.timeout(SECONDS_MAX):
            while not is_enough():
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("finished", "ready"),
    [("", "ac"), ("a", "bc"), ("c", "a"), ("ac", "bd"), ("abc", "d"), ("abcd", "")],
)
def test_a_shard_is_ready_when_its_parents_are_finished(finished: str, ready: str) -> None:
    shards = [Shard("a"), Shard("b", ("a",)), Shard("c", ("gone",)), Shard("d", ("a", "c"))]
    assert [shard.shard_id for shard in ready_shards(shards, finished)] == list(ready)


def test_parents_come_before_children_and_a_failed_look_is_repeated() -> None:
    stream = Stream(Shard("c", ("a", "b")), Shard("a"), Shard("b"))
    seen: list[str] = []

    async def process(lease: Lease, page: ShardPage[int, str]) -> None:
        await asyncio.sleep(0.01)
        seen.extend(page.records)
        lease.position = page.position

    work(stream, process, lambda: stream.is_over)
    assert sorted(seen[:6]) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert seen[6:] == ["c0", "c1", "c2"]


def test_what_fails_comes_again_from_the_checkpoint() -> None:
    stream = Stream(Shard("a"), Shard("b", ("a",)))
    seen: list[str] = []

    async def process(lease: Lease, page: ShardPage[int, str]) -> None:
        seen.extend(page.records)
        if seen.count("a1") == 1:
            raise ValueError("on purpose")
        lease.position = page.position

    work(stream, process, lambda: stream.is_over, limit=1)
    assert seen == ["a0", "a1", "a1", "a2", "b0", "b1", "b2"]


def test_a_shard_whose_lease_is_lost_is_left_alone() -> None:
    stream = Stream(Shard("a"), Shard("b"))
    ended: list[str] = []

    async def process(lease: Lease, page: ShardPage[int, str]) -> None:
        try:
            await asyncio.sleep(SECONDS_MAX)
        finally:
            ended.append(lease.shard_id)

    def is_enough() -> bool:
        if stream.looks == 5:
            stream.lost.add("a")
        return "a" in ended and stream.looks > 10

    work(stream, process, is_enough)
    assert ended == ["a", "b"]
    assert stream.given_back == ["b"]


def test_children_wait_for_the_checkpoint_of_their_parents() -> None:
    stream = Stream(Shard("a"), Shard("b", ("a",)))
    events: list[str] = []

    async def process(lease: Lease, page: ShardPage[int, str]) -> None:
        events.extend(page.records)
        while stream.looks < 10:
            await asyncio.sleep(0.01)
        events.append(f"{lease.shard_id} is done")
        lease.position = page.position

    work(stream, process, lambda: stream.is_over, limit=3)
    assert events == ["a0", "a1", "a2", "a is done", "b0", "b1", "b2", "b is done"]
