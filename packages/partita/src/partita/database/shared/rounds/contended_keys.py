"""Contended keys: those on which writes of several servers have conflicted lately.

A write to a contended key locks its row first and waits for its turn; otherwise the servers would
keep deciding the same writes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

from partita.foundation.clock import Stopwatch, system_stopwatch

CONTENDED_SECONDS: Final = 5.0
CONTENDED_KEYS_MAX: Final = 10_000


class ContendedKeys:
    def __init__(self, stopwatch: Stopwatch = system_stopwatch) -> None:
        self._stopwatch = stopwatch
        self._calm_at: dict[bytes, float] = {}

    def add(self, keys: Iterable[bytes]) -> None:
        now = self._stopwatch()
        if len(self._calm_at) > CONTENDED_KEYS_MAX:
            self._calm_at = {key: at for key, at in self._calm_at.items() if at > now}
        for key in keys:
            self._calm_at[key] = now + CONTENDED_SECONDS

    def meets(self, keys: Set[bytes]) -> bool:
        """True if one of the keys is contended."""
        calm_at = self._calm_at
        if not calm_at or calm_at.keys().isdisjoint(keys):
            return False
        now = self._stopwatch()
        return any(calm_at.get(key, now) > now for key in keys)
