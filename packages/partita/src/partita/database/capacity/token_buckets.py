"""Token buckets: units that are refilled every second, and saved for a while if they are not used.

A provisioned table saves up to 300 seconds of its units for a burst (guide, "Burst capacity").
All other limits hold for single seconds.
"""

from __future__ import annotations

BURST_SECONDS = 300


class TokenBucket:
    """A number of tokens that is refilled by `rate` per second, up to `burst_seconds` times that.

    The number can be negative: a read is paid after it was done.
    """

    __slots__ = ("burst_seconds", "rate", "second", "tokens")

    def __init__(
        self, rate: float, now: float, *, burst_seconds: int = 1, idle_seconds: float = 0.0
    ) -> None:
        """`idle_seconds` is how long the units have been available without being used."""
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
            # A clock that was set back refills nothing.
            passed = max(0, second - self.second)
            self.tokens = min(self.room, self.tokens + self.rate * passed)
            self.second = second

    def change_rate(self, rate: float, now: float) -> None:
        """Change the rate from this second on; saved units are kept up to the new capacity."""
        self.refill(now)
        self.tokens += max(0.0, rate - self.rate)
        self.rate = rate
        self.tokens = min(self.tokens, self.room)

    def allows_read(self, now: float) -> bool:
        """True while any tokens are left.

        A read's cost is only known after it was done, so it may leave the bucket in debt.
        """
        self.refill(now)
        return self.tokens > 0

    def allows_write(self, units: float, now: float) -> bool:
        """True when the tokens cover a write.

        A write that is larger than the bucket needs a full bucket.
        """
        self.refill(now)
        return self.tokens >= min(units, self.room)

    def take(self, units: float) -> None:
        self.tokens -= units
