"""CBOR, in which Java's clients of Kinesis write what others write in JSON.

A request is turned into JSON before anybody looks at it, and the answer into CBOR behind everybody.
Blobs are bytes there, not base64. Times count milliseconds behind tag 1, where the standard has
seconds (captured from the SDK).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import cbor2
import orjson

from partita.server.http.messages import HttpRequest, HttpResponse, Reply
from partita.server.responses import CBOR_1_1, JSON_1_1

NO_CONTENT = b""
TIME_TAG = 1
BLOBS = frozenset(("Data",))
TIMES = frozenset(("ApproximateArrivalTimestamp", "StreamCreationTimestamp"))

_TAGS = {TIME_TAG: lambda milliseconds, _: milliseconds / 1000}


def answer_in_cbor(
    handle: Callable[[HttpRequest, Reply], None], request: HttpRequest, reply: Reply
) -> None:
    """Have a request in CBOR handled as one in JSON."""
    headers = {**request.headers, b"content-type": JSON_1_1}
    asked = HttpRequest(request.method, request.target, headers, to_json(request.body))
    asked.peer = request.peer

    def reply_in_cbor(response: HttpResponse) -> None:
        if response.content_type != JSON_1_1:
            reply(response)
            return
        body = from_json(response.body) if response.body else NO_CONTENT
        reply(HttpResponse(response.status, body, CBOR_1_1, response.headers))

    handle(asked, reply_in_cbor)


def to_json(body: bytes) -> bytes:
    """Nothing for a body that is not CBOR: that is refused as a request without content is."""
    try:
        content = cbor2.loads(body, semantic_decoders=_TAGS)
        return orjson.dumps(content, default=_base64)
    except (cbor2.CBORDecodeError, TypeError, ValueError, OverflowError, RecursionError):
        return NO_CONTENT


def from_json(body: bytes) -> bytes:
    encoded: bytes = cbor2.dumps(_coded(orjson.loads(body)))
    return encoded


def _base64(blob: Any) -> str:
    if not isinstance(blob, bytes):
        raise TypeError
    return b64encode(blob).decode()


def _coded(content: Any, name: str = "") -> Any:
    if isinstance(content, dict):
        return {key: _coded(value, key) for key, value in content.items()}
    if isinstance(content, list):
        return [_coded(value) for value in content]
    if name in BLOBS:
        return b64decode(content)
    if name in TIMES:
        return cbor2.CBORTag(TIME_TAG, round(content * 1000))
    return content
