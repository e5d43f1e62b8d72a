"""Requests and responses, and the bytes of a response on the wire."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import Any, Final

import orjson

JSON: Final = b"application/json"
PROBLEM: Final = b"application/problem+json"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_BODILESS: Final = (204, 304)
CONNECTION_LINES: Final = {
    (True, False): b"",
    (True, True): b"connection: keep-alive\r\n",
    (False, False): b"connection: close\r\n",
    (False, True): b"connection: close\r\n",
}
"""By whether the connection is kept, and whether the client speaks HTTP/1.0."""


class Peer:
    """Who is at the other end of a connection."""

    __slots__ = ("address", "certificate", "is_secure", "session")

    def __init__(self, address: str, is_secure: bool = False, certificate: str = "") -> None:
        self.address = address
        self.is_secure = is_secure
        """Whether the connection is TLS."""
        self.certificate = certificate
        """The subject of its certificate, where one was asked for."""
        self.session: object = None
        """What the database has noted of this connection."""


class HttpRequest:
    """Header names are in lower case; of a repeated header, the first counts.

    `answer_headers` are complete header lines that go with the answer, whatever it is. `peer` is
    noted where the listener is told to. `unpack` is there for a body that is still packed; it
    refuses the request, or calls what is to happen then, now or later, with what to reply with.
    """

    __slots__ = (
        "answer_headers",
        "body",
        "headers",
        "is_http_1_0",
        "keep_alive",
        "method",
        "peer",
        "target",
        "unpack",
    )

    def __init__(
        self,
        method: bytes = b"",
        target: bytes = b"",
        headers: dict[bytes, bytes] | None = None,
        body: bytes = b"",
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers or {}
        self.body = body
        self.keep_alive = True
        self.is_http_1_0 = False
        self.answer_headers = b""
        self.peer: Peer | None = None
        self.unpack: Unpack | None = None


class HttpResponse:
    """`headers` are complete header lines, for the few answers that need more.

    `checksum` is the CRC-32 of the body, where it is known.
    """

    __slots__ = ("body", "checksum", "content_type", "headers", "status")

    def __init__(
        self, status: int, body: bytes = b"", content_type: bytes = JSON, headers: bytes = b""
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers
        self.checksum: int | None = None


Reply = Callable[[HttpResponse], None]
Unpack = Callable[[HttpRequest, Reply, Callable[[Reply], None]], None]
CheckHead = Callable[[HttpRequest], HttpResponse | None]
"""The refusal of a request whose body has not been read, if its head is enough for one."""
Handle = Callable[[HttpRequest, Reply], None]
"""`handle(request, reply)`: `reply` may be called at once or later, on the same thread."""


class Responses:
    """How answers look on the wire: plainly here. What is served may have a form of its own."""

    def encode(self, response: HttpResponse, request: HttpRequest) -> bytes:
        """The bytes of a response to a request."""
        body = response.body
        if response.status in _BODILESS:
            content = b""
        else:
            content = b"content-type: %b\r\ncontent-length: %d\r\n" % (
                response.content_type,
                len(body),
            )
        return b"%b%b%b%b%b%b\r\n%b" % (
            _STATUS_LINES[response.status],
            date_line(int(time())),
            content,
            response.headers,
            request.answer_headers,
            CONNECTION_LINES[request.keep_alive, request.is_http_1_0],
            body if content and request.method != b"HEAD" else b"",
        )

    def refusal(self, status: int, detail: str) -> HttpResponse:
        """The answer to a request that is not handed on, with the reason in a sentence."""
        return HttpResponse(status, problem_body(status, detail), PROBLEM)

    def final(self, status: int, detail: str, headers: bytes = b"") -> bytes:
        """The last answer on a connection whose requests cannot be read."""
        return self.last(self.refusal(status, detail), headers)

    def last(self, response: HttpResponse, headers: bytes = b"") -> bytes:
        """The last answer on a connection of which nothing more is read."""
        unread = HttpRequest()
        unread.answer_headers = headers
        unread.keep_alive = False
        return self.encode(response, unread)


def problem_body(status: int, detail: str, **members: Any) -> bytes:
    """An error in words (RFC 9457)."""
    title = HTTPStatus(status).phrase
    return orjson.dumps(
        {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    )


@lru_cache(maxsize=1)
def date_line(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()
