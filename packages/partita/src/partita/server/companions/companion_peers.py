"""Companions of servers that share a database: they run beside the leader, others forward to it.

The server that receives a request admits it. A forwarded request carries a secret that the leader
keeps in the shared database, so that only servers of this database can send one.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from partita.client.client_errors import Unreachable
from partita.client.connection_pool import ConnectionPool
from partita.server.admission import Forwarded
from partita.server.companions import companion_frames
from partita.server.companions.companion_supervisor import GONE
from partita.server.http.http_messages import CheckHead, Handle, HttpRequest, HttpResponse, Reply
from partita.server.protocol.aws_responses import JSON_1_0

PATH: Final = b"/partita/companions/"
SECRET: Final = b"x-partita-secret"
OCTETS: Final = b"application/octet-stream"
CONNECTIONS_MAX: Final = 64
ANSWER_SECONDS_MAX: Final = 90.0
"""Longer than the minute that GetActivityTask waits for work."""
LEADER_SECONDS_MAX: Final = 10.0
"""The longest time that a request waits for a leader."""
LOOK_SECONDS: Final = 0.1
NOT_LEADING: Final = 421


class LeaderEndpoint(NamedTuple):
    endpoint: str
    secret: str
    is_here: bool
    """True if this server is the leader."""


class RunningCompanion(Protocol):
    def forward(self, forwarded: Forwarded, reply: Reply) -> None: ...

    def start(self) -> None: ...

    async def stop(self) -> None: ...


class Peers:
    def __init__(
        self,
        companions: Mapping[str, Callable[[], RunningCompanion]],
        leader: Callable[[], LeaderEndpoint | None],
        certificate: str = "",
        client_certificate: str = "",
    ) -> None:
        """`companions` are functions that make the companions to run while this server leads."""
        self._make = companions
        self._leader = leader
        self._certificates = certificate, client_certificate
        self._running: dict[str, RunningCompanion] = {}
        self._pools: dict[str, ConnectionPool] = {}
        self._forwarding: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def start(self, name: str) -> RunningCompanion:
        """Returns the companion of this server, and starts it unless it runs."""
        if name not in self._running:
            self._running[name] = self._make[name]()
            self._running[name].start()
        return self._running[name]

    async def stop(self) -> None:
        """Stops the companions, because another server leads or this one ends."""
        running, self._running = self._running, {}
        await asyncio.gather(*(companion.stop() for companion in running.values()))

    async def close(self) -> None:
        self._is_closed = True
        await self.stop()
        if self._forwarding:
            await asyncio.wait(self._forwarding, timeout=1.0)
        for pool in self._pools.values():
            pool.close()

    def guard(self, handle: Handle) -> Handle:
        """Wraps the handler of a listener: requests that other servers forward are answered here,
        all others by `handle`."""

        def guarded(request: HttpRequest, reply: Reply) -> None:
            if request.target.startswith(PATH):
                self._answer(request, reply)
            else:
                handle(request, reply)

        return guarded

    def check_head(self, check_head: CheckHead) -> CheckHead:
        """Wraps the function that checks requests before their bodies are read."""

        def checked(request: HttpRequest) -> HttpResponse | None:
            is_forwarded = request.target.startswith(PATH)
            return self._refusal(request) if is_forwarded else check_head(request)

        return checked

    def forward(self, name: str, forwarded: Forwarded, reply: Reply) -> None:
        leader = self._leader()
        if self._is_closed:
            reply(HttpResponse(500, GONE, JSON_1_0))
            return
        if leader is not None and leader.is_here:
            self.start(name).forward(forwarded, reply)
            return
        task = asyncio.create_task(self._forward(name, forwarded, reply))
        self._forwarding.add(task)
        task.add_done_callback(self._forwarding.discard)

    async def _forward(self, name: str, forwarded: Forwarded, reply: Reply) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + LEADER_SECONDS_MAX
        while loop.time() < end and not self._is_closed:
            leader = self._leader()
            if leader is not None and leader.is_here:
                self.start(name).forward(forwarded, reply)
                return
            if leader is not None:
                answer = await self._send(leader, name, forwarded)
                if answer is None:
                    break
                if answer.status != NOT_LEADING:
                    reply(answer)
                    return
            await asyncio.sleep(LOOK_SECONDS)
        reply(HttpResponse(500, GONE, JSON_1_0))

    async def _send(
        self, leader: LeaderEndpoint, name: str, forwarded: Forwarded
    ) -> HttpResponse | None:
        """Returns the leader's answer, or None if it is unknown whether the leader carried out the
        request. Only a refused connection is safe to try again."""
        pool = self._pools.get(leader.endpoint)
        if pool is None:
            pool = ConnectionPool(leader.endpoint, CONNECTIONS_MAX, *self._certificates)
            self._pools[leader.endpoint] = pool
        content = companion_frames.request(0, forwarded.operation, forwarded.body)
        head = (
            b"POST %b%b HTTP/1.1\r\nhost: %b\r\n%b: %b\r\ncontent-type: %b\r\n"
            b"content-length: %d\r\n\r\n"
        ) % (
            PATH,
            name.encode(),
            pool.host.encode(),
            SECRET,
            leader.secret.encode(),
            OCTETS,
            len(content),
        )
        try:
            answer = await pool.send(head + content, ANSWER_SECONDS_MAX)
        except Unreachable as error:
            was_refused = isinstance(error.__cause__, ConnectionRefusedError)
            return HttpResponse(NOT_LEADING) if was_refused else None
        if answer.status != 200:
            return HttpResponse(NOT_LEADING)
        return companion_frames.response_in(companion_frames.decode(answer.content))

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Returns why a forwarded request is not answered here, or None if it is."""
        leader = self._leader()
        if leader is None or not leader.is_here or self._is_closed:
            return HttpResponse(NOT_LEADING)
        if _companion_of(request) not in self._make:
            return HttpResponse(NOT_LEADING)
        secret = request.headers.get(SECRET, b"")
        return None if hmac.compare_digest(secret, leader.secret.encode()) else HttpResponse(403)

    def _answer(self, request: HttpRequest, reply: Reply) -> None:
        """Answers a request that another server forwarded."""
        refusal = self._refusal(request)
        if refusal is not None:
            reply(refusal)
            return

        def answer(response: HttpResponse) -> None:
            reply(HttpResponse(200, companion_frames.answer(0, response), OCTETS))

        operation, body = companion_frames.operation_and_body(companion_frames.decode(request.body))
        # The secret proves that the other server has checked the caller's rights.
        name = _companion_of(request)
        self.start(name).forward(Forwarded(operation.encode("latin-1"), body), answer)


def _companion_of(request: HttpRequest) -> str:
    return request.target[len(PATH) :].decode("latin-1")


class LedCompanion:
    """A companion as dispatchers see it, whether it runs beside this server or beside another."""

    def __init__(self, peers: Peers, name: str) -> None:
        self._peers = peers
        self._name = name

    def forward(self, forwarded: Forwarded, reply: Reply) -> None:
        self._peers.forward(self._name, forwarded, reply)
