"""What was read, for some seconds: bounded by size, and forgotten when this server writes.

Writes of other servers are seen when an entry has expired. An entry whose read began before a
write of this server is not kept, because it may be older than the write.

Entries and keys are plain tuples and strings, and values are such tuples or structs without cycles
(`gc=False`): the collector of cycles does not look at them again. Looking at a hundred thousand
objects every other second held up one request in fifty for longer than everything else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class ValueCache(Generic[V]):
    def __init__(self, seconds: float, size_max: int, now: Callable[[], float]) -> None:
        self.hits = 0
        self.misses = 0
        self._seconds = seconds
        self._size_max = size_max
        self._now = now
        self._size = 0
        # By metric, the least recently added first.
        self._entries: OrderedDict[str, dict[str, tuple[V, int, float]]] = OrderedDict()
        """By key: the value, its size, and when it expires."""
        self.writes = 0
        """Remembered by whoever reads, before the read begins."""

    def get(self, metric: str, key: str = "") -> V | None:
        value, _, expires_at = self._entries.get(metric, {}).get(key, (None, 0, 0.0))
        if value is None or expires_at <= self._now():
            self.misses += 1
            return None
        self.hits += 1
        return value

    def keep(self, metric: str, value: V, writes: int, key: str = "", size: int = 1) -> None:
        """`writes` is what it was when the read began."""
        if writes != self.writes or size > self._size_max or not self._seconds:
            return
        known = self._entries.setdefault(metric, {})
        self._entries.move_to_end(metric)
        replaced = known.get(key)
        self._size += size - (replaced[1] if replaced is not None else 0)
        known[key] = (value, size, self._now() + self._seconds)
        while self._size > self._size_max:
            self._drop(next(iter(self._entries)))

    def forget(self, metric: str) -> None:
        """Something about it is about to change, or has just changed."""
        self.writes += 1
        if metric in self._entries:
            self._drop(metric)

    def _drop(self, metric: str) -> None:
        self._size -= sum(size for _, size, _ in self._entries.pop(metric).values())
