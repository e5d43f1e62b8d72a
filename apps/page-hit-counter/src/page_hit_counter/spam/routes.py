"""The quarantine over HTTP: read, release and confirm cases, and a summary for the dashboard."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from page_hit_counter.authorization import Access
from page_hit_counter.settings import BRAND
from page_hit_counter.spam.cases import STATUSES, Case, Status
from page_hit_counter.spam.quarantine import AlreadyReleased, NoSuchCase, Quarantine
from page_hit_counter.spam.screen import Screen
from partita.client import ClientError
from partita.errors import PartitaError
from partita.server.http.routes import Handler
from partita.server.http.web import Web
from partita.server.http.web_messages import Request, Response, json_response, problem

LIMIT = 100
LIMIT_MAX = 1_000
SUMMARY_CASES = 20


class InvalidParameter(PartitaError):
    pass


def add_quarantine_routes(
    web: Web, access: Access, quarantine: Quarantine, screen: Screen | None
) -> None:
    """Without a screen, as in a process that runs only the API, the summary has no counts."""

    async def summary(request: Request) -> Response:
        brand = _brand(request)
        cases = await quarantine.cases(brand, limit=SUMMARY_CASES)
        return json_response(
            {
                "mode": screen.mode if screen else None,
                "counts": screen.withheld_hits(brand) if screen else {},
                "perMinute": screen.withheld_by_minute(brand) if screen else [],
                "cases": [_plain(case) for case in cases],
            }
        )

    async def read_cases(request: Request) -> Response:
        query = _single(request, "brand", "status", "limit")
        cases = await quarantine.cases(
            _brand(request), _status(query.get("status")), _limit(query.get("limit"))
        )
        return json_response({"cases": [_plain(case) for case in cases]})

    async def read_case(request: Request) -> Response:
        brand, case_id = _brand(request), request.parameters["case"]
        case = await quarantine.case(brand, case_id)
        pieces = (await quarantine.evidence(brand, case_id)).values()
        rows = [row._asdict() for piece in pieces for row in piece.rows]
        visits = [msgspec.structs.asdict(visit) for piece in pieces for visit in piece.visits]
        return json_response({**_plain(case), "rows": rows, "visits": visits})

    async def release(request: Request) -> Response:
        case = await quarantine.release(_brand(request), request.parameters["case"])
        return json_response(_plain(case))

    async def confirm(request: Request) -> Response:
        case = await quarantine.confirm(_brand(request), request.parameters["case"])
        return json_response(_plain(case))

    def add(method: str, path: str, handler: Handler) -> None:
        web.add(method, path, access.private(_with_problems(handler)))

    add("GET", "/quarantine/summary", summary)
    add("GET", "/quarantine", read_cases)
    add("GET", "/quarantine/{case}", read_case)
    add("POST", "/quarantine/{case}/release", release)
    add("POST", "/quarantine/{case}/confirm", confirm)


def _with_problems(handler: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except InvalidParameter as error:
            return problem(400, str(error))
        except NoSuchCase as error:
            return problem(404, str(error))
        except AlreadyReleased as error:
            return problem(409, str(error))
        except ClientError as error:
            return problem(503, f"The quarantine cannot be read or changed at the moment: {error}")

    return handle


def _brand(request: Request) -> str:
    brand = dict(request.query).get("brand")
    if not brand:
        raise InvalidParameter("Name the brand: ?brand=abc.")
    if re.fullmatch(BRAND, brand) is None:
        raise InvalidParameter(f"{brand!r} cannot be the name of a brand.")
    return brand


def _single(request: Request, *names: str) -> dict[str, str]:
    query = dict(request.query)
    for name in query:
        if name not in names:
            raise InvalidParameter(f"There is no parameter {name!r}: use {', '.join(names)}.")
    return query


def _status(text: str | None) -> Status | None:
    if text is None:
        return None
    for status in STATUSES:
        if status == text:
            return status
    raise InvalidParameter(f"status is one of {', '.join(STATUSES)}, not {text!r}.")


def _limit(text: str | None) -> int:
    if text is None:
        return LIMIT
    if re.fullmatch("[0-9]{1,4}", text) is None or not 1 <= int(text) <= LIMIT_MAX:
        raise InvalidParameter(f"limit is a number from 1 to {LIMIT_MAX}, not {text!r}.")
    return int(text)


def _plain(case: Case) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(case)
    return plain
