"""Token buckets: units that come back every second, and are kept for a while if nobody uses them.

A provisioned table may save up to 300 seconds of its units for a burst (guide, "Burst capacity").
All other limits are for the second that it is.
"""

from __future__ import annotations

BURST_SECONDS = 300


class Bucket:
    __slots__ = ("burst_seconds", "rate", "second", "tokens")

    def __init__(
        self, rate: float, now: float, *, burst_seconds: int = 1, idle_seconds: float = 0.0
    ) -> None:
        """`idle_seconds` is how long the units were there before and not asked for."""
        self.rate = rate
        self.burst_seconds = burst_seconds
        self.second = int(now)
        self.tokens = rate * min(burst_seconds, 1 + int(idle_seconds))

    @property
    def room(self) -> float:
        return self.rate * self.burst_seconds

    def refill(self, now: float) -> None:
        second = int(now)
        if second != self.second:
            # A clock that was put back gives nothing.
            passed = max(0, second - self.second)
            self.tokens = min(self.room, self.tokens + self.rate * passed)
            self.second = second

    def change_rate(self, rate: float, now: float) -> None:
        """Another rate from this second on; what was saved stays, as far as there is room."""
        self.refill(now)
        self.tokens += max(0.0, rate - self.rate)
        self.rate = rate
        self.tokens = min(self.tokens, self.room)

    def allows_read(self, now: float) -> bool:
        """What a read costs is known when it is done: it may leave the bucket in debt."""
        self.refill(now)
        return self.tokens > 0

    def allows_write(self, units: float, now: float) -> bool:
        """A write must be covered; one that no bucket of this size could cover takes a full one."""
        self.refill(now)
        return self.tokens >= min(units, self.room)

    def take(self, units: float) -> None:
        self.tokens -= units
