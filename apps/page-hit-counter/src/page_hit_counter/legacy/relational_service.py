"""The old counter over HTTP, with the interface of its clients.

    POST /pagehits     [{"assetId": 1, "hits": 3, "sectionId": 5, "resourceType": "article",
                         "paidType": "free"}, ...]
    GET /?period=day&resourceType=article&section=121

One instance serves one brand over one connection, and deletes stale rows once a minute.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from page_hit_counter.legacy.relational_counter import OLD_PERIODS, PageHit, RelationalCounter
from partita.foundation.clock import Clock, system_clock
from partita.server.http.web.web_messages import WebRequest, WebResponse, json_response, problem
from partita.server.http.web.web_service import WebService

DELETE_SECONDS = 60.0
PARAMETERS = ("period", "resourceType", "section", "paidType")
TEXT = r"\A[^\x00]+\Z"
"""PostgreSQL cannot store zero bytes in text."""
SECTION_DIGITS_MAX = 10
Answer = TypeVar("Answer")


class SentPageHit(msgspec.Struct, frozen=True, rename="camel"):
    asset_id: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    hits: Annotated[int, Meta(ge=1, lt=2**31)]
    section_id: Annotated[int, Meta(ge=0, lt=2**31)]
    resource_type: Annotated[str, Meta(pattern=TEXT, max_length=256)]
    paid_type: Annotated[str, Meta(pattern=TEXT, max_length=32)]


_decode = msgspec.json.Decoder(list[SentPageHit]).decode


class RelationalService:
    def __init__(self, counter: RelationalCounter, clock: Clock = system_clock) -> None:
        self._counter = counter
        self._clock = clock
        self._turn = asyncio.Lock()

    def add_routes(self, web: WebService) -> None:
        web.add("POST", "/pagehits", self.post_page_hits)
        web.add("GET", "/", self.get_list)

    async def run(self) -> None:
        """Deletes stale rows until cancelled."""
        while True:
            await self._ask(lambda counter: counter.delete_stale(self._clock()))
            await asyncio.sleep(DELETE_SECONDS)

    async def post_page_hits(self, request: WebRequest) -> WebResponse:
        try:
            sent = _decode(request.body)
        except msgspec.DecodeError as error:
            return problem(400, f"The body is not a list of page hits: {error}.")
        except RecursionError:
            return problem(400, "The body is not a list of page hits: it is nested too deeply.")
        now = self._clock()
        batch = [
            PageHit(hit.asset_id, hit.hits, hit.section_id, hit.resource_type, hit.paid_type, now)
            for hit in sent
        ]
        await self._ask(lambda counter: counter.count(batch))
        return json_response({"accepted": len(batch)})

    async def get_list(self, request: WebRequest) -> WebResponse:
        values: dict[str, list[str]] = {name: [] for name in PARAMETERS}
        for name, value in request.query:
            if name not in values:
                names = ", ".join(PARAMETERS)
                return problem(400, f"There is no parameter {name!r}: use {names}.")
            if re.match(TEXT, value) is None:
                return problem(400, f"{name} is empty or has a zero byte.")
            values[name].append(value)
        period = (values["period"] or ["justnow"])[-1]
        if period not in OLD_PERIODS:
            return problem(400, f"There is no period {period!r}: use {', '.join(OLD_PERIODS)}.")
        for value in values["section"]:
            if not (value.isascii() and value.isdigit() and len(value) <= SECTION_DIGITS_MAX):
                return problem(400, f"section takes a number, not {value!r}.")
        popular_rows = await self._ask(
            lambda counter: counter.most_popular(
                period,
                self._clock(),
                values["resourceType"],
                map(int, values["section"]),
                values["paidType"],
            )
        )
        return json_response([_plain(*popular) for popular in popular_rows])

    async def _ask(self, question: Callable[[RelationalCounter], Answer]) -> Answer:
        """Runs a query on a thread, one at a time, because there is one connection and it
        blocks."""
        async with self._turn:
            return await asyncio.to_thread(question, self._counter)


def _plain(
    asset_id: int, resource_type: str, section_id: int, paid_type: str, hits: int
) -> dict[str, Any]:
    return {
        "assetId": asset_id,
        "hits": hits,
        "sectionId": section_id,
        "resourceType": resource_type,
        "paidType": paid_type,
    }


async def serve(url: str, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serves the old counter until SIGTERM or Ctrl-C."""
    counter = RelationalCounter.connect(url)
    counter.create()
    service = RelationalService(counter)
    web = WebService()
    service.add_routes(web)
    deleting = asyncio.create_task(service.run())
    try:
        await web.serve(host, port, ready)
    finally:
        deleting.cancel()
        counter.close()
