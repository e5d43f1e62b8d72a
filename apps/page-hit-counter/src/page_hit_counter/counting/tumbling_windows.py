"""Counts visits in tumbling windows, in memory.

A visit is counted once, in the shortest window that is still open for it. When that window closes,
its counts are added to the window of the next longer period that contains it, and so on. An hour is
therefore the sum of its twelve windows of five minutes, plus the visits that came too late for
them, and counting a visit costs the same however many periods there are.

Hits of an asset are counted by *facet*: brand, section, paid type and resource type. Each facet has
a number, and the key of a count is asset and facet in one integer. That keeps a million assets in a
few hundred megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple, Protocol

from page_hit_counter.pagehits_settings import Period

FACET_BITS = 20
FACETS_MAX = 1 << FACET_BITS
FACET_MASK = FACETS_MAX - 1


class Facet(NamedTuple):
    brand: str
    section_id: int
    paid_type: str
    resource_type: str


REASON = "!"
"""The resource type of facets that count visits which are in no list. Their paid type is the
reason, such as "no resource type"."""
NO_RESOURCE_TYPE = "no resource type"
TOO_MANY_FACETS = "too many facets"
UNKNOWN_BRAND = "?"


class TumblingWindow(NamedTuple):
    level: int
    """The index of its period in the settings; the shortest period is 0."""
    start: int


Counts = dict[int, int]
"""Hits, by asset and facet in one integer."""
Rows = dict[tuple[int, Facet], int]
"""Hits, by asset and facet."""


class CountedHit(Protocol):
    """The attributes of a visit that the counter needs."""

    @property
    def asset_id(self) -> int: ...
    @property
    def section_id(self) -> int: ...
    @property
    def paid_type(self) -> str: ...
    @property
    def time(self) -> float:
        """Seconds since the epoch."""
        ...

    @property
    def brand(self) -> str: ...
    @property
    def resource_type(self) -> str | None: ...


class Facets:
    """Numbers the facets. The count is bounded, because a counter runs for a long time and clients
    can make facets up."""

    def __init__(self) -> None:
        self._numbers: dict[Facet | tuple[str, int, str, str], int] = {}
        self._facets: list[Facet] = []
        self._last = self.number(*reason_facet(UNKNOWN_BRAND, TOO_MANY_FACETS))

    def __len__(self) -> int:
        return len(self._facets)

    def number(self, brand: str, section_id: int, paid_type: str, resource_type: str) -> int:
        old_number = self._numbers.get((brand, section_id, paid_type, resource_type))
        if old_number is not None:
            return old_number
        if len(self._facets) >= FACETS_MAX - 1:
            # A new brand has no facet TOO_MANY_FACETS of its own; it shares the last one.
            return self._numbers.get(reason_facet(brand, TOO_MANY_FACETS), self._last)
        facet = Facet(brand, section_id, paid_type, resource_type)
        self._facets.append(facet)
        number = self._numbers[facet] = len(self._facets) - 1
        if resource_type != REASON:
            self.number(*reason_facet(brand, TOO_MANY_FACETS))
        return number

    def __getitem__(self, number: int) -> Facet:
        return self._facets[number]

    def spell_out(self, key: int) -> tuple[int, Facet]:
        return key >> FACET_BITS, self._facets[key & FACET_MASK]


def reason_facet(brand: str, reason: str) -> Facet:
    return Facet(brand, 0, reason, REASON)


class TumblingWindows:
    """The open windows and their counts. `unsaved` has what was counted since the last
    checkpoint."""

    def __init__(self, periods: Sequence[Period]) -> None:
        self.periods = periods
        self.facets = Facets()
        self.saved: dict[TumblingWindow, Counts] = {}
        self.unsaved: dict[TumblingWindow, Counts] = {}

    def count(self, hits: Iterable[CountedHit], is_open: Callable[[TumblingWindow], bool]) -> int:
        """Counts visits. Returns how many came too late even for the longest window."""
        base = self.periods[0].seconds
        number = self.facets.number
        start, ends = 0, 0
        counts: Counts | None = None
        late = 0
        for hit in hits:
            time = hit.time
            if not start <= time < ends:
                start = int(time // base) * base
                ends = start + base
                counts = self._counts_for(start, is_open)
            if counts is None:
                late += 1
                continue
            if hit.resource_type:
                facet = number(hit.brand, hit.section_id, hit.paid_type, hit.resource_type)
                key = hit.asset_id << FACET_BITS | facet
            else:
                key = number(*reason_facet(hit.brand or UNKNOWN_BRAND, NO_RESOURCE_TYPE))
            counts[key] = counts.get(key, 0) + 1
        return late

    def add(self, window: TumblingWindow, asset_id: int, facet: Facet, hits: int) -> None:
        """Adds hits to a count; negative hits lower it."""
        counts = self._unsaved_counts(window)
        key = asset_id << FACET_BITS | self.facets.number(*facet)
        counts[key] = counts.get(key, 0) + hits

    def windows_of(self, time: float) -> list[TumblingWindow]:
        """Returns the windows that contain a time, shortest first."""
        return [
            TumblingWindow(level, period.start(time)) for level, period in enumerate(self.periods)
        ]

    def longer(self, window: TumblingWindow, level: int) -> TumblingWindow:
        """Returns the window of another period that contains the start of this window."""
        return TumblingWindow(level, self.periods[level].start(window.start))

    def end(self, window: TumblingWindow) -> int:
        return window.start + self.periods[window.level].seconds

    def open_windows(self) -> set[TumblingWindow]:
        return self.saved.keys() | self.unsaved.keys()

    def unsaved_size(self) -> int:
        return sum(map(len, self.unsaved.values()))

    def mark_saved(self) -> None:
        for window, counts in self.unsaved.items():
            self.add_counts(window, counts)
        self.unsaved = {}

    def add_counts(self, window: TumblingWindow, counts: Counts) -> None:
        saved = self.saved.get(window)
        if saved is None:
            self.saved[window] = counts
            return
        for key, hits in counts.items():
            saved[key] = saved.get(key, 0) + hits

    def close(self, window: TumblingWindow, closed: Set[TumblingWindow]) -> TumblingWindow | None:
        """Drops a window, and adds its counts to the next longer window that is not closed. Returns
        that window, or None when all are closed."""
        counts = self.saved.pop(window, {})
        for longer in self.windows_of(window.start)[window.level + 1 :]:
            if longer not in closed:
                # Copied, because the dictionary may become the longer window's own counts.
                self.add_counts(longer, dict(counts))
                return longer
        return None

    def forget_facets(self) -> None:
        """Numbers the facets anew, without those that no window uses any more, so that facets which
        clients made up do not use up the numbers."""
        old, self.facets = self.facets, Facets()
        for windows in (self.saved, self.unsaved):
            for window, counts in windows.items():
                windows[window] = {
                    key >> FACET_BITS << FACET_BITS | self.facets.number(*old[key & FACET_MASK]): n
                    for key, n in counts.items()
                }

    def spell_out(self, counts: Counts) -> Rows:
        spell_out = self.facets.spell_out
        return {spell_out(key): hits for key, hits in counts.items()}

    def _counts_for(self, start: int, is_open: Callable[[TumblingWindow], bool]) -> Counts | None:
        """Returns the counts of the shortest window that is open for visits at a time, or None."""
        for window in self.windows_of(start):
            if is_open(window):
                return self._unsaved_counts(window)
        return None

    def _unsaved_counts(self, window: TumblingWindow) -> Counts:
        counts = self.unsaved.get(window)
        if counts is None:
            counts = self.unsaved[window] = {}
        return counts


def recount(
    hits: Iterable[CountedHit], periods: Sequence[Period]
) -> dict[tuple[str, int], dict[tuple[str, int, int, str, str], int]]:
    """Computes the counts of every window in the simplest way, to compare the counter with. The
    result is keyed by period and start, then by brand, asset, section, paid type and resource
    type."""
    windows: dict[tuple[str, int], dict[tuple[str, int, int, str, str], int]] = {}
    for hit in hits:
        if not hit.resource_type:
            continue
        row = (hit.brand, hit.asset_id, hit.section_id, hit.paid_type, hit.resource_type)
        for period in periods:
            counts = windows.setdefault((period.code, period.start(hit.time)), {})
            counts[row] = counts.get(row, 0) + 1
    return windows
