"""A worker: finds the shards of a stream, and consumes those that it has a lease for.

Each shard is consumed by a task of its own, parents before children. What fails is tried again from
its checkpoint after a rest, so records come at least once, in order. Shards come from a
`ShardSource`, and checkpoints are kept in `LeaseSource`: a table that many workers share
(`shared_leases`), or a place that has one reader only.
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
    """Another worker reads the shard now."""

    def __init__(self, shard_id: str) -> None:
        super().__init__(f"The lease of {shard_id} was lost; another worker reads it now.")


class ShardLease(Protocol):
    """The right to read a shard, and how far it was read."""

    @property
    def shard_id(self) -> str: ...

    @property
    def is_over(self) -> bool:
        """Whether everything in the shard is done with."""


AnyLease = TypeVar("AnyLease", bound=ShardLease)


class LeaseSource(Protocol[AnyShard, AnyLease]):
    """Where leases and checkpoints are kept."""

    async def find(
        self, list_shards: Callable[[], Awaitable[list[AnyShard]]]
    ) -> list[tuple[AnyShard, AnyLease]]:
        """Every shard with its lease, which is made for new ones and removed with those gone."""

    def takeable(self, leases: list[AnyLease], held: int) -> list[AnyLease]:
        """Those of the leases that a worker that holds so many should try to take."""

    async def take(self, lease: AnyLease) -> AnyLease | None:
        """The lease as its new owner has it; None when somebody was faster."""

    async def renew(self, lease: AnyLease) -> None:
        """Keep it for another while; LeaseLost when that is too late."""

    async def give_back(self, lease: AnyLease) -> None:
        """So that nobody has to wait for it."""


class ConsumerWorker(Generic[AnyShard, AnyLease]):
    """`consume` reads one shard from the checkpoint of its lease to the end.

    Without `renew_seconds` leases last for ever: nobody else can take them.
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
        """One for each lease that is held."""

    async def run(self) -> None:
        """Until cancelled; then the leases are given back."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                try:
                    await self._look()
                except Exception as error:
                    # What is being read goes on meanwhile.
                    is_known = isinstance(error, PartitaError)
                    message = "The %s cannot find its shards: %s"
                    logger.warning(message, self._name, error, exc_info=not is_known)
                    await asyncio.sleep(self._rest_seconds)
                await asyncio.sleep(self._look_seconds)
        finally:
            await _cancel([renewing, *self._tasks.values()])
            for lease in self._held.values():
                try:
                    await self._leases.give_back(lease)
                except PartitaError:
                    # It runs out by itself.
                    continue

    async def _look(self) -> None:
        """Find new shards, take leases of those that are ready, and consume them."""
        # First of all: a lease that is found after its task has ended has its last checkpoint.
        self._forget_ended()
        found = await self._leases.find(self._source.shards)
        finished = {lease.shard_id for _, lease in found if lease.is_over}
        ready = {
            shard.shard_id: shard
            for shard in ready_shards([shard for shard, _ in found], finished)
            if shard.shard_id not in self._held
        }
        free = [lease for _, lease in found if lease.shard_id in ready]
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
        """From the checkpoint, again and again until there is nothing left to do."""
        while not lease.is_over:
            try:
                await self._consume(shard, lease)
                return
            except ConsumerLeaseLost as error:
                logger.info("%s", error)
                return
            except Exception:
                logger.exception(
                    "The %s failed; %s goes on from its checkpoint.", self._name, lease.shard_id
                )
                await asyncio.sleep(self._rest_seconds)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
