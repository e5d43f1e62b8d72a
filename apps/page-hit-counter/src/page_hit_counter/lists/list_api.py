"""The API of the lists: `GET /` returns the most popular assets of a brand and period."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import blake2b
from typing import NamedTuple

import orjson

from page_hit_counter.counting.counter_checkpoints import CountingProgress
from page_hit_counter.lists.list_queries import InvalidQuery, ListQuery, read_query
from page_hit_counter.lists.most_popular import MostPopularLists
from page_hit_counter.monitoring.service_figures import ServiceFigures
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.authorization import AccessControl
from page_hit_counter.storing.closed_windows import ClosedWindows
from partita.client import Client, ClientError
from partita.foundation.clock import Clock, system_clock
from partita.server.http.web.web_service import (
    WebRequest,
    WebResponse,
    WebService,
    json_response,
    problem,
)

CORS = {"access-control-allow-origin": "*"}
TRAFFIC_SECONDS = 86_400
CACHED_CHARACTERS_MAX = 2_000
"""Longer queries are not cached, so that clients cannot fill the memory with them."""


class Basis(NamedTuple):
    """The state that an answer depends on. While it is the same, so is the answer."""

    edition: int
    newest: tuple[int, ...]
    """The start of the newest window of each period."""


class CachedList(NamedTuple):
    basis: Basis
    etag: str
    response: WebResponse
    not_modified: WebResponse


class ListApi:
    def __init__(
        self,
        client: Client,
        settings: PageHitSettings,
        clock: Clock = system_clock,
        figures: ServiceFigures | None = None,
    ) -> None:
        self._settings = settings
        self._figures = figures
        self._lists = MostPopularLists(client, settings, clock)
        self._closed_windows = ClosedWindows(client, settings)
        self._responses: OrderedDict[str, CachedList] = OrderedDict()
        self._queries: dict[bytes, ListQuery] = {}
        self._brands: tuple[str, ...] = ()

    def add_routes(self, web: WebService, access: AccessControl) -> None:
        web.add("GET", "/", self.get_lists)
        web.add("GET", "/brands", access.internal(self.get_brands))
        web.add("GET", "/traffic", access.internal(self.get_traffic))

    async def run(self, stop: asyncio.Event) -> None:
        await self._lists.run(stop)

    async def refresh(self) -> None:
        await self._lists.refresh()

    @property
    def progress(self) -> CountingProgress:
        return self._lists.progress

    async def get_lists(self, request: WebRequest) -> WebResponse:
        try:
            query = self._read(request)
        except InvalidQuery as error:
            return problem(400, str(error), headers=CORS)
        basis = self._basis(query)
        cached = self._responses.get(query.canonical)
        reads = self._lists.reads
        if cached is None or cached.basis != basis:
            try:
                cached = await self._answer(query, basis)
            except ClientError as error:
                return problem(
                    503, f"The lists cannot be read at the moment: {error}", headers=CORS
                )
            self._cache(query.canonical, cached)
        else:
            self._responses.move_to_end(query.canonical)
        if self._figures is not None:
            self._figures.add("listHits" if reads == self._lists.reads else "listMisses")
        if cached.etag in request.headers.get("if-none-match", ""):
            return cached.not_modified
        return cached.response

    async def get_brands(self, request: WebRequest) -> WebResponse:
        """Returns brands and periods, and how far counting has come."""
        progress = self._lists.progress
        brands = [brand.name for brand in self._settings.brands] or progress.brands
        return json_response(
            {
                "brands": brands,
                "periods": [
                    {"name": p.name, "windowSeconds": p.seconds, "windows": p.count}
                    for p in self._settings.periods
                ],
                "closedUntil": progress.closed_until,
                **progress.counts,
            },
            headers=CORS,
        )

    async def get_traffic(self, request: WebRequest) -> WebResponse:
        """Returns the hits of each closed window of the past day, and the visits that were not
        counted, by reason."""
        try:
            query = self._read(request)
        except InvalidQuery as error:
            return problem(400, str(error), headers=CORS)
        period = query.periods[0]
        until = self._lists.newest(period) + period.seconds
        since = until - max(TRAFFIC_SECONDS, period.seconds * period.count)
        windows = []
        for brand in query.brands:
            try:
                closed = await self._closed_windows.traffic(brand, period, since)
            except ClientError as error:
                return problem(
                    503, f"The traffic cannot be read at the moment: {error}", headers=CORS
                )
            windows += [
                {
                    "brand": brand,
                    "start": window.key.start,
                    "hits": window.hits,
                    "filtered": window.filtered,
                }
                for window in closed
            ]
        answer = {"windowSeconds": period.seconds, "since": since, "until": until}
        return json_response({**answer, "windows": windows}, headers=CORS)

    def _read(self, request: WebRequest) -> ListQuery:
        """Reads the query of a request. Cached by query string, because most queries repeat."""
        brands = self._lists.progress.brands
        if brands != self._brands or len(self._queries) > self._settings.cached_lists_max:
            self._queries.clear()
            self._brands = brands
        query = self._queries.get(request.query_string)
        if query is None:
            query = read_query(request.query, self._settings, brands)
            if len(request.query_string) <= CACHED_CHARACTERS_MAX:
                self._queries[request.query_string] = query
        return query

    def _basis(self, query: ListQuery) -> Basis:
        newest = tuple(map(self._lists.newest, query.periods))
        return Basis(self._lists.progress.edition, newest)

    async def _answer(self, query: ListQuery, basis: Basis) -> CachedList:
        lists = []
        counted = self._lists.progress.brands
        # Brands that were never counted have no windows to read. Another counter, such as Flink,
        # does not report brands, so all are read.
        brands = [brand for brand in query.brands if brand in counted or not counted]
        for period, newest in zip(query.periods, basis.newest, strict=True):
            lists.append(
                {
                    "period": period.name,
                    "from": period.stamp(newest - (period.count - 1) * period.seconds),
                    "until": period.stamp(newest + period.seconds),
                    "hits": await self._lists.most_popular(brands, period, newest, query.filter),
                }
            )
        return _cached(query, basis, orjson.dumps({"lists": lists}))

    def _cache(self, canonical: str, cached: CachedList) -> None:
        if len(canonical) > CACHED_CHARACTERS_MAX:
            return
        self._responses[canonical] = cached
        self._responses.move_to_end(canonical)
        if len(self._responses) > self._settings.cached_lists_max:
            self._responses.popitem(last=False)


def _cached(query: ListQuery, basis: Basis, body: bytes) -> CachedList:
    max_age = min(period.max_age_seconds for period in query.periods)
    etag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = {
        **CORS,
        "cache-control": f"max-age={max_age}",
        "etag": etag,
        "content-location": f"/?{query.canonical}",
    }
    return CachedList(
        basis, etag, WebResponse(200, body, headers=headers), WebResponse(304, headers=headers)
    )
