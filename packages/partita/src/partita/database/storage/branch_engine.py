"""An engine in memory over the snapshot of another one: copy-on-write branches.

An engine never changes the snapshot below it; its own changes go to an overlay. To branch, the
overlay is frozen and shared by both engines, and each gets an empty overlay above it. No items are
copied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from partita.database.storage.data_folder.overlay import Overlay, Pair
from partita.database.storage.engine import Changes, CommitArchive, Snapshot
from partita.errors import StorageError


class EmptySnapshot:
    """The snapshot below an engine that begins empty."""

    def get(self, key: bytes) -> bytes | None:
        return None

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        return iter(())


EMPTY = EmptySnapshot()


class BranchSnapshot:
    """An overlay over another snapshot, which must not be refreshed while this one is in use."""

    def __init__(self, below: Snapshot, overlay: Overlay) -> None:
        self._below = below
        self._overlay = overlay

    def get(self, key: bytes) -> bytes | None:
        return self._overlay.get_over(self._below, key)

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        below = self._below.range(start, stop, reverse=reverse)
        return self._overlay.range_over(below, start, stop, reverse=reverse)

    def apply(self, changes: Changes) -> None:
        for key, value in changes.items():
            if value is None and self._below.get(key) is None:
                self._overlay.drop(key)
            else:
                self._overlay.put(key, value)

    def freeze(self) -> Snapshot:
        """Returns the current state, which never changes; this snapshot goes on above it."""
        if self._overlay.values:
            self._below = _stacked(self._below, self._overlay)
            self._overlay = Overlay({})
        return self._below

    def layers(self) -> tuple[Snapshot, Overlay]:
        return self._below, self._overlay


class BranchEngine:
    """An engine in memory, lost when the process ends."""

    waits_for_disk = False

    def __init__(self, below: Snapshot = EMPTY) -> None:
        self._snapshot = BranchSnapshot(below, Overlay({}))
        self._unseen: deque[Changes] = deque()

    def branch(self) -> BranchEngine:
        """Returns an engine that begins with this one's state; later changes are independent."""
        return BranchEngine(self._snapshot.freeze())

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def refresh(self) -> None:
        while self._unseen:
            self._snapshot.apply(self._unseen.popleft())

    def commit(self, changes: Changes) -> None:
        if any(type(value) is not bytes and value is not None for value in changes.values()):
            raise StorageError("The commit could not be kept: a value is not bytes.")
        # The snapshot must not change before `refresh`.
        self._unseen.append(dict(changes))

    def archive_to(self, archive: CommitArchive) -> None:
        """Does nothing: an engine in memory has no commits of a former process."""

    def close(self) -> None:
        self._unseen.clear()


def _stacked(below: Snapshot, overlay: Overlay) -> Snapshot:
    """Puts an overlay on a stack of frozen ones; joins it with smaller ones below.

    Each overlay of a stack is less than half as large as the one below it, so its height stays
    logarithmic.
    """
    while isinstance(below, BranchSnapshot):
        lowest, lower = below.layers()
        if len(lower.values) > 2 * len(overlay.values):
            break
        below, overlay = lowest, lower.joined(overlay)
    return BranchSnapshot(below, overlay)
