"""Runs the background jobs: at once when there is work, otherwise once a second."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from partita.database.storage.group_commit import CallSoon, Done
from partita.database.storage.write_batch import WriteBatch
from partita.database.upkeep.jobs import Jobs

logger = logging.getLogger(__name__)

CallLater = Callable[[float, Callable[[], None]], object]

IDLE_SECONDS = 1.0


class Commits(Protocol):
    def write(self, decide: Callable[[WriteBatch], Any], done: Done) -> None:
        """Run `decide`; call `done` with its result after the commit, or with its error."""


class Worker:
    """Runs the jobs between requests, a piece at a time; they share the commits of requests."""

    def __init__(
        self,
        jobs: Jobs,
        commits: Commits,
        call_soon: CallSoon,
        call_later: CallLater,
    ) -> None:
        self._jobs = jobs
        self._commits = commits
        self._call_soon = call_soon
        self._call_later = call_later
        self._is_working = False
        self._is_woken = False
        self._is_stopped = False

    def start(self) -> None:
        self._tick()

    def wake(self) -> None:
        """There may be something to do: look soon."""
        if not self._is_woken:
            self._is_woken = True
            self._call_soon(self._step)

    def stop(self) -> None:
        self._is_stopped = True

    def _tick(self) -> None:
        if not self._is_stopped:
            self.wake()
            self._call_later(IDLE_SECONDS, self._tick)

    def _step(self) -> None:
        self._is_woken = False
        if not self._is_working and not self._is_stopped:
            self._is_working = True
            try:
                self._commits.write(self._jobs.work, self._done)
            except Exception:
                # The next tick tries again; requests are served meanwhile.
                logger.exception("Background work failed.")
                self._jobs.restart()
                self._is_working = False

    def _done(self, found_work: Any) -> None:
        self._is_working = False
        if found_work is True:
            self.wake()
