"""A clock that a test sets: the database's time, not the program's."""

from __future__ import annotations

from datetime import datetime, timedelta

from partita.foundation.clock import system_clock


class VirtualClock:
    """Runs with the system's time, `advance` jumps ahead of it; once `set`, it stands still."""

    def __init__(self) -> None:
        self._ahead_seconds = 0.0
        self._stands_at: float | None = None

    def __call__(self) -> float:
        """Seconds since the epoch."""
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
        """Stand still at a moment; `advance` counts from there."""
        self._stands_at = moment.timestamp() if isinstance(moment, datetime) else float(moment)
        self._ahead_seconds = 0.0

    def copy(self) -> VirtualClock:
        other = VirtualClock()
        other._ahead_seconds, other._stands_at = self._ahead_seconds, self._stands_at
        return other
