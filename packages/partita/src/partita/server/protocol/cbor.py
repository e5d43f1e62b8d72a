"""CBOR, the encoding that Java's clients of Kinesis use instead of JSON.

A request is converted to JSON before it is dispatched, and the response is converted back. Blobs
are bytes in CBOR, not base64. Times are milliseconds with tag 1, although the standard says seconds
(captured from the SDK).

The decoder is our own and not a library's, because only what JSON can express is allowed: no
references, no large numbers, no tag but that of times, and limits for depth and number of items.
This bounds the cost of decoding whatever an unauthenticated client sends.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, Final

import cbor2
import orjson

from partita.server.http.http_messages import HttpRequest, HttpResponse, Reply
from partita.server.protocol.aws_responses import CBOR_1_1, JSON_1_1

NO_CONTENT: Final = b""
TIME_TAG: Final = 1
BLOBS: Final = frozenset(("Data",))
TIMES: Final = frozenset(("ApproximateArrivalTimestamp", "StreamCreationTimestamp"))
DEPTH_MAX: Final = 16
"""The requests of Kinesis have at most four levels."""
ITEMS_MAX: Final = 10_000
"""Counts names, values and parts of strings. The largest request, PutRecords, has 500 records with
7 of them each."""

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
INDEFINITE: Final = 31
BREAK: Final = 0xFF
ARGUMENT_BYTES: Final = {24: 1, 25: 2, 26: 4, 27: 8}
FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
SIMPLE_VALUES: Final = {20: False, 21: True, 22: None}


class NotDecoded(ValueError):
    """Raised for a body that is not CBOR, or that exceeds a limit."""


def answer_in_cbor(
    handle: Callable[[HttpRequest, Reply], None], request: HttpRequest, reply: Reply
) -> None:
    """Handles a request in CBOR as if it were JSON, and replies in CBOR."""
    headers = {**request.headers, b"content-type": JSON_1_1}
    json_request = HttpRequest(request.method, request.target, headers, to_json(request.body))
    json_request.peer = request.peer

    def reply_in_cbor(response: HttpResponse) -> None:
        if response.content_type != JSON_1_1:
            reply(response)
            return
        body = from_json(response.body) if response.body else NO_CONTENT
        reply(HttpResponse(response.status, body, CBOR_1_1, response.headers))

    handle(json_request, reply_in_cbor)


def to_json(body: bytes) -> bytes:
    """Converts a body to JSON. Returns b"" if it cannot be decoded; the dispatcher then refuses it
    like a request without a body."""
    try:
        return orjson.dumps(decode(body))
    except (NotDecoded, TypeError):
        # orjson raises a TypeError for a negative number beyond 64 bits.
        return NO_CONTENT


def decode(body: bytes) -> Any:
    """Decodes a body. Blobs are returned in base64, as in JSON."""
    reader = _CborReader(body)
    try:
        value = reader.value(DEPTH_MAX)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise NotDecoded from None
    reader.check_end()
    return value


class _CborReader:
    """Reads the items of a CBOR document (RFC 8949, section 3)."""

    __slots__ = ("_body", "_items_left", "_place")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._place = 0
        self._items_left = ITEMS_MAX

    def value(self, depth: int) -> Any:
        major, info = self._head()
        if major == MAP:
            return self._map(info, depth - 1)
        if major == ARRAY:
            return [self.value(depth - 1) for _ in self._items(info, depth - 1)]
        if major == TEXT:
            return self._string(major, info).decode()
        if major == BYTES:
            return b64encode(self._string(major, info)).decode()
        if major == UNSIGNED:
            return self._argument(info)
        if major == NEGATIVE:
            return -1 - self._argument(info)
        if major == TAG:
            return self._time(info, depth - 1)
        if info in FLOATS:
            return struct.unpack(FLOATS[info], self._take(ARGUMENT_BYTES[info]))[0]
        if info not in SIMPLE_VALUES:
            raise NotDecoded
        return SIMPLE_VALUES[info]

    def check_end(self) -> None:
        if self._place != len(self._body):
            raise NotDecoded

    def _head(self) -> tuple[int, int]:
        self._items_left -= 1
        if self._items_left < 0:
            raise NotDecoded
        first = self._body[self._place]
        self._place += 1
        return first >> 5, first & 31

    def _argument(self, info: int) -> int:
        if info < 24:
            return info
        if info not in ARGUMENT_BYTES:
            raise NotDecoded
        return int.from_bytes(self._take(ARGUMENT_BYTES[info]), "big")

    def _take(self, size: int) -> bytes:
        end = self._place + size
        if end > len(self._body):
            raise NotDecoded
        taken = self._body[self._place : end]
        self._place = end
        return taken

    def _items(self, info: int, depth: int) -> Iterator[None]:
        """Yields once for each item of an array or map; the caller reads the item in between."""
        if depth < 0:
            raise NotDecoded
        if info != INDEFINITE:
            yield from repeat(None, self._counted(info))
        else:
            while self._body[self._place] != BREAK:
                yield
            self._place += 1

    def _counted(self, info: int) -> int:
        count = self._argument(info)
        if count > self._items_left:
            raise NotDecoded
        return count

    def _map(self, info: int, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for _ in self._items(info, depth):
            major, name_info = self._head()
            if major != TEXT:
                raise NotDecoded
            name = self._string(major, name_info).decode()
            members[name] = self.value(depth)
        return members

    def _string(self, major: int, info: int) -> bytes:
        if info != INDEFINITE:
            return self._take(self._argument(info))
        parts: list[bytes] = []
        for _ in self._items(info, 0):
            part_major, part_info = self._head()
            if part_major != major or part_info == INDEFINITE:
                raise NotDecoded
            parts.append(self._take(self._argument(part_info)))
        return b"".join(parts)

    def _time(self, info: int, depth: int) -> float:
        """Returns a time in seconds."""
        if self._argument(info) != TIME_TAG or depth < 0:
            raise NotDecoded
        milliseconds = self.value(depth)
        if type(milliseconds) not in (int, float):
            raise NotDecoded
        return float(milliseconds / 1000)


def from_json(body: bytes) -> bytes:
    encoded: bytes = cbor2.dumps(_coded(orjson.loads(body)))
    return encoded


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
