"""The manifest says which segments of counts are valid, and how far the stream was read for them.

It is one item, so counts and position change in one write. It also keeps what decides whether a
later record counts: closed windows, replays, and adjustments that were taken.
"""

from __future__ import annotations

import msgspec

from page_hit_counter.counting.tumbling_windows import TumblingWindow
from page_hit_counter.storing.late_adjustments import LateAdjustment

IDS = -1
"""The level of segments that hold ids of records instead of counts."""


class CountSegment(msgspec.Struct, array_like=True):
    number: int
    level: int
    start: int

    @property
    def window(self) -> TumblingWindow:
        return TumblingWindow(self.level, self.start)


class Replay(msgspec.Struct, array_like=True):
    """The progress of a replay of history."""

    number: int
    """The number of the last batch that was counted."""
    clock: float
    """The latest time of a visit that was counted."""
    began: float
    heard: float
    is_done: bool = False


class SegmentManifest(msgspec.Struct, rename="camel"):
    version: int = 0
    life: int = 0
    """How many times a counter has started."""
    next_segment: int = 1
    positions: dict[str, str] = {}
    """The sequence number of the last record that was counted, by shard."""
    read_shards: list[str] = []
    """The shards that are read to their end."""
    segments: list[CountSegment] = []
    replays: dict[str, Replay] = {}
    closed: set[TumblingWindow] = set()
    """Closed windows for which visits may still arrive."""
    closing: set[TumblingWindow] = set()
    """The closed windows whose rows are being handed over."""
    closed_until: float = 0.0
    """Windows whose end plus the lateness is before this time are closed, and lists show them."""
    edition: int = 0
    """A number that increases when a window changes after it could be read, so that caches are
    dropped."""
    late_adjustments: list[LateAdjustment] = msgspec.field(name="amendments", default_factory=list)
    """Adjustments that are still to be applied to closed windows."""
    adjustments: dict[str, int] = {}
    """The marks of adjustments that were taken, with their times of arrival."""
    late: int = 0
    """Visits that came too late for all windows."""
    counted: int = 0
    repeated: int = 0
    """Records that arrived twice."""
    malformed: int = 0
    brands: set[str] = set()
    """The brands of all windows that were handed over so far."""
