"""An engine in memory, over the snapshot of another: copy-on-write branches.

What lies below is read and never changed. Changes go to an overlay of the engine's own, in which
None hides what is below. To branch, the overlay so far is put below both engines, and each goes on
with an empty one; items are not copied, and without changes since the last branch, nothing is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from operator import gt, lt

from partita.errors import StorageError
from partita.storage.engine import Changes, Snapshot

Pair = tuple[bytes, bytes]


class Nothing:
    """The snapshot below an engine that begins empty."""

    def get(self, key: bytes) -> bytes | None:
        return None

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        return iter(())


NOTHING = Nothing()


class Overlay:
    """Changes in the order of their keys."""

    __slots__ = ("keys", "values")

    def __init__(self, values: dict[bytes, bytes | None]) -> None:
        self.values = values
        self.keys = sorted(values)

    def put(self, key: bytes, value: bytes | None) -> None:
        if key not in self.values:
            insort(self.keys, key)
        self.values[key] = value

    def drop(self, key: bytes) -> None:
        if key in self.values:
            del self.values[key]
            del self.keys[bisect_left(self.keys, key)]

    def positions(self, start: bytes, stop: bytes, *, reverse: bool) -> range:
        """Where in `keys` those of a range are, in the order in which they are read."""
        first, end = bisect_left(self.keys, start), bisect_left(self.keys, stop)
        return range(end - 1, first - 1, -1) if reverse else range(first, end)


class BranchSnapshot:
    """An overlay over what lies below it, which must not be refreshed while this one is in use."""

    def __init__(self, below: Snapshot, overlay: Overlay) -> None:
        self._below = below
        self._overlay = overlay

    def get(self, key: bytes) -> bytes | None:
        values = self._overlay.values
        return values[key] if key in values else self._below.get(key)

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        below = self._below.range(start, stop, reverse=reverse)
        positions = self._overlay.positions(start, stop, reverse=reverse)
        return _overlaid(below, self._overlay, positions, reverse) if positions else below

    def apply(self, changes: Changes) -> None:
        for key, value in changes.items():
            if value is None and self._below.get(key) is None:
                self._overlay.drop(key)
            else:
                self._overlay.put(key, value)

    def freeze(self) -> Snapshot:
        """What is shown now, for ever; this snapshot goes on over it."""
        if self._overlay.keys:
            self._below = _stacked(self._below, self._overlay)
            self._overlay = Overlay({})
        return self._below

    def parts(self) -> tuple[Snapshot, Overlay]:
        return self._below, self._overlay


class BranchEngine:
    """As safe as memory is: gone with the process."""

    waits_for_disk = False

    def __init__(self, below: Snapshot = NOTHING) -> None:
        self._snapshot = BranchSnapshot(below, Overlay({}))
        self._unseen: deque[Changes] = deque()

    def branch(self) -> BranchEngine:
        """An engine that begins with what the snapshot shows; then each sees only its own."""
        return BranchEngine(self._snapshot.freeze())

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def refresh(self) -> None:
        while self._unseen:
            self._snapshot.apply(self._unseen.popleft())

    def commit(self, changes: Changes) -> None:
        # The snapshot must not move until it is refreshed.
        if any(type(value) is not bytes and value is not None for value in changes.values()):
            raise StorageError("The commit could not be kept: a value is not bytes.")
        self._unseen.append(dict(changes))

    def close(self) -> None:
        self._unseen.clear()


def _overlaid(
    below: Iterator[Pair], overlay: Overlay, positions: range, reverse: bool
) -> Iterator[Pair]:
    comes_first = gt if reverse else lt
    lower = next(below, None)
    for key in map(overlay.keys.__getitem__, positions):
        while lower is not None and comes_first(lower[0], key):
            yield lower
            lower = next(below, None)
        if lower is not None and lower[0] == key:
            lower = next(below, None)
        value = overlay.values[key]
        if value is not None:
            yield key, value
    if lower is not None:
        yield lower
        yield from below


def _stacked(below: Snapshot, overlay: Overlay) -> Snapshot:
    """Each overlay stays less than half as large as the one below it, so that few lie on a heap."""
    while isinstance(below, BranchSnapshot):
        lowest, lower = below.parts()
        if len(lower.keys) > 2 * len(overlay.keys):
            break
        below, overlay = lowest, Overlay({**lower.values, **overlay.values})
    return BranchSnapshot(below, overlay)
