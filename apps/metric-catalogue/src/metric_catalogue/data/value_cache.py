"""A cache of what was read, bounded by size and by seconds. Entries are forgotten when this server
writes.

Writes of other servers become visible when an entry expires. A value whose read began before a
write of this server is not cached, because it may be older than the write.

Entries and keys are plain tuples and strings, and values are tuples or structs without cycles
(`gc=False`), so that Python's garbage collector does not scan them again. Scanning a hundred
thousand objects every other second delayed one request in fifty by more than all other work.
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
        # By metric, least recently added first.
        self._entries: OrderedDict[str, dict[str, tuple[V, int, float]]] = OrderedDict()
        """For each key the value, its size, and when it expires."""
        self.writes = 0
        """Counts the writes of this server. A reader notes it before it reads, and passes it to
        `keep`."""

    def get(self, metric: str, key: str = "") -> V | None:
        value, _, expires_at = self._entries.get(metric, {}).get(key, (None, 0, 0.0))
        if value is None or expires_at <= self._now():
            self.misses += 1
            return None
        self.hits += 1
        return value

    def keep(self, metric: str, value: V, writes: int, key: str = "", size: int = 1) -> None:
        """Caches a value, unless this server has written since its read began: `writes` is the
        count from before the read."""
        if writes != self.writes or size > self._size_max or not self._seconds:
            return
        entries = self._entries.setdefault(metric, {})
        self._entries.move_to_end(metric)
        replaced = entries.get(key)
        self._size += size - (replaced[1] if replaced is not None else 0)
        entries[key] = (value, size, self._now() + self._seconds)
        while self._size > self._size_max:
            self._drop(next(iter(self._entries)))

    def forget(self, metric: str) -> None:
        """Drops everything about a metric that is about to change or has just changed."""
        self.writes += 1
        if metric in self._entries:
            self._drop(metric)

    def _drop(self, metric: str) -> None:
        self._size -= sum(size for _, size, _ in self._entries.pop(metric).values())
