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
"""The connection header, by whether the connection is kept and whether the client speaks 1.0."""


class Peer:
    """The client at the other end of a connection."""

    __slots__ = ("address", "certificate", "is_secure", "session")

    def __init__(self, address: str, is_secure: bool = False, certificate: str = "") -> None:
        self.address = address
        self.is_secure = is_secure
        """True for a TLS connection."""
        self.certificate = certificate
        """The subject of the client certificate, if the server asked for one."""
        self.session: object = None
        """State that the database keeps for this connection."""


class HttpRequest:
    """A request as it was read from the wire.

    Header names are in lower case. Of a repeated header, the first counts. `answer_headers` are
    complete header lines that are added to the response, whatever it is. `peer` is set by guarded
    listeners only. `unpack` is set while the body is still compressed: `unpack(request, reply,
    proceed)` either refuses the request or calls `proceed`, at once or later, with the function to
    reply with.
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
    """A response before it is encoded.

    `headers` are complete additional header lines. `checksum` is the CRC-32 of the body if it is
    already known.
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
"""Returns a refusal if the head of a request is enough to refuse it; the body is not read yet."""
Handle = Callable[[HttpRequest, Reply], None]
"""`handle(request, reply)`: `reply` may be called at once or later, on the same thread."""


class Responses:
    """Encodes responses for the wire. Subclasses add the headers of a particular service."""

    def encode(self, response: HttpResponse, request: HttpRequest) -> bytes:
        """Returns the bytes of a response to a request."""
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
        """Returns the response to a request that is not passed on; `detail` is the reason."""
        return HttpResponse(status, problem_body(status, detail), PROBLEM)

    def final(self, status: int, detail: str, headers: bytes = b"") -> bytes:
        """Returns the last bytes on a connection whose requests cannot be read."""
        return self.last(self.refusal(status, detail), headers)

    def last(self, response: HttpResponse, headers: bytes = b"") -> bytes:
        """Returns the bytes of the last response on a connection that is not read any further."""
        unread = HttpRequest()
        unread.answer_headers = headers
        unread.keep_alive = False
        return self.encode(response, unread)


def problem_body(status: int, detail: str, **members: Any) -> bytes:
    """Returns an error as a problem document (RFC 9457)."""
    title = HTTPStatus(status).phrase
    return orjson.dumps(
        {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    )


@lru_cache(maxsize=1)
def date_line(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()
