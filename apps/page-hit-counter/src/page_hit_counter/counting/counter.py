"""The counter reads the stream, counts in windows, and hands over each window when it closes.

Every visit counts exactly once, because counts and the position in the stream are saved in one
write (`counter_checkpoints`). A counter that is killed continues as if it had never read what it
had not saved.

A window closes when all shards are read up to its end plus the lateness. The order makes a kill
harmless: the counter first saves that the window is closed, then hands over its rows, which may be
repeated, and then adds its counts to the next longer window.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter as Numbers
from collections.abc import Iterable, Iterator

from page_hit_counter.counting.count_segments import (
    decode_counts,
    decode_ids,
    encode_counts,
    encode_ids,
)
from page_hit_counter.counting.counter_checkpoints import CheckpointReplaced, CheckpointTable
from page_hit_counter.counting.segment_manifest import IDS, CountSegment
from page_hit_counter.counting.tally import VisitTally
from page_hit_counter.counting.tumbling_windows import UNKNOWN_BRAND, TumblingWindow
from page_hit_counter.counting.visit_stream import StreamReader
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.concurrency import pause
from page_hit_counter.storing import late_adjustments
from page_hit_counter.storing.closed_windows import WindowKey
from page_hit_counter.storing.late_adjustments import LateAdjustment
from page_hit_counter.storing.list_sums import Group, ListSums, is_summed
from page_hit_counter.storing.window_rows import ClosedRows, rows_by_brand
from partita.client import Client
from partita.foundation.clock import Clock, system_clock

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
CHECKPOINT_SECONDS = 2.0
"""How often a checkpoint is written. After a kill at most this much is counted again."""
UNSAVED_COUNTS_MAX = 50_000
HEARTBEAT_SECONDS = 5.0
"""How often the manifest is written when there is nothing to save."""
STANDBY_SECONDS = 15.0
SEGMENTS_PER_WINDOW_MAX = 3_000
"""Each checkpoint adds a segment to a long window when visits are late for the short ones. A day
would collect 43,200."""
LATE_ADJUSTMENTS_AT_A_TIME = 100
"""How many late adjustments are applied between two checkpoints, so that counting goes on."""


class VisitCounter:
    def __init__(
        self, client: Client, settings: PageHitSettings, clock: Clock = system_clock
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._checkpoints = CheckpointTable(client, settings.state_table)
        self._list_sums = ListSums(client, settings)

    async def run(self, stop: asyncio.Event) -> None:
        """Counts until asked to stop. While another counter is at work, stands by."""
        while not stop.is_set():
            try:
                await self._start()
                await self._count_until(stop)
            except CheckpointReplaced as replaced:
                logger.warning("%s", replaced)
                await self._stand_by(stop)

    async def _start(self) -> None:
        """Loads the last checkpoint, and completes what was interrupted after it."""
        manifest = await self._checkpoints.begin()
        self._manifest = manifest
        self._stream = StreamReader(
            self._client,
            self._settings.stream,
            manifest.positions,
            manifest.read_shards,
            self._clock,
        )
        self._tally = VisitTally(self._settings, manifest)
        self._windows = self._tally.windows
        self._saved_at = self._clock()
        self._is_changed = False
        for segment, data in await self._checkpoints.read_all(manifest.segments):
            if segment.level == IDS:
                self._tally.ids.update(dict.fromkeys(decode_ids(data), segment.start))
            else:
                self._windows.add_counts(segment.window, decode_counts(data, self._windows.facets))
        await self._checkpoints.delete_unnamed(manifest)
        await self._hand_over(manifest.closed_until)
        await self._apply_late_adjustments()

    async def _count_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            is_behind = await self._read()
            if self._is_checkpoint_due():
                await self._checkpoint()
            await self._close_windows()
            if not is_behind:
                await pause(POLL_SECONDS, stop)
        await self._checkpoint()

    async def _stand_by(self, stop: asyncio.Event) -> None:
        """Waits until the other counter has not written the manifest for a while."""
        last_version = -1
        while not stop.is_set():
            version = (await self._checkpoints.read_manifest()).version
            if version == last_version:
                return
            last_version = version
            await pause(STANDBY_SECONDS, stop)

    async def _read(self) -> bool:
        """Counts what has arrived. Returns whether there is more to read right now."""
        outcome = await self._stream.read(self._tally.take)
        self._is_changed |= outcome.has_moved
        return outcome.is_behind

    # Checkpoints

    def _is_checkpoint_due(self) -> bool:
        silent_seconds = self._clock() - self._saved_at
        if not self._is_changed and not self._manifest.late_adjustments:
            return silent_seconds >= HEARTBEAT_SECONDS
        return (
            silent_seconds >= CHECKPOINT_SECONDS
            or self._windows.unsaved_size() >= UNSAVED_COUNTS_MAX
        )

    async def _checkpoint(self) -> None:
        """Saves counts and positions in one write of the manifest."""
        tally = self._tally
        for window, counts in self._windows.unsaved.items():
            await self._write(
                window.level, window.start, encode_counts(counts, self._windows.facets)
            )
        if tally.unsaved_ids:
            await self._write(IDS, int(self._clock()), encode_ids(tally.unsaved_ids))
            tally.unsaved_ids = []
        self._windows.mark_saved()
        # Segments are deleted only after the manifest that does not name them is written: until
        # then a restart needs them.
        forgotten = tally.forget(self._clock()) | await self._merge_segments()
        await self._checkpoints.write_manifest(self._manifest)
        await self._checkpoints.delete(forgotten)
        await self._apply_late_adjustments()
        self._saved_at = self._clock()
        self._is_changed = False

    async def _merge_segments(self) -> set[int]:
        """Merges the segments of windows that have too many. Returns the numbers of the segments to
        delete."""
        merged: set[int] = set()
        numbers = Numbers(segment.window for segment in self._manifest.segments)
        for window, number in numbers.items():
            if window.level != IDS and number > SEGMENTS_PER_WINDOW_MAX:
                merged |= self._tally.drop_segments(window)
                counts = self._windows.saved[window]
                await self._write(*window, encode_counts(counts, self._windows.facets))
        return merged

    async def _write(self, level: int, start: int, pieces: Iterable[bytes]) -> None:
        manifest = self._manifest
        written = []
        for data in pieces:
            written.append((manifest.next_segment, data))
            manifest.segments.append(CountSegment(manifest.next_segment, level, start))
            manifest.next_segment += 1
        await self._checkpoints.write_all(written)

    # Closing

    async def _close_windows(self) -> None:
        watermark = self._stream.watermark
        closable = self._tally.closable(watermark)
        if not closable and not self._is_boundary_passed(watermark):
            return
        # Saved as closing before the rows are handed over: after a kill `_start` hands them over
        # again.
        self._manifest.closing = closable
        self._manifest.closed |= closable
        await self._checkpoint()
        await self._hand_over(watermark)

    def _is_boundary_passed(self, watermark: float) -> bool:
        """True when a window has ended since the last one closed, even if it has no visits: lists
        include empty windows."""
        shortest, lateness = self._settings.periods[0], self._settings.lateness_seconds
        closed_until = self._manifest.closed_until
        return shortest.start(watermark - lateness) > shortest.start(closed_until - lateness)

    async def _hand_over(self, watermark: float) -> None:
        """Hands over the rows of closed windows, and adds their counts to longer windows. Shorter
        windows go first, because a longer one that closes at the same time contains them."""
        manifest, forgotten = self._manifest, set[int]()
        closing = manifest.closing
        closed: list[tuple[WindowKey, ClosedRows]] = []
        for window in sorted(closing):
            closed += self._closed(window)
            counts = self._windows.saved.get(window, {})
            longer = self._windows.close(window, manifest.closed - closing)
            if longer is not None and longer not in closing:
                await self._write(*longer, encode_counts(counts, self._windows.facets))
            forgotten |= self._tally.drop_segments(window)
        # The rows are put before the manifest says so. After a kill in between they are put again,
        # which changes nothing.
        await self._list_sums.put_all(closed, self._clock())
        longest = len(self._settings.periods) - 1
        if any(window.level == longest for window in closing):
            self._windows.forget_facets()
        manifest.brands |= {key.brand for key, _ in closed} - {UNKNOWN_BRAND}
        manifest.closing = set()
        manifest.closed_until = max(manifest.closed_until, watermark)
        await self._checkpoints.write_manifest(manifest)
        await self._checkpoints.delete(forgotten)

    def _closed(self, window: TumblingWindow) -> Iterator[tuple[WindowKey, ClosedRows]]:
        """Yields what a window held for each brand, unless no list can show it any more."""
        settings, windows = self._settings, self._windows
        period = settings.periods[window.level]
        if settings.expiration_time(period, window.start) <= self._clock():
            return
        if windows.end(window) + settings.lateness_seconds <= self._manifest.closed_until:
            self._manifest.edition += 1
        by_brand = rows_by_brand(
            windows, windows.saved.get(window, {}), settings.kept_assets, settings.kept_rows_max
        )
        for brand, closed in by_brand.items():
            yield WindowKey(brand, period, window.start), closed

    async def _apply_late_adjustments(self) -> None:
        """Applies some of the waiting adjustments. Those that cannot be applied yet wait on."""
        manifest = self._manifest
        batch = manifest.late_adjustments[:LATE_ADJUSTMENTS_AT_A_TIME]
        if batch:
            left = await late_adjustments.apply_all(self._client, self._settings, batch)
            manifest.late_adjustments = manifest.late_adjustments[len(batch) :] + left
            if len(left) < len(batch):
                await self._renew_sums(batch)
                manifest.edition += 1
                self._is_changed = True

    async def _renew_sums(self, adjustments: list[LateAdjustment]) -> None:
        newest: dict[Group, int] = {}
        for adjustment in adjustments:
            period = self._settings.periods[adjustment.window.level]
            if is_summed(period):
                newest[adjustment.facet.brand, period] = adjustment.window.start
        await self._list_sums.renew(newest)
