"""A connection: requests in, answers out in the same order, bounded in every direction.

Each complete request is handed to the listener's `handle`, and answered when `handle` says so. A
client that sends ahead is read no further than it takes its answers, and one that never takes them
is given up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from partita.limits import KB, MB
from partita.server.http.messages import CONTINUE, HttpRequest, HttpResponse, Peer
from partita.server.http.reading import RequestReader

if TYPE_CHECKING:
    from partita.server.http.listener import Listener

WRITE_BYTES_MAX: Final = 256 * KB
DISCARDED_BYTES_MAX: Final = 64 * MB
CLOSING_SECONDS_MAX: Final = 5


class Exchange:
    """One request on its way; called with the response."""

    __slots__ = ("answer", "connection", "request")

    def __init__(self, connection: Connection, request: HttpRequest) -> None:
        self.connection = connection
        self.request = request
        self.answer: bytes | None = None

    def __call__(self, response: HttpResponse) -> None:
        connection = self.connection
        if connection.listener.is_stopping and connection.ends_with(self):
            self.request.keep_alive = False
        self.answer = connection.responses.encode(response, self.request)
        connection.answered(len(self.answer))


class Connection:
    """Callbacks of the transport, and the order of the answers."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._limits = listener.limits
        self.responses = listener.responses
        self._reader = RequestReader(self, listener)
        self._transport: asyncio.Transport
        self.peer: Peer | None = None
        # What is being answered.
        self._exchanges: deque[Exchange] = deque()
        self._unhandled: deque[Exchange] = deque()
        self._is_queued = False
        self._waiting: deque[HttpRequest] = deque()
        self._held_bytes = 0
        self._unread_since: float | None = None
        self._unsent_bytes = 0
        self._unsent_since = listener.now
        """When fewer or more bytes than now were waiting for the client to read."""
        self._is_reading_paused = False
        self._host: bytes | None = None
        """That was answered to last."""
        # How it ends.
        self.takes_more = True
        self.is_refused = False
        self._is_last_taken = False
        self._is_closing = False
        self._final = b""
        self._is_discarding = False
        self._discarded_bytes = 0
        self.since = listener.now
        """When something of a request came, or an answer went."""

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
        """A client that has sent its last request may still wait for the answer."""
        self.takes_more = False
        self._is_last_taken = self._is_closing = True
        return bool(self._exchanges or self._waiting) and not self._is_discarding

    def pause_writing(self) -> None:
        self._unread_since = self.listener.now
        self._pace_reading()

    def resume_writing(self) -> None:
        self._unread_since = None
        self._handle_waiting()

    # Requests to answers.

    def take(self, request: HttpRequest) -> None:
        """A request that is complete."""
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
        exchange = Exchange(self, request)
        self._exchanges.append(exchange)
        self._unhandled.append(exchange)
        if not self._is_queued:
            self._is_queued = True
            self.listener.queue(self)

    def handle_next(self) -> bool:
        """Answer one request, or begin to; says whether there is another."""
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
        # What is under way, or answered behind one that is, keeps no body.
        request.body = b""
        self._is_queued = bool(self._unhandled)
        return self._is_queued

    def _handle_if_allowed(self, exchange: Exchange) -> None:
        request, listener = exchange.request, self.listener
        response = self._early_answer(request)
        if response is not None:
            exchange(response)
            return
        # What a GET carries means nothing, and is not looked at.
        if b"content-encoding" in request.headers and request.method not in (b"GET", b"HEAD"):
            if listener.check_head is None:
                handle = partial(listener.handle, request)
                listener.unpack(self.abort, request, exchange, handle)
                return
            request.unpack = partial(listener.unpack, self.abort)
        listener.handle(request, exchange)

    def _early_answer(self, request: HttpRequest) -> HttpResponse | None:
        """To what is not handed on: another host's, or a page's that may not."""
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

    def ends_with(self, exchange: Exchange) -> bool:
        """Whether this is the last answer before a stop."""
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
        """Send what is ready, in order; then go on with what has been waiting for it."""
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
                # Later, so that the transport can say that the client does not read.
                asyncio.get_running_loop().call_soon(self._handle_waiting)
        elif not exchanges and (
            self._is_closing or not self.takes_more or self._reader.owes_continue
        ):
            self._rest()
        if self._is_reading_paused:
            self._pace_reading()

    def _rest(self) -> None:
        """Everything is answered, and something else is left to do."""
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

    # Endings.

    def refuse(self, status: int, detail: str) -> None:
        """Nothing more is read from this client: what came before is answered, then this. What
        follows the last request of a connection is not answered."""
        if self.takes_more:
            self._end_with(self.responses.final(status, detail, self._headers_of_refusal()))

    def refuse_large_body(self) -> None:
        self.refuse(413, self.listener.large_body)

    def refuse_with(self, response: HttpResponse) -> None:
        """The same with an answer of those who handle requests, to one that is not read further."""
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
        """Closing over unread input would reset the connection and lose the answer: discard it."""
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
        """End what has taken too long."""
        limits, reader = self._limits, self._reader
        unsent = self._transport.get_write_buffer_size()
        if unsent != self._unsent_bytes:
            self._unsent_bytes, self._unsent_since = unsent, now
        if unsent and now - self._unsent_since > limits.unread_seconds_max:
            # Also after a close, which waits without limit for the client to read.
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
        """Finish what is in flight, then close."""
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
    """The common name of a certificate, as Python's ssl shows it."""
    for relative in (certificate or {}).get("subject", ()):
        for name, value in relative:
            if name == "commonName":
                return str(value)
    return ""
