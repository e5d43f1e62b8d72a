"""All triggers of a server: each a worker that reads the change log of its table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from partita.client.worker import Worker
from partita.database.database import Database
from partita.database.operations.streams.streams import stream_arn
from partita.settings import Trigger
from partita.streams.triggers.checkpoints import Checkpoint, Checkpoints
from partita.streams.triggers.delivery import POLL_SECONDS, Delivery, ShardReader
from partita.streams.triggers.functions import function_of
from partita.streams.triggers.records import ChangeLog, LogShard

REST_SECONDS = 5.0
"""After something unforeseen, such as a full disk that keeps positions from being noted."""


class Triggers:
    """On the server's event loop."""

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
        self._service = database.service
        self._trigger = trigger
        self._folder = folder
        self._starts = starts
        self._change_log = ChangeLog(database, trigger)
        self._checkpoints = Checkpoints(database, trigger, since=database.service.clock())

    async def run(self) -> None:
        await Worker(
            f"trigger {self._trigger.name}",
            self._change_log,
            self._checkpoints,
            self._consume,
            look_seconds=POLL_SECONDS,
            rest_seconds=REST_SECONDS,
        ).run()

    async def _consume(self, shard: LogShard, checkpoint: Checkpoint) -> None:
        account = f"{self._service.region}:{self._service.account_id}"
        arn = f"arn:aws:lambda:{account}:function:{self._trigger.name}"
        delivery = Delivery(
            self._trigger,
            ShardReader(
                shard.name,
                stream_arn(self._service, shard.stream),
                partial(self._change_log.read, shard),
                partial(self._checkpoints.save, checkpoint),
            ),
            function_of(self._trigger, arn, self._folder, self._starts),
            self._folder,
            self._service.clock,
        )
        await delivery.consume(checkpoint.position)
