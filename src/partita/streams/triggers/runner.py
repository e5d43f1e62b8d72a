"""Starts a consumer for every shard that is ready, parents before children, and stops them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from partita.database.changes.streams import Shard, Stream
from partita.database.database import Database
from partita.database.operations.context import Request, WriteContext
from partita.database.operations.streams.streams import stream_arn
from partita.settings import Trigger
from partita.streams.triggers.consumer import POLL_SECONDS, Consumer, ShardReader
from partita.streams.triggers.filters import Matches, compile_filters
from partita.streams.triggers.functions import function_of
from partita.streams.triggers.records import (
    START,
    Source,
    find_sources,
    read_page,
    save_position,
    starting_position,
)

logger = logging.getLogger(__name__)

REST_SECONDS = 5.0
"""After something unforeseen, such as a full disk that keeps positions from being noted."""


class Triggers:
    """All triggers of a server, on its event loop."""

    def __init__(self, database: Database, triggers: Sequence[Trigger], folder: Path) -> None:
        starts = asyncio.Lock()
        self._runners = [Runner(database, trigger, folder, starts) for trigger in triggers]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(runner.run()) for runner in self._runners]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Runner:
    """One trigger."""

    def __init__(
        self, database: Database, trigger: Trigger, folder: Path, starts: asyncio.Lock
    ) -> None:
        self._database = database
        self._trigger = trigger
        self._folder = folder
        self._starts = starts
        self._matches: Matches | None = compile_filters(trigger.filter_patterns)
        self._since = database.service.clock()
        self._consumers: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._rests_until = 0.0
        self._is_warned = False

    async def run(self) -> None:
        try:
            while True:
                try:
                    await self._look()
                except Exception:
                    # The next look tries again; the database and other triggers go on meanwhile.
                    logger.exception("The trigger %s stumbled.", self._trigger.name)
                await asyncio.sleep(POLL_SECONDS)
        finally:
            for task in self._consumers.values():
                task.cancel()
            await asyncio.gather(*self._consumers.values(), return_exceptions=True)

    async def _look(self) -> None:
        """Start consumers for the oldest stream that is not done with."""
        self._forget_finished()
        if asyncio.get_running_loop().time() < self._rests_until:
            return
        sources = find_sources(self._database.reads, self._trigger)
        if not sources and not self._is_warned:
            self._is_warned = True
            logger.warning(
                "The trigger %s waits for a stream of table %s.",
                self._trigger.name,
                self._trigger.table,
            )
        for source in sources:
            if source.start is None and source.shards:
                await self._begin(source.stream)
                return
            if not source.is_over:
                self._start_consumers(source)
                return

    def _forget_finished(self) -> None:
        for key, task in list(self._consumers.items()):
            if task.done():
                del self._consumers[key]
                if not task.cancelled() and (error := task.exception()):
                    logger.error("The trigger %s stumbled.", self._trigger.name, exc_info=error)
                    self._rests_until = asyncio.get_running_loop().time() + REST_SECONDS

    async def _begin(self, stream: Stream) -> None:
        start = starting_position(self._database.reads, self._trigger, stream, self._since)
        await self._save(stream, START, start)

    def _start_consumers(self, source: Source) -> None:
        service = self._database.service
        account = f"{service.region}:{service.account_id}"
        arn = f"arn:aws:lambda:{account}:function:{self._trigger.name}"
        open_ids = {shard.shard_id for shard in source.shards if not source.is_finished(shard)}
        for shard in source.shards:
            key = (source.stream.number, shard.number)
            is_ready = shard.shard_id in open_ids and shard.parent_id not in open_ids
            if is_ready and key not in self._consumers:
                consumer = Consumer(
                    self._trigger,
                    self._reader(source, shard),
                    function_of(self._trigger, arn, self._folder, self._starts),
                    self._folder,
                    service.clock,
                )
                task = asyncio.create_task(consumer.consume(source.position(shard)))
                self._consumers[key] = task

    def _reader(self, source: Source, shard: Shard) -> ShardReader:
        database, matches = self._database, self._matches
        return ShardReader(
            shard.shard_id,
            stream_arn(database.service, source.stream),
            lambda position, limit: read_page(
                database.reads, source, shard.number, position, matches, limit
            ),
            partial(self._save, source.stream, shard.number),
        )

    async def _save(self, stream: Stream, shard_number: int, position: int) -> None:
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
