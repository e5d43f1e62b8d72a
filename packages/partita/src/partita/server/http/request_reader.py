"""Reads requests from the bytes of a connection, within limits for what a client makes us keep.

At any time a connection holds at most one unfinished header, one unfinished body, and the bytes of
one read. Complete requests are passed to the connection.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Final

import httptools

from partita.foundation.service_limits import KB, REQUEST_HEADER_BYTES_MAX
from partita.server.http.http_messages import HttpRequest

if TYPE_CHECKING:
    from partita.server.http.http_connection import HttpConnection
    from partita.server.http.listener import Listener

logger = logging.getLogger(__name__)

LARGE_BODY_BYTES: Final = 64 * KB
BODY_SLICE_BYTES: Final = 16 * KB
HEADER_SLICE_BYTES: Final = 4 * KB
UPGRADE_HEADERS: Final = (b"connection", b"upgrade", b"http2-settings")
VERSIONS: Final = ("1.0", "1.1")
CHUNKED: Final = b"chunked"
NOT_CHUNKED: Final = "The only supported Transfer-Encoding is chunked."
NOT_HTTP: Final = "This is not an HTTP/1.1 request."
LONG_HEADER: Final = f"A header may have at most {REQUEST_HEADER_BYTES_MAX} bytes."
TOO_MANY_LARGE: Final = "Too many large requests at once: try again in a moment."
CHUNKS_MAX: Final = 4_096
CHUNK_BYTES_MIN: Final = 64
"""The average size of chunks in a body with more than CHUNKS_MAX of them. Every chunk costs a
callback, so a body of one-byte chunks would take far more time than its size suggests."""
SMALL_CHUNKS: Final = (
    f"A body of more than {CHUNKS_MAX} chunks needs at least {CHUNK_BYTES_MIN} bytes in each."
)
SLASH: Final = ord("/")
KNOWN_NAMES_MAX: Final = 256
_LOWERED: Final[dict[bytes, bytes]] = {}
_ABSOLUTE: Final = re.compile(rb"https?://(?P<host>[^/?#]*)(?P<path>.*)", re.IGNORECASE)


class RequestReader:
    """Receives the callbacks of the HTTP parser. They are defined in the order of the calls."""

    def __init__(self, connection: HttpConnection, listener: Listener) -> None:
        self._connection = connection
        self._listener = listener
        self._limits = listener.limits
        # A method of dict as the callback: the parser collects headers without running Python code.
        self._headers: dict[bytes, bytes] = {}
        self.on_header: Callable[[bytes, bytes], object] = self._headers.setdefault
        if listener.is_guarded:
            # A signature covers all values of a repeated header, so none may be dropped.
            self.on_header = self._join_header
        self._parser = httptools.HttpRequestParser(self)
        self.request: HttpRequest | None = None
        """The request that is being read."""
        self.is_header_read = False
        self.owes_continue = False
        """True while the client waits for a 100 Continue before it sends the body."""
        self._has_advanced = False
        self._unfinished_bytes = 0
        self._is_header_long = False
        self._body: bytes | bytearray = b""
        self._parts = 0
        """The number of parts in which the body arrived: chunks, or reads."""

    def feed(self, data: bytes) -> None:
        # The header is only measured if it can be too long: it comes in several reads or a large
        # one.
        self._is_header_long = self.request is not None or len(data) > REQUEST_HEADER_BYTES_MAX
        if len(data) <= REQUEST_HEADER_BYTES_MAX:
            self._feed(data)
            return
        # In slices, so that the bytes of an endless header are counted while they are parsed: the
        # collected headers may be small, since only the first of a repeated header is kept.
        rest = memoryview(data)
        while rest and self._connection.takes_more:
            is_body = self.request is not None and self.is_header_read
            size = BODY_SLICE_BYTES if is_body else HEADER_SLICE_BYTES
            self._feed(rest[:size])
            rest = rest[size:]

    def _feed(self, data: bytes | memoryview) -> None:
        self._has_advanced = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_on(memoryview(data)[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(error)
        if self.request is not None and not self._has_advanced:
            # Neither a header nor the trailer of a chunked body may go on for ever.
            self._unfinished_bytes += len(data)
            if self._unfinished_bytes > REQUEST_HEADER_BYTES_MAX:
                self._connection.refuse(431, LONG_HEADER)

    def _read_on(self, rest: memoryview) -> None:
        """Parses the bytes behind an offer of HTTP/2. Pipelined requests may repeat the offer."""
        pieces: list[bytes | memoryview] = [rest, self._head_without_upgrade()]
        while pieces and not self._connection.is_refused:
            piece = pieces.pop()
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                pieces += (memoryview(piece)[upgrade.args[0] :], self._head_without_upgrade())
            except httptools.HttpParserError as error:
                self._refuse(error)
                return

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, httptools.HttpParserCallbackError):
            # This is a bug of ours, and we no longer know which responses the client still expects.
            logger.error("A request could not be taken", exc_info=error)
            self._connection.abort()
        else:
            self._connection.refuse(400, NOT_HTTP)

    def _head_without_upgrade(self) -> bytes:
        """Declines an offer to upgrade to HTTP/2, which Java's clients and others send.

        The parser regards everything after such an offer as HTTP/2. So a new parser takes over,
        beginning with the same head without the offer, which is returned here.
        """
        request = self.request
        version, keeps_alive = self._parser.get_http_version(), self._parser.should_keep_alive()
        self._parser = httptools.HttpRequestParser(self)
        if request is None or request.method == b"CONNECT":
            self._connection.refuse(400, NOT_HTTP)
            return b""
        headers = (
            b"%b: %b\r\n" % header
            for header in request.headers.items()
            if header[0] not in UPGRADE_HEADERS
        )
        return b"%b %b HTTP/%b\r\nconnection: %b\r\n%b\r\n" % (
            request.method,
            request.target,
            version.encode(),
            b"keep-alive" if keeps_alive else b"close",
            b"".join(headers),
        )

    def _join_header(self, name: bytes, value: bytes) -> None:
        """Joins the values of a repeated header with commas, as the canonical form for signing."""
        headers = self._headers
        count = len(headers)
        before = headers.setdefault(name, value)
        if len(headers) == count:
            headers[name] = b"%b,%b" % (before, value)

    def on_message_begin(self) -> None:
        self.request = HttpRequest()
        self.request.peer = self._connection.peer
        self.is_header_read = False
        self._unfinished_bytes = 0
        self._connection.since = self._listener.now

    def on_url(self, target: bytes) -> None:
        assert self.request is not None
        self.request.target += target

    def on_headers_complete(self) -> None:
        request = self.request
        assert request is not None
        # A copy: the parser reports the trailers of a chunked body as headers, and these are
        # ignored.
        headers = {_lowered(name): self._headers[name] for name in self._headers}
        if len(headers) < len(self._headers):
            headers = _merged(self._headers, is_joining=self._listener.is_guarded)
        request.headers = headers
        request.method = self._parser.get_method()
        if request.target[0] != SLASH:
            _take_authority(request)
        self.is_header_read = True
        self._has_advanced = True
        self._unfinished_bytes = 0
        self._connection.since = self._listener.now
        if self._is_header_long and _size(request) > REQUEST_HEADER_BYTES_MAX:
            self._connection.refuse(431, LONG_HEADER)
        length = headers.get(b"content-length")
        if length is None:
            if headers.get(b"transfer-encoding", CHUNKED).strip().lower() != CHUNKED:
                self._connection.refuse(501, NOT_CHUNKED)
        elif int(length) > self._limits.body_bytes_max:
            self._connection.refuse_large_body()
        elif int(length) > LARGE_BODY_BYTES:
            self._check_head(request)
        if b"expect" in headers and self._connection.takes_more:
            # HTTP/1.0 has no 100 Continue.
            is_expected = headers[b"expect"].lower() == b"100-continue"
            self.owes_continue = is_expected and self._parser.get_http_version() != "1.0"

    def _check_head(self, request: HttpRequest) -> None:
        """Refuses a large request before its body is read, if its head shows an unknown caller."""
        check_head = self._listener.check_head
        refusal = None if check_head is None else check_head(request)
        if refusal is not None:
            self._connection.refuse_with(refusal)

    def on_body(self, part: bytes) -> None:
        if not self._connection.takes_more:
            return
        self._has_advanced = True
        self._unfinished_bytes = 0
        self._parts += 1
        if not self._body:
            self._body = part
            self._parts = 1
        elif type(self._body) is bytes:
            self._body = bytearray(self._body + part)
        else:
            self._body += part
        size = len(self._body)
        if self._parts > CHUNKS_MAX and size < self._parts * CHUNK_BYTES_MIN:
            assert self.request is not None
            if b"content-length" not in self.request.headers:
                self._connection.refuse(400, SMALL_CHUNKS)
        if size > LARGE_BODY_BYTES:
            # Small bodies are not counted. Unauthenticated clients may send them, and must not use
            # up the budget for large ones.
            is_first = size - len(part) <= LARGE_BODY_BYTES
            self._listener.bodies_bytes += size if is_first else len(part)
            if is_first:
                # The length of a chunked body was unknown when its head was read.
                assert self.request is not None
                self._check_head(self.request)
        if size > self._limits.body_bytes_max:
            self._connection.refuse_large_body()
        elif size > LARGE_BODY_BYTES and self._listener.are_bodies_too_large():
            self._connection.refuse(503, TOO_MANY_LARGE)

    def on_message_complete(self) -> None:
        self._headers.clear()
        if self._parser.should_upgrade():
            return
        request = self.request
        self.request = None
        self.owes_continue = False
        if request is None or not self._connection.takes_more:
            return
        if self._body:
            request.body = bytes(self._body)
            self.drop_body()
        keeps_alive = self._parser.should_keep_alive()
        if b"connection" in request.headers or not keeps_alive:
            # Versions other than 1.1 only keep a connection alive if they have a connection header.
            version = self._parser.get_http_version()
            request.is_http_1_0 = version == "1.0"
            if version not in VERSIONS:
                self._connection.refuse(505, NOT_HTTP)
                return
        request.keep_alive = keeps_alive and not self._listener.is_stopping
        self._connection.take(request)

    def drop_body(self) -> None:
        if len(self._body) > LARGE_BODY_BYTES:
            self._listener.bodies_bytes -= len(self._body)
        self._body = b""


def _merged(headers: dict[bytes, bytes], *, is_joining: bool) -> dict[bytes, bytes]:
    """Merges headers whose names differ only in case: keeps the first value, or joins all."""
    merged: dict[bytes, bytes] = {}
    for name, value in headers.items():
        lowered = _lowered(name)
        before = merged.get(lowered)
        if before is None:
            merged[lowered] = value
        elif is_joining:
            merged[lowered] = b"%b,%b" % (before, value)
    return merged


def _lowered(name: bytes) -> bytes:
    """Returns a header's name in lower case, from a cache: clients send the same few names."""
    lowered = _LOWERED.get(name)
    if lowered is None:
        lowered = name.lower()
        if len(_LOWERED) < KNOWN_NAMES_MAX:
            _LOWERED[name] = lowered
    return lowered


def _take_authority(request: HttpRequest) -> None:
    """Splits an absolute target such as `http://host/path`. Its host replaces the Host header, as
    RFC 9112 demands."""
    match = _ABSOLUTE.fullmatch(request.target)
    if match is not None:
        path: bytes = match["path"]
        request.headers[b"host"] = match["host"]
        request.target = path if path.startswith(b"/") else b"/" + path


def _size(request: HttpRequest) -> int:
    """Returns the bytes of a request's target and headers, with their separators and line ends."""
    names_and_values = chain.from_iterable(request.headers.items())
    between = 4 * len(request.headers)
    return len(request.target) + sum(map(len, names_and_values)) + between
