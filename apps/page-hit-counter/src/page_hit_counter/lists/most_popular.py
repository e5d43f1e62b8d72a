"""Most-popular lists: sums over closed windows, cached in memory.

Closed windows hardly ever change, so their sum is read once and cached; the least recently used sum
is forgotten first. When a window does change (by a release from the quarantine, or by imported
history), the *edition* changes too, and everything is read again. Lists show only closed windows,
all up to the same time, so two lists of the same minute agree.
"""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from heapq import nsmallest
from itertools import compress
from operator import itemgetter
from typing import Any, NamedTuple

from page_hit_counter.counting.counter_checkpoints import CountingProgress, read_progress
from page_hit_counter.pagehits_settings import PageHitSettings, Period
from page_hit_counter.service.concurrency import pause
from page_hit_counter.storing.closed_windows import WindowKey
from page_hit_counter.storing.list_sums import ListSums
from page_hit_counter.storing.window_rows import RowColumns, WindowRow
from partita.client import Client, ClientError
from partita.foundation.clock import Clock, system_clock

logger = logging.getLogger(__name__)

RESULTS_MAX = 100
POLL_SECONDS = 0.5
STORED_WITHIN_SECONDS = 60.0


class ListFilter(NamedTuple):
    """Says which rows count. An empty set does not restrict them."""

    resource_types: frozenset[str] = frozenset()
    sections: frozenset[int] = frozenset()
    paid_types: frozenset[str] = frozenset()

    def passes(self, section_id: int, paid_type: str, resource_type: str) -> bool:
        return (
            (not self.sections or section_id in self.sections)
            and (not self.resource_types or resource_type in self.resource_types)
            and (not self.paid_types or paid_type in self.paid_types)
        )


EVERYTHING = ListFilter()
Asset = tuple[str, int]
"""A brand and the id of an asset."""


class MostPopularLists:
    def __init__(
        self, client: Client, settings: PageHitSettings, clock: Clock = system_clock
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._list_sums = ListSums(client, settings)
        self._sums: OrderedDict[WindowKey, RowColumns] = OrderedDict()
        """The rows of each list, by the list's newest window."""
        self._reading: dict[WindowKey, asyncio.Task[RowColumns]] = {}
        """Running reads, which concurrent readers of the same list share."""
        self.progress = CountingProgress()
        self.reads = 0
        """How many lists were read from the database."""

    async def run(self, stop: asyncio.Event) -> None:
        """Follows the progress of the counter."""
        while not stop.is_set():
            with suppress(ClientError):
                await self.refresh()
            await pause(POLL_SECONDS, stop)

    async def refresh(self) -> None:
        progress = await read_progress(self._client, self._settings.state_table)
        if progress is None:
            # Another counter, such as Flink, reports no progress: it stores a window some time
            # after its end.
            progress = CountingProgress(self._clock() - STORED_WITHIN_SECONDS)
        if progress.edition != self.progress.edition:
            self._sums.clear()
            self._reading.clear()
        self.progress = progress

    def newest(self, period: Period) -> int:
        """Returns the start of the newest closed window."""
        ended = period.start(self.progress.closed_until - self._settings.lateness_seconds)
        return ended - period.seconds

    async def most_popular(
        self, brands: Sequence[str], period: Period, newest: int, chosen: ListFilter
    ) -> list[dict[str, Any]]:
        """Returns assets in order of hits, each with the attributes of its most popular row."""
        keys = [WindowKey(brand, period, newest) for brand in brands]
        sums = await asyncio.gather(*map(self._sum, keys))
        if chosen != EVERYTHING:
            sums = [_chosen(rows, chosen) for rows in sums]
        return [_result(*entry) for entry in ranked(zip(brands, sums, strict=True))]

    async def _sum(self, newest: WindowKey) -> RowColumns:
        """Returns the rows of a list, from the cache or from the database."""
        if newest in self._sums:
            self._sums.move_to_end(newest)
            return self._sums[newest]
        task = self._reading.get(newest)
        if task is None:
            self.reads += 1
            task = self._reading[newest] = asyncio.create_task(self._read(newest))
        # Shielded, because readers share the task: one that is cancelled must not cancel it.
        return await asyncio.shield(task)

    async def _read(self, newest: WindowKey) -> RowColumns:
        task = asyncio.current_task()
        try:
            rows = await self._list_sums.read(newest)
            # `refresh` clears `_reading` when the edition changes: then the rows are outdated.
            if self._reading.get(newest) is task:
                self._keep(newest, rows)
            return rows
        finally:
            if self._reading.get(newest) is task:
                del self._reading[newest]

    def _keep(self, newest: WindowKey, rows: RowColumns) -> None:
        self._sums[newest] = rows
        while sum(key.period.count for key in self._sums) > self._settings.cached_windows_max:
            self._sums.popitem(last=False)


def ranked(sums: Iterable[tuple[str, RowColumns]]) -> list[tuple[Asset, int, WindowRow]]:
    """Returns the most popular assets with their hits and their most popular rows."""
    candidates = [
        (-hits, (brand, rows.assets[place]), rows, place)
        for brand, rows in sums
        for place, hits in _candidates(rows).items()
    ]
    first = nsmallest(RESULTS_MAX, candidates, key=itemgetter(0, 1))
    return [(asset, -hits, rows.row(place)) for hits, asset, rows, place in first]


def _candidates(rows: RowColumns) -> dict[int, int]:
    """Returns the hits of each asset that may be in the list, by the place of its first row.

    A list of a day has thousands of rows and needs few of them. Rows are in order of hits, so an
    asset has at most the hits of its first row times `rows_per_asset`. Once that product is lower
    than the hits in the first row of the hundredth asset, no further asset can be in the list."""
    places: dict[int, int] = {}
    least = 0
    for place, (asset_id, hits) in enumerate(zip(rows.assets, rows.hits, strict=True)):
        if hits * rows.rows_per_asset < least:
            break
        if places.setdefault(asset_id, place) == place and len(places) == RESULTS_MAX:
            least = hits
    if rows.rows_per_asset <= 1:
        return {place: rows.hits[place] for place in places.values()}
    totals = dict.fromkeys(places, 0)
    marks = list(map(places.__contains__, rows.assets))
    chosen = zip(compress(rows.assets, marks), compress(rows.hits, marks), strict=True)
    for asset_id, hits in chosen:
        totals[asset_id] += hits
    return {place: totals[asset_id] for asset_id, place in places.items()}


def _chosen(rows: RowColumns, chosen: ListFilter) -> RowColumns:
    """Returns the rows that pass the filter."""
    kinds = map(rows.kind, range(len(rows.kinds)))
    passing = {place for place, kind in enumerate(kinds) if chosen.passes(*kind)}
    marks = [facet in passing for facet in rows.facets]
    assets, hits, facets = (
        array(column.typecode, compress(column, marks))
        for column in (rows.assets, rows.hits, rows.facets)
    )
    return RowColumns(assets, hits, facets, rows.kinds, rows.rows_per_asset)


def _result(asset: Asset, hits: int, row: WindowRow) -> dict[str, Any]:
    brand, asset_id = asset
    return {
        "assetId": asset_id,
        "brand": brand,
        "hits": hits,
        "sectionId": row.section_id,
        "resourceType": row.resource_type,
        "paidType": row.paid_type,
    }
