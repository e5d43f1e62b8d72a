"""Most-popular lists: sums over closed windows, which are cached in memory.

A closed window hardly ever changes, so it is read once and cached, the least recently used
forgotten first. When one does change (a release from the quarantine, imported history), so does the
*edition*, and everything is read again. Lists show closed windows only, all up to the same time, so
two lists of one minute agree.
"""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from heapq import nlargest, nsmallest
from itertools import chain, compress
from typing import Any, NamedTuple

from partita.apps.pagehits.counting.checkpoints import Progress, read_progress
from partita.apps.pagehits.settings import Period, Settings
from partita.apps.pagehits.storing.closed_windows import ClosedWindow, ClosedWindows, Key
from partita.apps.pagehits.storing.page_hits import query_rows
from partita.apps.pagehits.storing.rows import Columns, Row
from partita.client import Client, ClientError
from partita.clock import Clock, system_clock

logger = logging.getLogger(__name__)

RESULTS_MAX = 100
FIRST_ROWS = 2 * RESULTS_MAX
POLL_SECONDS = 0.5
STORED_WITHIN_SECONDS = 60.0


class Filter(NamedTuple):
    """Which rows count; an empty set is no restriction."""

    resource_types: frozenset[str] = frozenset()
    sections: frozenset[int] = frozenset()
    paid_types: frozenset[str] = frozenset()

    def passes(self, section_id: int, paid_type: str, resource_type: str) -> bool:
        return (
            (not self.sections or section_id in self.sections)
            and (not self.resource_types or resource_type in self.resource_types)
            and (not self.paid_types or paid_type in self.paid_types)
        )


EVERYTHING = Filter()
Asset = tuple[str, int]
"""A brand, and the number of an asset."""
Counted = Sequence[tuple[str, Columns]]
"""Windows with their brands; rows are in order of hits."""


class Best(NamedTuple):
    """Where the row of an asset with the most hits is."""

    hits: int
    rows: Columns
    place: int


class Lists:
    def __init__(self, client: Client, settings: Settings, clock: Clock = system_clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._closed_windows = ClosedWindows(client, settings)
        self._windows: OrderedDict[Key, asyncio.Task[Columns]] = OrderedDict()
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
            (key.brand, rows if chosen == EVERYTHING else _chosen(rows, chosen))
            for key, rows in zip(keys, windows, strict=True)
        ]
        return [_result(*one) for one in ranked(counted)]

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

    async def _read(self, key: Key) -> Columns:
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

    def _keep(self, key: Key, task: asyncio.Task[Columns]) -> None:
        self._windows[key] = task
        if len(self._windows) > self._settings.cached_windows_max:
            self._windows.popitem(last=False)

    async def _read_window(
        self, key: Key, reading: asyncio.Task[dict[Key, ClosedWindow]]
    ) -> Columns:
        closed = (await asyncio.shield(reading)).get(key)
        if closed is not None and closed.rows is not None:
            return closed.rows
        return await query_rows(self._client, self._settings, key)


def ranked(counted: Counted) -> list[tuple[Asset, int, Row]]:
    """The most popular assets with their hits and their most popular rows."""
    totals = _totals(counted)
    order = nsmallest(RESULTS_MAX, totals, key=lambda asset: (-totals[asset], asset))
    best = _most_popular_rows(counted, set(order))
    return [(asset, totals[asset], best[asset]) for asset in order]


def _chosen(rows: Columns, chosen: Filter) -> Columns:
    """The rows that pass."""
    passing = {place for place, kind in enumerate(rows.kinds) if chosen.passes(*kind)}
    marks = [facet in passing for facet in rows.facets]
    assets, hits, facets = (
        array(column.typecode, compress(column, marks))
        for column in (rows.assets, rows.hits, rows.facets)
    )
    return Columns(assets, hits, facets, rows.kinds, rows.rows_per_asset)


def _totals(counted: Counted) -> dict[Asset, int]:
    """Hits of each asset that may be among the most popular ones.

    A list of a day has tens of thousands of rows, and this is its cost. Rows are in order of hits,
    so the first of each window decide: an asset that is in none of these has in each window at most
    what the next row has, as many times as an asset has rows. If that is less than the last asset
    of the list has already, only the assets seen so far are looked for in the rest."""
    by_brand: dict[str, dict[int, int]] = {brand: {} for brand, _ in counted}
    for brand, rows in counted:
        _add(by_brand[brand], rows.assets[:FIRST_ROWS], rows.hits[:FIRST_ROWS])
    longer = [rows for _, rows in counted if len(rows) > FIRST_ROWS]
    unseen = sum(rows.hits[FIRST_ROWS] * rows.rows_per_asset for rows in longer)
    found = nlargest(RESULTS_MAX, chain.from_iterable(map(dict.values, by_brand.values())))
    is_decided = len(found) == RESULTS_MAX and unseen < found[-1]
    for brand, rows in counted:
        totals, assets, hits = by_brand[brand], rows.assets[FIRST_ROWS:], rows.hits[FIRST_ROWS:]
        if is_decided:
            marks = list(map(totals.__contains__, assets))
            _add(totals, compress(assets, marks), compress(hits, marks))
        else:
            _add(totals, assets, hits)
    return {
        (brand, asset_id): hits
        for brand, totals in by_brand.items()
        for asset_id, hits in totals.items()
    }


def _add(totals: dict[int, int], assets: Iterable[int], hits: Iterable[int]) -> None:
    get = totals.get
    for asset_id, count in zip(assets, hits, strict=True):
        totals[asset_id] = get(asset_id, 0) + count


def _most_popular_rows(counted: Counted, assets: set[Asset]) -> dict[Asset, Row]:
    """Of each of these assets, the first of the rows with the most hits. It is hardly ever further
    down in a window."""
    best: dict[Asset, Best] = {}
    _look_for(assets, counted, range(FIRST_ROWS), best)
    below = max((rows.hits[FIRST_ROWS] for _, rows in counted if len(rows) > FIRST_ROWS), default=0)
    doubtful = {asset for asset in assets if asset not in best or best[asset].hits <= below}
    if doubtful:
        for asset in doubtful:
            best.pop(asset, None)
        _look_for(doubtful, counted, None, best)
    return {asset: one.rows.row(one.place) for asset, one in best.items()}


def _look_for(
    assets: set[Asset], counted: Counted, places: range | None, best: dict[Asset, Best]
) -> None:
    wanted: dict[str, set[int]] = {}
    for brand, asset_id in assets:
        wanted.setdefault(brand, set()).add(asset_id)
    for brand, rows in counted:
        is_wanted = wanted.get(brand, set()).__contains__
        within = range(len(rows)) if places is None else places
        for place in compress(within, map(is_wanted, rows.assets)):
            asset, hits = (brand, rows.assets[place]), rows.hits[place]
            known = best.get(asset)
            if known is None or known.hits < hits:
                best[asset] = Best(hits, rows, place)


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
