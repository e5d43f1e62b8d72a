"""Counting in tumbling windows, in memory.

A visit is counted once, in the shortest window that is still open for it. When that window closes,
its counts are added to the window of the next longer period that contains it, and so on. So an hour
is the sum of its twelve windows of five minutes plus what came too late for these, and counting a
visit costs the same however many periods there are.

Hits of an asset are counted by *facet*: brand, section, paid type and resource type. A facet has a
number, and the key of a count is asset and facet in one integer, which keeps a million assets in a
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
"""The resource type of facets for visits that were not counted; their paid type is the reason."""
NO_RESOURCE_TYPE = "no resource type"
TOO_MANY_FACETS = "too many facets"
UNKNOWN_BRAND = "?"


class TumblingWindow(NamedTuple):
    level: int
    """The index of its period in the settings, shortest first."""
    start: int


Counts = dict[int, int]
"""Hits by asset and facet."""
Rows = dict[tuple[int, Facet], int]
"""The same, with facets instead of their numbers."""


class CountedHit(Protocol):
    """What the counter needs of a visit."""

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
    """A number for each facet, up to a bound: a counter runs for a long time."""

    def __init__(self) -> None:
        self._numbers: dict[Facet | tuple[str, int, str, str], int] = {}
        self._facets: list[Facet] = []
        self._last = self.number(*reason_facet(UNKNOWN_BRAND, TOO_MANY_FACETS))

    def __len__(self) -> int:
        return len(self._facets)

    def number(self, brand: str, section_id: int, paid_type: str, resource_type: str) -> int:
        found = self._numbers.get((brand, section_id, paid_type, resource_type))
        if found is not None:
            return found
        if len(self._facets) >= FACETS_MAX - 1:
            # A brand that is seen for the first time has no such facet of its own.
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
    """The windows that are open. `unsaved` is what was counted since the last checkpoint."""

    def __init__(self, periods: Sequence[Period]) -> None:
        self.periods = periods
        self.facets = Facets()
        self.saved: dict[TumblingWindow, Counts] = {}
        self.unsaved: dict[TumblingWindow, Counts] = {}

    def count(self, hits: Iterable[CountedHit], is_open: Callable[[TumblingWindow], bool]) -> int:
        """Count visits; returns how many came too late for even the longest window."""
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
        """Add hits; negative ones are taken away."""
        counts = self._unsaved_counts(window)
        key = asset_id << FACET_BITS | self.facets.number(*facet)
        counts[key] = counts.get(key, 0) + hits

    def windows_of(self, time: float) -> list[TumblingWindow]:
        """Those that contain a time, shortest first."""
        return [
            TumblingWindow(level, period.start(time)) for level, period in enumerate(self.periods)
        ]

    def longer(self, window: TumblingWindow, level: int) -> TumblingWindow:
        """The window of another period that contains the start of this one."""
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
        """Drop a window. Its counts go to the next longer one that is not closed, if there is
        one."""
        counts = self.saved.pop(window, {})
        for longer in self.windows_of(window.start)[window.level + 1 :]:
            if longer not in closed:
                # A copy: the counts of one window must not change with those of another.
                self.add_counts(longer, dict(counts))
                return longer
        return None

    def forget_facets(self) -> None:
        """Forget those that no window uses any more, so that made-up ones do not use up the
        numbers."""
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
        """Those of the shortest window that is open for visits at a time."""
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
    """The counts of every window, computed the simplest way: by period and start, then by brand,
    asset, section, paid type and resource type."""
    windows: dict[tuple[str, int], dict[tuple[str, int, int, str, str], int]] = {}
    for hit in hits:
        if not hit.resource_type:
            continue
        row = (hit.brand, hit.asset_id, hit.section_id, hit.paid_type, hit.resource_type)
        for period in periods:
            counts = windows.setdefault((period.code, period.start(hit.time)), {})
            counts[row] = counts.get(row, 0) + 1
    return windows
