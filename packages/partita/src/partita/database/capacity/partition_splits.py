"""The partitions of a table or global index: ranges of hashes with limits of their own.

A partition serves 3,000 read and 1,000 write units per second and stores 10 GB. It is split when
it is too large, and when the demand of a whole minute was near its limits ("split for heat"; guide,
"Burst and adaptive capacity"). The split is between its busy keys, so that each half gets half of
the load, or around a hot key that has most of the load, which then gets a partition of its own.
Partitions are never merged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from partita.database.capacity.hot_key_counter import Contributor, HotKeyCounter
from partita.database.capacity.partition_sizing import HASHES, even_starts
from partita.database.capacity.token_buckets import TokenBucket
from partita.foundation.service_limits import (
    PARTITION_BYTES_MAX,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    PARTITIONS_MAX,
)

MINUTE_SECONDS = 60
HOT_LOAD = 0.8
"""A partition is hot when a minute's demand is at least this share of its limits."""
ISOLATED_SHARE = 0.5
"""A key with more than this share of a hot partition's load gets a partition of its own."""
KEYS_KEPT = 10

HotKey = tuple[int, str]
"""A partition key: its hash, and the key as people read it."""


class Partition:
    """A range of hashes, with token buckets and the demand of the current minute."""

    __slots__ = ("_keys", "_last_load", "_minute", "_units", "read", "start", "stop", "write")

    def __init__(self, start: int, stop: int, now: float) -> None:
        """A partition has the hashes from `start` up to, but not including, `stop`."""
        self.start = start
        self.stop = stop
        self.read = TokenBucket(PARTITION_READ_UNITS, now)
        self.write = TokenBucket(PARTITION_WRITE_UNITS, now)
        self._minute = int(now // MINUTE_SECONDS)
        self._units = 0.0
        self._last_load = 0.0
        self._keys: HotKeyCounter[HotKey] = HotKeyCounter(KEYS_KEPT)

    def demand(self, key: HotKey | None, units: float, is_write: bool, now: float) -> bool:
        """Count requested units, served or not; True if the minute that just ended was hot."""
        was_hot = self._begin_minute(now)
        share = units / (PARTITION_WRITE_UNITS if is_write else PARTITION_READ_UNITS)
        self._units += share
        if key is not None:
            self._keys.add(key, share)
        return was_hot

    def allows(self, units: float, is_write: bool, now: float) -> bool:
        return self.write.allows_write(units, now) if is_write else self.read.allows_read(now)

    def bucket(self, is_write: bool) -> TokenBucket:
        return self.write if is_write else self.read

    def load(self, now: float) -> float:
        """Returns the demand as a share of the limits, over the last minute or the current one,
        whichever is higher."""
        passed = int(now // MINUTE_SECONDS) - self._minute
        if passed > 1:
            return 0.0
        current = self._units / MINUTE_SECONDS
        return current if passed == 1 else max(self._last_load, current)

    @property
    def demanded_share(self) -> float:
        """The total of which the values of the hottest keys are parts."""
        return self._keys.total

    def hottest(self, count: int) -> list[Contributor[HotKey]]:
        return self._keys.top(count)

    def boundaries(self) -> list[int]:
        """Returns the hashes at which to split: around a hot key, or between several busy keys."""
        hottest = self._keys.top(KEYS_KEPT)
        if hottest and hottest[0].value > ISOLATED_SHARE * self._keys.total:
            key_hash = hottest[0].key[0]
            around = [key_hash, key_hash + 1]
        else:
            weights = sorted((contributor.key[0], contributor.value) for contributor in hottest)
            around = [_middle(weights, self)]
        return [boundary for boundary in around if self.start < boundary < self.stop]

    def _begin_minute(self, now: float) -> bool:
        minute = int(now // MINUTE_SECONDS)
        if minute == self._minute:
            return False
        load = self._units / MINUTE_SECONDS
        self._last_load = load if minute == self._minute + 1 else 0.0
        self._minute, self._units = minute, 0.0
        if load < HOT_LOAD:
            self._keys = HotKeyCounter(KEYS_KEPT)
        return load >= HOT_LOAD


def _middle(weighted: list[tuple[int, float]], partition: Partition) -> int:
    """Returns the hash below which half of the load is, or the middle of the range.

    `weighted` has the hashes of keys with their shares of the load.
    """
    half = sum(weight for _, weight in weighted) / 2
    below = 0.0
    for key_hash, weight in weighted:
        below += weight
        if below >= half and partition.start < key_hash + 1 < partition.stop:
            return key_hash + 1
    return (partition.start + partition.stop) // 2


class TablePartitions:
    """All partitions of a table or global index, which together cover all hashes."""

    def __init__(self, count: int, now: float) -> None:
        edges = [*even_starts(count), HASHES]
        self._set([Partition(*edge, now) for edge in pairwise(edges)])

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions)

    @property
    def starts(self) -> list[int]:
        return self._starts

    def at(self, key_hash: int) -> Partition:
        return self._partitions[bisect_right(self._starts, key_hash) - 1]

    def demand(
        self, key_hash: int, key: str | None, units: float, is_write: bool, now: float
    ) -> Partition:
        """Count demand for a key, split its partition if it was hot, and return the partition."""
        partition = self.at(key_hash)
        hot_key = None if key is None else (key_hash, key)
        if partition.demand(hot_key, units, is_write, now):
            self._split(partition, partition.boundaries(), now)
            partition = self.at(key_hash)
        return partition

    def grow(self, count: int, now: float) -> None:
        """Split the widest partitions in half until there are at least `count`."""
        while len(self) < min(count, PARTITIONS_MAX):
            widest = sorted(self, key=lambda partition: partition.start - partition.stop)
            for partition in widest[: count - len(self)]:
                self._split(partition, [(partition.start + partition.stop) // 2], now)

    def fit(self, size_bytes: int, now: float) -> None:
        """Split the partitions whose share of the data exceeds what a partition can store.

        The data is taken to be spread evenly over the hashes.
        """
        if size_bytes <= PARTITION_BYTES_MAX:
            return
        for partition in list(self):
            width = partition.stop - partition.start
            pieces = -(-size_bytes * width // (HASHES * PARTITION_BYTES_MAX))
            pieces = min(pieces, PARTITIONS_MAX - len(self) + 1)
            edges = [partition.start + width * number // pieces for number in range(1, pieces)]
            self._split(partition, edges, now)

    def _split(self, partition: Partition, boundaries: list[int], now: float) -> None:
        if not boundaries or len(self) + len(boundaries) > PARTITIONS_MAX:
            return
        edges = [partition.start, *boundaries, partition.stop]
        pieces = [Partition(*edge, now) for edge in pairwise(edges)]
        position = self._partitions.index(partition)
        self._set([*self._partitions[:position], *pieces, *self._partitions[position + 1 :]])

    def _set(self, partitions: list[Partition]) -> None:
        self._partitions = partitions
        self._starts = [partition.start for partition in partitions]
