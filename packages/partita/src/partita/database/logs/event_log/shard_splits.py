"""The shards of an event stream: ranges of hash keys, and how they are split and merged.

A record belongs to the open shard whose range contains the hash of its partition key. A shard that
is split or merged is closed, and its children continue it: a reader that finishes parents before
their children sees the records of every partition key in order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

HASH_KEYS = 1 << 128
HASH_KEY_BYTES = 16


class EventShard(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A shard: a range of hash keys. It is closed once it was split or merged."""

    number: int
    hash_keys: tuple[str, str]
    """The first and the last hash key, as decimal texts: msgspec's JSON has no 128-bit integers."""
    opened_at: float
    parent: int | None = None
    adjacent_parent: int | None = None
    closed_at: float | None = None
    last: int | None = None
    """The shard's last sequence number, set when it is closed."""
    trimmed: int = 0
    """The highest sequence number that was removed because of its age."""

    @property
    def shard_id(self) -> str:
        return shard_id(self.number)

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    @property
    def first_hash_key(self) -> int:
        return int(self.hash_keys[0])

    @property
    def last_hash_key(self) -> int:
        return int(self.hash_keys[1])

    @property
    def parents(self) -> tuple[int, ...]:
        both = (self.parent, self.adjacent_parent)
        return tuple(number for number in both if number is not None)


def shard_id(number: int) -> str:
    return f"shardId-{number:012d}"


def even_bounds(count: int) -> list[int]:
    """Returns the first hash key of each of `count` equal ranges; the last also gets the rest."""
    size = HASH_KEYS // count
    return [position * size for position in range(count)]


def first_shards(count: int, now: float) -> tuple[EventShard, ...]:
    bounds = even_bounds(count)
    ranges = zip(bounds, [*bounds[1:], HASH_KEYS], strict=True)
    return tuple(
        EventShard(number=number, hash_keys=_hash_keys(first, after), opened_at=now)
        for number, (first, after) in enumerate(ranges)
    )


class Resharding:
    """The shards of a stream while they are being split and merged."""

    def __init__(
        self, shards: Sequence[EventShard], lasts: dict[int, int], next_number: int, now: float
    ) -> None:
        """`lasts` has the last sequence numbers of the open shards."""
        self.next_number = next_number
        self._shards = {shard.number: shard for shard in shards}
        self._open = open_shards(shards)
        self._starts = [shard.first_hash_key for shard in self._open]
        self._lasts = lasts
        self._now = now

    @property
    def shards(self) -> tuple[EventShard, ...]:
        return tuple(self._shards.values())

    def split(self, shard: EventShard, hash_key: int) -> None:
        """Replace a shard by two; the second one begins at `hash_key`."""
        first, after = shard.first_hash_key, shard.last_hash_key + 1
        self._close(shard)
        self._add(first, hash_key, parent=shard.number)
        self._add(hash_key, after, parent=shard.number)

    def merge(self, lower: EventShard, upper: EventShard) -> None:
        """Replace two adjacent shards by one."""
        first, after = lower.first_hash_key, upper.last_hash_key + 1
        self._close(lower)
        self._close(upper)
        self._add(first, after, parent=lower.number, adjacent_parent=upper.number)

    def resize(self, count: int) -> None:
        """Split and merge until there are `count` shards of equal size."""
        bounds = even_bounds(count)
        for bound in bounds:
            shard = self._holding(bound)
            if shard.first_hash_key != bound:
                self.split(shard, bound)
        for first, after in zip(bounds, [*bounds[1:], HASH_KEYS], strict=True):
            lower = self._holding(first)
            while lower.last_hash_key + 1 < after:
                self.merge(lower, self._holding(lower.last_hash_key + 1))
                lower = self._holding(first)

    def _holding(self, hash_key: int) -> EventShard:
        return self._open[bisect_right(self._starts, hash_key) - 1]

    def _close(self, shard: EventShard) -> None:
        place = bisect_left(self._starts, shard.first_hash_key)
        del self._starts[place], self._open[place]
        last = self._lasts.get(shard.number, 0)
        self._shards[shard.number] = replace(shard, closed_at=self._now, last=last)

    def _add(self, first: int, after: int, **parents: int) -> None:
        child = EventShard(
            number=self.next_number,
            hash_keys=_hash_keys(first, after),
            opened_at=self._now,
            **parents,
        )
        place = bisect_left(self._starts, first)
        self._starts.insert(place, first)
        self._open.insert(place, child)
        self._shards[child.number] = child
        self.next_number += 1


def open_shards(shards: Sequence[EventShard]) -> list[EventShard]:
    """Returns the open shards in the order of their hash keys."""
    return sorted(
        (shard for shard in shards if shard.is_open), key=lambda shard: shard.first_hash_key
    )


def _hash_keys(first: int, after: int) -> tuple[str, str]:
    return str(first), str(after - 1)
