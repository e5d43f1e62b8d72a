"""Requests and responses, and the bytes of a response on the wire.

Every answer carries what the service sends: a request id of 52 characters, the CRC-32 of the body
as it travels, and its type and length. (dynalite's tests recorded them from AWS.)
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from itertools import count
from secrets import token_hex
from time import time
from zlib import crc32

JSON = b"application/json"
JSON_1_0 = b"application/x-amz-json-1.0"
# Small bodies gain nothing; DynamoDB compresses larger ones when asked.
GZIP_BYTES_MIN = 1024
GZIP_LEVEL = 1

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\nserver: Server\r\n".encode()
    for status in HTTPStatus
}
_CONNECTION = {True: b"", False: b"connection: close\r\n"}


@dataclass(slots=True)
class Request:
    method: bytes = b""
    target: bytes = b""
    headers: dict[bytes, bytes] = field(default_factory=dict)
    """Names in lower case; of a repeated header, the last."""
    body: bytes = b""
    keep_alive: bool = True
    is_http_1_0: bool = False

    def accepts_gzip(self) -> bool:
        accepted = self.headers.get(b"accept-encoding")
        return accepted is not None and b"gzip" in accepted


@dataclass(slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: bytes = JSON_1_0
    headers: bytes = b""
    """Complete header lines, for the few answers that need more."""


_REQUEST_ID_SUFFIXES = [b"%03X" % number for number in range(4096)]


def _request_ids() -> Iterator[bytes]:
    process = token_hex(16).upper().encode()
    for number in count(int(token_hex(8), 16)):
        start = process + b"%017X" % number
        for suffix in _REQUEST_ID_SUFFIXES:
            yield start + suffix


_next_request_id = _request_ids().__next__


class _Date:
    """The date header's line, made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._line = b""

    def line(self) -> bytes:
        second = int(time())
        if second != self._second:
            self._second = second
            self._line = f"date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._line


_date_line = _Date().line


def encode(response: Response, request: Request) -> bytes:
    """The bytes of a response to a request."""
    body = response.body
    more = response.headers
    if len(body) >= GZIP_BYTES_MIN and request.accepts_gzip():
        body = gzip.compress(body, GZIP_LEVEL, mtime=0)
        more += b"content-encoding: gzip\r\n"
    connection = _CONNECTION[request.keep_alive]
    if request.is_http_1_0 and request.keep_alive:
        connection = b"connection: keep-alive\r\n"
    if b"origin" in request.headers:
        more += b"access-control-allow-origin: *\r\n"
    head = (
        b"%b%bcontent-type: %b\r\ncontent-length: %d\r\n"
        b"x-amzn-requestid: %b\r\nx-amz-crc32: %d\r\n%b%b\r\n"
    ) % (
        _STATUS_LINES[response.status],
        _date_line(),
        response.content_type,
        len(body),
        _next_request_id(),
        crc32(body),
        more,
        connection,
    )
    return head if request.method == b"HEAD" else head + body


def final(status: int, body: bytes = b"") -> bytes:
    """The last answer on a connection whose requests cannot be read."""
    return (
        b"%bcontent-type: text/plain\r\ncontent-length: %d\r\nx-amzn-requestid: %b\r\n"
        b"connection: close\r\n\r\n%b"
    ) % (_STATUS_LINES[status], len(body), _next_request_id(), body)


# The service answers this one in chunks, none of them (dynalite).
TOO_LARGE = _STATUS_LINES[413] + (
    b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n"
)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
