"""Consumers of an event stream: records arrive in order, parents first, after the checkpoint."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from partita.client import Client
from partita.client.consumer.consumer_worker import ConsumerLeaseLost
from partita.client.consumer.kinesis_consumer import Checkpoint, Consumer, Record
from partita.client.consumer.kinesis_source import KinesisShard, KinesisStream
from partita.client.consumer.lease_table import SHARD_END, LeaseTable
from testkit.servers import processes

SECONDS_MAX = 120
FAST: dict[str, Any] = {"poll_seconds": 0.02, "look_seconds": 0.05, "lease_seconds": 1.0}
FIRST = "shardId-000000000000"

Story = Callable[[Client, str], Awaitable[Any]]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with processes.starting() as start:
        yield start("serve", "--port", "0", "--in-memory", stderr=None).url


names = (f"stream-{os.getpid()}-{number}" for number in itertools.count())


@pytest.fixture
def tell(endpoint: str) -> Callable[..., Any]:
    """`tell(story, shards)` runs a story with a client and a new stream."""

    def run(story: Story, shards: int = 1) -> Any:
        async def within() -> Any:
            client, name = Client(endpoint), next(names)
            request = {"StreamName": name, "ShardCount": shards}
            try:
                await client.call("kinesis", "CreateStream", request)
                async with asyncio.timeout(SECONDS_MAX):
                    return await story(client, name)
            finally:
                await client.close()

        return asyncio.run(within())

    return run


Tell = Callable[..., Any]


class Reading:
    """The records that a consumer received, and the rule by which it saves checkpoints."""

    def __init__(self, client: Client, stream: str, **options: Any) -> None:
        self.records: list[tuple[str, Record]] = []
        self.checkpoints: list[Checkpoint] = []
        self.is_checkpointing = True
        self._changed = asyncio.Event()
        self._consumer = Consumer(client, stream, "leases", self.handle, **{**FAST, **options})
        self._task: asyncio.Task[None] | None = None

    async def handle(self, shard_id: str, records: list[Record], checkpoint: Checkpoint) -> None:
        self.records += [(shard_id, record) for record in records]
        self.checkpoints.append(checkpoint)
        if self.is_checkpointing:
            await checkpoint()
        self._changed.set()

    async def __aenter__(self) -> Reading:
        self._task = asyncio.create_task(self._consumer.run())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, count: int) -> list[bytes]:
        while len(self.records) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.data

    @property
    def data(self) -> list[bytes]:
        return [record.data for _, record in self.records]


async def put(client: Client, stream: str, *data: bytes, key: str = "k") -> None:
    from base64 import b64encode

    records = [{"Data": b64encode(one).decode(), "PartitionKey": key} for one in data]
    await client.call("kinesis", "PutRecords", {"StreamName": stream, "Records": records})


async def split(client: Client, stream: str, shard: str, hash_key: int = 1 << 127) -> None:
    request = {"StreamName": stream, "ShardToSplit": shard, "NewStartingHashKey": str(hash_key)}
    await client.call("kinesis", "SplitShard", request)


def numbered(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


def test_records_are_handed_over_in_order_as_they_come(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, *numbered(0, 10))
        async with Reading(client, stream, records_max=3) as reading:
            assert await reading.until(10) == numbered(0, 10)
            await put(client, stream, *numbered(10, 15))
            assert await reading.until(15) == numbered(0, 15)
        shard, record = reading.records[0]
        assert (shard, record.partition_key, len(record.sequence_number)) == (FIRST, "k", 56)
        assert record.arrived_at > 0

    tell(story)


def test_the_next_consumer_goes_on_behind_the_checkpoint(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, *numbered(0, 4))
        async with Reading(client, stream, records_max=2) as first:
            await first.until(4)
        await put(client, stream, *numbered(4, 6))
        async with Reading(client, stream) as second:
            assert await second.until(2) == numbered(4, 6)

    tell(story)


def test_what_has_no_checkpoint_comes_again(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, *numbered(0, 6))
        async with Reading(client, stream, records_max=2) as first:
            first.is_checkpointing = False
            await first.until(6)
            await first.checkpoints[1]()
        async with Reading(client, stream) as second:
            assert await second.until(2) == numbered(4, 6)

    tell(story)


def test_children_are_read_when_their_parents_are_done_with(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        keys = [f"key {number}" for number in range(8)]
        for key in keys:
            await put(client, stream, *numbered(0, 5), key=key)
        await split(client, stream, FIRST)
        for key in keys:
            await put(client, stream, *numbered(5, 10), key=key)
        merge = {
            "StreamName": stream,
            "ShardToMerge": "shardId-000000000001",
            "AdjacentShardToMerge": "shardId-000000000002",
        }
        await client.call("kinesis", "MergeShards", merge)
        for key in keys:
            await put(client, stream, *numbered(10, 12), key=key)
        async with Reading(client, stream, records_max=7) as reading:
            await reading.until(12 * len(keys))
        by_key: dict[str, list[bytes]] = {}
        for _, record in reading.records:
            by_key.setdefault(record.partition_key, []).append(record.data)
        assert by_key == {key: numbered(0, 12) for key in keys}

    tell(story)


def test_children_wait_for_a_checkpoint_that_comes_late(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, b"parent")
        await split(client, stream, FIRST)
        await put(client, stream, b"child")
        async with Reading(client, stream) as reading:
            reading.is_checkpointing = False
            await reading.until(1)
            await asyncio.sleep(0.5)
            assert reading.data == [b"parent"]
            await reading.checkpoints[-1]()
            assert await reading.until(2) == [b"parent", b"child"]
            leases = await LeaseTable(client, "leases", stream).all()
            assert leases[FIRST].checkpoint == SHARD_END

    tell(story)


async def until_held(client: Client, stream: str) -> None:
    """Waits until every unfinished shard has a reader."""
    leases: dict[str, Any] = {}
    while not leases or any(one.owner == "-" for one in leases.values() if not one.is_over):
        leases = await LeaseTable(client, "leases", stream).all()
        await asyncio.sleep(0.05)


def test_a_consumer_may_begin_with_what_comes_next(tell: Tell) -> None:
    """Records since its first start are delivered again if they were never processed."""

    async def story(client: Client, stream: str) -> None:
        await put(client, stream, b"closed")
        await split(client, stream, FIRST)
        await put(client, stream, b"old")
        async with Reading(client, stream, start="LATEST") as reading:
            reading.is_checkpointing = False
            await until_held(client, stream)
            await put(client, stream, b"new")
            assert await reading.until(1) == [b"new"]
        await put(client, stream, b"newer")
        async with Reading(client, stream, start="LATEST") as reading:
            assert await reading.until(2) == [b"new", b"newer"]

    tell(story)


def test_a_moment_that_the_service_has_not_reached(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, b"old")
        table = LeaseTable(client, "leases", stream)
        await table.create()
        await table.add(FIRST, "AT_TIMESTAMP 9999999999.000")
        async with Reading(client, stream) as reading:
            await until_held(client, stream)
            await asyncio.sleep(0.3)
            await put(client, stream, b"new")
            assert await reading.until(1) == [b"new"]

    tell(story)


def test_children_do_not_wait_for_a_shard_that_is_too_old(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = KinesisStream.shards

    async def without_first(self: KinesisStream) -> list[KinesisShard]:
        return [shard for shard in await listed(self) if shard.shard_id != FIRST]

    async def story(client: Client, stream: str) -> None:
        await put(client, stream, b"parent")
        table = LeaseTable(client, "leases", stream)
        await table.create()
        await table.add(FIRST, "TRIM_HORIZON")
        await split(client, stream, FIRST)
        await put(client, stream, b"child")
        monkeypatch.setattr(KinesisStream, "shards", without_first)
        # The starting position applies only to the first shards, not to later ones.
        async with Reading(client, stream, start="LATEST") as reading:
            assert await reading.until(1) == [b"child"]
        assert FIRST not in await table.all()

    tell(story)


def test_a_handler_that_fails_gets_the_same_again(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, *numbered(0, 4))
        seen: list[list[bytes]] = []
        done = asyncio.Event()

        async def handle(shard_id: str, records: list[Record], checkpoint: Checkpoint) -> None:
            seen.append([record.data for record in records])
            if len(seen) == 2:
                raise ValueError("on purpose")
            await checkpoint()
            if len(seen) == 3:
                done.set()

        options = {**FAST, "records_max": 2}
        task = asyncio.create_task(Consumer(client, stream, "leases", handle, **options).run())
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert seen == [numbered(0, 2), numbered(2, 4), numbered(2, 4)]

    tell(story)


def test_two_workers_share_the_shards(tell: Tell) -> None:
    # Long enough that no worker loses a lease because the whole machine was busy.
    lease = {"lease_seconds": 3.0}

    async def story(client: Client, stream: str) -> None:
        async with Reading(client, stream, **lease) as first:
            table = LeaseTable(client, "leases", stream)
            leases: dict[str, Any] = {}
            while len({one.owner for one in leases.values()} - {"-"}) != 1 or len(leases) < 4:
                leases = await table.all()
                await asyncio.sleep(0.02)
            async with Reading(client, stream, **lease) as second:
                while True:
                    owners = [lease.owner for lease in (await table.all()).values()]
                    if sorted(map(owners.count, set(owners))) == [2, 2]:
                        break
                    await asyncio.sleep(0.02)
                # A worker that has lost a lease notices at its next renewal.
                await asyncio.sleep(lease["lease_seconds"] / 2)
                for number in range(40):
                    await put(client, stream, b"%d" % number, key=f"key {number}")
                while len(first.records) + len(second.records) < 40:
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0.2)
                assert first.records
                assert second.records
                assert sorted(first.data + second.data, key=int) == numbered(0, 40)

    tell(story, 4)


def test_the_shards_of_a_worker_that_is_gone_are_taken(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, *numbered(0, 3))
        table = LeaseTable(client, "leases", stream)
        await table.create()
        await table.add(FIRST, "TRIM_HORIZON")
        lease = (await table.all())[FIRST]
        gone = await table.take(lease, "gone")
        assert gone is not None
        async with Reading(client, stream) as reading:
            await asyncio.sleep(0.5)
            assert reading.records == []
            assert await reading.until(3) == numbered(0, 3)
            with pytest.raises(ConsumerLeaseLost):
                await table.save_checkpoint(gone, "1")

    tell(story)


def test_a_worker_that_comes_back_does_not_wait(tell: Tell) -> None:
    async def story(client: Client, stream: str) -> None:
        await put(client, stream, *numbered(0, 3))
        table = LeaseTable(client, "leases", stream)
        await table.create()
        await table.add(FIRST, "TRIM_HORIZON")
        await table.take((await table.all())[FIRST], "worker")
        options = {"worker": "worker", "lease_seconds": 600.0}
        async with Reading(client, stream, **options) as reading:
            assert await reading.until(3) == numbered(0, 3)

    tell(story)
