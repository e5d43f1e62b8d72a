"""Pages of lists: their length, and the tokens that say where the next page begins."""

from __future__ import annotations

import base64
from typing import Any, TypeVar

import msgspec

from partita.errors import InvalidToken
from partita_services.workflows.api.step_functions_service import Request

Place = TypeVar("Place")

PAGE_MAX = 1000
PAGE = 100
"""The length of a page without maxResults, or with 0. (API reference)"""


def limit_of(request: Request) -> int:
    limit: int = request.get("maxResults") or PAGE
    return min(limit, PAGE_MAX)


def token(place: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()


def place(request: Request, kind: type[Place]) -> Place | None:
    """Returns the key at which the previous page ended; None for the first page."""
    token = request.get("nextToken")
    if token is None:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=kind)
    except (ValueError, msgspec.MsgspecError):
        raise InvalidToken("Invalid Token: 'Invalid token'") from None


def more(place: Any) -> dict[str, str]:
    """The member with the token of the next page, if there is one."""
    return {} if place is None else {"nextToken": token(place)}
