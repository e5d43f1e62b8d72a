"""Runs the background jobs: immediately when there is work, otherwise once a second."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from partita.database.storage.group_commit import CallSoon, Done
from partita.database.storage.write_batch import WriteBatch
from partita.database.upkeep.table_jobs import TableJobs

logger = logging.getLogger(__name__)

CallLater = Callable[[float, Callable[[], None]], object]

IDLE_SECONDS = 1.0
PIECES_AHEAD_MAX = 3
"""The pieces that may be decided while the commit of the first is still in progress."""


class CommitQueue(Protocol):
    """The queue in which the worker's pieces of work wait for a commit."""

    def write(self, decide: Callable[[WriteBatch], Any], done: Done) -> None:
        """Run `decide`; after the commit, call `done` with its result or error."""


class PipelinedJobs(Protocol):
    """Jobs whose next piece can be decided before the last one is committed."""

    @property
    def can_work_ahead(self) -> bool: ...

    def work_ahead(self, write_batch: WriteBatch) -> bool: ...


class BackgroundWorker:
    """Runs the jobs between requests, a piece at a time; pieces share the commits of requests.

    Most jobs wait for the commit of a piece before the next one. Those that need not wait continue
    for a few pieces in the meantime; then all jobs get their turn again.
    """

    def __init__(
        self,
        jobs: TableJobs,
        commits: CommitQueue,
        call_soon: CallSoon,
        call_later: CallLater,
        ahead: PipelinedJobs | None = None,
    ) -> None:
        self._jobs = jobs
        self._commits = commits
        self._call_soon = call_soon
        self._call_later = call_later
        self._ahead = ahead
        self._pieces_under_way = 0
        self._pieces_ahead = 0
        self._is_woken = False
        self._is_stopped = False

    def start(self) -> None:
        self._tick()

    def wake(self) -> None:
        """Look for work soon."""
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
        if self._is_stopped:
            return
        if not self._pieces_under_way:
            self._pieces_ahead = 0
            self._work(self._jobs.work)
        elif self._ahead is not None and self._can_work_ahead:
            self._pieces_ahead += 1
            self._work(self._ahead.work_ahead)
        if self._pieces_under_way and self._can_work_ahead:
            self.wake()

    @property
    def _can_work_ahead(self) -> bool:
        ahead = self._ahead
        return ahead is not None and self._pieces_ahead < PIECES_AHEAD_MAX and ahead.can_work_ahead

    def _work(self, decide: Callable[[WriteBatch], bool]) -> None:
        self._pieces_under_way += 1
        try:
            self._commits.write(decide, self._done)
        except Exception:
            # Requests are served all the same, and the next tick tries again.
            logger.exception("Background work failed.")
            self._jobs.restart()
            self._pieces_under_way -= 1

    def _done(self, found_work: Any) -> None:
        self._pieces_under_way -= 1
        if found_work is True:
            self.wake()
