"""Requests and responses of the apps, and the bytes of a response on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson

JSON = "application/json"
PROBLEM = "application/problem+json"
TEXT = "text/plain; charset=utf-8"

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_BODILESS = {204, 304}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Request:
    """One request. Of a repeated header, the last counts."""

    __slots__ = (
        "_headers",
        "_raw_headers",
        "_raw_query",
        "body",
        "is_http_1_0",
        "keep_alive",
        "method",
        "parameters",
        "path",
        "refusal",
    )

    def __init__(self, method: bytes, target: bytes, headers: dict[bytes, bytes]) -> None:
        path, _, query = target.partition(b"?")
        self.method = method.decode("latin-1")
        self.path = path.decode("latin-1")
        """As it was sent: `parameters` are decoded."""
        self.parameters: dict[str, str] = {}
        self.body = b""
        self.keep_alive = True
        self.is_http_1_0 = False
        self.refusal: Response | None = None
        """The answer to what could not be read."""
        self._raw_query = query
        self._raw_headers = headers
        self._headers: dict[str, str] | None = None

    @property
    def query(self) -> list[tuple[str, str]]:
        if not self._raw_query:
            return []
        return parse_qsl(self._raw_query.decode("latin-1"), keep_blank_values=True)

    @property
    def query_string(self) -> bytes:
        """The query as it was sent."""
        return self._raw_query

    def header(self, name: bytes) -> bytes | None:
        """As it was sent: for what every request is asked."""
        return self._raw_headers.get(name)

    @property
    def headers(self) -> dict[str, str]:
        """Names are in lower case."""
        if self._headers is None:
            self._headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in self._raw_headers.items()
            }
        return self._headers


class Response:
    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"",
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(status, orjson.dumps(value), JSON, headers)


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **members: Any
) -> Response:
    """An error in words (RFC 9457)."""
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    return Response(status, orjson.dumps(body), PROBLEM, headers)


def decoded(segment: str) -> str | None:
    """A segment of a path; None when it is no UTF-8."""
    if "%" not in segment:
        return segment
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return None


def encode(response: Response, request: Request) -> bytes:
    """The bytes of a response to a request."""
    lines = ""
    if response.status not in _BODILESS:
        lines = f"content-type: {response.content_type}\r\ncontent-length: {len(response.body)}\r\n"
    if response.headers:
        for name, value in response.headers.items():
            lines += f"{name}: {value}\r\n"
    if not request.keep_alive:
        lines += "connection: close\r\n"
    elif request.is_http_1_0:
        lines += "connection: keep-alive\r\n"
    has_body = response.status not in _BODILESS and request.method != "HEAD"
    return b"%b%b%b\r\n%b" % (
        _STATUS_LINES[response.status],
        _date_line(int(time())),
        lines.encode("latin-1"),
        response.body if has_body else b"",
    )


@lru_cache(maxsize=1)
def _date_line(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()
