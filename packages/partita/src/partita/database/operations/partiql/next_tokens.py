"""NextToken of a SELECT: where its next page begins, sealed."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from partita.database.item.attribute_values import Item
from partita.database.operations.operation_context import ReadContext, Request
from partita.database.storage.sealing.cipher import CannotUnseal, seal, unseal
from partita.database.tables import table_layout
from partita.errors import InternalServerError, ValidationException

PURPOSE = b"NextToken of a SELECT"
INVALID_TOKEN = "Invalid NextToken"
OTHER_REQUEST = "NextToken does not match request"


@dataclass(slots=True)
class SelectPosition:
    """Where a page of a SELECT begins: in which of its ranges, and after which key."""

    part: int = 0
    key: Item | None = None


class _Token(msgspec.Struct):
    """What a NextToken holds: which request it belongs to, and where the next page begins."""

    request: str
    part: int
    key: dict[str, dict[str, Any]] | None = None


_decode = msgspec.json.Decoder(_Token).decode


def next_token(context: ReadContext, request: Request, position: SelectPosition) -> str:
    """Sealed, for a key of an item has attributes that its reader may not be allowed to see."""
    token = _Token(_digest(request), position.part, position.key)
    content = seal(_secret(context), msgspec.json.encode(token), PURPOSE)
    return urlsafe_b64encode(content).decode()


def position_of(context: ReadContext, request: Request) -> SelectPosition:
    if "NextToken" not in request:
        return SelectPosition()
    try:
        sealed = urlsafe_b64decode(request["NextToken"])
        token = _decode(unseal(_secret(context), sealed, PURPOSE))
    except (ValueError, CannotUnseal):
        raise ValidationException(INVALID_TOKEN) from None
    if token.request != _digest(request):
        raise ValidationException(OTHER_REQUEST)
    return SelectPosition(token.part, token.key)


def _secret(context: ReadContext) -> bytes:
    """All servers of a database have the same, and keep it."""
    secret = context.snapshot.get(table_layout.SECRET_KEY)
    if secret is None:
        raise InternalServerError("The database has no secret to seal tokens with.")
    return secret


def _digest(request: Request) -> str:
    said = [request["Statement"], request.get("Parameters")]
    return sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:32]
