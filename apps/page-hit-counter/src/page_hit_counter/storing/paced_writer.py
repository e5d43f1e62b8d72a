"""Writes the rows of closed windows without a burst, spread over the window that follows.

Lists do not wait for it: until its rows are stored, a window is read from the table of closed
windows. A row costs a write unit. The pace is just fast enough to finish in time, and never above
`write_units` in pagehits.toml. After an interruption a window is written again from its first row.
"""

from __future__ import annotations

import asyncio
import logging

from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.concurrency import pause
from page_hit_counter.storing.closed_windows import ClosedWindows, WindowKey
from page_hit_counter.storing.consumer_calls import Deliver
from page_hit_counter.storing.page_hits_table import put_compressed
from page_hit_counter.storing.window_consumer import OK, records_of
from page_hit_counter.storing.window_rows import WindowRow
from partita.client import Client
from partita.foundation.clock import Clock, system_clock

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
TICK_SECONDS = 0.5
"""How often records are delivered. Those that are due within one tick go in one call."""


class PacedWriter:
    def __init__(
        self,
        client: Client,
        settings: PageHitSettings,
        deliver: Deliver,
        clock: Clock = system_clock,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._deliver_some = deliver
        self._closed_windows = ClosedWindows(client, settings)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            waiting = await self._closed_windows.unstored()
            for key in waiting:
                if stop.is_set():
                    return
                await self._store(key, len(waiting), stop)
            if not waiting:
                await pause(POLL_SECONDS, stop)

    async def _store(self, key: WindowKey, windows: int, stop: asyncio.Event) -> None:
        window = await self._closed_windows.get(key)
        if window is None or window.is_stored or window.rows is None:
            return
        if self._settings.expiration_time(key.period, key.start) > self._clock():
            rows = window.rows.rows()
            if self._settings.compression:
                await put_compressed(self._client, self._settings, key, rows)
            else:
                await self._deliver(key, rows, self._pace(len(rows), windows), stop)
        if not stop.is_set():
            await self._closed_windows.mark_stored(key)

    def _pace(self, rows: int, windows: int) -> float:
        """Returns how many rows per second are written: enough for all waiting windows to be stored
        within the shortest period."""
        seconds = self._settings.periods[0].seconds * self._settings.spread
        return min(self._settings.write_units, max(rows * windows / seconds, 1 / TICK_SECONDS))

    async def _deliver(
        self, key: WindowKey, rows: list[WindowRow], pace: float, stop: asyncio.Event
    ) -> None:
        """Delivers rows, the most popular first. Records that failed are delivered again."""
        records = records_of(key, rows)
        allowed = 0.0
        while records and not stop.is_set():
            allowed += pace * TICK_SECONDS
            batch, records = records[: int(allowed)], records[int(allowed) :]
            allowed -= len(batch)
            if batch:
                answer = await self._deliver_some(batch)
                failed = {
                    result["recordId"] for result in answer["records"] if result["result"] != OK
                }
                records = [r for r in batch if r["recordId"] in failed] + records
            if records:
                await pause(TICK_SECONDS, stop)
