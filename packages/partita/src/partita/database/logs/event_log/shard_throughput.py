"""The throughput limits of event shards, while capacity is enforced (Kinesis guide, "Quotas and
limits").

A read may exceed the limit; later reads are then refused until it is paid off.
"""

from __future__ import annotations

from partita.database.capacity.token_buckets import TokenBucket
from partita.foundation.clock import Clock
from partita.foundation.service_limits import (
    SHARD_READ_BYTES,
    SHARD_READS,
    SHARD_WRITE_BYTES,
    SHARD_WRITE_RECORDS,
)

SHARDS_MAX = 10_000
"""Meters are kept for this many shards; then all are dropped and start with full buckets."""


class ShardMeter:
    """The token buckets of one shard."""

    __slots__ = ("read_bytes", "reads", "write_bytes", "write_records")

    def __init__(self, now: float) -> None:
        self.write_records = TokenBucket(SHARD_WRITE_RECORDS, now)
        self.write_bytes = TokenBucket(SHARD_WRITE_BYTES, now)
        self.reads = TokenBucket(SHARD_READS, now)
        self.read_bytes = TokenBucket(SHARD_READ_BYTES, now)

    def take_record(self, size: int, now: float) -> bool:
        """Take a record out of this second's limit; False if it does not fit."""
        if not self.write_records.allows_write(1, now):
            return False
        if not self.write_bytes.allows_write(size, now):
            return False
        self.write_records.take(1)
        self.write_bytes.take(size)
        return True

    def is_hot(self) -> bool:
        """True when more than half of a second's writes are used up."""
        return (
            self.write_records.tokens < SHARD_WRITE_RECORDS / 2
            or self.write_bytes.tokens < SHARD_WRITE_BYTES / 2
        )

    def take_read(self, now: float) -> bool:
        if not self.reads.allows_write(1, now) or not self.read_bytes.allows_read(now):
            return False
        self.reads.take(1)
        return True


class ShardThroughput:
    """The meters of all shards, by stream number and shard number."""

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
