"""A small web service: handlers by method and path, behind a listener.

    web = Web()
    web.add("GET", "/metrics/{name}", handler)      # async handler(request) -> Response
    await web.serve("127.0.0.1", 8080, ready=print)

Each request is handled in a task of its own, the requests of one connection one after the other:
so a client that sends ahead holds up nobody but itself, and reads what it has written. Whose pages
may send requests is for the handlers to say, unless there are `origins`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

from partita.limits import MB
from partita.server.http import lifecycle
from partita.server.http.hosts import Hosts
from partita.server.http.limits import Limits
from partita.server.http.listener import Listener
from partita.server.http.messages import HttpRequest, Reply, Responses
from partita.server.http.origins import Origins
from partita.server.http.routes import Handler, Routes
from partita.server.http.web_messages import Request, Response, json_response, problem

__all__ = ["Request", "Response", "Web", "json_response", "problem"]

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 1 * MB
ALLOW_HOST = "PARTITA_ALLOW_HOST"
"""Names that are answered to, besides the local ones; a proxy may pass on the one it was asked."""
ALLOW_ORIGIN = "PARTITA_ALLOW_ORIGIN"


def origins_from_environment() -> Origins:
    """For a service without pages of its own: those of other sites may not use it, unless they are
    named."""
    return Origins(os.environ.get(ALLOW_ORIGIN, "").split(), setting=ALLOW_ORIGIN)


class Web:
    def __init__(self, limits: Limits | None = None, *, origins: Origins | None = None) -> None:
        limits = limits or Limits(body_bytes_max=BODY_BYTES_MAX, pipelined_max=1)
        names = os.environ.get(ALLOW_HOST, "").split()
        hosts = Hosts(names, f"set {ALLOW_HOST}={{name}}")
        self.hosts = hosts
        self._listener = Listener(
            self.handle, Responses(), limits=limits, hosts=hosts, origins=origins
        )
        self.routes = Routes()
        self._tasks: dict[Reply, asyncio.Task[None]] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """`path` may have parameters: "/metrics/{name}"."""
        self.routes.add(method, path, handler)

    async def answer(self, request: Request) -> Response:
        handler = self.routes.find(request)
        return handler if isinstance(handler, Response) else await handler(request)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chooses when 0 is given."""
        return await self._listener.start(host, port)

    async def stop(self) -> None:
        """Accept nothing more, let requests in flight finish, close all connections."""
        await self._listener.stop()

    async def serve(self, host: str, port: int, ready: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM; `ready` gets the URL once requests are accepted."""
        await lifecycle.serve(self._listener, host, port, ready)

    def handle(self, received: HttpRequest, reply: Reply) -> None:
        """For a listener: its own, or that of a server which has more than this to offer."""
        request = Request(received.method, received.target, received.headers)
        request.body = received.body
        request.peer = received.peer
        handler = self.routes.find(request)
        if isinstance(handler, Response):
            reply(handler.on_wire)
            return
        # Kept until it ends, also when its client leaves: it could be half way through two writes.
        answering = self._answer(handler, request, reply)
        self._tasks[reply] = asyncio.get_running_loop().create_task(answering)

    async def _answer(self, handler: Handler, request: Request, reply: Reply) -> None:
        try:
            response = await handler(request)
        except Exception:
            logger.exception("%s %s could not be answered", request.method, request.path)
            response = problem(500, "Something unexpected happened; the log has more.")
        del self._tasks[reply]
        reply(response.on_wire)
