"""A write batch: the changes of one write, before they are merged into the next commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from partita.foundation.clock import Clock


class LatestState:
    """Everything decided so far, committed or not: the state that a write batch is based on."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def get(self, key: bytes) -> bytes | None:
        raise NotImplementedError

    def is_held(self, key: bytes) -> bool:
        """True when a transaction that is not committed yet has written this item."""
        raise NotImplementedError


class Savepoint(NamedTuple):
    """A state of a write batch: the lengths of its lists."""

    undo_log: int
    holds: int
    callbacks: int


class WriteBatch:
    """The changes of one write on top of everything decided before it."""

    __slots__ = ("_latest", "_undo_log", "callbacks", "changes", "holds")

    def __init__(self, latest: LatestState) -> None:
        self._latest = latest
        self._undo_log: list[tuple[bytes, bool, bytes | None]] | None = None
        """Since the first savepoint, for each change: the key, whether this batch had changed it
        before, and its former value."""
        self.changes: dict[bytes, bytes | None] = {}
        self.holds: list[bytes] = []
        self.callbacks: list[Callable[[], None]] = []

    def get(self, key: bytes) -> bytes | None:
        if key in self.changes:
            return self.changes[key]
        return self._latest.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        if self._undo_log is not None:
            self._log_undo(key)
        self.changes[key] = value

    def delete(self, key: bytes) -> None:
        if self._undo_log is not None:
            self._log_undo(key)
        self.changes[key] = None

    def savepoint(self) -> Savepoint:
        """Returns a savepoint, to which `rollback_to` can return any number of times."""
        if self._undo_log is None:
            self._undo_log = []
        return Savepoint(len(self._undo_log), len(self.holds), len(self.callbacks))

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Undoes everything since a savepoint; the cost is proportional to what is undone."""
        assert self._undo_log is not None
        while len(self._undo_log) > savepoint.undo_log:
            key, was_changed, before = self._undo_log.pop()
            if was_changed:
                self.changes[key] = before
            else:
                del self.changes[key]
        del self.holds[savepoint.holds :]
        del self.callbacks[savepoint.callbacks :]

    def now(self) -> float:
        """The time at which this write is decided."""
        return self._latest.clock()

    def after_merge(self, callback: Callable[[], None]) -> None:
        """Registers a function that is called when the write is merged; never if it is refused."""
        self.callbacks.append(callback)

    def hold(self, key: bytes) -> None:
        """Marks an item as part of a transaction until that transaction is committed."""
        self.holds.append(key)

    def is_held(self, key: bytes) -> bool:
        return self._latest.is_held(key)

    def _log_undo(self, key: bytes) -> None:
        assert self._undo_log is not None
        self._undo_log.append((key, key in self.changes, self.changes.get(key)))
