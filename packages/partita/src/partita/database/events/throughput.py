"""What the shards of event streams take and give in a second, while capacity is enforced.

(Kinesis guide, "Quotas and limits") A read may take more than there is, and is paid for by those
that come after it.
"""

from __future__ import annotations

from partita.clock import Clock
from partita.database.capacity.buckets import Bucket
from partita.limits import (
    SHARD_READ_BYTES,
    SHARD_READS,
    SHARD_WRITE_BYTES,
    SHARD_WRITE_RECORDS,
)

SHARDS_MAX = 10_000
"""How many are remembered; then all begin anew, as shards that were idle do."""


class ShardMeter:
    __slots__ = ("read_bytes", "reads", "write_bytes", "write_records")

    def __init__(self, now: float) -> None:
        self.write_records = Bucket(SHARD_WRITE_RECORDS, now)
        self.write_bytes = Bucket(SHARD_WRITE_BYTES, now)
        self.reads = Bucket(SHARD_READS, now)
        self.read_bytes = Bucket(SHARD_READ_BYTES, now)

    def take_record(self, size: int, now: float) -> bool:
        """Whether there is room for one more record in this second."""
        if not self.write_records.allows_write(1, now):
            return False
        if not self.write_bytes.allows_write(size, now):
            return False
        self.write_records.take(1)
        self.write_bytes.take(size)
        return True

    def is_hot(self) -> bool:
        """Whether more than half of what it takes in a second is taken."""
        return (
            self.write_records.tokens < SHARD_WRITE_RECORDS / 2
            or self.write_bytes.tokens < SHARD_WRITE_BYTES / 2
        )

    def take_read(self, now: float) -> bool:
        if not self.reads.allows_write(1, now) or not self.read_bytes.allows_read(now):
            return False
        self.reads.take(1)
        return True


class Throughput:
    """Of all shards, by the numbers of their streams and their own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._meters: dict[tuple[int, int], ShardMeter] = {}

    def meter(self, stream_number: int, shard_number: int) -> ShardMeter:
        place = (stream_number, shard_number)
        meter = self._meters.get(place)
        if meter is None:
            if len(self._meters) >= SHARDS_MAX:
                self._meters.clear()
            meter = self._meters[place] = ShardMeter(self._clock())
        return meter
