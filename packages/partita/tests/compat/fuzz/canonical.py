"""DynamoDB Local, with its values converted to the form in which the service returns them.

It leaves numbers inside of documents and sets of PartiQL's literals as they were written, and sorts
sets of bytes as if bytes had signs. The service has one form for a number wherever it stands, and
sorts all sets by value (dynamodb-conformance, paritysuite, recorded in 2026).
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from ..endpoints import Endpoint
from ..notation import Body

EXACT = Context(prec=400)
SET_ORDERS: dict[str, Callable[[str], Any]] = {"SS": str.encode, "NS": Decimal, "BS": b64decode}


class CanonicalEndpoint:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def post(self, operation: str, body: Body | str) -> tuple[int, bytes]:
        status, content = self._endpoint.post(operation, body)
        return status, json.dumps(in_canonical_form(json.loads(content))).encode()


def in_canonical_form(body: Any) -> Any:
    if isinstance(body, list):
        return [in_canonical_form(one) for one in body]
    if not isinstance(body, dict):
        return body
    if len(body) == 1:
        ((kind, content),) = body.items()
        if kind == "N" and isinstance(content, str):
            return {"N": canonical_number(content)}
        if kind in SET_ORDERS and isinstance(content, list):
            members = [canonical_number(one) if kind == "NS" else one for one in content]
            return {kind: sorted(members, key=SET_ORDERS[kind])}
    return {name: in_canonical_form(one) for name, one in body.items()}


def canonical_number(text: str) -> str:
    number = EXACT.create_decimal(text)
    return format(EXACT.normalize(number), "f") if number else "0"
