"""Group commit: writes are decided one after the other, and those that wait share one commit.

A write is a function of a `WriteBatch`: it reads, decides, and records its changes there. While one
commit is being written to disk by the writer thread, the next writes are decided on top of it and
gathered; when the disk is ready, they share the next commit. A write is answered only after its
commit.

A failed write leaves no trace, because a write batch is merged only when its function returns. When
the disk fails, everything that was decided on top of the lost commit fails with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from partita.clock import Clock
from partita.database.storage.engine import Changes, CommitArchive, Engine
from partita.database.storage.write_batch import LatestState, WriteBatch
from partita.errors import PartitaError, RequestError, StorageError

logger = logging.getLogger(__name__)

Done = Callable[[Any], None]
CallSoon = Callable[[Callable[[], None]], object]
CallLater = Callable[[float, Callable[[], None]], object]

GATHER_SECONDS: Final = 0.001
"""How long to wait for the next writes of those just answered, where the disk takes longer."""


class _Group:
    """The writes that share one commit, and who waits for it."""

    __slots__ = ("changes", "failure", "holds", "waiting")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.holds: set[bytes] = set()
        self.waiting: list[tuple[Done, Any]] = []
        self.failure: StorageError | None = None


class GroupCommit(LatestState):
    """The single writer. All of it runs on one thread, except for waiting for the disk.

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
        """Who keeps commits, while there is a reason to."""
        self._gathering = _Group()
        self._committing: _Group | None = None
        self._is_scheduled = False
        self._expected_writes = 0
        """How many writes to wait for before the next commit, if any."""
        self._was_shared = False
        """Whether several writes shared the last commit."""
        self._is_closed = False
        self._work: SimpleQueue[_Group | None] = SimpleQueue()
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
        except RequestError as error:
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
        if self._committing is None and not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._start_after_turn if self._was_shared else self._start)
        elif 0 < self._expected_writes <= len(self._gathering.waiting):
            self._expected_writes = 0
            self._call_soon(self._start)

    def close(self) -> None:
        """Finish the commit under way, commit what was gathered on top of it, and stop."""
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
        """One turn of the loop later: where many write, more of them share the commit."""
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
                # The system has no more threads: this one waits for the disk.
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
            # Whatever it was, the writer must survive it and those who wait must hear of it.
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
        """Soon; behind a slow disk with the next writes of those answered now, in one commit."""
        self._is_scheduled = True
        if not self._engine.waits_for_disk:
            self._call_soon(self._start)
            return
        self._expected_writes = len(self._gathering.waiting) + answered
        self._call_later(GATHER_SECONDS, self._start)

    def _lose(self, group: _Group, failure: StorageError) -> None:
        logger.error("%s The writes that waited for it were refused.", failure)
        lost = group.waiting + self._gathering.waiting
        self._gathering = _Group()
        error = self._on_lost_commit(failure)
        for done, outcome in lost:
            done(outcome if isinstance(outcome, RequestError) else error)
