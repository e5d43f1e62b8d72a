"""A consumer of a Kinesis stream: all shards, parents before children, from where it had come to.

    async def handle(shard_id, records, checkpoint):
        ...
        await checkpoint()      # these records, and all before them, are done with

    await Consumer(client, "visits", "counter", handle).run()

Records are handed over in the order of their shard, the next ones when `handle` returns. What is
not covered by a checkpoint comes again after a failure: at least once, in order. Several workers
share the shards between them through leases in a table. It runs against Amazon Kinesis as it is.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from math import floor
from time import time
from typing import Any, NamedTuple
from uuid import uuid4

from partita.client.client import Client
from partita.client.failures import ClientError
from partita.client.leases import NOBODY, SHARD_END, Lease, LeaseLost, LeaseTable

logger = logging.getLogger(__name__)

TRIM_HORIZON, LATEST, AT_TIMESTAMP = "TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"
POLL_SECONDS = 0.25
"""Between two looks at an empty shard: Amazon allows five reads a second."""
LOOK_SECONDS = 1.0
LEASE_SECONDS = 10.0
REST_SECONDS = 1.0
"""After a failure of the handler, before its records come again."""
RECORDS_MAX = 10_000
EXPIRED, INVALID = "ExpiredIteratorException", "InvalidArgumentException"


class Record(NamedTuple):
    sequence_number: str
    partition_key: str
    data: bytes
    arrived_at: float


Checkpoint = Callable[[], Awaitable[None]]
Handle = Callable[[str, list[Record], Checkpoint], Awaitable[None]]
"""`handle(shard_id, records, checkpoint)`. The last call of a shard may have no records: its
checkpoint says that the shard is done with, and that its children may begin."""


class Consumer:
    """One worker. `application` names those that share the work; `worker` is this one of them.

    A worker that comes back under its old name need not wait for its leases to run out.
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
    ) -> None:
        self._client = client
        self._stream = stream
        self._leases = LeaseTable(client, application, stream)
        self._handle = handle
        self._worker = worker or str(uuid4())
        self._start = start
        self._records_max = records_max
        self._poll_seconds = poll_seconds
        self._look_seconds = look_seconds
        self._lease_seconds = lease_seconds
        self._held: dict[str, Lease] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, tuple[int, float]] = {}
        """The counter of each lease, and since when it has been that."""

    async def run(self) -> None:
        """Until cancelled; then the leases are given back."""
        await self._leases.create()
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                try:
                    await self._look()
                except ClientError as error:
                    logger.warning("The consumer of %s cannot look: %s", self._stream, error)
                await asyncio.sleep(self._look_seconds)
        finally:
            await _cancel([renewing, *self._readers.values()])
            for lease in self._held.values():
                try:
                    await self._leases.give_back(lease)
                except (ClientError, LeaseLost):
                    # It runs out by itself.
                    continue

    # Which shards

    async def _look(self) -> None:
        """Find new shards, take what nobody reads, and read what is ready."""
        leases = await self._leases.all()
        # Listed after the leases: a shard that is missing now is too old for the service.
        shards = await self._shards()
        gone = leases.keys() - shards.keys()
        if await self._add_leases(shards, leases):
            leases = await self._leases.all()
        for shard_id in gone & leases.keys():
            await self._leases.remove(leases.pop(shard_id))
        self._forget_finished()
        ready = [
            lease
            for lease in leases.values()
            if lease.shard_id in shards and _is_ready(lease, shards[lease.shard_id], leases)
        ]
        for lease in self._takeable(ready):
            taken = await self._leases.take(lease, self._worker)
            if taken is not None:
                self._held[taken.shard_id] = taken
        for lease in self._held.values():
            if lease.shard_id not in self._readers:
                self._readers[lease.shard_id] = asyncio.create_task(self._read(lease))

    async def _shards(self) -> dict[str, list[str]]:
        """The parents of every shard, by its id."""
        found: dict[str, list[str]] = {}
        asked: dict[str, Any] = {"StreamName": self._stream}
        while asked:
            page = await self._client.call("kinesis", "ListShards", asked)
            for shard in page["Shards"]:
                names = ("ParentShardId", "AdjacentParentShardId")
                found[shard["ShardId"]] = [shard[name] for name in names if name in shard]
            asked = {"NextToken": page["NextToken"]} if "NextToken" in page else {}
        return found

    async def _add_leases(self, shards: dict[str, list[str]], leases: dict[str, Lease]) -> bool:
        """Shards that appear later are read from their start, as children of those before.

        The latest is what comes from now on, whatever happens before the first checkpoint.
        """
        new = [shard_id for shard_id in shards if shard_id not in leases]
        parents = {parent for of_one in shards.values() for parent in of_one}
        now = f"{AT_TIMESTAMP} {floor(time() * 1000) / 1000:.3f}"
        for shard_id in new:
            checkpoint = TRIM_HORIZON
            if not leases and self._start == LATEST:
                checkpoint = SHARD_END if shard_id in parents else now
            await self._leases.add(shard_id, checkpoint)
        return bool(new)

    def _forget_finished(self) -> None:
        for shard_id, task in list(self._readers.items()):
            if task.done():
                del self._readers[shard_id]
                lease = self._held[shard_id]
                if lease.is_over or lease.is_lost:
                    del self._held[shard_id]

    def _takeable(self, ready: list[Lease]) -> list[Lease]:
        """Leases that nobody counts up; else one of a worker that has more than its share."""
        now = asyncio.get_running_loop().time()
        others = [lease for lease in ready if lease.shard_id not in self._held]
        left = [lease for lease in others if self._is_left(lease, now)]
        if left:
            return left
        loads = Counter(lease.owner for lease in others)
        owner, most = loads.most_common(1)[0] if loads else ("", 0)
        if most > len(self._held) + 1:
            return [next(lease for lease in others if lease.owner == owner)]
        return []

    def _is_left(self, lease: Lease, now: float) -> bool:
        counter, since = self._seen.get(lease.shard_id, (-1, now))
        if lease.counter != counter:
            since = now
            self._seen[lease.shard_id] = (lease.counter, now)
        is_ours = lease.owner in (NOBODY, self._worker)
        return is_ours or now - since > self._lease_seconds

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            for lease in list(self._held.values()):
                try:
                    await self._leases.renew(lease)
                except LeaseLost:
                    if reader := self._readers.get(lease.shard_id):
                        reader.cancel()
                except ClientError as error:
                    logger.warning("The lease of %s was not renewed: %s", lease.shard_id, error)

    # One shard

    async def _read(self, lease: Lease) -> None:
        """From the checkpoint to the end of the shard, again and again until that is reached."""
        while not lease.is_over:
            try:
                await self._read_on(lease)
                return
            except LeaseLost as error:
                logger.info("%s", error)
                return
            except Exception:
                logger.exception(
                    "The consumer of %s stumbled; %s goes on from its checkpoint.",
                    self._stream,
                    lease.shard_id,
                )
                await asyncio.sleep(REST_SECONDS)

    async def _read_on(self, lease: Lease) -> None:
        position = lease.checkpoint
        iterator: str | None = await self._iterator(lease.shard_id, position)
        while iterator is not None:
            asked = {"ShardIterator": iterator, "Limit": self._records_max}
            try:
                page = await self._client.call("kinesis", "GetRecords", asked)
            except ClientError as error:
                if error.code != EXPIRED:
                    raise
                iterator = await self._iterator(lease.shard_id, position)
                continue
            iterator = page.get("NextShardIterator")
            records = [_record(record) for record in page["Records"]]
            if records:
                position = records[-1].sequence_number
            if records or iterator is None:
                reached = position if iterator is not None else SHARD_END
                checkpoint = partial(self._leases.save_checkpoint, lease, reached)
                await self._handle(lease.shard_id, records, checkpoint)
            else:
                await asyncio.sleep(self._poll_seconds)
        while not lease.is_over and not lease.is_lost:
            # The handler has everything, and has yet to say that it is done with it.
            await asyncio.sleep(self._poll_seconds)

    async def _iterator(self, shard_id: str, position: str) -> str:
        asked = {"StreamName": self._stream, "ShardId": shard_id}
        try:
            answer = await self._client.call(
                "kinesis", "GetShardIterator", asked | _start(position)
            )
        except ClientError as error:
            if error.code != INVALID or not position.startswith(AT_TIMESTAMP):
                raise
            # The service's clock has yet to come there: nothing is in the shard since then.
            answer = await self._client.call("kinesis", "GetShardIterator", asked | _start(LATEST))
        iterator: str = answer["ShardIterator"]
        return iterator


def _start(position: str) -> dict[str, Any]:
    kind, _, moment = position.partition(" ")
    if kind == AT_TIMESTAMP:
        return {"ShardIteratorType": kind, "Timestamp": float(moment)}
    if kind in (TRIM_HORIZON, LATEST):
        return {"ShardIteratorType": kind}
    return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": position}


def _is_ready(lease: Lease, parents: list[str], leases: dict[str, Lease]) -> bool:
    """A shard is read when its parents are done with, or gone for their age."""
    if lease.is_over:
        return False
    return all(parent not in leases or leases[parent].is_over for parent in parents)


def _record(record: dict[str, Any]) -> Record:
    return Record(
        record["SequenceNumber"],
        record["PartitionKey"],
        b64decode(record["Data"]),
        record["ApproximateArrivalTimestamp"],
    )


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
