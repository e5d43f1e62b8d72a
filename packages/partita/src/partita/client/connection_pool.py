"""A pool of persistent HTTP connections, each with one request at a time.

`ConnectionPool.send` takes an idle connection, opens another while the limit allows it, or waits.
After a timeout or a cancelled call a connection is closed: a late response on it would otherwise be
taken for the response to the next request.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import cast
from urllib.parse import urlsplit

import httptools

from partita.client.client_errors import Unreachable
from partita.errors import PartitaError

CONNECT_SECONDS_MAX = 10
PORTS = {"http": 80, "https": 443}


class ClientResponse:
    __slots__ = ("content", "headers", "status")

    def __init__(self, status: int, content: bytes, headers: dict[bytes, bytes]) -> None:
        self.status = status
        self.content = content
        self.headers = headers
        """The headers that begin with x-amz, in lower case."""


class PooledConnection(asyncio.Protocol):
    """One connection: the callbacks of asyncio's transport and of httptools' parser."""

    def __init__(self) -> None:
        self.is_open = False
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._headers: dict[bytes, bytes] = {}
        self._waiting: asyncio.Future[ClientResponse] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionResetError("the connection was closed"))

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.abort(ConnectionResetError(f"the response is not HTTP ({error})"))

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name.startswith(b"x-amz"):
            self._headers[name] = value

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        content = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        headers = self._headers
        self._parts, self._headers = [], {}
        self.is_open = self.is_open and self._parser.should_keep_alive()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(ClientResponse(status, content, headers))

    async def send(self, request: bytes, seconds_max: float) -> ClientResponse:
        if not self.is_open:
            # It was closed after it was taken from the pool; no response would ever come.
            raise ConnectionResetError("the connection was closed")
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[ClientResponse] = loop.create_future()
        self._waiting = waiting
        self._transport.write(request)
        timer = loop.call_later(seconds_max, self.abort, TimeoutError("it took too long"))
        try:
            return await waiting
        except asyncio.CancelledError:
            self.abort(ConnectionAbortedError("the call was cancelled"))
            raise
        finally:
            timer.cancel()

    def abort(self, reason: Exception) -> None:
        self._fail(reason)
        self._transport.abort()

    def close(self) -> None:
        self.is_open = False
        self._transport.close()

    def _fail(self, reason: Exception) -> None:
        self.is_open = False
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(reason)


class ConnectionPool:
    """The connections to one endpoint."""

    def __init__(
        self,
        endpoint: str,
        connections_max: int,
        certificate: str = "",
        client_certificate: str = "",
    ) -> None:
        address = urlsplit(endpoint)
        if address.scheme not in PORTS or address.hostname is None:
            raise PartitaError(f"An endpoint begins with http:// or https://, not {endpoint!r}.")
        self.endpoint = endpoint
        self.host = address.netloc.rpartition("@")[2]
        """The value of the Host header."""
        self._hostname = address.hostname
        self._port = address.port or PORTS[address.scheme]
        self._tls: ssl.SSLContext | None = None
        if address.scheme == "https":
            self._tls = _tls(certificate, client_certificate)
        self._idle: list[PooledConnection] = []
        self._may_open = connections_max
        self._queue: deque[asyncio.Future[PooledConnection | None]] = deque()
        self._is_closed = False

    async def send(self, request: bytes, seconds_max: float) -> ClientResponse:
        """Returns the response, whatever its status; raises Unreachable when none comes."""
        connection = await self._take()
        try:
            return await connection.send(request, seconds_max)
        except OSError as error:
            raise Unreachable(self.endpoint, error) from error
        finally:
            self._hand_over(connection)

    async def _take(self) -> PooledConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            self._may_open += 1
        if self._may_open:
            self._may_open -= 1
            return await self._open()
        return await self._wait() or await self._open()

    async def _wait(self) -> PooledConnection | None:
        """Waits until a call ends; returns its connection, or None for the right to open one."""
        turn: asyncio.Future[PooledConnection | None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._hand_over(turn.result())
            raise

    async def _open(self) -> PooledConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                _, connection = await loop.create_connection(
                    PooledConnection, self._hostname, self._port, ssl=self._tls
                )
        except BaseException as error:
            self._hand_over(None)
            if isinstance(error, OSError):
                raise Unreachable(self.endpoint, error) from error
            raise
        return connection

    def _hand_over(self, connection: PooledConnection | None) -> None:
        if connection is not None and (self._is_closed or not connection.is_open):
            connection.close()
            connection = None
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        if connection is None:
            self._may_open += 1
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Closes the idle connections; those with a request close after its response."""
        self._is_closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def _tls(certificate: str, client_certificate: str) -> ssl.SSLContext:
    """Returns a context that trusts the public authorities, or only the given certificate.

    The given certificate is trusted whatever host name it was issued for, because it is the exact
    certificate of our own server, which companions reach by an address.
    """
    if not certificate:
        return ssl.create_default_context()
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if client_certificate:
        context.load_cert_chain(client_certificate)
    return context
