"""Leases that several workers share, and the rule by which a worker takes some.

Each worker increments the counters of its leases in a table. A lease whose counter stands still is
free. A worker with more than its share of leases loses one at a time to workers with fewer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from math import floor

from partita.client.consumer.kinesis_source import AT_TIMESTAMP, LATEST, TRIM_HORIZON, KinesisShard
from partita.client.consumer.lease_table import NOBODY, SHARD_END, LeaseTable, StoredLease
from partita.foundation.clock import Clock


class SharedLeases:
    """The leases as one worker sees them. `start` is where the very first worker starts reading."""

    def __init__(
        self, table: LeaseTable, worker: str, start: str, lease_seconds: float, clock: Clock
    ) -> None:
        self._table = table
        self._worker = worker
        self._start = start
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}
        """The counter of each lease, and when this worker first saw that value."""

    async def find(
        self, list_shards: Callable[[], Awaitable[list[KinesisShard]]]
    ) -> list[tuple[KinesisShard, StoredLease]]:
        leases = await self._table.all()
        # Shards are listed after the leases, so a lease without a shard is of one that has expired.
        # The other way round, it could be of a shard that is only a moment old.
        shards = await list_shards()
        gone = leases.keys() - {shard.shard_id for shard in shards}
        if await self._add_leases(shards, leases):
            leases = await self._table.all()
        for shard_id in gone & leases.keys():
            await self._table.remove(leases.pop(shard_id))
        return [(shard, leases[shard.shard_id]) for shard in shards if shard.shard_id in leases]

    async def _add_leases(self, shards: list[KinesisShard], leases: dict[str, StoredLease]) -> bool:
        """Adds leases for new shards; returns True if there were any.

        Shards that appear later are children of earlier ones and are read from their start. LATEST
        is stored as the current time, so that nothing is skipped after a crash before the first
        checkpoint.
        """
        new = [shard.shard_id for shard in shards if shard.shard_id not in leases]
        parents = {parent for shard in shards for parent in shard.parents}
        now = f"{AT_TIMESTAMP} {floor(self._clock() * 1000) / 1000:.3f}"
        for shard_id in new:
            checkpoint = TRIM_HORIZON
            if not leases and self._start == LATEST:
                checkpoint = SHARD_END if shard_id in parents else now
            await self._table.add(shard_id, checkpoint)
        return bool(new)

    def takeable(self, leases: list[StoredLease], held: int) -> list[StoredLease]:
        """Returns the abandoned leases, or else one of a worker that has more than its share."""
        now = asyncio.get_running_loop().time()
        abandoned = [lease for lease in leases if self._is_abandoned(lease, now)]
        if abandoned:
            return abandoned
        loads = Counter(lease.owner for lease in leases)
        owner, most = loads.most_common(1)[0] if loads else ("", 0)
        if most > held + 1:
            return [next(lease for lease in leases if lease.owner == owner)]
        return []

    def _is_abandoned(self, lease: StoredLease, now: float) -> bool:
        counter, since = self._seen.get(lease.shard_id, (-1, now))
        if lease.counter != counter:
            since = now
            self._seen[lease.shard_id] = (lease.counter, now)
        is_ours = lease.owner in (NOBODY, self._worker)
        return is_ours or now - since > self._lease_seconds

    async def take(self, lease: StoredLease) -> StoredLease | None:
        return await self._table.take(lease, self._worker)

    async def renew(self, lease: StoredLease) -> None:
        await self._table.renew(lease)

    async def give_back(self, lease: StoredLease) -> None:
        await self._table.give_back(lease)
