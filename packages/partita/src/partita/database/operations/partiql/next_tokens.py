"""NextToken of a SELECT: where its next page begins, opaque to the client."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from partita.database.item.values import Item, normalize_item
from partita.database.operations.context import Request
from partita.errors import ValidationException

INVALID_TOKEN = "Invalid NextToken"
OTHER_REQUEST = "NextToken does not match request"


@dataclass(slots=True)
class Position:
    """Where a page of a SELECT begins: in which of its ranges, and after which key."""

    part: int = 0
    key: Item | None = None


class _Token(msgspec.Struct):
    """What a NextToken holds: which request it belongs to, and where the next page begins."""

    request: str
    part: int
    key: dict[str, dict[str, Any]] | None = None


def next_token(request: Request, position: Position) -> str:
    token = _Token(_digest(request), position.part, position.key)
    return urlsafe_b64encode(msgspec.json.encode(token)).decode()


def position_of(request: Request) -> Position:
    if "NextToken" not in request:
        return Position()
    try:
        text = urlsafe_b64decode(request["NextToken"])
        token = msgspec.json.decode(text, type=_Token)
        key = None if token.key is None else normalize_item(token.key)
    except (ValueError, ValidationException):
        raise ValidationException(INVALID_TOKEN) from None
    if token.request != _digest(request):
        raise ValidationException(OTHER_REQUEST)
    if token.part < 0:
        raise ValidationException(INVALID_TOKEN)
    return Position(token.part, key)


def _digest(request: Request) -> str:
    said = [request["Statement"], request.get("Parameters")]
    return sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:32]
