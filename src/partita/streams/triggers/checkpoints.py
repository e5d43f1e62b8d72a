"""How far a trigger has come, in the database's own storage: noted by writes like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from partita.database.changes import layout
from partita.database.changes.streams import Stream, last_sequence, read_stream
from partita.database.database import Database
from partita.database.operations.context import ReadContext, Request, WriteContext
from partita.settings import Trigger
from partita.streams.triggers.records import LogShard

START = 0
"""The shard under whose number a trigger notes where it began."""


@dataclass(slots=True)
class Checkpoint:
    """A trigger is the only reader of its checkpoints: the lease of a shard is always its own."""

    shard: LogShard
    position: int

    @property
    def shard_id(self) -> str:
        return self.shard.shard_id

    @property
    def is_over(self) -> bool:
        return self.shard.last is not None and self.position > self.shard.last


class Checkpoints:
    """Those of one trigger, there since a time."""

    def __init__(self, database: Database, trigger: Trigger, since: float) -> None:
        self._database = database
        self._trigger = trigger
        self._since = since

    async def find(
        self, list_shards: Callable[[], Awaitable[list[LogShard]]]
    ) -> list[tuple[LogShard, Checkpoint]]:
        shards = await list_shards()
        streams = {shard.stream.number: shard.stream for shard in shards}
        starts = {number: await self._start(stream) for number, stream in streams.items()}
        return [(shard, self._checkpoint(shard, starts[shard.stream.number])) for shard in shards]

    def takeable(self, leases: list[Checkpoint], held: int) -> list[Checkpoint]:
        return leases

    async def take(self, lease: Checkpoint) -> Checkpoint:
        return lease

    async def renew(self, lease: Checkpoint) -> None:
        """Nobody else wants it."""

    async def give_back(self, lease: Checkpoint) -> None:
        """Nobody else wants it."""

    async def save(self, checkpoint: Checkpoint, position: int) -> None:
        """Returns when the position is on disk."""
        await self._write(checkpoint.shard.stream, checkpoint.shard.number, position)
        checkpoint.position = position

    def _checkpoint(self, shard: LogShard, start: int) -> Checkpoint:
        noted = self._read(shard.stream, shard.number)
        return Checkpoint(shard, max(shard.first, start) if noted is None else noted)

    async def _start(self, stream: Stream) -> int:
        """Where the trigger began with a stream, or begins now."""
        noted = self._read(stream, START)
        if noted is not None:
            return noted
        start = starting_position(self._database.reads, self._trigger, stream, self._since)
        await self._write(stream, START, start)
        return start

    def _read(self, stream: Stream, shard_number: int) -> int | None:
        key = layout.checkpoint_key(stream.number, shard_number, self._trigger.name)
        value = self._database.reads.snapshot.get(key)
        return None if value is None else int.from_bytes(value, "big")

    async def _write(self, stream: Stream, shard_number: int, position: int) -> None:
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def write(context: WriteContext, request: Request) -> bytes:
            return save_position(context, self._trigger.name, stream, shard_number, position)

        def done(result: bytes | BaseException) -> None:
            if saved.done():
                return
            if isinstance(result, BaseException):
                saved.set_exception(result)
            else:
                saved.set_result(None)

        self._database.write(write, {}, done)
        await saved


def starting_position(context: ReadContext, trigger: Trigger, stream: Stream, since: float) -> int:
    """Where a trigger, there since a time, begins with a stream that it sees for the first time."""
    if trigger.starting_position == "TRIM_HORIZON" or stream.created_at >= since:
        return 0
    return last_sequence(context.snapshot, stream.number) + 1


def save_position(
    context: WriteContext, trigger_name: str, stream: Stream, shard_number: int, position: int
) -> bytes:
    """Note how far a trigger has come; nothing, when what it read is gone meanwhile."""
    now = read_stream(context.write_batch, stream.table_name, stream.label)
    shards = now.readable_shards if now else []
    if shards and shard_number in (START, *(shard.number for shard in shards)):
        key = layout.checkpoint_key(stream.number, shard_number, trigger_name)
        context.write_batch.put(key, layout.pack_sequence(position))
    return b""
