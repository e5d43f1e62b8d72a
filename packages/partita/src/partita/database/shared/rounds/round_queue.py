"""A queue of requests that wait for one kind of round, and the rounds that take them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from partita.database.shared.rounds.shared_requests import SharedRequest
from partita.database.storage.postgresql.optimistic_commit import OutcomeUnknown
from partita.errors import InternalServerError, StorageError

logger = logging.getLogger(__name__)

REQUESTS_PER_ROUND_MAX: Final = 256
GATHER_SECONDS: Final = 0.001
"""How long a round waits for more requests, while another round is under way."""


class RoundQueue:
    """Requests that wait for one kind of round; starts rounds, up to a number at a time."""

    def __init__(
        self,
        rounds_max: int,
        run: Callable[[list[SharedRequest]], Awaitable[None]],
        requests_max: int = REQUESTS_PER_ROUND_MAX,
    ) -> None:
        self.waiting: list[SharedRequest] = []
        self._rounds_max = rounds_max
        self._requests_max = requests_max
        self._run = run
        self._rounds: set[asyncio.Task[None]] = set()
        self._is_scheduled = False
        self._is_stopped = False

    def add(self, requests: list[SharedRequest]) -> None:
        self.waiting += requests
        self._schedule()

    def take(self, fits: Callable[[SharedRequest], bool]) -> list[SharedRequest]:
        """Take requests that fit into a round that is under way, out of those that the next round
        would take."""
        first = self.waiting[: self._requests_max]
        taken = [request for request in first if fits(request)]
        self.waiting = [
            *(request for request in first if not fits(request)),
            *self.waiting[self._requests_max :],
        ]
        return taken

    async def stop(self) -> None:
        while self._rounds or self.waiting:
            await asyncio.wait(self._rounds) if self._rounds else await asyncio.sleep(
                GATHER_SECONDS
            )
        self._is_stopped = True

    def _schedule(self) -> None:
        if self.waiting and not self._is_scheduled and len(self._rounds) < self._rounds_max:
            self._is_scheduled = True
            loop = asyncio.get_running_loop()
            if self._rounds:
                # Others gather meanwhile, and share the round trips of the next round.
                loop.call_later(GATHER_SECONDS, self._start)
            else:
                loop.call_soon(self._start)

    def _start(self) -> None:
        self._is_scheduled = False
        if self._is_stopped or not self.waiting or len(self._rounds) >= self._rounds_max:
            return
        first = self.waiting[0]
        # A commit checks one lease at most: requests that depend on different leases are not mixed.
        if first.lease is not None:
            taken = 1
        else:
            others = (
                n
                for n, request in enumerate(self.waiting)
                if request.lease or request.fence != first.fence
            )
            taken = min(next(others, len(self.waiting)), self._requests_max)
        requests, self.waiting = self.waiting[:taken], self.waiting[taken:]
        task = asyncio.create_task(self._guarded(requests))
        self._rounds.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._rounds.discard(task)
        self._schedule()

    async def _guarded(self, requests: list[SharedRequest]) -> None:
        """Run a round, and refuse the requests that it leaves unanswered if it fails. A round
        removes a request from the list when it has answered it."""
        try:
            await self._run(requests)
        except (StorageError, OutcomeUnknown):
            # The connection pool has logged it.
            self._refuse(requests)
        except Exception:
            logger.exception("A round failed.")
            self._refuse(requests)

    def _refuse(self, requests: list[SharedRequest]) -> None:
        for request in list(requests):
            request.done(InternalServerError("The storage cannot be reached."))
