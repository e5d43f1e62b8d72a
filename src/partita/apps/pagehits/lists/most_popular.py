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
from heapq import nsmallest
from typing import Any, NamedTuple

from partita.apps.pagehits.counting.checkpoints import Progress, read_progress
from partita.apps.pagehits.settings import Period, Settings
from partita.apps.pagehits.storing.closed_windows import ClosedWindow, ClosedWindows, Key
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


EVERYTHING = Filter()
Asset = tuple[str, int]
"""A brand, and the number of an asset."""


class Lists:
    def __init__(self, client: Client, settings: Settings, clock: Clock = system_clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._closed_windows = ClosedWindows(client, settings)
        self._windows: OrderedDict[Key, asyncio.Task[Sequence[Row]]] = OrderedDict()
        self.progress = Progress()
        self.reads = 0
        """Windows that were read from the database."""

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
        self._begin_reading(keys)
        windows = await asyncio.gather(*map(self._read, keys))
        counted = [
            (key.brand, rows if chosen == EVERYTHING else list(filter(chosen.passes, rows)))
            for key, rows in zip(keys, windows, strict=True)
        ]
        totals = _totals(counted)
        order = nsmallest(RESULTS_MAX, totals, key=lambda asset: (-totals[asset], asset))
        best = _most_popular_rows(counted, set(order))
        return [_result(asset, totals[asset], best[asset]) for asset in order]

    def _begin_reading(self, keys: Sequence[Key]) -> None:
        """The windows of a brand and period that are not cached are read together."""
        missing: dict[tuple[str, Period], list[Key]] = {}
        for key in keys:
            if key not in self._windows:
                missing.setdefault((key.brand, key.period), []).append(key)
        for (brand, period), group in missing.items():
            self.reads += len(group)
            starts = [key.start for key in group]
            reading = asyncio.create_task(
                self._closed_windows.between(brand, period, min(starts), max(starts))
            )
            for key in group:
                self._keep(key, asyncio.create_task(self._read_window(key, reading)))

    async def _read(self, key: Key) -> Sequence[Row]:
        """From the cache; concurrent readers of a window share one read."""
        task = self._windows.get(key)
        if task is None:
            # Forgotten already, because a list has more windows than are cached.
            self._begin_reading([key])
            task = self._windows[key]
        else:
            self._windows.move_to_end(key)
        try:
            return await asyncio.shield(task)
        except ClientError:
            if self._windows.get(key) is task:
                del self._windows[key]
            raise

    def _keep(self, key: Key, task: asyncio.Task[Sequence[Row]]) -> None:
        self._windows[key] = task
        if len(self._windows) > self._settings.cached_windows_max:
            self._windows.popitem(last=False)

    async def _read_window(
        self, key: Key, reading: asyncio.Task[dict[Key, ClosedWindow]]
    ) -> Sequence[Row]:
        closed = (await asyncio.shield(reading)).get(key)
        if closed is not None and closed.rows is not None:
            return closed.rows
        return await query_rows(self._client, self._settings, key)


def _totals(counted: Sequence[tuple[str, Sequence[Row]]]) -> dict[Asset, int]:
    """Hits of each asset. A list of a day has tens of thousands of rows: this is its cost."""
    by_brand: dict[str, dict[int, int]] = {}
    for brand, rows in counted:
        totals = by_brand.setdefault(brand, {})
        get = totals.get
        for row in rows:
            asset_id = row.asset_id
            totals[asset_id] = get(asset_id, 0) + row.hits
    return {
        (brand, asset_id): hits
        for brand, totals in by_brand.items()
        for asset_id, hits in totals.items()
    }


def _most_popular_rows(
    counted: Sequence[tuple[str, Sequence[Row]]], assets: set[Asset]
) -> dict[Asset, Row]:
    """Of each of these assets, the first of the rows with the most hits."""
    wanted: dict[str, set[int]] = {}
    for brand, asset_id in assets:
        wanted.setdefault(brand, set()).add(asset_id)
    best: dict[Asset, Row] = {}
    for brand, rows in counted:
        numbers = wanted.get(brand, ())
        for row in rows:
            if row.asset_id in numbers:
                asset = (brand, row.asset_id)
                known = best.get(asset)
                if known is None or known.hits < row.hits:
                    best[asset] = row
    return best


def _result(asset: Asset, hits: int, row: Row) -> dict[str, Any]:
    brand, asset_id = asset
    return {
        "assetId": asset_id,
        "brand": brand,
        "hits": hits,
        "sectionId": row.section_id,
        "resourceType": row.resource_type,
        "paidType": row.paid_type,
    }
