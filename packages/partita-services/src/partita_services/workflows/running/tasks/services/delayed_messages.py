"""Messages that a queue holds back (`DelaySeconds`).

They are on disk until they have arrived. If the server ends in between, the next one sends them. So
a message may arrive twice, as in a standard queue.
"""

from __future__ import annotations

import asyncio
import logging

from partita.foundation.clock import Clock
from partita_services.background_tasks import BackgroundTasks
from partita_services.functions.message_sinks import SendFailed, Sinks
from partita_services.workflows.running.storage.workflow_records import DelayedMessage
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.storage.workflow_table import DELAYED

RETRY_SECONDS_MAX = 60.0

logger = logging.getLogger(__name__)


class DelayedMessages:
    def __init__(
        self, store: WorkflowStore, sinks: Sinks, clock: Clock, time_scale: float = 1.0
    ) -> None:
        self._store = store
        self._sinks = sinks
        self._clock = clock
        self._time_scale = time_scale
        self._waiting = BackgroundTasks()

    async def add(self, message: DelayedMessage, seconds: int) -> None:
        message.due = self._clock() + seconds / self._time_scale
        await self._store.put_delayed_message(message)
        self._waiting.start(self._send(message))

    async def recover(self) -> None:
        for message in await self._store.all(DELAYED, DelayedMessage):
            self._waiting.start(self._send(message))

    def close(self) -> None:
        self._waiting.cancel()

    async def _send(self, message: DelayedMessage) -> None:
        await asyncio.sleep(message.due - self._clock())
        seconds = 1.0
        while (sink := self._sinks.find(message.sink)) is not None:
            try:
                sinks = self._sinks.acting_for(message.role)
                await sinks.send(sink, message.content.encode(), message.key)
                break
            except SendFailed as error:
                logger.warning("The delayed message %s did not arrive: %s", message.id, error)
                await asyncio.sleep(seconds)
                seconds = min(2 * seconds, RETRY_SECONDS_MAX)
        # Only after it has arrived. A kill before this sends it twice, but never loses it.
        await self._store.erase(DELAYED, message.id)
