"""A small web framework: handlers by method and path, behind a listener.

    web = Web()
    web.add("GET", "/metrics/{name}", handler)      # async handler(request) -> Response
    await web.serve("127.0.0.1", 8080, ready=print)

Each request is handled in its own task. The requests of one connection are handled one after the
other, so a client that pipelines a write and a read sees its own write. Without `origins`, the
handlers decide whose pages may send requests.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

from partita.foundation.service_limits import MB
from partita.server.http import process_lifecycle
from partita.server.http.connection_limits import ConnectionLimits
from partita.server.http.cors import AllowedOrigins
from partita.server.http.host_header import AllowedHosts
from partita.server.http.http_messages import HttpRequest, Reply, Responses
from partita.server.http.listener import Listener
from partita.server.http.web.web_messages import WebRequest, WebResponse, json_response, problem
from partita.server.http.web.web_routes import Handler, WebRoutes

__all__ = ["WebRequest", "WebResponse", "WebService", "json_response", "problem"]

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 1 * MB
ALLOW_HOST = "PARTITA_ALLOW_HOST"
"""An environment variable: host names to answer to, besides the local ones. A proxy in front of the
service may pass on its own name."""
ALLOW_ORIGIN = "PARTITA_ALLOW_ORIGIN"


def origins_from_environment() -> AllowedOrigins:
    """Returns the allowed origins of a service without its own pages, from PARTITA_ALLOW_ORIGIN."""
    return AllowedOrigins(os.environ.get(ALLOW_ORIGIN, "").split(), setting=ALLOW_ORIGIN)


class WebService:
    def __init__(
        self, limits: ConnectionLimits | None = None, *, origins: AllowedOrigins | None = None
    ) -> None:
        limits = limits or ConnectionLimits(body_bytes_max=BODY_BYTES_MAX, pipelined_max=1)
        names = os.environ.get(ALLOW_HOST, "").split()
        hosts = AllowedHosts(names, f"set {ALLOW_HOST}={{name}}")
        self.hosts = hosts
        self._listener = Listener(
            self.handle, Responses(), limits=limits, hosts=hosts, origins=origins
        )
        self.routes = WebRoutes()
        self._tasks: dict[Reply, asyncio.Task[None]] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Adds a handler. `path` may have parameters: "/metrics/{name}"."""
        self.routes.add(method, path, handler)

    async def answer(self, request: WebRequest) -> WebResponse:
        handler = self.routes.find(request)
        return handler if isinstance(handler, WebResponse) else await handler(request)

    async def start(self, host: str, port: int) -> int:
        """Starts to listen. Returns the port, which the system chooses if `port` is 0."""
        return await self._listener.start(host, port)

    async def stop(self) -> None:
        """Stops accepting, lets requests in flight finish, and closes all connections."""
        await self._listener.stop()

    async def serve(self, host: str, port: int, ready: Callable[[str], None]) -> None:
        """Serves until SIGINT or SIGTERM. `ready` is called with the URL when requests are
        accepted.
        """
        await process_lifecycle.serve(self._listener, host, port, ready)

    def handle(self, received: HttpRequest, reply: Reply) -> None:
        """Handles a request of a listener: its own, or that of a server that this is a part of."""
        request = WebRequest(received.method, received.target, received.headers)
        request.body = received.body
        request.peer = received.peer
        handler = self.routes.find(request)
        if isinstance(handler, WebResponse):
            reply(handler.on_wire)
            return
        # The task runs to its end even if the client disconnects: it may be between two writes.
        answering = self._answer(handler, request, reply)
        self._tasks[reply] = asyncio.get_running_loop().create_task(answering)

    async def _answer(self, handler: Handler, request: WebRequest, reply: Reply) -> None:
        try:
            response = await handler(request)
        except Exception:
            logger.exception("%s %s could not be answered", request.method, request.path)
            response = problem(500, "Something unexpected happened; the log has more.")
        del self._tasks[reply]
        reply(response.on_wire)
