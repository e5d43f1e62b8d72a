"""The listener: HTTP/1.1 over a raw asyncio protocol, bounded in every direction.

One `Connection` per socket. It hands each complete request to `handle(request, reply)`; `reply`
may be called at once or later, on the same thread, and answers leave in the order of their
requests. A client can make us hold no more than: one unfinished header, one unfinished body, the
requests of one read, and answers up to the transport's high-water mark. Time is limited by one
sweep over all connections, not by a timer for each.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import Callable
from itertools import chain
from time import monotonic
from typing import Any, Final, cast

import httptools

from partita.limits import KB, MB, REQUEST_BODY_BYTES_MAX, REQUEST_HEADER_BYTES_MAX
from partita.server.http.messages import (
    CONTINUE,
    TOO_LARGE,
    HttpRequest,
    HttpResponse,
    encode,
    final,
)
from partita.server.metrics import Metrics

logger = logging.getLogger(__name__)

Reply = Callable[[HttpResponse], None]
Handle = Callable[[HttpRequest, Reply], None]
CallSoon = Callable[[Callable[[], None]], object]

PIPELINED_MAX: Final = 128
WRITE_BYTES_MAX: Final = 256 * KB
BODIES_BYTES_MAX = 512 * MB
"""Over all connections; a large request beyond it is refused with 503."""
LARGE_BODY_BYTES: Final = 64 * KB
TOGETHER_SECONDS_MAX: Final = 0.0005
TOGETHER_BYTES_MAX: Final = 32 * KB
"""Until when answers wait for each other: then those that there are leave."""
TURN_SECONDS_MAX: Final = 0.01
"""How long requests are answered before the sockets are looked at again."""
DISCARDED_BYTES_MAX: Final = 64 * MB
BACKLOG: Final = 2048
UPGRADE_HEADERS: Final = (b"connection", b"upgrade", b"http2-settings")

SWEEP_SECONDS: Final = 1.0
HEADER_SECONDS_MAX: Final = 20
BODY_SECONDS_MAX: Final = 60
IDLE_SECONDS_MAX: Final = 120
UNREAD_SECONDS_MAX: Final = 30
CLOSING_SECONDS_MAX: Final = 5
SHUTDOWN_SECONDS_MAX: Final = 10
UNFINISHED_SECONDS_MAX: Final = 1
"""How long a shutdown waits for requests that are not wholly there."""


class Exchange:
    """One request on its way; called with the response."""

    __slots__ = ("answer", "connection", "request")

    def __init__(self, connection: Connection, request: HttpRequest) -> None:
        self.connection = connection
        self.request = request
        self.answer: bytes | None = None

    def __call__(self, response: HttpResponse) -> None:
        if self.connection.ends_with(self):
            self.request.keep_alive = False
        self.answer = encode(response, self.request)
        self.connection.answered(len(self.answer))


class Connection:
    """Callbacks of the transport and of the parser, in the order in which they come."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._transport: asyncio.Transport
        # Headers are collected without a call into Python for each.
        self._headers: dict[bytes, bytes] = {}
        self.on_header = self._headers.__setitem__
        self._parser = httptools.HttpRequestParser(self)
        # What is being read.
        self._request: HttpRequest | None = None
        self._is_header_read = False
        self._has_advanced = False
        self._unfinished_bytes = 0
        self._is_header_long = False
        self._body: bytes | bytearray = b""
        self._owes_continue = False
        # What is being answered.
        self._exchanges: deque[Exchange] = deque()
        self._unhandled: deque[Exchange] = deque()
        self._is_queued = False
        self._waiting: deque[HttpRequest] = deque()
        self._held_bytes = 0
        self._unread_since: float | None = None
        self._is_reading_paused = False
        # How it ends.
        self._is_last_taken = False
        self._is_closing = False
        self._final: bytes | None = None
        self._is_discarding = False
        self._discarded_bytes = 0
        self._since = listener.now

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not registered as asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        self._listener.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_last_taken = self._is_closing = True
        self._waiting.clear()
        self._drop_body()
        self._listener.remove(self)

    def data_received(self, data: bytes) -> None:
        if self._is_discarding:
            self._discard(len(data))
            return
        # Measured only when it can be too long: it comes in pieces, or in a large one.
        self._is_header_long = self._request is not None or len(data) > REQUEST_HEADER_BYTES_MAX
        self._has_advanced = False
        self._parse(data)
        if self._request is not None and not self._has_advanced:
            # A header, or what follows a chunked body, that does not end counts by what is read.
            self._unfinished_bytes += len(data)
            if self._unfinished_bytes > REQUEST_HEADER_BYTES_MAX:
                self._refuse_header()
        if not self._exchanges:
            self.flush()

    def _parse(self, data: bytes) -> None:
        pieces: list[bytes | memoryview] = [data]
        while pieces and self._final is None:
            piece = pieces.pop()
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                rest = memoryview(piece)[upgrade.args[0] :]
                pieces += (rest, self._head_without_upgrade())
            except httptools.HttpParserCallbackError:
                # A bug of ours: which of the answers are still to come is not known any more.
                logger.exception("A request could not be taken")
                self._transport.abort()
                return
            except httptools.HttpParserError:
                self._refuse(final(400, b"Bad Request"))

    def _head_without_upgrade(self) -> bytes:
        """The parser takes what follows an offer of HTTP/2 as such: a new one reads on."""
        request = self._request
        self._parser = httptools.HttpRequestParser(self)
        if request is None or request.method == b"CONNECT":
            self._refuse(final(400, b"Bad Request"))
            return b""
        headers = (
            b"%b: %b\r\n" % header
            for header in request.headers.items()
            if header[0] not in UPGRADE_HEADERS
        )
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method, request.target, b"".join(headers))

    def eof_received(self) -> bool:
        """A client that has sent its last request may still wait for the answer."""
        self._is_last_taken = self._is_closing = True
        return bool(self._exchanges or self._waiting) and not self._is_discarding

    def pause_writing(self) -> None:
        self._unread_since = self._listener.now
        self._pace_reading()

    def resume_writing(self) -> None:
        self._unread_since = None
        self._handle_waiting()

    # One request, as the parser finds it.

    def on_message_begin(self) -> None:
        self._request = HttpRequest()
        self._is_header_read = False
        self._has_advanced = True
        self._unfinished_bytes = 0
        self._since = self._listener.now

    def on_url(self, target: bytes) -> None:
        assert self._request is not None
        self._request.target += target

    def on_headers_complete(self) -> None:
        request = self._request
        assert request is not None
        # A copy: what follows a chunked body looks like headers too, and is not taken for them.
        request.headers = headers = {name.lower(): self._headers[name] for name in self._headers}
        request.method = self._parser.get_method()
        self._is_header_read = True
        self._has_advanced = True
        self._unfinished_bytes = 0
        self._since = self._listener.now
        if self._is_header_long and _size(request) > REQUEST_HEADER_BYTES_MAX:
            self._refuse_header()
        if int(headers.get(b"content-length", 0)) > REQUEST_BODY_BYTES_MAX:
            self._refuse(TOO_LARGE)
        elif b"expect" in headers:
            self._owes_continue = headers[b"expect"].lower() == b"100-continue"

    def on_body(self, part: bytes) -> None:
        if self._final is not None or self._is_last_taken:
            return
        self._has_advanced = True
        self._unfinished_bytes = 0
        self._listener.bodies_bytes += len(part)
        if not self._body:
            self._body = part
        elif type(self._body) is bytes:
            self._body = bytearray(self._body + part)
        else:
            self._body += part
        if len(self._body) > REQUEST_BODY_BYTES_MAX:
            self._refuse(TOO_LARGE)
        elif len(self._body) > LARGE_BODY_BYTES and self._listener.are_bodies_too_large:
            self._refuse(final(503, b"Too many large requests at once"))

    def on_message_complete(self) -> None:
        self._headers.clear()
        if self._parser.should_upgrade():
            return
        request = self._request
        self._request = None
        self._owes_continue = False
        if request is None or self._final is not None or self._is_last_taken:
            return
        if self._body:
            request.body = bytes(self._body)
            self._drop_body()
        if b"connection" in request.headers:
            request.is_http_1_0 = self._parser.get_http_version() == "1.0"
        request.keep_alive = self._parser.should_keep_alive() and not self._listener.is_stopping
        self._is_last_taken = not request.keep_alive
        if self._waiting or self._is_busy():
            self._waiting.append(request)
            self._pace_reading()
        else:
            self._handle(request)

    def _refuse_header(self) -> None:
        self._refuse(final(431, b"Request Header Fields Too Large"))

    def _drop_body(self) -> None:
        self._listener.bodies_bytes -= len(self._body)
        self._body = b""

    # Requests to answers.

    def _handle(self, request: HttpRequest) -> None:
        if self._is_last_taken and not request.keep_alive:
            self._is_closing = True
        exchange = Exchange(self, request)
        self._exchanges.append(exchange)
        self._unhandled.append(exchange)
        if not self._is_queued:
            self._is_queued = True
            self._listener.queue(self)

    def handle_next(self) -> bool:
        """Answer one request, or begin to; says whether there is another."""
        exchange = self._unhandled.popleft()
        request = exchange.request
        if b"content-encoding" in request.headers and not _decompress(request):
            self._refuse_from(exchange)
        else:
            self._listener.handle(request, exchange)
        self._is_queued = bool(self._unhandled)
        return self._is_queued

    def _refuse_from(self, exchange: Exchange) -> None:
        """A request that is too large when unpacked: it and all behind it get one answer."""
        while self._exchanges.pop() is not exchange:
            pass
        self._unhandled.clear()
        self._waiting.clear()
        self._refuse(TOO_LARGE)
        self.flush()

    def _handle_waiting(self) -> None:
        while self._waiting and not self._is_busy():
            self._handle(self._waiting.popleft())
        if not self._exchanges:
            self.flush()

    def ends_with(self, exchange: Exchange) -> bool:
        """Whether this is the last answer before a stop that came after its request."""
        return self._listener.is_stopping and exchange is self._exchanges[-1]

    def _is_busy(self) -> bool:
        return (
            self._unread_since is not None
            or self._held_bytes > WRITE_BYTES_MAX
            or len(self._exchanges) >= PIPELINED_MAX
        )

    def answered(self, size: int) -> None:
        self._held_bytes += size
        if not self._listener.sends_later(self, size):
            self.flush()

    def flush(self) -> None:
        """Send what is ready, in order; then go on with what has been waiting for it."""
        exchanges = self._exchanges
        ready = []
        while exchanges and (answer := exchanges[0].answer) is not None:
            exchanges.popleft()
            ready.append(answer)
        if ready:
            self._held_bytes = 0
            self._since = self._listener.now
            self._send(ready[0] if len(ready) == 1 else b"".join(ready))
        if self._waiting:
            if not self._is_busy():
                # Later, so that the transport can say that the client does not read.
                asyncio.get_running_loop().call_soon(self._handle_waiting)
        elif not exchanges:
            self._rest()
        if self._is_reading_paused:
            self._pace_reading()

    def _rest(self) -> None:
        """Everything is answered."""
        if self._final is not None:
            self._send_final(self._final)
        elif self._is_closing and (self._request is None or self._is_last_taken):
            self._transport.close()
        elif self._owes_continue:
            self._owes_continue = False
            self._send(CONTINUE)

    def _pace_reading(self) -> None:
        should_pause = (bool(self._waiting) or self._is_busy()) and not self._is_discarding
        if should_pause == self._is_reading_paused or self._transport.is_closing():
            return
        self._is_reading_paused = should_pause
        if should_pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _send(self, content: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(content)

    # Endings.

    def _refuse(self, answer: bytes) -> None:
        """Nothing more is read from this client: what came before is answered, then this."""
        if self._final is None:
            self._final = answer
            self._drop_body()

    def _send_final(self, answer: bytes) -> None:
        """Closing over unread input would reset the connection and lose the answer: discard it."""
        if self._is_discarding or self._transport.is_closing():
            return
        self._is_discarding = True
        self._since = self._listener.now
        self._send(answer)
        if self._is_last_taken:
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > DISCARDED_BYTES_MAX:
            self._transport.abort()

    def sweep(self, now: float) -> None:
        """End what has taken too long."""
        if self._is_discarding:
            if now - self._since > CLOSING_SECONDS_MAX:
                self._transport.abort()
        elif self._unread_since is not None:
            if now - self._unread_since > UNREAD_SECONDS_MAX:
                self._transport.abort()
        elif self._exchanges or self._waiting:
            return
        elif self._request is not None:
            limit = BODY_SECONDS_MAX if self._is_header_read else HEADER_SECONDS_MAX
            if now - self._since > limit:
                self._refuse(final(408, b"Request Timeout"))
                self.flush()
        elif now - self._since > IDLE_SECONDS_MAX:
            self._transport.close()

    def stop(self) -> None:
        """Finish what is in flight, then close."""
        self._is_closing = True
        self.flush()

    @property
    def is_answering(self) -> bool:
        is_unsent = self._transport.get_write_buffer_size() > 0
        return bool(self._exchanges or self._waiting or is_unsent)

    def abort(self) -> None:
        self._transport.abort()


def _size(request: HttpRequest) -> int:
    """Bytes of a request's line and headers."""
    names_and_values = chain.from_iterable(request.headers.items())
    return len(request.target) + sum(map(len, names_and_values))


def _decompress(request: HttpRequest) -> bool:
    """False when the content is larger than a body may be. Other rubbish is left as it is."""
    if request.headers[b"content-encoding"].strip().lower() != b"gzip":
        return True
    unpack = zlib.decompressobj(wbits=31)
    try:
        body = unpack.decompress(request.body, REQUEST_BODY_BYTES_MAX + 1)
    except zlib.error:
        return True
    if len(body) > REQUEST_BODY_BYTES_MAX:
        return False
    if unpack.eof:
        request.body = body
    return True


def _not_started(function: Callable[[], None]) -> None:
    raise AssertionError("The listener has not been started.")


class Listener:
    """Accepts connections and hands their requests to `handle`."""

    def __init__(self, handle: Handle, metrics: Metrics, call_soon: CallSoon | None = None) -> None:
        self.handle = handle
        self.now = 0.0
        self.bodies_bytes = 0
        self.is_stopping = False
        self._metrics = metrics
        self._queue: deque[Connection] = deque()
        self._is_answering = False
        self._answered: list[Connection] = []
        self._answered_bytes = 0
        self._call_soon: CallSoon = call_soon or _not_started
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def are_bodies_too_large(self) -> bool:
        return self.bodies_bytes > BODIES_BYTES_MAX

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chooses when 0 is given."""
        loop = asyncio.get_running_loop()
        self._call_soon = loop.call_soon
        # A protocol in all but name: a class with a base of Python's own is slower when compiled.
        connect = cast("Callable[[], asyncio.Protocol]", lambda: Connection(self))
        self._server = await loop.create_server(connect, host, port, backlog=BACKLOG)
        self._sweep(loop)
        # A list in uvloop, a tuple in asyncio.
        server: Any = self._server
        address = server.sockets[0].getsockname()
        return int(address[1])

    async def stop(self) -> None:
        """Accept nothing more, let requests in flight finish, close all connections."""
        self.is_stopping = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.stop()
        loop = asyncio.get_running_loop()
        started = loop.time()
        while self._connections and (seconds := loop.time() - started) < SHUTDOWN_SECONDS_MAX:
            is_answering = any(connection.is_answering for connection in self._connections)
            if seconds > UNFINISHED_SECONDS_MAX and not is_answering:
                break
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def queue(self, connection: Connection) -> None:
        """Requests that one look at the sockets brings are answered together, after it.

        Going from socket to socket and then from request to request, each over the same code, is a
        third faster than alternating between the two. Of each connection one request is answered
        in turn.
        """
        if not self._queue:
            self._call_soon(self._answer_queued)
        self._queue.append(connection)

    def _answer_queued(self) -> None:
        queue = self._queue
        now = monotonic()
        ends, sends = now + TURN_SECONDS_MAX, now + TOGETHER_SECONDS_MAX
        self._is_answering = True
        while queue and now <= ends:
            connection = queue.popleft()
            try:
                if connection.handle_next():
                    queue.append(connection)
            except Exception:
                # A bug of ours: without its answer, none behind it can be sent.
                logger.exception("A request could not be answered")
                connection.abort()
            now = monotonic()
            if now > sends:
                self._send_answered()
                sends = now + TOGETHER_SECONDS_MAX
        self._is_answering = False
        self._send_answered()
        if queue:
            self._call_soon(self._answer_queued)

    def sends_later(self, connection: Connection, size: int) -> bool:
        """Whether an answer waits for others of its round.

        To wake a client between any two requests would cost as much as answering them does.
        """
        if not self._is_answering or self._answered_bytes + size > TOGETHER_BYTES_MAX:
            return False
        self._answered.append(connection)
        self._answered_bytes += size
        return True

    def _send_answered(self) -> None:
        answered, self._answered = self._answered, []
        self._answered_bytes = 0
        for connection in answered:
            connection.flush()

    def add(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._metrics.connections += 1

    def remove(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._metrics.connections -= 1

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = loop.time()
        for connection in list(self._connections):
            connection.sweep(self.now)
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep, loop)
