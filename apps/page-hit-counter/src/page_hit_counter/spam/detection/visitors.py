"""Visits as the spam filter reads them, and what it remembers of visitors.

Memory is bounded, because entries are forgotten a generation at a time.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from page_hit_counter.counting.tumbling_windows import CountedHit

Value = TypeVar("Value")
FIRST, SINGLE, SEVERAL = range(3)
KINDS = ("first visit", "this asset only", "several assets")
"""The kinds of visitors, by what they have visited so far."""


class JudgedVisit(CountedHit, Protocol):
    """A visit with its visitor, user agent and address."""

    @property
    def visitor(self) -> str:
        """The visitor; empty when the sender did not name one."""
        ...

    @property
    def agent(self) -> str: ...
    @property
    def source(self) -> str:
        """The IP address that it came from; empty when it is not known."""
        ...


class Generations(Generic[Value]):
    """A map that forgets its older half at once.

    The halves turn when the newer one is full or old enough. An entry therefore lives at least
    `seconds`, unless more than half of `entries_max` other entries arrive after it.
    """

    def __init__(self, entries_max: int, seconds: float) -> None:
        self._entries_max = max(1, entries_max // 2)
        self._seconds = seconds
        self._turned_at = 0.0
        self.newer: dict[int, Value] = {}
        self.older: dict[int, Value] = {}

    def turn_if_due(self, time: float) -> None:
        age = time - self._turned_at
        if age < self._seconds and len(self.newer) < self._entries_max:
            return
        self.older = self.newer if age < 2 * self._seconds else {}
        self.newer = {}
        self._turned_at = time

    def __len__(self) -> int:
        return len(self.newer) + len(self.older)


class Visitor:
    __slots__ = ("asset_id", "changes", "hits", "minute", "minute_hits")

    def __init__(self, asset_id: int) -> None:
        self.hits = 0
        self.changes = 0
        """How often a hit was on another asset than the hit before."""
        self.asset_id = asset_id
        self.minute = 0
        self.minute_hits = 0

    @property
    def kind(self) -> int:
        if self.changes:
            return SEVERAL
        return SINGLE if self.hits > 1 else FIRST
