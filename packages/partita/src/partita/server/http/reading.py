"""From bytes to requests: callbacks of the parser, and what a client may make us hold meanwhile.

One unfinished header, one unfinished body, and what one read brings. A request that is complete
goes to the connection.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Final

import httptools

from partita.limits import KB, REQUEST_HEADER_BYTES_MAX
from partita.server.http.messages import HttpRequest

if TYPE_CHECKING:
    from partita.server.http.connection import Connection
    from partita.server.http.listener import Listener

logger = logging.getLogger(__name__)

LARGE_BODY_BYTES: Final = 64 * KB
BODY_SLICE_BYTES: Final = 16 * KB
HEADER_SLICE_BYTES: Final = 4 * KB
UPGRADE_HEADERS: Final = (b"connection", b"upgrade", b"http2-settings")
VERSIONS: Final = ("1.0", "1.1")
CHUNKED: Final = b"chunked"
NOT_CHUNKED: Final = "The only Transfer-Encoding that is known is chunked."
NOT_HTTP: Final = "This is not a request of HTTP/1.1."
LONG_HEADER: Final = f"A header may have {REQUEST_HEADER_BYTES_MAX} bytes."
TOO_MANY_LARGE: Final = "Too many large requests at once: try again in a moment."
CHUNKS_MAX: Final = 4_096
CHUNK_BYTES_MIN: Final = 64
"""On average, of a body in more chunks than that: each costs as much as many bytes do."""
SMALL_CHUNKS: Final = f"So many chunks have {CHUNK_BYTES_MIN} bytes each, or more."
SLASH: Final = ord("/")
KNOWN_NAMES_MAX: Final = 256
_LOWERED: Final[dict[bytes, bytes]] = {}
_ABSOLUTE: Final = re.compile(rb"https?://(?P<host>[^/?#]*)(?P<path>.*)", re.IGNORECASE)


class RequestReader:
    """Callbacks of the parser, in the order in which they come."""

    def __init__(self, connection: Connection, listener: Listener) -> None:
        self._connection = connection
        self._listener = listener
        self._limits = listener.limits
        # Headers are collected without a call into Python for each.
        self._headers: dict[bytes, bytes] = {}
        self.on_header: Callable[[bytes, bytes], object] = self._headers.setdefault
        if listener.is_guarded:
            # All that came is signed, so all of it counts.
            self.on_header = self._join_header
        self._parser = httptools.HttpRequestParser(self)
        self.request: HttpRequest | None = None
        """What is being read."""
        self.is_header_read = False
        self.owes_continue = False
        """The client waits for leave to send the body."""
        self._has_advanced = False
        self._unfinished_bytes = 0
        self._is_header_long = False
        self._body: bytes | bytearray = b""
        self._parts = 0
        """Of the body: its chunks, or what each read brought."""

    def feed(self, data: bytes) -> None:
        # Measured only when it can be too long: it comes in pieces, or in a large one.
        self._is_header_long = self.request is not None or len(data) > REQUEST_HEADER_BYTES_MAX
        if len(data) <= REQUEST_HEADER_BYTES_MAX:
            self._feed(data)
            return
        # In slices: of headers that are repeated only the first is kept, so all are counted here.
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
            # A header, or what follows a chunked body, that does not end counts by what is read.
            self._unfinished_bytes += len(data)
            if self._unfinished_bytes > REQUEST_HEADER_BYTES_MAX:
                self._connection.refuse(431, LONG_HEADER)

    def _read_on(self, rest: memoryview) -> None:
        """Behind an offer of HTTP/2, of which there may be more."""
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
            # A bug of ours: which of the answers are still to come is not known any more.
            logger.error("A request could not be taken", exc_info=error)
            self._connection.abort()
        else:
            self._connection.refuse(400, NOT_HTTP)

    def _head_without_upgrade(self) -> bytes:
        """Java's and other clients offer HTTP/2 with a request, which is declined: a new parser
        reads on, for this one takes all that follows for HTTP/2."""
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
        """As a signer writes a header that is repeated: its values in one line."""
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
        # A copy: what follows a chunked body looks like headers too, and is not taken for them.
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
            # Those who speak HTTP/1.0 do not know of it.
            is_asked = headers[b"expect"].lower() == b"100-continue"
            self.owes_continue = is_asked and self._parser.get_http_version() != "1.0"

    def _check_head(self, request: HttpRequest) -> None:
        """Before much is read: refuse who is unknown already by what the head says."""
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
            # Small ones are those of strangers, too, who must not take what there is for large.
            is_first = size - len(part) <= LARGE_BODY_BYTES
            self._listener.bodies_bytes += size if is_first else len(part)
            if is_first:
                # Of a chunked body nobody knew how long it would be.
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
            # Of another version than 1.1, none is kept alive unless it asks.
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
    """Of headers whose names differ in their case only, the first, or all their values."""
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
    """A header's name in lower case; clients send the same ones again and again."""
    lowered = _LOWERED.get(name)
    if lowered is None:
        lowered = name.lower()
        if len(_LOWERED) < KNOWN_NAMES_MAX:
            _LOWERED[name] = lowered
    return lowered


def _take_authority(request: HttpRequest) -> None:
    """Of a target with a scheme and a host, which then counts, whatever the header says."""
    found = _ABSOLUTE.fullmatch(request.target)
    if found is not None:
        path: bytes = found["path"]
        request.headers[b"host"] = found["host"]
        request.target = path if path.startswith(b"/") else b"/" + path


def _size(request: HttpRequest) -> int:
    """Bytes of a request's line and headers, with what stands between and behind them."""
    names_and_values = chain.from_iterable(request.headers.items())
    between = 4 * len(request.headers)
    return len(request.target) + sum(map(len, names_and_values)) + between
