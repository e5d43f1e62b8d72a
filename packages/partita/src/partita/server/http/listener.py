"""The listener: accepts connections and passes their requests to `handle`, round by round.

It speaks HTTP/1.1 over a raw asyncio protocol. Time limits are enforced by one sweep over all
connections, because a timer for each connection would cost more than its requests.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections import Counter, deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, cast

from partita.errors import PartitaError
from partita.foundation.service_limits import KB
from partita.server.http.connection_limits import ConnectionLimits
from partita.server.http.content_encodings import TooLarge, WrongEncoding, unpack
from partita.server.http.cors import AllowedOrigins
from partita.server.http.host_header import AllowedHosts
from partita.server.http.http_connection import HttpConnection
from partita.server.http.http_messages import (
    CheckHead,
    Handle,
    HttpRequest,
    HttpResponse,
    Reply,
    Responses,
)
from partita.server.http.request_reader import LARGE_BODY_BYTES, TOO_MANY_LARGE

logger = logging.getLogger(__name__)

CallSoon = Callable[[Callable[[], None]], object]
Count = Callable[[int], None]

BATCH_SECONDS_MAX: Final = 0.0005
BATCH_BYTES_MAX: Final = 32 * KB
"""The time, and the number of bytes, for which responses of a round wait to be sent together."""
TURN_SECONDS_MAX: Final = 0.01
"""The time for which requests are answered before the event loop polls the sockets again."""
UNPACKED_AT_ONCE_BYTES: Final = 256 * KB
"""Decompressing this much takes half a millisecond. Larger content is decompressed in a thread."""
UNPACKING_MAX: Final = 2
"""The number of bodies that threads decompress at once. Each may take twice the largest size of a
body, and this memory is not counted in `bodies_bytes` yet."""
BACKLOG: Final = 2048
SHUTDOWN_SECONDS_MAX: Final = 10
UNFINISHED_SECONDS_MAX: Final = 1
"""The time that a shutdown waits for requests that have not arrived completely."""
HANDSHAKE_SECONDS_MAX: Final = 10.0
"""The time that a client may take for a TLS handshake, and for the closing one."""


def _not_started(function: Callable[[], None]) -> None:
    raise AssertionError("The listener has not been started.")


def _count_nothing(change: int) -> None:
    pass


class Listener:
    """Accepts connections and passes their requests to `handle`.

    `responses` encodes responses, `hosts` says which host names are answered, and `origins` whose
    pages may send requests (without it, `handle` decides that). `count` is called with +1 and -1
    when a connection opens and closes.

    A guarded listener records the peer of each request, and joins the values of a repeated header
    instead of taking the first, as signers do. It can limit the connections of one address.

    With `check_head`, large bodies of unauthenticated clients are not read, and `handle` must
    decompress bodies itself once it knows who sent them.
    """

    def __init__(
        self,
        handle: Handle,
        responses: Responses,
        *,
        limits: ConnectionLimits | None = None,
        hosts: AllowedHosts | None = None,
        origins: AllowedOrigins | None = None,
        count: Count = _count_nothing,
        is_guarded: bool = False,
        check_head: CheckHead | None = None,
        connections_per_address_max: int = 0,
        call_soon: CallSoon = _not_started,
    ) -> None:
        self.handle = handle
        self.responses = responses
        self.limits = limits or ConnectionLimits()
        self.hosts = hosts or AllowedHosts()
        self.origins = origins
        self.now = 0.0
        self.bodies_bytes = 0
        self.is_stopping = False
        self.is_guarded = is_guarded
        self.check_head = check_head
        self._connections_per_address_max = connections_per_address_max
        self._addresses: Counter[str] = Counter()
        self._count = count
        self._queue: deque[HttpConnection] = deque()
        self.is_in_round = False
        """True while a round of requests is being answered."""
        self._answered: list[HttpConnection] = []
        self._answered_bytes = 0
        self._call_soon = call_soon
        self._connections: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self.unpacking: set[asyncio.Task[None]] = set()
        self._unpackers = asyncio.Semaphore(UNPACKING_MAX)

    def are_bodies_too_large(self) -> bool:
        return self.bodies_bytes > self.limits.bodies_bytes_max

    @property
    def large_body(self) -> str:
        return f"A body may have {self.limits.body_bytes_max} bytes."

    def unpack(
        self,
        abort: Callable[[], None],
        request: HttpRequest,
        reply: Reply,
        proceed: Callable[[Reply], None],
    ) -> None:
        """Decompresses the body of a request, then calls `proceed` with a reply, or refuses.

        Large content is decompressed in a thread, so that other requests are answered meanwhile.
        The decompressed size counts towards `bodies_bytes_max` until the request is answered.
        """
        packed = request.body
        try:
            body = unpack(request.headers[b"content-encoding"], packed, UNPACKED_AT_ONCE_BYTES)
        except TooLarge:
            task = asyncio.get_running_loop().create_task(
                self._unpack_later(abort, request, packed, reply, proceed)
            )
            self.unpacking.add(task)
            task.add_done_callback(self.unpacking.discard)
        except WrongEncoding as error:
            reply(self.responses.refusal(415, str(error)))
        else:
            self._proceed(request, body, reply, proceed)

    async def _unpack_later(
        self,
        abort: Callable[[], None],
        request: HttpRequest,
        packed: bytes,
        reply: Reply,
        proceed: Callable[[Reply], None],
    ) -> None:
        encoding = request.headers[b"content-encoding"]
        try:
            async with self._unpackers:
                body = await asyncio.to_thread(unpack, encoding, packed, self.limits.body_bytes_max)
        except TooLarge:
            reply(self.responses.refusal(413, self.large_body))
            return
        except WrongEncoding as error:
            reply(self.responses.refusal(415, str(error)))
            return
        try:
            self._proceed(request, body, reply, proceed)
        except Exception:
            logger.exception("A request could not be answered")
            abort()
        request.body = b""

    def _proceed(
        self, request: HttpRequest, body: bytes, reply: Reply, proceed: Callable[[Reply], None]
    ) -> None:
        if body is request.body:
            proceed(reply)
            return
        size = len(body)
        if size > LARGE_BODY_BYTES and self.bodies_bytes + size > self.limits.bodies_bytes_max:
            reply(self.responses.refusal(503, TOO_MANY_LARGE))
            return
        self.bodies_bytes += size
        request.body = body

        def answer(response: HttpResponse) -> None:
            self.bodies_bytes -= size
            reply(response)

        proceed(answer)

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Starts to listen. Returns the port, which the system chooses if `port` is 0."""
        loop = asyncio.get_running_loop()
        self._call_soon = loop.call_soon
        # Connection has the methods of asyncio.Protocol but does not inherit from it: mypyc
        # compiles a class with an interpreted base class to slower code.
        connect = cast("Callable[[], asyncio.Protocol]", lambda: HttpConnection(self))
        try:
            self._server = await loop.create_server(
                connect,
                host,
                port,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX if tls else None,
                ssl_shutdown_timeout=HANDSHAKE_SECONDS_MAX if tls else None,
            )
        except OSError as error:
            # Errors of name resolution have negative numbers, which os.strerror does not know.
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or str(error)
            raise PartitaError(f"Cannot listen on {host}:{port}: {reason}.") from error
        self._sweep(loop)
        # `sockets` is a list in uvloop and a tuple in asyncio.
        server: Any = self._server
        addresses = [socket.getsockname() for socket in server.sockets]
        self.hosts.listen_on([address[0] for address in addresses])
        return int(addresses[0][1])

    async def stop(self) -> None:
        """Stops accepting, lets requests in flight finish, and closes all connections."""
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

    def queue(self, connection: HttpConnection) -> None:
        """Queues a connection that has a request, for the round after this poll of the sockets.

        Reading all sockets first and answering all requests afterwards is a third faster than
        alternating between the two, because each phase stays in the same code. The connections take
        turns, with one request each.
        """
        if not self._queue:
            self._call_soon(self._answer_queued)
        self._queue.append(connection)

    def _answer_queued(self) -> None:
        queue = self._queue
        now = monotonic()
        ends, sends = now + TURN_SECONDS_MAX, now + BATCH_SECONDS_MAX
        self.is_in_round = True
        while queue and now <= ends:
            connection = queue.popleft()
            try:
                if connection.handle_next():
                    queue.append(connection)
            except Exception:
                # This is a bug of ours. Later responses of this connection could never be sent,
                # because the order requires this one first.
                logger.exception("A request could not be answered")
                connection.abort()
            now = monotonic()
            if now > sends:
                self._send_answered()
                sends = now + BATCH_SECONDS_MAX
        self.is_in_round = False
        self._send_answered()
        if queue:
            self._call_soon(self._answer_queued)

    def sends_later(self, connection: HttpConnection, size: int) -> bool:
        """Returns True if a response is kept until others of its round are ready.

        Waking a client after every request would cost as much as answering the requests.
        """
        if self._answered_bytes + size > BATCH_BYTES_MAX:
            return False
        self._answered.append(connection)
        self._answered_bytes += size
        return True

    def _send_answered(self) -> None:
        answered, self._answered = self._answered, []
        self._answered_bytes = 0
        for connection in answered:
            connection.flush()

    def add(self, connection: HttpConnection) -> None:
        self._connections.add(connection)
        self._count(1)
        if self._connections_per_address_max and connection.peer is not None:
            address = connection.peer.address
            self._addresses[address] += 1
            if self._addresses[address] > self._connections_per_address_max:
                connection.abort()

    def remove(self, connection: HttpConnection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._count(-1)
            if self._connections_per_address_max and connection.peer is not None:
                address = connection.peer.address
                self._addresses[address] -= 1
                if not self._addresses[address]:
                    del self._addresses[address]

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = loop.time()
        for connection in list(self._connections):
            connection.sweep(self.now)
        self._sweeper = loop.call_later(self.limits.sweep_seconds, self._sweep, loop)
