"""Counts the most frequent keys (heavy hitters) in bounded memory, with a bound on the error.

This is the Misra-Gries summary. When there are too many counters, the value of counter number
`kept + 1`, in descending order, is subtracted from all of them, and those that reach zero are
dropped. At least `kept + 1` counters lose that value each time, so no count can miss more than a
(kept + 1)-th of the total. There is room for four times as many counters, which makes that step
rare.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

KEPT = 100
ROOM_FACTOR = 4

Key = TypeVar("Key", bound=Hashable)


class Contributor(NamedTuple, Generic[Key]):
    """A key and the least that it contributed; it may be up to `HotKeyCounter.error` more."""

    key: Key
    value: float


class HotKeyCounter(Generic[Key]):
    """Adds up values by key, and keeps the keys with the largest sums."""

    __slots__ = ("_counters", "_kept", "_room", "error", "total")

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._room = kept * ROOM_FACTOR
        self._counters: dict[Key, float] = {}
        self.total = 0.0
        self.error = 0.0
        """The most that can be missing from any count."""

    def add(self, key: Key, value: float) -> None:
        counters = self._counters
        counters[key] = counters.get(key, 0.0) + value
        self.total += value
        if len(counters) > self._room:
            self._thin_out()

    def top(self, count: int) -> list[Contributor[Key]]:
        """Returns the largest contributors, largest first."""
        ordered = sorted(self._counters.items(), key=lambda pair: -pair[1])
        return [Contributor(*pair) for pair in ordered[:count]]

    def _thin_out(self) -> None:
        taken_off = sorted(self._counters.values(), reverse=True)[self._kept]
        self.error += taken_off
        self._counters = {
            key: value - taken_off for key, value in self._counters.items() if value > taken_off
        }
