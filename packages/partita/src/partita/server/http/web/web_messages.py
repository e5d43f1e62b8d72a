"""Requests and responses as the handlers of the web framework see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson

from partita.server.http.http_messages import HttpResponse, Peer, problem_body

JSON = "application/json"
PROBLEM = "application/problem+json"
TEXT = "text/plain; charset=utf-8"


class WebRequest:
    """A request for a handler. Of a repeated header, the first counts."""

    __slots__ = (
        "_headers",
        "_raw_headers",
        "_raw_query",
        "body",
        "method",
        "parameters",
        "path",
        "peer",
    )

    def __init__(self, method: bytes, target: bytes, headers: dict[bytes, bytes]) -> None:
        path, _, query = target.partition(b"?")
        self.method = method.decode("latin-1")
        self.path = path.decode("latin-1")
        """The path as it was sent, with percent escapes. `parameters` are decoded."""
        self.parameters: dict[str, str] = {}
        self.body = b""
        self.peer: Peer | None = None
        """The client; guarded listeners record it, others leave None."""
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
        """Returns a header as it was sent. Decoding one is cheaper than all `headers`."""
        return self._raw_headers.get(name)

    @property
    def headers(self) -> dict[str, str]:
        """All headers as text, with names in lower case."""
        if self._headers is None:
            self._headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in self._raw_headers.items()
            }
        return self._headers


class WebResponse:
    """A response of a handler. It must not change once it was sent, because its encoded form is
    kept and sent again."""

    __slots__ = ("_on_wire", "body", "content_type", "headers", "status")

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
        self._on_wire: HttpResponse | None = None

    @property
    def on_wire(self) -> HttpResponse:
        if self._on_wire is None:
            lines = ""
            if self.headers:
                for name, value in self.headers.items():
                    lines += f"{name}: {value}\r\n"
            self._on_wire = HttpResponse(
                self.status, self.body, self.content_type.encode(), lines.encode("latin-1")
            )
        return self._on_wire


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> WebResponse:
    return WebResponse(status, orjson.dumps(value), JSON, headers)


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **members: Any
) -> WebResponse:
    """Returns an error as a problem document (RFC 9457)."""
    return WebResponse(status, problem_body(status, detail, **members), PROBLEM, headers)


def decoded(segment: str) -> str | None:
    """Decodes a segment of a path. Returns None if it is not UTF-8."""
    if "%" not in segment:
        return segment
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return None
