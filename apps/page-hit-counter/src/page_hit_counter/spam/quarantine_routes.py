"""The quarantine over HTTP: read, release and confirm cases, and a summary for the dashboard."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from page_hit_counter.pagehits_settings import BRAND
from page_hit_counter.service.authorization import AccessControl
from page_hit_counter.spam.quarantine import AlreadyReleased, NoSuchCase, Quarantine
from page_hit_counter.spam.spam_cases import STATUSES, SpamCase, Status
from page_hit_counter.spam.spam_filter import SpamFilter
from partita.client import ClientError
from partita.errors import PartitaError
from partita.server.http.web.web_messages import WebRequest, WebResponse, json_response, problem
from partita.server.http.web.web_routes import Handler
from partita.server.http.web.web_service import WebService

LIMIT = 100
LIMIT_MAX = 1_000
SUMMARY_CASES = 20


class InvalidParameter(PartitaError):
    pass


def add_quarantine_routes(
    web: WebService, access: AccessControl, quarantine: Quarantine, spam_filter: SpamFilter | None
) -> None:
    """Adds the routes of the quarantine. A process that runs only the API has no spam filter, and
    its summary has no counts."""

    async def summary(request: WebRequest) -> WebResponse:
        brand = _brand(request)
        cases = await quarantine.cases(brand, limit=SUMMARY_CASES)
        return json_response(
            {
                "mode": spam_filter.mode if spam_filter else None,
                "counts": spam_filter.withheld_hits(brand) if spam_filter else {},
                "perMinute": spam_filter.withheld_by_minute(brand) if spam_filter else [],
                "cases": [_plain(case) for case in cases],
            }
        )

    async def read_cases(request: WebRequest) -> WebResponse:
        query = _single(request, "brand", "status", "limit")
        cases = await quarantine.cases(
            _brand(request), _status(query.get("status")), _limit(query.get("limit"))
        )
        return json_response({"cases": [_plain(case) for case in cases]})

    async def read_case(request: WebRequest) -> WebResponse:
        brand, case_id = _brand(request), request.parameters["case"]
        case = await quarantine.case(brand, case_id)
        pieces = (await quarantine.evidence(brand, case_id)).values()
        rows = [row._asdict() for piece in pieces for row in piece.rows]
        visits = [msgspec.structs.asdict(visit) for piece in pieces for visit in piece.visits]
        return json_response({**_plain(case), "rows": rows, "visits": visits})

    async def release(request: WebRequest) -> WebResponse:
        case = await quarantine.release(_brand(request), request.parameters["case"])
        return json_response(_plain(case))

    async def confirm(request: WebRequest) -> WebResponse:
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
    async def handle(request: WebRequest) -> WebResponse:
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


def _brand(request: WebRequest) -> str:
    brand = dict(request.query).get("brand")
    if not brand:
        raise InvalidParameter("Name the brand: ?brand=abc.")
    if re.fullmatch(BRAND, brand) is None:
        raise InvalidParameter(f"{brand!r} cannot be the name of a brand.")
    return brand


def _single(request: WebRequest, *names: str) -> dict[str, str]:
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


def _plain(case: SpamCase) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(case)
    return plain
