"""One client connection: requests in, responses out in the same order, both of them bounded.

Each complete request is passed to the listener's `handle`, which replies at once or later. The
connection stops reading while the client has too many requests under way or does not read its
responses, and is closed if the client never reads them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from partita.foundation.service_limits import KB, MB
from partita.server.http.http_messages import CONTINUE, HttpRequest, HttpResponse, Peer
from partita.server.http.request_reader import RequestReader

if TYPE_CHECKING:
    from partita.server.http.listener import Listener

WRITE_BYTES_MAX: Final = 256 * KB
DISCARDED_BYTES_MAX: Final = 64 * MB
CLOSING_SECONDS_MAX: Final = 5


class HttpExchange:
    """A request that has not been answered yet. It is called with the response."""

    __slots__ = ("answer", "connection", "request")

    def __init__(self, connection: HttpConnection, request: HttpRequest) -> None:
        self.connection = connection
        self.request = request
        self.answer: bytes | None = None

    def __call__(self, response: HttpResponse) -> None:
        connection = self.connection
        if connection.listener.is_stopping and connection.ends_with(self):
            self.request.keep_alive = False
        self.answer = connection.responses.encode(response, self.request)
        connection.answered(len(self.answer))


class HttpConnection:
    """The protocol of one connection: the transport's callbacks, and the order of the responses."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._limits = listener.limits
        self.responses = listener.responses
        self._reader = RequestReader(self, listener)
        self._transport: asyncio.Transport
        self.peer: Peer | None = None
        # Requests that are being answered.
        self._exchanges: deque[HttpExchange] = deque()
        self._unhandled: deque[HttpExchange] = deque()
        self._is_queued = False
        self._waiting: deque[HttpRequest] = deque()
        self._held_bytes = 0
        self._unread_since: float | None = None
        self._unsent_bytes = 0
        self._unsent_since = listener.now
        """The time of the last change of the number of unsent bytes."""
        self._is_reading_paused = False
        self._host: bytes | None = None
        """The Host header of the last request, which was allowed and needs no second check."""
        # How the connection ends.
        self.takes_more = True
        self.is_refused = False
        self._is_last_taken = False
        self._is_closing = False
        self._final = b""
        self._is_discarding = False
        self._discarded_bytes = 0
        self.since = listener.now
        """The time when a part of a request last arrived, or a response was last sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not registered as asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        if self.listener.is_guarded:
            self.peer = _peer(self._transport)
        self.listener.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.takes_more = False
        self._is_last_taken = self._is_closing = True
        self._waiting.clear()
        self._reader.drop_body()
        self.listener.remove(self)

    def data_received(self, data: bytes) -> None:
        if not self.takes_more:
            self._discard(len(data))
            return
        self._reader.feed(data)
        if not self._exchanges:
            self.flush()

    def eof_received(self) -> bool:
        """Keeps the connection open for a client that waits for the answer to its last request."""
        self.takes_more = False
        self._is_last_taken = self._is_closing = True
        return bool(self._exchanges or self._waiting) and not self._is_discarding

    def pause_writing(self) -> None:
        self._unread_since = self.listener.now
        self._pace_reading()

    def resume_writing(self) -> None:
        self._unread_since = None
        self._handle_waiting()

    # From requests to responses.

    def take(self, request: HttpRequest) -> None:
        """Takes a complete request from the reader."""
        if not request.keep_alive:
            self.takes_more = False
            self._is_last_taken = True
        if self._waiting or self._is_busy():
            self._waiting.append(request)
            self._pace_reading()
        else:
            self._handle(request)

    def _handle(self, request: HttpRequest) -> None:
        if self._is_last_taken and not request.keep_alive:
            self._is_closing = True
        exchange = HttpExchange(self, request)
        self._exchanges.append(exchange)
        self._unhandled.append(exchange)
        if not self._is_queued:
            self._is_queued = True
            self.listener.queue(self)

    def handle_next(self) -> bool:
        """Answers one request, or begins to. Returns True if another one is waiting."""
        exchange = self._unhandled.popleft()
        request = exchange.request
        headers = request.headers
        if (
            b"origin" in headers
            or b"content-encoding" in headers
            or headers.get(b"host") != self._host
        ):
            self._handle_if_allowed(exchange)
        else:
            self.listener.handle(request, exchange)
        # Memory: a request whose answer is still to come does not need its body any more.
        request.body = b""
        self._is_queued = bool(self._unhandled)
        return self._is_queued

    def _handle_if_allowed(self, exchange: HttpExchange) -> None:
        request, listener = exchange.request, self.listener
        response = self._early_answer(request)
        if response is not None:
            exchange(response)
            return
        # The body of a GET has no meaning and is ignored.
        if b"content-encoding" in request.headers and request.method not in (b"GET", b"HEAD"):
            if listener.check_head is None:
                handle = partial(listener.handle, request)
                listener.unpack(self.abort, request, exchange, handle)
                return
            request.unpack = partial(listener.unpack, self.abort)
        listener.handle(request, exchange)

    def _early_answer(self, request: HttpRequest) -> HttpResponse | None:
        """Returns the answer to a request for a host or from an origin that is not allowed.

        None if the request may be handled.
        """
        headers = request.headers
        host = headers.get(b"host")
        if host != self._host:
            if host is not None and not self.listener.hosts.allows(host):
                return self.responses.refusal(421, self.listener.hosts.refusal(host))
            self._host = host
        if b"origin" in headers and self.listener.origins is not None:
            response = self.listener.origins.early_answer(request, self.responses)
            if response is not None:
                return response
        return None

    def _handle_waiting(self) -> None:
        while self._waiting and not self._is_busy():
            self._handle(self._waiting.popleft())
        if not self._exchanges:
            self.flush()

    def ends_with(self, exchange: HttpExchange) -> bool:
        """True when no other request of this connection is waiting for its answer."""
        return exchange is self._exchanges[-1]

    def _is_busy(self) -> bool:
        return (
            self._unread_since is not None
            or self._held_bytes > WRITE_BYTES_MAX
            or len(self._exchanges) >= self._limits.pipelined_max
        )

    def answered(self, size: int) -> None:
        self._held_bytes += size
        if not (self.listener.is_in_round and self.listener.sends_later(self, size)):
            self.flush()

    def flush(self) -> None:
        """Sends the responses that are ready, in order, then handles the requests behind them."""
        exchanges = self._exchanges
        ready = []
        while exchanges and (answer := exchanges[0].answer) is not None:
            exchanges.popleft()
            ready.append(answer)
        if ready:
            self._held_bytes = 0
            self.since = self.listener.now
            if not self._transport.is_closing():
                self._transport.write(ready[0] if len(ready) == 1 else b"".join(ready))
        if self._waiting:
            if not self._is_busy():
                # Not at once: the transport may first report that the client does not read.
                asyncio.get_running_loop().call_soon(self._handle_waiting)
        elif not exchanges and (
            self._is_closing or not self.takes_more or self._reader.owes_continue
        ):
            self._rest()
        if self._is_reading_paused:
            self._pace_reading()

    def _rest(self) -> None:
        """Does what is left once all requests are answered: refuse, close, or ask for a body."""
        if self.is_refused:
            self._send_final()
        elif self._is_closing and (self._reader.request is None or self._is_last_taken):
            self._transport.close()
        elif self._reader.owes_continue:
            self._reader.owes_continue = False
            self._transport.write(CONTINUE)

    def _pace_reading(self) -> None:
        should_pause = (bool(self._waiting) or self._is_busy()) and not self._is_discarding
        if should_pause == self._is_reading_paused or self._transport.is_closing():
            return
        self._is_reading_paused = should_pause
        if should_pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # How a connection ends.

    def refuse(self, status: int, detail: str) -> None:
        """Stops reading from this client. Earlier requests are answered, then this refusal is sent.

        Nothing is sent for bytes that follow the last request of a connection.
        """
        if self.takes_more:
            self._end_with(self.responses.final(status, detail, self._headers_of_refusal()))

    def refuse_large_body(self) -> None:
        self.refuse(413, self.listener.large_body)

    def refuse_with(self, response: HttpResponse) -> None:
        """Refuses like `refuse`, with a response that the handler chose."""
        if self.takes_more:
            self._end_with(self.responses.last(response, self._headers_of_refusal()))

    def _headers_of_refusal(self) -> bytes:
        reader, origins = self._reader, self.listener.origins
        if origins is None or reader.request is None or not reader.is_header_read:
            return b""
        return origins.headers_of_answer(reader.request)

    def _end_with(self, final: bytes) -> None:
        self.takes_more = False
        self.is_refused = True
        self._final = final
        self._reader.drop_body()

    def _send_final(self) -> None:
        """Sends the refusal, and reads on without looking at the bytes.

        Closing a socket that has unread input resets the connection, and the client would lose the
        answer.
        """
        if self._is_discarding or self._transport.is_closing():
            return
        self._is_discarding = True
        self.since = self.listener.now
        self._transport.write(self._final)
        if self._is_last_taken:
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > DISCARDED_BYTES_MAX:
            self._transport.abort()

    def sweep(self, now: float) -> None:
        """Ends the connection if the client has exceeded one of its time limits."""
        limits, reader = self._limits, self._reader
        unsent = self._transport.get_write_buffer_size()
        if unsent != self._unsent_bytes:
            self._unsent_bytes, self._unsent_since = unsent, now
        if unsent and now - self._unsent_since > limits.unread_seconds_max:
            # This counts after a close, too: the transport would wait for the client for ever.
            self._transport.abort()
        elif self._is_discarding:
            if now - self.since > CLOSING_SECONDS_MAX:
                self._transport.abort()
        elif self._unread_since is not None:
            if now - self._unread_since > limits.unread_seconds_max:
                self._transport.abort()
        elif self._exchanges or self._waiting:
            return
        elif reader.request is not None:
            seconds = limits.header_seconds_max
            if reader.is_header_read:
                seconds = limits.body_seconds_max
            if now - self.since > seconds:
                self.refuse(408, "The request did not arrive in time.")
                self.flush()
        elif now - self.since > limits.idle_seconds_max:
            self._transport.close()

    def stop(self) -> None:
        """Finishes the requests in flight, then closes."""
        self._is_closing = True
        self.flush()

    @property
    def is_answering(self) -> bool:
        is_unsent = self._transport.get_write_buffer_size() > 0
        return bool(self._exchanges or self._waiting or is_unsent)

    def abort(self) -> None:
        self._transport.abort()


def _peer(transport: asyncio.Transport) -> Peer:
    address = transport.get_extra_info("peername")
    certificate = transport.get_extra_info("peercert")
    is_secure = transport.get_extra_info("ssl_object") is not None
    return Peer(
        address[0] if isinstance(address, tuple) else "", is_secure, subject_of(certificate)
    )


def subject_of(certificate: dict[str, Any] | None) -> str:
    """Returns the common name of a certificate in the form that Python's ssl returns."""
    for relative in (certificate or {}).get("subject", ()):
        for name, value in relative:
            if name == "commonName":
                return str(value)
    return ""
