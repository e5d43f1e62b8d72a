"""The counter: reads the stream, counts in windows, and hands over each window when it closes.

Exactly once: what was counted and how far the stream was read are kept in one write (`segments`),
so a counter that is killed goes on as if it had never read what it had not kept. A window closes
when all shards are read up to its end plus the lateness: that it is closed is kept first; then its
rows are handed over, which may be repeated; then its counts go to the next longer window.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter as Numbers
from collections.abc import Iterable, Iterator
from contextlib import suppress

from partita.apps.pagehits import shards
from partita.apps.pagehits.amendments import amend
from partita.apps.pagehits.closed_windows import ClosedWindows, Key
from partita.apps.pagehits.rows import Closed, rows_by_brand
from partita.apps.pagehits.segments import (
    IDS,
    Replaced,
    Segment,
    Segments,
    decode_counts,
    decode_ids,
    encode_counts,
    encode_ids,
)
from partita.apps.pagehits.settings import Settings
from partita.apps.pagehits.shards import Read, Shard
from partita.apps.pagehits.tally import Tally
from partita.apps.pagehits.together import together
from partita.apps.pagehits.windows import UNKNOWN_BRAND, Window
from partita.client import Client
from partita.clock import Clock, system_clock

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
KEEP_SECONDS = 2.0
"""How often counts are kept: at most as much is counted again after a kill."""
FRESH_COUNTS_MAX = 50_000
LIST_SHARDS_SECONDS = 10.0
SIGN_OF_LIFE_SECONDS = 5.0
"""How often the manifest is written when there is nothing to keep."""
STANDBY_SECONDS = 15.0
SEGMENTS_PER_WINDOW_MAX = 3_000
"""Visits that are late for the short windows make one with each keep: a day would make 43,200."""
AMENDMENTS_AT_A_TIME = 100
"""Between two keeps, so that counting goes on beside them."""


class Counter:
    def __init__(self, client: Client, settings: Settings, clock: Clock = system_clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._segments = Segments(client, settings.state_table)
        self._closed_windows = ClosedWindows(client, settings)

    async def run(self, stop: asyncio.Event) -> None:
        """Count until told to stop; when another counter is at work, stand by for it."""
        while not stop.is_set():
            try:
                await self._start()
                await self._count_until(stop)
            except Replaced as replaced:
                logger.warning("%s", replaced)
                await self._stand_by(stop)

    async def _start(self) -> None:
        """From what was kept."""
        manifest = await self._segments.begin()
        self._manifest = manifest
        self._tally = Tally(self._settings, manifest)
        self._windows = self._tally.windows
        self._shards: dict[str, Shard] = {}
        self._until: dict[str, float] = {}
        self._listed_at = 0.0
        self._kept_at = self._clock()
        self._is_changed = False
        for segment, data in await self._segments.read_all(manifest.segments):
            if segment.level == IDS:
                self._tally.ids.update(dict.fromkeys(decode_ids(data), segment.start))
            else:
                self._windows.add_counts(segment.window, decode_counts(data, self._windows.facets))
        await self._segments.delete_unnamed(manifest)
        await self._hand_over(manifest.closed_until)
        await self._amend()

    async def _count_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if not self._shards or self._clock() - self._listed_at > LIST_SHARDS_SECONDS:
                await self._list_shards()
            is_behind = await self._read_all()
            if self._is_keeping_due():
                await self._keep()
            await self._close_windows()
            if not is_behind:
                await _sleep(POLL_SECONDS, stop)
        await self._keep()

    async def _stand_by(self, stop: asyncio.Event) -> None:
        """Until the other counter has been silent for a while."""
        version = -1
        while not stop.is_set():
            found = (await self._segments.read_manifest()).version
            if found == version:
                return
            version = found
            await _sleep(STANDBY_SECONDS, stop)

    # Reading.

    async def _list_shards(self) -> None:
        manifest = self._manifest
        found = await shards.readable(
            self._client, self._settings.stream, manifest.positions, set(manifest.read_shards)
        )
        self._shards = {shard.name: self._shards.get(shard.name, shard) for shard in found}
        self._until = {name: self._until.get(name, 0.0) for name in self._shards}
        self._listed_at = self._clock()

    async def _read_all(self) -> bool:
        """One look at each shard; whether there is more to read right now."""
        names = list(self._shards)
        reads = await together((self._shards[name].read() for name in names), len(names) or 1)
        for name, read in zip(names, reads, strict=True):
            self._take(name, read)
        if any(read.is_over for read in reads):
            # Before anything closes: what follows a closed shard is not read yet.
            await self._list_shards()
        return any(read.is_behind or read.is_over for read in reads)

    def _take(self, name: str, read: Read) -> None:
        manifest, watermark = self._manifest, self._watermark()
        for record in read.records:
            self._tally.take(record, watermark)
        if read.records:
            manifest.positions[name] = read.records[-1].sequence_number
            self._is_changed = True
        self._until[name] = max(self._until[name], read.arrived_until)
        if read.is_over:
            manifest.read_shards.append(name)
            manifest.positions.pop(name, None)
            self._is_changed = True
            del self._shards[name]

    def _watermark(self) -> float:
        """All that arrived before this moment is read."""
        return min(self._until.values(), default=0.0)

    # Keeping.

    def _is_keeping_due(self) -> bool:
        silent_seconds = self._clock() - self._kept_at
        if not self._is_changed and not self._manifest.amendments:
            return silent_seconds >= SIGN_OF_LIFE_SECONDS
        return silent_seconds >= KEEP_SECONDS or self._windows.fresh_size() >= FRESH_COUNTS_MAX

    async def _keep(self) -> None:
        """Counts and positions, in one write of the manifest."""
        tally = self._tally
        for window, counts in self._windows.fresh.items():
            await self._write(
                window.level, window.start, encode_counts(counts, self._windows.facets)
            )
        if tally.fresh_ids:
            await self._write(IDS, int(self._clock()), encode_ids(tally.fresh_ids))
            tally.fresh_ids = []
        self._windows.keep_fresh()
        forgotten = tally.forget(self._clock()) | await self._merge_segments()
        await self._segments.write_manifest(self._manifest)
        await self._segments.delete(forgotten)
        await self._amend()
        self._kept_at = self._clock()
        self._is_changed = False

    async def _merge_segments(self) -> set[int]:
        """Of windows that have too many; returns the numbers of those to delete."""
        merged: set[int] = set()
        numbers = Numbers(segment.window for segment in self._manifest.segments)
        for window, number in numbers.items():
            if window.level != IDS and number > SEGMENTS_PER_WINDOW_MAX:
                merged |= self._tally.drop_segments(window)
                counts = self._windows.kept[window]
                await self._write(*window, encode_counts(counts, self._windows.facets))
        return merged

    async def _write(self, level: int, start: int, pieces: Iterable[bytes]) -> None:
        manifest = self._manifest
        written = []
        for data in pieces:
            written.append((manifest.next_segment, data))
            manifest.segments.append(Segment(manifest.next_segment, level, start))
            manifest.next_segment += 1
        await self._segments.write_all(written)

    # Closing.

    async def _close_windows(self) -> None:
        watermark = self._watermark()
        closable = self._tally.closable(watermark)
        if not closable and not self._is_boundary_passed(watermark):
            return
        self._manifest.closing = closable
        self._manifest.closed |= closable
        await self._keep()
        await self._hand_over(watermark)

    def _is_boundary_passed(self, watermark: float) -> bool:
        """A window without visits closes too, and is asked for."""
        shortest, lateness = self._settings.periods[0], self._settings.lateness_seconds
        closed_until = self._manifest.closed_until
        return shortest.start(watermark - lateness) > shortest.start(closed_until - lateness)

    async def _hand_over(self, watermark: float) -> None:
        """Shorter windows first: a longer one that closes at the same time contains them."""
        manifest, forgotten = self._manifest, set[int]()
        closing = manifest.closing
        closed: list[tuple[Key, Closed]] = []
        for window in sorted(closing):
            closed += self._closed(window)
            counts = self._windows.kept.get(window, {})
            longer = self._windows.close(window, manifest.closed - closing)
            if longer is not None and longer not in closing:
                await self._write(*longer, encode_counts(counts, self._windows.facets))
            forgotten |= self._tally.drop_segments(window)
        await self._closed_windows.put_all(closed, self._clock())
        longest = len(self._settings.periods) - 1
        if any(window.level == longest for window in closing):
            self._windows.forget_facets()
        manifest.brands |= {key.brand for key, _ in closed} - {UNKNOWN_BRAND}
        manifest.closing = set()
        manifest.closed_until = max(manifest.closed_until, watermark)
        await self._segments.write_manifest(manifest)
        await self._segments.delete(forgotten)

    def _closed(self, window: Window) -> Iterator[tuple[Key, Closed]]:
        """What a window held for each brand, unless nobody can ask for it any more."""
        settings, windows = self._settings, self._windows
        period = settings.periods[window.level]
        if settings.expiration_time(period, window.start) <= self._clock():
            return
        if windows.end(window) + settings.lateness_seconds <= self._manifest.closed_until:
            self._manifest.edition += 1
        found = rows_by_brand(
            windows, windows.kept.get(window, {}), settings.kept_assets, settings.kept_rows_max
        )
        for brand, closed in found.items():
            yield Key(brand, period, window.start), closed

    async def _amend(self) -> None:
        """Some of what is owed to closed windows; what cannot be done yet stays owed."""
        manifest = self._manifest
        some = manifest.amendments[:AMENDMENTS_AT_A_TIME]
        if some:
            left = await amend(self._client, self._settings, some)
            manifest.amendments = manifest.amendments[len(some) :] + left
            if len(left) < len(some):
                manifest.edition += 1
                self._is_changed = True


async def _sleep(seconds: float, stop: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
