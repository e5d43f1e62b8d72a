"""An overlay: changes in memory over a snapshot; None hides a key of the snapshot.

Point reads look into a dict. For range reads the keys are kept sorted in blocks: inserting a key
moves only the keys of its block, and a range read begins with a few binary searches, however much
was written elsewhere. No read waits for a sort.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from partita.database.storage.engine import Changes, Snapshot

Pair = tuple[bytes, bytes]

ENTRY_BYTES: Final = 128
"""Approximate memory of a pair besides its own bytes."""
BLOCK_KEYS_MAX: Final = 512
"""A block that grows larger is split in two."""


class OrderedKeys:
    """Sorted keys. Callers never add a key that is present, or remove one that is missing."""

    __slots__ = ("_block_keys_max", "_blocks", "_bounds")

    def __init__(self, keys: Iterable[bytes], block_keys_max: int = BLOCK_KEYS_MAX) -> None:
        self._block_keys_max = block_keys_max
        ordered = sorted(keys)
        size = block_keys_max // 2
        self._blocks = [ordered[at : at + size] for at in range(0, len(ordered), size)] or [[]]
        """No block is empty, except the only block of no keys."""
        self._bounds = [block[0] for block in self._blocks[1:]]
        """Bound n is above all keys of block n, and not above those of block n + 1."""

    def add(self, key: bytes) -> None:
        number = bisect_right(self._bounds, key)
        block = self._blocks[number]
        insort(block, key)
        if len(block) > self._block_keys_max:
            middle = len(block) // 2
            self._blocks.insert(number + 1, block[middle:])
            self._bounds.insert(number, block[middle])
            del block[middle:]

    def remove(self, key: bytes) -> None:
        number = bisect_right(self._bounds, key)
        block = self._blocks[number]
        del block[bisect_left(block, key)]
        if not block and self._bounds:
            del self._blocks[number]
            del self._bounds[max(number - 1, 0)]

    def has_any(self, start: bytes, stop: bytes) -> bool:
        """True if there is a key with start <= key < stop."""
        number = bisect_right(self._bounds, start)
        block = self._blocks[number]
        place = bisect_left(block, start)
        if place < len(block):
            return block[place] < stop
        return number < len(self._bounds) and self._blocks[number + 1][0] < stop

    def runs(self, start: bytes, stop: bytes, *, reverse: bool) -> Iterator[list[bytes]]:
        """Yields the keys with start <= key < stop, block by block."""
        first, last = bisect_right(self._bounds, start), bisect_left(self._bounds, stop)
        for number in range(last, first - 1, -1) if reverse else range(first, last + 1):
            block = self._blocks[number]
            begin = bisect_left(block, start) if number == first else 0
            end = bisect_left(block, stop) if number == last else len(block)
            run = block[begin:end]
            if reverse:
                run.reverse()
            yield run

    def flat(self) -> list[bytes]:
        return list(chain.from_iterable(self._blocks))


class Overlay:
    """Changes, with their keys in order."""

    __slots__ = ("_keys", "values")

    def __init__(self, values: dict[bytes, bytes | None]) -> None:
        self.values = values
        self._keys = OrderedKeys(values)

    def put(self, key: bytes, value: bytes | None) -> None:
        if key not in self.values:
            self._keys.add(key)
        self.values[key] = value

    def update(self, changes: Changes) -> int:
        """Puts all changes; returns the approximate number of bytes they take."""
        values, keys = self.values, self._keys
        size = 0
        for key, value in changes.items():
            if key not in values:
                keys.add(key)
            values[key] = value
            size += ENTRY_BYTES + len(key) + (0 if value is None else len(value))
        return size

    def drop(self, key: bytes) -> None:
        if key in self.values:
            del self.values[key]
            self._keys.remove(key)

    def ordered_keys(self) -> list[bytes]:
        return self._keys.flat()

    def joined(self, upper: Overlay) -> Overlay:
        """Returns this overlay and one above it as a single overlay.

        The values are put in as two sorted runs, which Python's sort merges in linear time.
        """
        values = {key: self.values[key] for key in self.ordered_keys()}
        values.update((key, upper.values[key]) for key in upper.ordered_keys())
        return Overlay(values)

    def get_over(self, below: Snapshot, key: bytes) -> bytes | None:
        return self.values[key] if key in self.values else below.get(key)

    def range_over(
        self, below: Iterator[Pair], start: bytes, stop: bytes, *, reverse: bool
    ) -> Iterator[Pair]:
        """Applies the changes to the pairs of a range of the snapshot below."""
        if not self.values or not self._keys.has_any(start, stop):
            return below
        return self._merged(below, self._keys.runs(start, stop, reverse=reverse), reverse)

    def _merged(
        self, below: Iterator[Pair], runs: Iterator[list[bytes]], reverse: bool
    ) -> Iterator[Pair]:
        lower = next(below, None)
        for run in runs:
            for key in run:
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
