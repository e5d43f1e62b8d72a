"""The throughput of an on-demand table: its initial throughput, or twice its previous peak.

A peak becomes a previous peak when the half hour in which it was reached is over (guide,
"On-demand capacity mode"). Tables do not scale down.
"""

from __future__ import annotations

WINDOW_SECONDS = 30 * 60


class PreviousPeak:
    """The highest consumption in a second, of past half hours and of the current one."""

    __slots__ = ("_peak", "_second", "_second_units", "_window_peak", "_window_start", "initial")

    def __init__(self, initial: float, now: float) -> None:
        self.initial = initial
        self._peak = 0.0
        self._window_start = now
        self._window_peak = 0.0
        self._second = int(now)
        self._second_units = 0.0

    def rate(self, now: float) -> float:
        """Returns the units that may be consumed in a second."""
        if now - self._window_start >= WINDOW_SECONDS:
            self._peak = max(self._peak, self._window_peak)
            self._window_start, self._window_peak = now, 0.0
        return max(self.initial, 2 * self._peak)

    def use(self, units: float, now: float) -> None:
        second = int(now)
        if second != self._second:
            self._second, self._second_units = second, 0.0
        self._second_units += units
        self._window_peak = max(self._window_peak, self._second_units)
