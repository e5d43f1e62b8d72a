"""Applies the records of the stream to the counts: new, late, repeated, replayed and adjusting
records. Does no I/O.

Whether a visit is late depends only on its record: it counts in a window if the record arrived
before the window's end plus the lateness. A replay (history that is sent in order) has its own
clock, the latest time of its visits, and its lateness is measured by that clock.
"""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Callable
from itertools import takewhile

import msgspec

from page_hit_counter.counting.segment_manifest import IDS, CountSegment, Replay, SegmentManifest
from page_hit_counter.counting.tumbling_windows import Facet, TumblingWindow, TumblingWindows
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.processing.page_visits import CountedRecord, unpack
from page_hit_counter.spam.adjustments import Adjustment, is_adjustment
from page_hit_counter.storing.late_adjustments import LateAdjustment
from partita.client.consumer.kinesis_source import KinesisRecord

logger = logging.getLogger(__name__)

REMEMBERED_SECONDS = 900.0
"""How long a record that arrives again is recognised."""
REPLAY_IDLE_SECONDS = 600.0
"""How long windows wait for a replay that sends nothing."""
REPLAYS_REMEMBERED_SECONDS = 7 * 86_400.0
ADJUSTMENTS_REMEMBERED_MAX = 5_000
LATE_ADJUSTMENTS_BYTES_MAX = 150_000
"""How many of the 400 KB of the manifest's item late adjustments may take, compressed."""


class VisitTally:
    """The manifest, its open windows, and the ids of recent records."""

    def __init__(self, settings: PageHitSettings, manifest: SegmentManifest) -> None:
        self.manifest = manifest
        self.windows = TumblingWindows(settings.periods)
        self.ids: dict[str, float] = {}
        self.unsaved_ids: list[str] = []
        self._settings = settings
        self._lateness = settings.lateness_seconds

    def take(self, record: KinesisRecord, watermark: float) -> None:
        """Applies a record. Everything that arrived before the watermark has been applied."""
        try:
            if is_adjustment(record.data):
                self._adjust(Adjustment.decode(record.data), record.arrived_at, watermark)
                return
            packed = unpack(record.data)
        except msgspec.DecodeError as error:
            logger.warning("Record %s cannot be read: %s.", record.sequence_number, error)
            self.manifest.malformed += 1
            return
        if packed.replay:
            self._replay(packed, record.arrived_at)
        elif self._is_first(packed.id, record.arrived_at):
            self._count(packed, record.arrived_at - self._lateness)

    def _count(self, packed: CountedRecord, ended_by: float) -> None:
        """Counts visits. Windows that ended by `ended_by` are closed for them."""
        closed, end = self.manifest.closed, self.windows.end
        self.manifest.late += self.windows.count(
            packed.visits, lambda window: end(window) > ended_by and window not in closed
        )
        self.manifest.counted += len(packed.visits)

    def _replay(self, packed: CountedRecord, arrived: float) -> None:
        replays = self.manifest.replays
        replay = replays.get(packed.replay)
        if replay is None:
            replay = replays[packed.replay] = Replay(-1, 0.0, arrived, arrived)
        if packed.number <= replay.number:
            self.manifest.repeated += 1
            return
        self._count(packed, replay.clock - self._lateness)
        replay.number = packed.number
        replay.clock = max(replay.clock, *(visit.time for visit in packed.visits), 0.0)
        replay.heard = arrived
        replay.is_done = packed.is_last

    def _adjust(self, adjustment: Adjustment, arrived: float, watermark: float) -> None:
        """Adds the hits of an adjustment to the shortest open window. For windows that are closed
        already, they are kept as late adjustments of the stored rows."""
        manifest, mark = self.manifest, adjustment.mark
        if mark in manifest.adjustments:
            manifest.repeated += 1
            return
        manifest.adjustments[mark] = int(arrived)
        late: Counter[tuple[TumblingWindow, int, Facet]] = Counter()
        for row in adjustment.rows:
            facet = Facet(row.brand, row.section_id, row.paid_type, row.resource_type)
            for window in self.windows.windows_of(row.time):
                if self._is_open(window, watermark):
                    self.windows.add(window, row.asset_id, facet, row.hits)
                    break
                late[window, row.asset_id, facet] += row.hits
        if late:
            self._postpone(
                [
                    LateAdjustment(f"{mark}/{number}", *adjusted, hits)
                    for number, (adjusted, hits) in enumerate(late.items())
                ]
            )

    def _postpone(self, late: list[LateAdjustment]) -> None:
        """Keeps late adjustments in the manifest, and drops them when it has no room."""
        waiting = self.manifest.late_adjustments + late
        if len(zlib.compress(msgspec.json.encode(waiting))) <= LATE_ADJUSTMENTS_BYTES_MAX:
            self.manifest.late_adjustments = waiting
            return
        self.manifest.late += sum(abs(each.hits) for each in late)
        logger.warning(
            "%d counts of closed windows were not adjusted, because too many adjustments wait.",
            len(late),
        )

    def _is_open(self, window: TumblingWindow, watermark: float) -> bool:
        if window in self.manifest.closed:
            return False
        return (
            window in self.windows.open_windows()
            or self.windows.end(window) + self._lateness > watermark
        )

    def _is_first(self, record_id: str, arrived: float) -> bool:
        if record_id in self.ids:
            self.manifest.repeated += 1
            return False
        self.ids[record_id] = arrived
        self.unsaved_ids.append(record_id)
        return True

    # Closing

    def closable(self, watermark: float) -> set[TumblingWindow]:
        """Returns the windows to which nothing can be added any more.

        A window closes together with all shorter windows inside it. Windows that have ended, and
        that receive the counts of a closing window, close with it too."""
        windows, levels = self.windows, range(len(self.windows.periods))
        closable: set[TumblingWindow] = set()
        for level in levels:
            filled = {windows.longer(window, level) for window in closable}
            opened = {window for window in windows.open_windows() if window.level == level}
            for window in (opened | filled) - self.manifest.closed:
                if self._has_ended(window, watermark) and not self._is_held(window, watermark):
                    closable.add(window)
        for window in windows.open_windows() - closable:
            longer = [windows.longer(window, level) for level in levels[window.level :]]
            if not closable.isdisjoint(longer):
                closable.update(each for each in longer if self._has_ended(each, watermark))
        return closable - self.manifest.closed

    def _has_ended(self, window: TumblingWindow, watermark: float) -> bool:
        return self.windows.end(window) + self._lateness <= watermark

    def _is_held(self, window: TumblingWindow, watermark: float) -> bool:
        """True when a replay may still bring visits of a window that ended before it began."""
        end = self.windows.end(window)
        return any(
            end <= replay.began and replay.clock < end + self._lateness
            for replay in self.manifest.replays.values()
            if not replay.is_done and replay.heard > watermark - REPLAY_IDLE_SECONDS
        )

    # Forgetting

    def forget(self, now: float) -> set[int]:
        """Drops what no list shows any more and no sender will repeat. Returns the numbers of the
        segments to delete."""
        manifest, forgotten = self.manifest, now - REMEMBERED_SECONDS
        # The ids are in the order of their arrival.
        for record_id in list(takewhile(lambda each: self.ids[each] < forgotten, self.ids)):
            del self.ids[record_id]
        longest = self._settings.periods[-1].seconds + self._lateness
        manifest.adjustments = _later(manifest.adjustments, now - longest)
        while len(manifest.adjustments) > ADJUSTMENTS_REMEMBERED_MAX:
            del manifest.adjustments[next(iter(manifest.adjustments))]
        manifest.replays = {
            name: replay
            for name, replay in manifest.replays.items()
            if replay.heard > now - REPLAYS_REMEMBERED_SECONDS
        }
        periods = self._settings.periods
        manifest.closed = {
            window
            for window in manifest.closed
            if window in manifest.closing
            or self._settings.expiration_time(periods[window.level], window.start) > now
        }
        return self._drop_segments(
            lambda segment: segment.level == IDS and segment.start < forgotten
        )

    def drop_segments(self, window: TumblingWindow) -> set[int]:
        return self._drop_segments(lambda segment: segment.window == window)

    def _drop_segments(self, is_dropped: Callable[[CountSegment], bool]) -> set[int]:
        segments = self.manifest.segments
        dropped = {segment.number for segment in segments if is_dropped(segment)}
        self.manifest.segments = [s for s in segments if s.number not in dropped]
        return dropped


def _later(arrivals: dict[str, int], than: float) -> dict[str, int]:
    return {name: arrived for name, arrived in arrivals.items() if arrived > than}
