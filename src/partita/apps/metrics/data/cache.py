"""What was read, for some seconds: bounded by size, and forgotten when this server writes.

Writes of other servers are seen when an entry has expired. An entry whose read began before a
write of this server is not kept, because it may be older than the write.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

V = TypeVar("V")


class _Entry(NamedTuple, Generic[V]):
    value: V
    size: int
    expires_at: float


class Cache(Generic[V]):
    def __init__(self, seconds: float, size_max: int, now: Callable[[], float]) -> None:
        self.hits = 0
        self.misses = 0
        self._seconds = seconds
        self._size_max = size_max
        self._now = now
        self._size = 0
        # By metric, the least recently added first.
        self._entries: dict[str, dict[Hashable, _Entry[V]]] = {}
        self.writes = 0
        """Remembered by whoever reads, before the read begins."""

    def get(self, metric: str, key: Hashable = None) -> V | None:
        entry = self._entries.get(metric, {}).get(key)
        if entry is None or entry.expires_at <= self._now():
            self.misses += 1
            return None
        self.hits += 1
        return entry.value

    def keep(self, metric: str, value: V, writes: int, key: Hashable = None, size: int = 1) -> None:
        """`writes` is what it was when the read began."""
        if writes != self.writes or size > self._size_max or not self._seconds:
            return
        known = self._entries.pop(metric, {})
        self._entries[metric] = known
        replaced = known.get(key)
        self._size += size - (replaced.size if replaced is not None else 0)
        known[key] = _Entry(value, size, self._now() + self._seconds)
        while self._size > self._size_max:
            self._drop(next(iter(self._entries)))

    def forget(self, metric: str) -> None:
        """Something about it is about to change, or has just changed."""
        self.writes += 1
        if metric in self._entries:
            self._drop(metric)

    def _drop(self, metric: str) -> None:
        self._size -= sum(entry.size for entry in self._entries.pop(metric).values())
