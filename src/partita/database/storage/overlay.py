"""Changes in memory over a snapshot of what lies below; None hides what is there."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final

from partita.database.storage.engine import Changes, Snapshot

Pair = tuple[bytes, bytes]

ENTRY_BYTES: Final = 128
"""About what a pair takes in memory besides its own bytes."""
FEW: Final = 256
"""So many new keys are put in their places one by one; more are sorted with the others."""


class Overlay:
    """Changes, and the order of their keys once it is asked for."""

    __slots__ = ("_new_keys", "_ordered_keys", "values")

    def __init__(self, values: dict[bytes, bytes | None]) -> None:
        self.values = values
        self._ordered_keys: list[bytes] = []
        self._new_keys = list(values)

    def put(self, key: bytes, value: bytes | None) -> None:
        if key not in self.values:
            self._new_keys.append(key)
        self.values[key] = value

    def update(self, changes: Changes) -> int:
        """Put all changes; about how many bytes they take."""
        values = self.values
        size = 0
        for key, value in changes.items():
            if key not in values:
                self._new_keys.append(key)
            values[key] = value
            size += ENTRY_BYTES + len(key) + (0 if value is None else len(value))
        return size

    def drop(self, key: bytes) -> None:
        if key in self.values:
            keys = self.keys()
            del self.values[key]
            del keys[bisect_left(keys, key)]

    def keys(self) -> list[bytes]:
        """In order."""
        if self._new_keys:
            if len(self._new_keys) > FEW:
                self._ordered_keys = sorted(self.values)
            else:
                for key in self._new_keys:
                    insort(self._ordered_keys, key)
            self._new_keys = []
        return self._ordered_keys

    def get_over(self, below: Snapshot, key: bytes) -> bytes | None:
        return self.values[key] if key in self.values else below.get(key)

    def range_over(
        self, below: Iterator[Pair], start: bytes, stop: bytes, *, reverse: bool
    ) -> Iterator[Pair]:
        """The pairs of a range below, as these changes leave them."""
        if not self.values:
            return below
        keys = self.keys()
        first, end = bisect_left(keys, start), bisect_left(keys, stop)
        if first == end:
            return below
        places = range(end - 1, first - 1, -1) if reverse else range(first, end)
        return self._merged(below, keys, places, reverse)

    def _merged(
        self, below: Iterator[Pair], keys: list[bytes], places: range, reverse: bool
    ) -> Iterator[Pair]:
        lower = next(below, None)
        for place in places:
            key = keys[place]
            while lower is not None and (lower[0] > key if reverse else lower[0] < key):
                yield lower
                lower = next(below, None)
            if lower is not None and lower[0] == key:
                lower = next(below, None)
            value = self.values[key]
            if value is not None:
                yield key, value
        if lower is not None:
            yield lower
            yield from below
