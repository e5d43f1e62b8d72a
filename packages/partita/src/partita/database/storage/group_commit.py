"""Group commit: writes are decided one after the other, and those that are waiting share a commit.

A write is a function of a `WriteBatch`: it reads, decides, and records its changes there. While the
writer thread writes one commit to disk, the next writes are decided on top of it and gathered; when
the disk is ready, they share the next commit. A write is answered only after its commit.

A failed write leaves no trace, because a write batch is merged only when its function returns. If a
commit fails, every write that was decided on top of it fails too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from partita.database.storage.engine import Changes, CommitArchive, Engine
from partita.database.storage.write_batch import LatestState, WriteBatch
from partita.errors import PartitaError, RequestError, StorageError
from partita.foundation.clock import Clock

logger = logging.getLogger(__name__)

Done = Callable[[Any], None]
CallSoon = Callable[[Callable[[], None]], object]
CallLater = Callable[[float, Callable[[], None]], object]

GATHER_SECONDS: Final = 0.001
"""With a slow disk, how long the next commit waits for further writes by clients that were just
answered."""


class _Group:
    """The changes of writes that share one commit, and the callbacks that wait for it."""

    __slots__ = ("changes", "failure", "holds", "waiting")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.holds: set[bytes] = set()
        self.waiting: list[tuple[Done, Any]] = []
        self.failure: StorageError | None = None


class GroupCommit(LatestState):
    """The database's only writer. Everything runs on the event loop's thread except slow commits.

    `call_soon` and `call_later` schedule functions on that thread; `call_from_thread` does so from
    another one. As long as the engine does not wait for the disk, it commits on that thread too.
    """

    def __init__(
        self,
        engine: Engine,
        call_soon: CallSoon,
        call_from_thread: CallSoon,
        call_later: CallLater,
        on_commit: Callable[[Changes], None],
        on_lost_commit: Callable[[StorageError], PartitaError],
        clock: Clock,
    ) -> None:
        super().__init__(clock)
        self._engine = engine
        self._snapshot = engine.snapshot()
        self._call_soon = call_soon
        self._call_from_thread = call_from_thread
        self._call_later = call_later
        self._on_commit = on_commit
        self._on_lost_commit = on_lost_commit
        self.archive: CommitArchive | None = None
        """Keeps commits for recovery, while a table needs it."""
        self._gathering = _Group()
        self._committing: _Group | None = None
        self._is_scheduled = False
        self._expected_writes = 0
        """The number of waiting writes at which the next commit starts early; 0 for none."""
        self._was_shared = False
        """True when several writes shared the last commit."""
        self._is_closed = False
        self._work: SimpleQueue[_Group | None] = SimpleQueue()
        self._writer: Thread | None = None

    def get(self, key: bytes) -> bytes | None:
        """Returns the latest decided value, committed or not."""
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
        """Runs `decide`; calls `done` with its result or error, after the commit."""
        write_batch = WriteBatch(self)
        try:
            outcome = decide(write_batch)
        except RequestError as error:
            # The traceback would keep this frame and the whole request alive.
            outcome = error.with_traceback(None)
            outcome.__context__ = None
        else:
            self._merge(write_batch)
        if not self._gathering.changes and self._committing is None:
            done(outcome)
            return
        # A refusal waits too: it may depend on a write whose commit is still in progress.
        self._gathering.waiting.append((done, outcome))
        if self._committing is None and not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._start_after_turn if self._was_shared else self._start)
        elif 0 < self._expected_writes <= len(self._gathering.waiting):
            self._expected_writes = 0
            self._call_soon(self._start)

    def close(self) -> None:
        """Finishes the current commit, commits the gathered writes, and stops."""
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
        for callback in write_batch.callbacks:
            callback()

    def _start_after_turn(self) -> None:
        """Starts the commit one turn of the event loop later, so that more writes share it."""
        self._call_soon(self._start)

    def _start(self) -> None:
        self._is_scheduled = False
        self._expected_writes = 0
        if self._committing is not None or not self._gathering.waiting:
            return
        group, self._gathering = self._gathering, _Group()
        self._committing = group
        if self._engine.waits_for_disk and self._has_writer():
            self._work.put(group)
        else:
            self._commit(group)
            self._finish(group)

    def _has_writer(self) -> bool:
        if self._writer is None:
            writer = Thread(target=self._commit_groups, name="partita-writer", daemon=True)
            try:
                writer.start()
            except RuntimeError:
                # The system allows no more threads, so this one has to wait for the disk.
                return False
            self._writer = writer
        return True

    def _commit_groups(self) -> None:
        while (group := self._work.get()) is not None:
            self._commit(group)
            if not self._is_closed:
                self._call_from_thread(partial(self._finish, group))

    def _commit(self, group: _Group) -> None:
        try:
            if group.changes:
                archive = self.archive
                if archive is not None:
                    archive.stamp(group.changes)
                self._engine.commit(group.changes)
                if archive is not None:
                    archive.keep(group.changes)
        except StorageError as error:
            group.failure = error
        except Exception as error:
            # The writer thread must survive any error, and the waiting requests must get it.
            logger.exception("A commit failed.")
            group.failure = StorageError(f"The commit failed: {error!r}.")

    def _finish(self, group: _Group) -> None:
        if self._is_closed:
            return
        self._committing = None
        self._engine.refresh()
        if group.failure is not None:
            self._lose(group, group.failure)
            return
        self._on_commit(group.changes)
        self._was_shared = len(group.waiting) > 1
        if self._gathering.waiting:
            self._start_next(len(group.waiting))
        for done, outcome in group.waiting:
            done(outcome)

    def _start_next(self, answered: int) -> None:
        """Schedules the next commit.

        With a slow disk it waits shortly for the next writes of the clients that are answered now.
        """
        self._is_scheduled = True
        if not self._engine.waits_for_disk:
            self._call_soon(self._start)
            return
        self._expected_writes = len(self._gathering.waiting) + answered
        self._call_later(GATHER_SECONDS, self._start)

    def _lose(self, group: _Group, failure: StorageError) -> None:
        logger.error("%s The writes that waited for this commit were refused.", failure)
        lost = group.waiting + self._gathering.waiting
        self._gathering = _Group()
        error = self._on_lost_commit(failure)
        for done, outcome in lost:
            done(outcome if isinstance(outcome, RequestError) else error)
