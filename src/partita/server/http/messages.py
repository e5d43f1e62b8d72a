"""Requests and responses, and the bytes of a response on the wire.

Every answer carries what the service sends: a request id of 52 characters, the CRC-32 of the body
as it travels, and its type and length. (dynalite's tests recorded them from AWS.)
"""

from __future__ import annotations

import gzip
import re
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from itertools import count
from secrets import token_hex
from time import time
from typing import Final
from zlib import crc32

from partita.limits import KB, MB

JSON: Final = b"application/json"
JSON_1_0: Final = b"application/x-amz-json-1.0"
JSON_1_1: Final = b"application/x-amz-json-1.1"
CBOR_1_1: Final = b"application/x-amz-cbor-1.1"
OF_KINESIS: Final = (JSON_1_1, CBOR_1_1)
# DynamoDB compresses answers when asked, Kinesis does not. Small ones gain nothing, and the
# largest, of BatchGetItem, would keep all others waiting.
GZIP_BYTES_MIN: Final = 1 * KB
GZIP_BYTES_MAX: Final = 1 * MB
GZIP_LEVEL: Final = 1

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\nserver: Server\r\n".encode()
    for status in HTTPStatus
}
_REFUSED: Final = re.compile(rb"q\s*=\s*0(\.0*)?")
_CONNECTION: Final = {True: b"", False: b"connection: close\r\n"}


class HttpRequest:
    """Header names are in lower case; of a repeated header, the last counts."""

    __slots__ = ("body", "headers", "is_http_1_0", "keep_alive", "method", "target")

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

    def accepts_gzip(self) -> bool:
        accepted = self.headers.get(b"accept-encoding")
        return accepted is not None and _names_gzip(accepted)


@lru_cache(maxsize=64)
def _names_gzip(accepted: bytes) -> bool:
    """Whether gzip is among the codings, and not with a quality of zero, which refuses it."""
    for coding in accepted.lower().split(b","):
        name, _, quality = coding.partition(b";")
        if name.strip() == b"gzip":
            return not _REFUSED.fullmatch(quality.strip())
    return False


class HttpResponse:
    """`headers` are complete header lines, for the few answers that need more.

    `checksum` is the CRC-32 of the body, where it is known.
    """

    __slots__ = ("body", "checksum", "content_type", "headers", "status")

    def __init__(
        self, status: int, body: bytes = b"", content_type: bytes = JSON_1_0, headers: bytes = b""
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers
        self.checksum: int | None = None


_REQUEST_ID: Final = f"{token_hex(20).upper()}%012X".encode()
_next_request_id: Final = map(_REQUEST_ID.__mod__, count()).__next__


@lru_cache(maxsize=1)
def _date_line(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()


def encode(response: HttpResponse, request: HttpRequest) -> bytes:
    """The bytes of a response to a request."""
    body = response.body
    more = response.headers
    checksum = response.checksum
    is_worth_it = GZIP_BYTES_MIN <= len(body) <= GZIP_BYTES_MAX
    if is_worth_it and response.content_type not in OF_KINESIS and request.accepts_gzip():
        body = gzip.compress(body, GZIP_LEVEL, mtime=0)
        more += b"content-encoding: gzip\r\n"
        checksum = None
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
        _date_line(int(time())),
        response.content_type,
        len(body),
        _next_request_id(),
        crc32(body) if checksum is None else checksum,
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
TOO_LARGE: Final = _STATUS_LINES[413] + (
    b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n"
)
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
