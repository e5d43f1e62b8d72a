"""Hot keys: those at which servers have overtaken each other of late.

Who writes to one locks its row first, and waits for its turn: deciding again and again would help
nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

from partita.foundation.clock import Stopwatch, system_stopwatch

HOT_SECONDS: Final = 5.0
HOT_KEYS_MAX: Final = 10_000


class ContendedKeys:
    def __init__(self, stopwatch: Stopwatch = system_stopwatch) -> None:
        self._stopwatch = stopwatch
        self._cold_at: dict[bytes, float] = {}

    def add(self, keys: Iterable[bytes]) -> None:
        now = self._stopwatch()
        if len(self._cold_at) > HOT_KEYS_MAX:
            self._cold_at = {key: at for key, at in self._cold_at.items() if at > now}
        for key in keys:
            self._cold_at[key] = now + HOT_SECONDS

    def meets(self, keys: Set[bytes]) -> bool:
        """Whether one of some keys is hot."""
        cold_at = self._cold_at
        if not cold_at or cold_at.keys().isdisjoint(keys):
            return False
        now = self._stopwatch()
        return any(cold_at.get(key, now) > now for key in keys)
