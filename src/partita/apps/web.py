"""The small HTTP service that the apps stand on: a router, and connections bounded in every way.

    web = Web()
    web.add("GET", "/metrics/{name}", handler)      # async handler(request) -> Response
    await web.serve("127.0.0.1", 8080, ready=print)

The requests of one connection are handled one after the other, in a task that lives as long as the
connection; so answers keep their order, and a client that sends ahead holds up nobody but itself.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar, cast

import httptools

from partita.apps.messages import CONTINUE, Request, Response, encode, json_response, problem
from partita.apps.routes import Handler, Routes
from partita.errors import PartitaError
from partita.limits import KB, MB

__all__ = ["Request", "Response", "Web", "json_response", "problem", "run"]

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 1 * MB
HEADER_BYTES_MAX = 16 * KB
WAITING_REQUESTS_MAX = 32
"""Sent ahead on one connection before it is read no further."""
UPGRADE_HEADERS = {b"connection", b"upgrade", b"http2-settings"}
SWEEP_SECONDS = 1.0
REQUEST_SECONDS_MAX = 30
"""From the first byte of a request to its last."""
IDLE_SECONDS_MAX = 120
UNREAD_SECONDS_MAX = 30
"""How long a client may leave answers unread."""
DISCARDING_SECONDS_MAX = 5
STOP_SECONDS_MAX = 10
BACKLOG = 2048
T = TypeVar("T")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
GC_OBJECTS = 10_000


class Connection(asyncio.Protocol):
    """Callbacks of the transport and of the parser, and the task that answers."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        # What is being read. Headers are collected without a call into Python for each.
        self._headers: dict[bytes, bytes] = {}
        self.on_header = self._headers.__setitem__
        self._parser = httptools.HttpRequestParser(self)
        self._is_reading = False
        self._is_header_read = False
        self._header_bytes = 0
        self._is_header_long = False
        self._target = b""
        self._read_headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        # What is being answered.
        self._waiting: deque[Request] = deque()
        self._turn: asyncio.Future[None] | None = None
        self._is_answering = False
        self._unsent = b""
        self._is_paused = False
        self._can_write: asyncio.Future[None] | None = None
        # How it ends.
        self._is_last_taken = False
        self._is_lost = False
        self._is_discarding = False
        self._since = web.now

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not registered as asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._web.connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._answer_all())

    def connection_lost(self, error: Exception | None) -> None:
        self._web.connections.discard(self)
        self._is_lost = True
        # What a handler has begun it may finish: it could be half way through two writes.
        if self._task is not None and not self._is_answering:
            self._task.cancel()

    def eof_received(self) -> bool:
        """A client that has sent its last request may still wait for the answer."""
        self._is_last_taken = True
        return self.is_busy

    def pause_writing(self) -> None:
        self._can_write = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        waiting, self._can_write = self._can_write, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    # One request, as the parser finds it.

    def data_received(self, data: bytes) -> None:
        if self._is_last_taken:
            return
        # Measured only when it can be too long: it comes in pieces, or in a large one.
        is_begun = self._is_reading and not self._is_header_read
        self._is_header_long = is_begun or len(data) > HEADER_BYTES_MAX
        if is_begun or not self._is_reading:
            self._header_bytes += len(data)
        self._parse(data)
        if self._is_reading and not self._is_header_read and self._header_bytes > HEADER_BYTES_MAX:
            self._refuse(problem(431, f"A header may have {HEADER_BYTES_MAX} bytes."))

    def _parse(self, data: bytes) -> None:
        pieces: list[bytes | memoryview] = [data]
        while pieces and not self._is_last_taken:
            piece = pieces.pop()
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                pieces += (memoryview(piece)[upgrade.args[0] :], self._head_without_upgrade())
            except httptools.HttpParserError:
                self._refuse(problem(400, "This is not a request of HTTP/1.1."))

    def _head_without_upgrade(self) -> bytes:
        """Java's and other clients offer HTTP/2 with every request, which is declined: a new parser
        reads on, for this one takes all that follows for HTTP/2.
        """
        method = self._parser.get_method()
        self._parser = httptools.HttpRequestParser(self)
        if method == b"CONNECT":
            self._refuse(problem(400, "This is no proxy."))
        kept = (item for item in self._read_headers.items() if item[0] not in UPGRADE_HEADERS)
        lines = b"".join(b"%b: %b\r\n" % header for header in kept)
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self._target, lines)

    def on_message_begin(self) -> None:
        self._is_reading = True
        self._is_header_read = False
        self._since = self._web.now
        self._target = b""

    def on_url(self, target: bytes) -> None:
        self._target += target

    def on_headers_complete(self) -> None:
        self._is_header_read = True
        self._header_bytes = 0
        headers = {name.lower(): value for name, value in self._headers.items()}
        self._read_headers = headers
        self._headers.clear()
        self._request = Request(self._parser.get_method(), self._target, headers)
        if self._is_header_long and self._has_too_long_header(headers):
            self._refuse(problem(431, f"A header may have {HEADER_BYTES_MAX} bytes."))
        elif int(headers.get(b"content-length", 0)) > self._web.body_bytes_max:
            self._refuse_body()
        elif self._parser.should_upgrade():
            # It is read once more, without the offer.
            return
        elif headers.get(b"expect", b"").lower() == b"100-continue" and not self.is_busy:
            self._transport.write(CONTINUE)

    def _has_too_long_header(self, headers: dict[bytes, bytes]) -> bool:
        sizes = (len(name) + len(value) for name, value in headers.items())
        return len(self._target) + sum(sizes) > HEADER_BYTES_MAX

    def on_body(self, part: bytes) -> None:
        self._body.append(part)
        self._body_bytes += len(part)
        if self._body_bytes > self._web.body_bytes_max:
            self._refuse_body()

    def _refuse_body(self) -> None:
        self._refuse(problem(413, f"A body may have {self._web.body_bytes_max} bytes."))

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        self._is_reading = False
        # What follows a chunked body looks like headers too.
        self._headers.clear()
        body, self._body = self._body, []
        self._body_bytes = 0
        if self._is_last_taken:
            return
        request = self._request
        request.body = body[0] if len(body) == 1 else b"".join(body)
        request.keep_alive = self._parser.should_keep_alive() and not self._web.is_stopping
        request.is_http_1_0 = self._parser.get_http_version() == "1.0"
        self._is_last_taken = not request.keep_alive
        self._take(request)

    def _refuse(self, answer: Response) -> None:
        """Nothing more is read: what came before is answered, then this."""
        if self._is_last_taken:
            return
        self._is_last_taken = True
        self._is_reading = False
        request = Request(b"GET", b"/", {})
        request.keep_alive = False
        request.refusal = answer
        self._take(request)

    # Requests to answers.

    def _take(self, request: Request) -> None:
        self._waiting.append(request)
        if len(self._waiting) >= WAITING_REQUESTS_MAX and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._turn = loop.create_future()
                await self._turn
            if self._can_write is not None:
                await self._can_write
            request = self._waiting.popleft()
            self._is_answering = True
            response = request.refusal or await self._web.answer(request)
            self._is_answering = False
            if self._is_lost:
                return
            if (self._web.is_stopping or self._is_last_taken) and not self._waiting:
                request.keep_alive = False
            self._unsent += encode(response, request)
            self._since = self._web.now
            if not request.keep_alive:
                self._write()
                self._end(request)
                return
            if self._waiting:
                self._write()
            else:
                self._web.send_later(self)
            if self._is_paused and len(self._waiting) < WAITING_REQUESTS_MAX // 2:
                self._is_paused = False
                self._transport.resume_reading()

    def send(self) -> None:
        """The answer that waited for those of others."""
        if self._unsent and not self._is_lost:
            self._write()
            if self._is_last_taken and not self.is_busy:
                self._transport.close()
            elif self._web.is_stopping:
                self.stop()

    def _write(self) -> None:
        self._transport.write(self._unsent)
        self._unsent = b""

    @property
    def is_busy(self) -> bool:
        return bool(self._is_answering or self._waiting or self._unsent)

    # Endings.

    def _end(self, request: Request) -> None:
        """Closing over unread input would reset the connection and lose a refusal: discard it."""
        if request.refusal is not None and self._transport.can_write_eof():
            self._is_discarding = True
            self._transport.write_eof()
        else:
            self._transport.close()

    def sweep(self, now: float) -> None:
        """End what has taken too long."""
        if self._is_discarding:
            if now - self._since > DISCARDING_SECONDS_MAX:
                self._transport.abort()
            return
        if self._can_write is not None and not self._is_answering:
            if now - self._since > UNREAD_SECONDS_MAX:
                self._transport.abort()
        elif self.is_busy:
            return
        elif self._is_reading:
            if now - self._since > REQUEST_SECONDS_MAX:
                self._refuse(problem(408, "The request did not arrive in time."))
        elif now - self._since > IDLE_SECONDS_MAX:
            self._transport.close()

    def stop(self) -> None:
        if not self.is_busy and not self._is_reading:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


class Web:
    """Routes, and the connections that are served with them."""

    def __init__(self, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self.body_bytes_max = body_bytes_max
        self.connections: set[Connection] = set()
        self.is_stopping = False
        self.now = 0.0
        self._routes = Routes()
        self._answered: list[Connection] = []
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    def add(self, method: str, path: str, handler: Handler) -> None:
        """`path` may have parameters: "/metrics/{name}"."""
        self._routes.add(method, path, handler)

    async def answer(self, request: Request) -> Response:
        handler = self._routes.find(request)
        if isinstance(handler, Response):
            return handler
        try:
            return await handler(request)
        except Exception:
            logger.exception("%s %s could not be answered", request.method, request.path)
            return problem(500, "Something unexpected happened; the log of the service has more.")

    def send_later(self, connection: Connection) -> None:
        """With the other answers of this turn of the loop: to wake a client between any two of them
        would cost as much as answering does.
        """
        if not self._answered:
            asyncio.get_running_loop().call_soon(self._send_answered)
        self._answered.append(connection)

    def _send_answered(self) -> None:
        answered, self._answered = self._answered, []
        for connection in answered:
            connection.send()

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chooses when 0 is given."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self), host, port, backlog=BACKLOG
            )
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise PartitaError(f"Cannot listen on {host}:{port}: {reason}.") from error
        self._sweep(loop)
        # A list in uvloop, a tuple in asyncio.
        server: Any = self._server
        return int(server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Accept nothing more, let requests in flight finish, close all connections."""
        self.is_stopping = True
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.stop()
        loop = asyncio.get_running_loop()
        ends = loop.time() + STOP_SECONDS_MAX
        while self.connections and loop.time() < ends:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()

    async def serve(self, host: str, port: int, ready: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM; `ready` gets the URL once requests are accepted."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        chosen = await self.start(host, port)
        # What there is by now stays, and requests leave no cycles behind: the collector of cycles
        # may look at less, and come less often.
        gc.freeze()
        gc.set_threshold(GC_OBJECTS)
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{chosen}")
        await stop.wait()
        await self.stop()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = loop.time()
        for connection in list(self.connections):
            connection.sweep(self.now)
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep, loop)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a main coroutine on the fastest loop there is."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())
