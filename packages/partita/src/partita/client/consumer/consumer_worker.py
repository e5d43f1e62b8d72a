"""A worker that finds the shards of a stream and consumes those that it has a lease for.

Each shard is consumed by a task of its own, parents before children. A task that fails starts again
from its checkpoint after a pause, so records arrive at least once, in order. Shards come from a
`ShardSource`; checkpoints are kept in a `LeaseSource`, which is a table that many workers share
(`shared_leases`) or a store with a single reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from partita.client.consumer.stream_shards import AnyShard, ShardSource, ready_shards
from partita.errors import PartitaError

logger = logging.getLogger(__name__)


class ConsumerLeaseLost(PartitaError):
    """Raised when another worker has taken the lease of a shard."""

    def __init__(self, shard_id: str) -> None:
        super().__init__(f"The lease of {shard_id} was lost; another worker reads it now.")


class ShardLease(Protocol):
    """The right to read a shard, and its checkpoint."""

    @property
    def shard_id(self) -> str: ...

    @property
    def is_over(self) -> bool:
        """True when every record of the shard has been processed."""


AnyLease = TypeVar("AnyLease", bound=ShardLease)


class LeaseSource(Protocol[AnyShard, AnyLease]):
    """The store of leases and checkpoints."""

    async def find(
        self, list_shards: Callable[[], Awaitable[list[AnyShard]]]
    ) -> list[tuple[AnyShard, AnyLease]]:
        """Returns every shard with its lease; adds and removes leases as shards come and go."""

    def takeable(self, leases: list[AnyLease], held: int) -> list[AnyLease]:
        """Returns the leases that a worker which already has `held` leases should try to take."""

    async def take(self, lease: AnyLease) -> AnyLease | None:
        """Takes a lease and returns it; returns None when another worker was faster."""

    async def renew(self, lease: AnyLease) -> None:
        """Extends a lease; raises ConsumerLeaseLost when another worker has taken it."""

    async def give_back(self, lease: AnyLease) -> None:
        """Frees a lease, so that other workers need not wait until it expires."""


class ConsumerWorker(Generic[AnyShard, AnyLease]):
    """A worker that calls `consume` for each shard, from the checkpoint of its lease to its end.

    Without `renew_seconds`, leases never expire, because there is no other worker.
    """

    def __init__(
        self,
        name: str,
        source: ShardSource[AnyShard, Any, Any],
        leases: LeaseSource[AnyShard, AnyLease],
        consume: Callable[[AnyShard, AnyLease], Awaitable[None]],
        *,
        look_seconds: float,
        rest_seconds: float,
        renew_seconds: float | None = None,
    ) -> None:
        self._name = name
        self._source = source
        self._leases = leases
        self._consume = consume
        self._look_seconds = look_seconds
        self._rest_seconds = rest_seconds
        self._renew_seconds = renew_seconds
        self._held: dict[str, AnyLease] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The task of each lease in `_held`, by shard ID."""

    async def run(self) -> None:
        """Runs until it is cancelled, and then gives its leases back."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                try:
                    await self._look()
                except Exception as error:
                    # The tasks that read shards go on meanwhile.
                    is_expected = isinstance(error, PartitaError)
                    message = "The %s cannot find its shards: %s"
                    logger.warning(message, self._name, error, exc_info=not is_expected)
                    await asyncio.sleep(self._rest_seconds)
                await asyncio.sleep(self._look_seconds)
        finally:
            await _cancel([renewing, *self._tasks.values()])
            for lease in self._held.values():
                try:
                    await self._leases.give_back(lease)
                except PartitaError:
                    # The lease expires by itself.
                    continue

    async def _look(self) -> None:
        """Finds new shards, takes leases of those that are ready, and starts to consume them."""
        # Ended tasks are removed before leases are read, so that those leases include the last
        # checkpoints of the tasks. The other way round, a finished shard would be read again.
        self._forget_ended()
        shard_leases = await self._leases.find(self._source.shards)
        finished = {lease.shard_id for _, lease in shard_leases if lease.is_over}
        ready = {
            shard.shard_id: shard
            for shard in ready_shards([shard for shard, _ in shard_leases], finished)
            if shard.shard_id not in self._held
        }
        free = [lease for _, lease in shard_leases if lease.shard_id in ready]
        for lease in self._leases.takeable(free, len(self._held)):
            taken = await self._leases.take(lease)
            if taken is not None:
                consuming = self._consume_to_the_end(ready[taken.shard_id], taken)
                self._held[taken.shard_id] = taken
                self._tasks[taken.shard_id] = asyncio.create_task(consuming)

    def _forget_ended(self) -> None:
        for shard_id, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[shard_id], self._held[shard_id]

    async def _renew(self) -> None:
        while self._renew_seconds is not None:
            await asyncio.sleep(self._renew_seconds)
            for lease in list(self._held.values()):
                try:
                    await self._leases.renew(lease)
                except ConsumerLeaseLost:
                    if self._held.get(lease.shard_id) is lease:
                        self._tasks[lease.shard_id].cancel()
                except PartitaError as error:
                    logger.warning("The lease of %s was not renewed: %s", lease.shard_id, error)

    async def _consume_to_the_end(self, shard: AnyShard, lease: AnyLease) -> None:
        """Consumes a shard from its checkpoint, and after each failure again, until it ends."""
        while not lease.is_over:
            try:
                await self._consume(shard, lease)
                return
            except ConsumerLeaseLost as error:
                logger.info("%s", error)
                return
            except Exception:
                logger.exception(
                    "The %s failed; %s continues from its checkpoint.", self._name, lease.shard_id
                )
                await asyncio.sleep(self._rest_seconds)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
