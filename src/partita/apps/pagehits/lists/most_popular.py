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
from heapq import nsmallest
from itertools import chain, compress
from typing import Any, NamedTuple

from partita.apps.pagehits.counting.checkpoints import Progress, read_progress
from partita.apps.pagehits.settings import Period, Settings
from partita.apps.pagehits.storing.closed_windows import ClosedWindows, Key
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
Place = tuple[Columns, int]
"""Where a row is."""


class Lists:
    def __init__(self, client: Client, settings: Settings, clock: Clock = system_clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._closed_windows = ClosedWindows(client, settings)
        self._windows: OrderedDict[Key, Columns] = OrderedDict()
        self._reading: dict[Key, asyncio.Task[dict[Key, Columns]]] = {}
        """Concurrent readers of a window share one read."""
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
            self._reading.clear()
        self.progress = progress

    def newest(self, period: Period) -> int:
        """The start of the newest closed window."""
        ended = period.start(self.progress.closed_until - self._settings.lateness_seconds)
        return ended - period.seconds

    async def most_popular(self, keys: Sequence[Key], chosen: Filter) -> list[dict[str, Any]]:
        """Assets in order of hits, each with the attributes of its most popular row."""
        windows = await self._read(keys)
        counted = [
            (key.brand, windows[key] if chosen == EVERYTHING else _chosen(windows[key], chosen))
            for key in keys
        ]
        return [_result(*one) for one in ranked(counted)]

    async def _read(self, keys: Sequence[Key]) -> dict[Key, Columns]:
        """From the cache; what is not there of a brand and period is read together."""
        found: dict[Key, Columns] = {}
        missing: dict[tuple[str, Period], list[Key]] = {}
        under_way = set()
        for key in keys:
            if key in self._windows:
                self._windows.move_to_end(key)
                found[key] = self._windows[key]
            elif key in self._reading:
                under_way.add(self._reading[key])
            else:
                missing.setdefault((key.brand, key.period), []).append(key)
        for group in missing.values():
            self.reads += len(group)
            task = asyncio.create_task(self._read_together(group))
            self._reading |= dict.fromkeys(group, task)
            under_way.add(task)
        for task in under_way:
            found |= await asyncio.shield(task)
        return found

    async def _read_together(self, keys: list[Key]) -> dict[Key, Columns]:
        """Windows of one brand and period."""
        brand, period, _ = keys[0]
        starts = [key.start for key in keys]
        task = asyncio.current_task()
        found: dict[Key, Columns] = {}
        try:
            closed = await self._closed_windows.between(brand, period, min(starts), max(starts))
            found = {key: one.rows for key, one in closed.items() if one.rows is not None}
            changed = [key for key in keys if key not in found]
            queries = [query_rows(self._client, self._settings, key) for key in changed]
            found |= zip(changed, await asyncio.gather(*queries), strict=True)
            return found
        finally:
            for key in keys:
                # Unless there is another edition meanwhile.
                if self._reading.get(key) is task:
                    del self._reading[key]
                    if key in found:
                        self._keep(key, found[key])

    def _keep(self, key: Key, rows: Columns) -> None:
        self._windows[key] = rows
        if len(self._windows) > self._settings.cached_windows_max:
            self._windows.popitem(last=False)


def ranked(counted: Counted) -> list[tuple[Asset, int, Row]]:
    """The most popular assets with their hits and their most popular rows."""
    totals = _totals(counted)
    order = nsmallest(RESULTS_MAX, [(-hits, asset) for asset, hits in totals.items()])
    best = _most_popular_rows(counted, {asset for _, asset in order})
    return [(asset, -hits, best[asset]) for hits, asset in order]


def _chosen(rows: Columns, chosen: Filter) -> Columns:
    """The rows that pass."""
    kinds = map(rows.kind, range(len(rows.kinds)))
    passing = {place for place, kind in enumerate(kinds) if chosen.passes(*kind)}
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
    of the list has already, only assets that can still reach the last one are looked for in the
    rest."""
    by_brand: dict[str, dict[int, int]] = {brand: {} for brand, _ in counted}
    for brand, rows in counted:
        _add(by_brand[brand], rows.assets[:FIRST_ROWS], rows.hits[:FIRST_ROWS])
    longer = [rows for _, rows in counted if len(rows) > FIRST_ROWS]
    unseen = sum(rows.hits[FIRST_ROWS] * rows.rows_per_asset for rows in longer)
    found = sorted(chain.from_iterable(map(dict.values, by_brand.values())), reverse=True)
    last = found[RESULTS_MAX - 1] if len(found) >= RESULTS_MAX else 0
    is_decided = unseen < last
    if is_decided:
        by_brand = {
            brand: {asset: hits for asset, hits in totals.items() if hits + unseen >= last}
            for brand, totals in by_brand.items()
        }
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
    return {
        (brand, asset_id): rows.row(place)
        for brand in {brand for brand, _ in assets}
        for asset_id, (rows, place) in _best_places(
            [rows for of, rows in counted if of == brand],
            {asset_id for of, asset_id in assets if of == brand},
        ).items()
    }


def _best_places(windows: list[Columns], assets: set[int]) -> dict[int, Place]:
    """In windows of one brand."""
    best: dict[int, int] = {}
    places: dict[int, Place] = {}
    _look_for(assets, windows, FIRST_ROWS, best, places)
    below = max((rows.hits[FIRST_ROWS] for rows in windows if len(rows) > FIRST_ROWS), default=0)
    doubtful = {asset for asset in assets if best.get(asset, 0) <= below}
    if doubtful:
        for asset in doubtful:
            best.pop(asset, None)
        _look_for(doubtful, windows, None, best, places)
    return places


def _look_for(
    assets: set[int],
    windows: list[Columns],
    rows_max: int | None,
    best: dict[int, int],
    places: dict[int, Place],
) -> None:
    known = best.get
    for rows in windows:
        hits_of, assets_of = rows.hits, rows.assets
        marks = map(assets.__contains__, assets_of[:rows_max])
        for place in compress(range(len(rows)), marks):
            asset, hits = assets_of[place], hits_of[place]
            if hits > known(asset, 0):
                best[asset], places[asset] = hits, (rows, place)


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
