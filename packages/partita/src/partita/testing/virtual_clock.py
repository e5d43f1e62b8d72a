"""A clock that a test sets. It changes the time of the database, not that of the program."""

from __future__ import annotations

from datetime import datetime, timedelta

from partita.foundation.clock import system_clock


class VirtualClock:
    """A clock that runs with the system's time. `advance` moves it ahead, `set` stops it."""

    def __init__(self) -> None:
        self._ahead_seconds = 0.0
        self._stands_at: float | None = None

    def __call__(self) -> float:
        """Returns seconds since the epoch."""
        now = system_clock() if self._stands_at is None else self._stands_at
        return now + self._ahead_seconds

    def advance(
        self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        ahead = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        if ahead < timedelta(0):
            raise ValueError("A clock advances forward; `set` may put it back.")
        self._ahead_seconds += ahead.total_seconds()

    def set(self, moment: float | datetime) -> None:
        """Stop the clock at a moment; `advance` then counts from there."""
        self._stands_at = moment.timestamp() if isinstance(moment, datetime) else float(moment)
        self._ahead_seconds = 0.0

    def copy(self) -> VirtualClock:
        other = VirtualClock()
        other._ahead_seconds, other._stands_at = self._ahead_seconds, self._stands_at
        return other
