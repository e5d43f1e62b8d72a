"""Checkpoints: how far a mapping has read each shard, stored in the table of functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from partita.client.consumer.kinesis_source import LATEST, TRIM_HORIZON
from partita_services.functions.function_store import FunctionStore, checkpoints_of
from partita_services.functions.mappings.event_source_mapping import EventSourceMapping
from partita_services.functions.mappings.event_sources import SHARD_END, EventSource, SourceShard

START = "start"


class ShardPosition(msgspec.Struct, kw_only=True):
    """A stored checkpoint."""

    shard_id: str
    position: str = ""
    window: dict[str, Any] | None = None
    """The open tumbling window, with its state."""
    positions: dict[str, str] = {}
    """Only in the record START: the positions at which the mapping began, for the shards of that
    time. Later shards are read from their start."""


@dataclass(slots=True)
class ShardCheckpoint:
    """A mapping is the only reader of its checkpoints, so each one is also the lease of its
    shard."""

    shard_id: str
    position: str
    window: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        return self.position == SHARD_END


class ShardCheckpoints:
    """The checkpoints of one mapping."""

    def __init__(
        self, store: FunctionStore, mapping: EventSourceMapping, source: EventSource
    ) -> None:
        self._store = store
        self._mapping = mapping
        self._source = source
        self._partition = checkpoints_of(mapping.uuid)
        self._start: dict[str, str] | None = None
        self._known: dict[str, ShardCheckpoint] = {}

    async def begin(self) -> None:
        """Save the positions at which the mapping begins, unless it has begun before."""
        if self._start is not None:
            return
        positions = {
            saved.shard_id: saved for saved in await self._store.all(self._partition, ShardPosition)
        }
        start = positions.pop(START, None)
        if start is None:
            start = ShardPosition(shard_id=START, positions=await self._first_positions())
            # Saved before any record is delivered: LATEST must not become later after a restart.
            await self._store.save(self._partition, START, start)
        self._known = {
            saved.shard_id: ShardCheckpoint(saved.shard_id, saved.position, saved.window)
            for saved in positions.values()
        }
        self._start = start.positions

    async def _first_positions(self) -> dict[str, str]:
        position = self._mapping.starting_position
        if position == TRIM_HORIZON:
            return {}
        shards = await self._source.shards()
        if position != LATEST:
            return {shard.shard_id: position for shard in shards}
        return {shard.shard_id: await self._source.latest(shard) for shard in shards}

    async def find(
        self, list_shards: Callable[[], Awaitable[list[SourceShard]]]
    ) -> list[tuple[SourceShard, ShardCheckpoint]]:
        await self.begin()
        shards = await list_shards()
        for shard_id in self._known.keys() - {shard.shard_id for shard in shards}:
            # The stream has trimmed the shard after the retention period.
            await self._store.erase(self._partition, shard_id)
            del self._known[shard_id]
        return [(shard, self._checkpoint(shard)) for shard in shards]

    def _checkpoint(self, shard: SourceShard) -> ShardCheckpoint:
        if shard.shard_id not in self._known:
            assert self._start is not None
            # A shard that came after the mapping is read from its start, whatever the mapping's own
            # position.
            position = self._start.get(shard.shard_id, TRIM_HORIZON)
            self._known[shard.shard_id] = ShardCheckpoint(shard.shard_id, position)
        return self._known[shard.shard_id]

    def takeable(self, leases: list[ShardCheckpoint], held: int) -> list[ShardCheckpoint]:
        return leases

    async def take(self, lease: ShardCheckpoint) -> ShardCheckpoint:
        return lease

    async def renew(self, lease: ShardCheckpoint) -> None:
        """Nothing to do: there is no other reader."""

    async def give_back(self, lease: ShardCheckpoint) -> None:
        """Nothing to do: there is no other reader."""

    async def save(
        self, checkpoint: ShardCheckpoint, position: str, window: dict[str, Any] | None
    ) -> None:
        """Returns when the position is on disk."""
        shard_id = checkpoint.shard_id
        saved = ShardPosition(shard_id=shard_id, position=position, window=window)
        await self._store.save(self._partition, shard_id, saved)
        checkpoint.position, checkpoint.window = position, window
