"""A consumer of a Kinesis stream: it reads all shards from their checkpoints, parents first.

    async def handle(shard_id, records, checkpoint):
        ...
        await checkpoint()      # these records, and all before them, are processed

    await Consumer(client, "visits", "counter", handle).run()

Records of a shard are delivered in order, the next batch when `handle` returns. After a failure,
delivery starts again after the last checkpoint, so each record arrives at least once, in order.
Several workers share the shards through leases in a table. It works with Amazon Kinesis too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from uuid import uuid4

from partita.client.aws_client import Client
from partita.client.consumer.consumer_worker import ConsumerWorker
from partita.client.consumer.kinesis_source import (
    TRIM_HORIZON,
    KinesisPage,
    KinesisRecord,
    KinesisShard,
    KinesisStream,
)
from partita.client.consumer.lease_table import SHARD_END, LeaseTable, StoredLease
from partita.client.consumer.shared_leases import SharedLeases
from partita.client.consumer.stream_shards import consume_shard
from partita.foundation.clock import Clock, system_clock

POLL_SECONDS = 0.25
"""The pause between two reads of an empty shard: Amazon allows five reads a second."""
LOOK_SECONDS = 1.0
LEASE_SECONDS = 10.0
REST_SECONDS = 1.0
"""The pause after a failure of the handler, before its records are delivered again."""
RECORDS_MAX = 10_000

Record = KinesisRecord
Checkpoint = Callable[[], Awaitable[None]]
Handle = Callable[[str, list[Record], Checkpoint], Awaitable[None]]
"""`handle(shard_id, records, checkpoint)`. The last call for a shard may have no records; its
checkpoint marks the shard as finished, so that its children can be read."""


class Consumer:
    """One worker. `application` is the name that all workers share; `worker` is this one's name.

    A worker that restarts under its old name does not have to wait for its leases to expire.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        application: str,
        handle: Handle,
        *,
        worker: str | None = None,
        start: str = TRIM_HORIZON,
        records_max: int = RECORDS_MAX,
        poll_seconds: float = POLL_SECONDS,
        look_seconds: float = LOOK_SECONDS,
        lease_seconds: float = LEASE_SECONDS,
        clock: Clock = system_clock,
    ) -> None:
        self._stream = KinesisStream(client, stream)
        self._table = LeaseTable(client, application, stream)
        self._handle = handle
        self._records_max = records_max
        self._poll_seconds = poll_seconds
        self._worker = ConsumerWorker(
            f"consumer of {stream}",
            self._stream,
            SharedLeases(self._table, worker or str(uuid4()), start, lease_seconds, clock),
            self._consume,
            look_seconds=look_seconds,
            rest_seconds=REST_SECONDS,
            renew_seconds=lease_seconds / 3,
        )

    async def run(self) -> None:
        """Runs until it is cancelled, and then gives its leases back."""
        await self._table.create()
        await self._worker.run()

    async def _consume(self, shard: KinesisShard, lease: StoredLease) -> None:
        read, process = partial(self._read, shard), partial(self._process, lease)
        await consume_shard(lease.checkpoint, read, process)
        while not lease.is_over and not lease.is_lost:
            # The handler has all records, but has not called the last checkpoint yet.
            await asyncio.sleep(self._poll_seconds)

    async def _read(self, shard: KinesisShard, position: str) -> KinesisPage:
        """Waits for the next page that has records or is the last, and returns it."""
        while True:
            page = await self._stream.read(shard, position, self._records_max)
            if page.records or page.is_last:
                return page
            await asyncio.sleep(self._poll_seconds)

    async def _process(self, lease: StoredLease, page: KinesisPage) -> None:
        reached = SHARD_END if page.is_last else page.position
        checkpoint = partial(self._table.save_checkpoint, lease, reached)
        await self._handle(lease.shard_id, page.records, checkpoint)
