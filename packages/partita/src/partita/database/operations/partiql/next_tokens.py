"""The NextToken of a SELECT: the position of its next page, encrypted."""

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
    """The position where a page of a SELECT begins: the number of a key range, and the last key
    before it."""

    part: int = 0
    key: Item | None = None


class _Token(msgspec.Struct):
    """The content of a NextToken: a digest of its request, and a position."""

    request: str
    part: int
    key: dict[str, dict[str, Any]] | None = None


_decode = msgspec.json.Decoder(_Token).decode


def next_token(context: ReadContext, request: Request, position: SelectPosition) -> str:
    """Returns a token for the next page.

    It is encrypted, because it contains the key of an item, whose attributes the reader may not be
    allowed to see.
    """
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
    """Returns the key that seals tokens; all servers of a database have the same, stored in it."""
    secret = context.snapshot.get(table_layout.SECRET_KEY)
    if secret is None:
        raise InternalServerError("The database has no secret to seal tokens with.")
    return secret


def _digest(request: Request) -> str:
    content = [request["Statement"], request.get("Parameters")]
    return sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:32]
