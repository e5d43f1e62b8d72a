"""Pages of lists: how many at most, and tokens that say where to go on."""

from __future__ import annotations

import base64
from typing import Any, TypeVar

import msgspec

from partita.errors import InvalidToken
from partita.workflows.api.service import Request

Place = TypeVar("Place")

PAGE_MAX = 1000
PAGE = 100
"""What a page has when nobody says, or says 0. (API reference)"""


def limit_of(request: Request) -> int:
    limit: int = request.get("maxResults") or PAGE
    return min(limit, PAGE_MAX)


def token(place: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()


def place(request: Request, kind: type[Place]) -> Place | None:
    """Where the page before ended; None for the first one."""
    given = request.get("nextToken")
    if given is None:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(given), type=kind)
    except (ValueError, msgspec.MsgspecError):
        raise InvalidToken("Invalid Token: 'Invalid token'") from None


def more(place: Any) -> dict[str, str]:
    """What an answer has when there is another page."""
    return {} if place is None else {"nextToken": token(place)}
