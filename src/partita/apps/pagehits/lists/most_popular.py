"""Most-popular lists: sums over closed windows, which are cached in memory.

A closed window hardly ever changes, so it is read once and cached, the least recently used
forgotten first. When one does change (a release from the quarantine, imported history), so does the
*edition*, and everything is read again. Lists show closed windows only, all up to the same time, so
two lists of one minute agree.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from partita.apps.pagehits.counting.checkpoints import Progress, read_progress
from partita.apps.pagehits.settings import Period, Settings
from partita.apps.pagehits.storing.closed_windows import ClosedWindows, Key
from partita.apps.pagehits.storing.page_hits import query_rows
from partita.apps.pagehits.storing.rows import Row
from partita.client import Client, ClientError
from partita.clock import Clock, system_clock

logger = logging.getLogger(__name__)

RESULTS_MAX = 100
POLL_SECONDS = 0.5
STORED_WITHIN_SECONDS = 60.0


class Filter(NamedTuple):
    """Which rows count; an empty set is no restriction."""

    resource_types: frozenset[str] = frozenset()
    sections: frozenset[int] = frozenset()
    paid_types: frozenset[str] = frozenset()

    def passes(self, row: Row) -> bool:
        return (
            (not self.sections or row.section_id in self.sections)
            and (not self.resource_types or row.resource_type in self.resource_types)
            and (not self.paid_types or row.paid_type in self.paid_types)
        )


class Lists:
    def __init__(self, client: Client, settings: Settings, clock: Clock = system_clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._closed_windows = ClosedWindows(client, settings)
        self._windows: OrderedDict[Key, asyncio.Task[Sequence[Row]]] = OrderedDict()
        self.progress = Progress()

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the progress of the counter."""
        while not stop.is_set():
            with suppress(ClientError):
                await self.refresh()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), POLL_SECONDS)

    async def refresh(self) -> None:
        progress = await read_progress(self._client, self._settings.state_table)
        if progress is None:
            # Another counter, such as Flink, whose windows are stored some time after they end.
            progress = Progress(self._clock() - STORED_WITHIN_SECONDS)
        if progress.edition != self.progress.edition:
            self._windows.clear()
        self.progress = progress

    def newest(self, period: Period) -> int:
        """The start of the newest closed window."""
        ended = period.start(self.progress.closed_until - self._settings.lateness_seconds)
        return ended - period.seconds

    async def most_popular(self, keys: Sequence[Key], chosen: Filter) -> list[dict[str, Any]]:
        """Assets in order of hits, each with the attributes of its most popular row."""
        windows = await asyncio.gather(*map(self._read, keys))
        totals: dict[tuple[str, int], int] = {}
        best: dict[tuple[str, int], Row] = {}
        for key, rows in zip(keys, windows, strict=True):
            for row in rows:
                if chosen.passes(row):
                    asset = (key.brand, row.asset_id)
                    totals[asset] = totals.get(asset, 0) + row.hits
                    if asset not in best or best[asset].hits < row.hits:
                        best[asset] = row
        order = sorted(totals, key=lambda asset: (-totals[asset], asset))[:RESULTS_MAX]
        return [_result(asset, totals[asset], best[asset]) for asset in order]

    async def _read(self, key: Key) -> Sequence[Row]:
        """From the cache; concurrent readers of a window share one read."""
        task = self._windows.get(key)
        if task is None:
            task = self._windows[key] = asyncio.create_task(self._read_window(key))
            if len(self._windows) > self._settings.cached_windows_max:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(key)
        try:
            return await asyncio.shield(task)
        except ClientError:
            if self._windows.get(key) is task:
                del self._windows[key]
            raise

    async def _read_window(self, key: Key) -> Sequence[Row]:
        closed = await self._closed_windows.get(key)
        if closed is not None and closed.rows is not None:
            return closed.rows
        return await query_rows(self._client, self._settings, key)


def _result(asset: tuple[str, int], hits: int, row: Row) -> dict[str, Any]:
    brand, asset_id = asset
    return {
        "assetId": asset_id,
        "brand": brand,
        "hits": hits,
        "sectionId": row.section_id,
        "resourceType": row.resource_type,
        "paidType": row.paid_type,
    }
