"""Group commit: writes are decided one after the other, and those that wait share one commit.

A write is a function of a `WriteBatch`: it reads, decides, and records its changes there. While one
commit is being written to disk by the writer thread, the next writes are decided on top of it and
gathered; when the disk is ready they follow together. A write is answered only after its commit.

A failed write leaves no trace, because a write batch is merged only when its function returns. When the
disk fails, everything that was decided on top of the lost commit fails with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from partita.clock import Clock, system_clock
from partita.database.storage.engine import Changes, Engine
from partita.errors import DynamoDBError, InternalServerError, StorageError

logger = logging.getLogger(__name__)

Done = Callable[[Any], None]
CallSoon = Callable[[Callable[[], None]], object]
CallLater = Callable[[float, Callable[[], None]], object]

GATHER_SECONDS: Final = 0.001
"""How long those who were just answered are waited for, where the disk takes longer than that."""


class WriteBatch:
    """One write in the making: its own changes over everything decided before it."""

    __slots__ = ("_commits", "changes", "holds", "is_contended", "then")

    def __init__(self, commits: GroupCommit) -> None:
        self._commits = commits
        self.changes: dict[bytes, bytes | None] = {}
        self.holds: list[bytes] = []
        self.then: list[Callable[[], None]] = []
        self.is_contended = False
        """Whether every item counts as part of another transaction; tests ask for that."""

    def get(self, key: bytes) -> bytes | None:
        if key in self.changes:
            return self.changes[key]
        return self._commits.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self.changes[key] = value

    def delete(self, key: bytes) -> None:
        self.changes[key] = None

    def now(self) -> float:
        """The time at which this is decided."""
        return self._commits.clock()

    def after_merge(self, function: Callable[[], None]) -> None:
        """What to do in memory as soon as this write counts; never, if it is refused."""
        self.then.append(function)

    def hold(self, key: bytes) -> None:
        """Mark an item as part of a transaction until that transaction is committed."""
        self.holds.append(key)

    def is_held(self, key: bytes) -> bool:
        return self.is_contended or self._commits.is_held(key)


class _Batch:
    __slots__ = ("changes", "failure", "holds", "waiting")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.holds: set[bytes] = set()
        self.waiting: list[tuple[Done, Any]] = []
        self.failure: StorageError | None = None


class GroupCommit:
    """The single writer. All of it runs on one thread, but for the waiting for the disk.

    `call_soon` runs a function soon on that thread, `call_later` after some seconds, and
    `call_from_thread` does so from another. While the engine says that it does not wait for the
    disk, it commits on the one thread too.
    """

    def __init__(
        self,
        engine: Engine,
        call_soon: CallSoon,
        call_from_thread: CallSoon,
        call_later: CallLater,
        on_commit: Callable[[Changes], None],
        on_lost_commit: Callable[[], None],
        clock: Clock = system_clock,
    ) -> None:
        self.clock = clock
        self._engine = engine
        self._snapshot = engine.snapshot()
        self._call_soon = call_soon
        self._call_from_thread = call_from_thread
        self._call_later = call_later
        self._on_commit = on_commit
        self._on_lost_commit = on_lost_commit
        self._gathering = _Batch()
        self._committing: _Batch | None = None
        self._scheduled = False
        self._crowd = 0
        """How many writes to wait for before the next commit, if any."""
        self._is_crowded = False
        self._is_closed = False
        self._work: SimpleQueue[_Batch | None] = SimpleQueue()
        self._writer: Thread | None = None

    def get(self, key: bytes) -> bytes | None:
        """The newest value decided, committed or not."""
        if key in self._gathering.changes:
            return self._gathering.changes[key]
        if self._committing is not None and key in self._committing.changes:
            return self._committing.changes[key]
        return self._snapshot.get(key)

    def is_held(self, key: bytes) -> bool:
        if key in self._gathering.holds:
            return True
        return self._committing is not None and key in self._committing.holds

    def write(self, decide: Callable[[WriteBatch], Any], done: Done) -> None:
        """Run `decide`; call `done` with its result after the commit, or with its error."""
        write_batch = WriteBatch(self)
        try:
            outcome = decide(write_batch)
        except DynamoDBError as error:
            # Without its traceback, which would keep this frame and the whole request alive.
            outcome = error.with_traceback(None)
            outcome.__context__ = None
        else:
            self._merge(write_batch)
        if not self._gathering.changes and self._committing is None:
            done(outcome)
            return
        # A refusal waits too: it may rest on a write whose commit is still under way.
        self._gathering.waiting.append((done, outcome))
        if self._committing is None and not self._scheduled:
            self._scheduled = True
            self._call_soon(self._start_after_turn if self._is_crowded else self._start)
        elif 0 < self._crowd <= len(self._gathering.waiting):
            self._crowd = 0
            self._call_soon(self._start)

    def close(self) -> None:
        """Finish the commit under way, keep what was gathered on top of it, and stop."""
        self._is_closed = True
        if self._writer is not None:
            self._work.put(None)
            self._writer.join()
        is_lost = self._committing is not None and self._committing.failure is not None
        if not is_lost:
            self._commit(self._gathering)
            if self._gathering.failure is not None:
                logger.error("%s", self._gathering.failure)

    def _merge(self, write_batch: WriteBatch) -> None:
        if write_batch.changes:
            self._gathering.changes.update(write_batch.changes)
            self._gathering.holds.update(write_batch.holds)
        for function in write_batch.then:
            function()

    def _start_after_turn(self) -> None:
        """With what has come meanwhile: where many write, a commit is better for more of them."""
        self._call_soon(self._start)

    def _start(self) -> None:
        self._scheduled = False
        self._crowd = 0
        if self._committing is not None or not self._gathering.waiting:
            return
        batch, self._gathering = self._gathering, _Batch()
        self._committing = batch
        if self._engine.waits_for_disk and self._has_writer():
            self._work.put(batch)
        else:
            self._commit(batch)
            self._finish(batch)

    def _has_writer(self) -> bool:
        if self._writer is None:
            writer = Thread(target=self._commit_batches, name="partita-writer", daemon=True)
            try:
                writer.start()
            except RuntimeError:
                # The system has no more threads: the one that there is does the waiting.
                return False
            self._writer = writer
        return True

    def _commit_batches(self) -> None:
        while (batch := self._work.get()) is not None:
            self._commit(batch)
            if not self._is_closed:
                self._call_from_thread(partial(self._finish, batch))

    def _commit(self, batch: _Batch) -> None:
        try:
            if batch.changes:
                self._engine.commit(batch.changes)
        except StorageError as error:
            batch.failure = error
        except Exception as error:
            # Whatever it was, the writer must live on and those who wait must be told.
            logger.exception("A commit failed.")
            batch.failure = StorageError(f"The commit failed: {error!r}.")

    def _finish(self, batch: _Batch) -> None:
        if self._is_closed:
            return
        self._committing = None
        self._engine.refresh()
        if batch.failure is not None:
            self._lose(batch, batch.failure)
            return
        self._on_commit(batch.changes)
        self._is_crowded = len(batch.waiting) > 1
        if self._gathering.waiting:
            self._start_next(len(batch.waiting))
        for done, outcome in batch.waiting:
            done(outcome)

    def _start_next(self, answered: int) -> None:
        """Soon, or with those who are answered now: a slow disk is better asked once for all."""
        self._scheduled = True
        if not self._engine.waits_for_disk:
            self._call_soon(self._start)
            return
        self._crowd = len(self._gathering.waiting) + answered
        self._call_later(GATHER_SECONDS, self._start)

    def _lose(self, batch: _Batch, failure: StorageError) -> None:
        logger.error("%s The writes that waited for it were refused.", failure)
        lost = batch.waiting + self._gathering.waiting
        self._gathering = _Batch()
        self._on_lost_commit()
        for done, outcome in lost:
            done(
                outcome if isinstance(outcome, DynamoDBError) else InternalServerError(str(failure))
            )
