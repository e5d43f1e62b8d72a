"""The most frequent keys of a stream of them, in bounded memory, with a bound on the error.

A summary after Misra and Gries: when there are too many counters, the value of the largest one that
must go is taken off all of them, and those that are left with nothing go. Each time, at least
`kept + 1` counters lose that value, so what is missing from any count is at most a (kept + 1)-th
of everything counted. Room for more counters than are kept makes that step a rare one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

KEPT = 100
ROOM_FACTOR = 4

Key = TypeVar("Key", bound=Hashable)


class Contributor(NamedTuple, Generic[Key]):
    """A key, and how much it contributed at least. At most, it is `Contributors.error` more."""

    key: Key
    value: float


class Contributors(Generic[Key]):
    __slots__ = ("_counters", "_kept", "_room", "error", "total")

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._room = kept * ROOM_FACTOR
        self._counters: dict[Key, float] = {}
        self.total = 0.0
        self.error = 0.0
        """How much may be missing from any count."""

    def add(self, key: Key, value: float) -> None:
        counters = self._counters
        counters[key] = counters.get(key, 0.0) + value
        self.total += value
        if len(counters) > self._room:
            self._thin_out()

    def top(self, count: int) -> list[Contributor[Key]]:
        """The largest first; equals in the order of their arrival."""
        ordered = sorted(self._counters.items(), key=lambda pair: -pair[1])
        return [Contributor(*pair) for pair in ordered[:count]]

    def _thin_out(self) -> None:
        taken_off = sorted(self._counters.values(), reverse=True)[self._kept]
        self.error += taken_off
        self._counters = {
            key: value - taken_off for key, value in self._counters.items() if value > taken_off
        }
