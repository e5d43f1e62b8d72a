"""The API: `GET /` answers with the most popular assets of a brand and period."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from partita.apps.pagehits import lambdas
from partita.apps.pagehits.access import Access
from partita.apps.pagehits.closed_windows import ClosedWindows, Key
from partita.apps.pagehits.lists import Lists
from partita.apps.pagehits.questions import Question, WrongQuestion, read_question
from partita.apps.pagehits.settings import Settings
from partita.client import Client, ClientError
from partita.server.http.web import Request, Response, Web, json_response, problem

CORS = {"access-control-allow-origin": "*"}
TRAFFIC_SECONDS = 86_400
KEPT_CHARACTERS_MAX = 2_000
"""Of a question: longer ones are not kept, so that made-up ones cost no memory."""


class Basis(NamedTuple):
    """What an answer rests on."""

    edition: int
    newest: tuple[int, ...]
    """The start of the newest window of each period."""


class Kept(NamedTuple):
    basis: Basis
    etag: str
    response: Response
    not_modified: Response


class Api:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._settings = settings
        self._lists = Lists(client, settings)
        self._closed_windows = ClosedWindows(client, settings)
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._questions: dict[bytes, Question] = {}
        self._brands: tuple[str, ...] = ()

    def add_routes(self, web: Web, access: Access) -> None:
        web.add("GET", "/", self.get_lists)
        web.add("GET", "/brands", access.internal(self.get_brands))
        web.add("GET", "/traffic", access.internal(self.get_traffic))

    async def run(self, stop: asyncio.Event) -> None:
        await self._lists.run(stop)

    async def refresh(self) -> None:
        await self._lists.refresh()

    async def get_lists(self, request: Request) -> Response:
        try:
            question = self._read(request)
        except WrongQuestion as wrong:
            return problem(400, str(wrong), headers=CORS)
        basis = self._basis(question)
        kept = self._kept.get(question.normal_form)
        if kept is None or kept.basis != basis:
            try:
                kept = await self._answer(question, basis)
            except ClientError as error:
                return problem(503, f"The lists cannot be read now: {error}", headers=CORS)
            self._keep(question.normal_form, kept)
        else:
            self._kept.move_to_end(question.normal_form)
        if kept.etag in request.headers.get("if-none-match", ""):
            return kept.not_modified
        return kept.response

    async def get_brands(self, request: Request) -> Response:
        """What can be asked for, and how far counting is."""
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

    async def get_traffic(self, request: Request) -> Response:
        """Hits of each closed window of the past day, and what was not counted, by reason."""
        try:
            question = self._read(request)
        except WrongQuestion as wrong:
            return problem(400, str(wrong), headers=CORS)
        period = question.periods[0]
        until = self._lists.newest(period) + period.seconds
        since = until - max(TRAFFIC_SECONDS, period.seconds * period.count)
        windows = []
        for brand in question.brands:
            try:
                found = await self._closed_windows.traffic(brand, period, since)
            except ClientError as error:
                return problem(503, f"The traffic cannot be read now: {error}", headers=CORS)
            windows += [
                {
                    "brand": brand,
                    "start": window.key.start,
                    "hits": window.hits,
                    "filtered": window.filtered,
                }
                for window in found
            ]
        answer = {"windowSeconds": period.seconds, "since": since, "until": until}
        return json_response({**answer, "windows": windows}, headers=CORS)

    def _read(self, request: Request) -> Question:
        """Most are asked in the same words again."""
        brands = self._lists.progress.brands
        if brands != self._brands or len(self._questions) > self._settings.cached_lists_max:
            self._questions.clear()
            self._brands = brands
        question = self._questions.get(request.query_string)
        if question is None:
            question = read_question(request.query, self._settings, brands)
            if len(request.query_string) <= KEPT_CHARACTERS_MAX:
                self._questions[request.query_string] = question
        return question

    def _basis(self, question: Question) -> Basis:
        """The same basis, the same answer."""
        newest = tuple(map(self._lists.newest, question.periods))
        return Basis(self._lists.progress.edition, newest)

    async def _answer(self, question: Question, basis: Basis) -> Kept:
        lists = []
        known = self._lists.progress.brands
        # Nothing of the others is there to be read, unless another counter made the windows.
        brands = [brand for brand in question.brands if brand in known or not known]
        for period, newest in zip(question.periods, basis.newest, strict=True):
            starts = [newest - number * period.seconds for number in range(period.count)]
            keys = [Key(brand, period, start) for brand in brands for start in starts]
            lists.append(
                {
                    "period": period.name,
                    "from": period.stamp(starts[-1]),
                    "until": period.stamp(starts[0] + period.seconds),
                    "hits": await self._lists.most_popular(keys, question.filter),
                }
            )
        return _kept(question, basis, orjson.dumps({"lists": lists}))

    def _keep(self, normal_form: str, kept: Kept) -> None:
        if len(normal_form) > KEPT_CHARACTERS_MAX:
            return
        self._kept[normal_form] = kept
        self._kept.move_to_end(normal_form)
        if len(self._kept) > self._settings.cached_lists_max:
            self._kept.popitem(last=False)


def handler(event: dict[str, Any], context: object = None) -> dict[str, Any]:
    """The entry point of AWS Lambda, behind API Gateway."""

    async def answer(client: Client, settings: Settings) -> Response:
        api = lambdas.kept(Api)
        await api.refresh()
        return await api.get_lists(lambdas.request_of(event))

    return lambdas.proxy_response(lambdas.run(answer))


def _kept(question: Question, basis: Basis, body: bytes) -> Kept:
    max_age = min(period.max_age_seconds for period in question.periods)
    etag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = {
        **CORS,
        "cache-control": f"max-age={max_age}",
        "etag": etag,
        "content-location": f"/?{question.normal_form}",
    }
    return Kept(basis, etag, Response(200, body, headers=headers), Response(304, headers=headers))
