"""Activities: tasks that wait until a worker polls for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from partita_services.workflows.language import StartTask, TaskStarted

POLL_SECONDS = 60.0
"""A worker waits this long for a task. (API reference, GetActivityTask)"""


@dataclass(slots=True, eq=False)
class TaskOffer:
    """A task that waits for a worker."""

    task: StartTask
    taken: asyncio.Future[str | None]
    """Resolved with the name of the worker that took the task."""


class Activities:
    def __init__(self) -> None:
        self._offers: dict[str, deque[TaskOffer]] = defaultdict(deque)
        self._workers: dict[str, deque[asyncio.Future[TaskOffer | None]]] = defaultdict(deque)

    async def offer(self, name: str, task: StartTask, note: Callable[..., Awaitable[None]]) -> None:
        """Returns when a worker has taken the task, and that is durable."""
        offer = TaskOffer(task, asyncio.get_running_loop().create_future())
        self._hand_out(name, offer)
        try:
            worker_name = await offer.taken
        except asyncio.CancelledError:
            if offer in self._offers[name]:
                self._offers[name].remove(offer)
            raise
        await note(TaskStarted(task.id, worker_name))

    def _hand_out(self, name: str, offer: TaskOffer) -> None:
        if self._workers[name]:
            self._workers[name].popleft().set_result(offer)
        else:
            self._offers[name].append(offer)

    async def take(self, name: str, worker_name: str | None, seconds: float) -> StartTask | None:
        """A task for a worker; None when none was offered for `seconds`."""
        while (offer := await self._next(name, seconds)) is not None:
            # It is done when the task was cancelled while its offer was in the queue.
            if not offer.taken.done():
                offer.taken.set_result(worker_name)
                return offer.task
        return None

    async def _next(self, name: str, seconds: float) -> TaskOffer | None:
        if self._offers[name]:
            return self._offers[name].popleft()
        worker: asyncio.Future[TaskOffer | None] = asyncio.get_running_loop().create_future()
        workers = self._workers[name]
        workers.append(worker)
        # Not `wait_for`, which cancels the future on a timeout: an offer that arrives just then
        # would be lost.
        await asyncio.wait([worker], timeout=seconds)
        if worker.done():
            return worker.result()
        workers.remove(worker)
        return None

    def close(self) -> None:
        """Answer all polling workers without a task."""
        for workers in self._workers.values():
            while workers:
                workers.popleft().set_result(None)
