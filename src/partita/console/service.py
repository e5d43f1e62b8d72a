"""The console's own web service: its files, and an API that passes requests on to a DynamoDB.

Credentials stay in this process. The page proves that it is the console's own by a token, which
only a page of the same origin can read; a name that a foreign site could have led here is refused.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from secrets import token_urlsafe

from partita import __version__
from partita.client import Client, ClientError
from partita.client.services import SERVICES
from partita.console.files import HEADERS, Files
from partita.console.heat import Heat
from partita.console.modes import READ_ONLY
from partita.console.reads import only_reads
from partita.errors import PartitaError
from partita.server.http.hosts import Hosts
from partita.server.http.limits import Limits
from partita.server.http.messages import HttpRequest, Reply
from partita.server.http.origins import is_same_origin
from partita.server.http.routes import Handler
from partita.server.http.web import Request, Response, Web, json_response, problem

TOKEN = b"x-console-token"
CONTENT_TYPE = b"application/vnd.partita.console+json"
"""Of requests: no form of another site's page can have it, and no operation of DynamoDB has."""
UNREACHABLE = 502


class Console:
    def __init__(
        self, client: Client, endpoint: str, mode: str, hosts: Hosts | None = None
    ) -> None:
        """`hosts` are those of the server that the console is part of, if it is."""
        self.web = Web(Limits(pipelined_max=1))
        self._hosts = hosts or self.web.hosts
        self._client = client
        self._endpoint = endpoint
        self._mode = mode
        self._token = token_urlsafe(24)
        self._heat = Heat(endpoint)
        files = Files()
        for path in ("/console", "/console/"):
            self.web.add("GET", path, files.index)
        self.web.add("GET", "/console/static/{name}", files.file)
        self.web.add("GET", "/console/static/{folder}/{name}", files.file)
        self.web.add("GET", "/console/api/session", self._of_own_host(self._session))
        self.web.add("GET", "/console/api/heat", self._of_own_page(self._sample))
        self.web.add("GET", "/console/api/partitions/{table}", self._of_own_page(self._partitions))
        self.web.add("POST", "/console/api/{service}/{operation}", self._of_own_page(self._pass_on))

    def handle(self, request: HttpRequest, reply: Reply) -> None:
        self.web.handle(request, reply)

    def _of_own_host(self, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            host = request.header(b"host")
            if host is not None and not self._hosts.allows_data(host):
                return problem(421, self._hosts.refusal(host))
            return await handler(request)

        return guarded

    def _of_own_page(self, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            origin = request.header(b"origin")
            if origin is not None and not is_same_origin(origin, request.header(b"host")):
                return problem(403, "Only the console's own page may ask for this.")
            if not hmac.compare_digest(request.header(TOKEN) or b"", self._token.encode()):
                return problem(403, "The console's token is missing or old: load the page again.")
            return await handler(request)

        return self._of_own_host(guarded)

    async def _session(self, request: Request) -> Response:
        session = {
            "Token": self._token,
            "Mode": self._mode,
            "Endpoint": self._endpoint,
            "Version": __version__,
        }
        return json_response(session, headers=HEADERS | {"cache-control": "no-store"})

    async def _pass_on(self, request: Request) -> Response:
        service, operation = request.parameters["service"], request.parameters["operation"]
        if service not in SERVICES or not operation.isalpha():
            return problem(404, f"The console does not know {operation} of {service}.")
        if request.header(b"content-type") != CONTENT_TYPE:
            return problem(415, f"Requests have the content type {CONTENT_TYPE.decode()}.")
        if self._mode == READ_ONLY and not only_reads(service, operation, request.body):
            return _refusal(403, "ReadOnlyConsole", f"{operation} is off: this console only reads.")
        try:
            content = await self._client.send(service, operation, request.body or b"{}")
        except ClientError as error:
            status = error.status or UNREACHABLE
            return _refusal(status, error.code, error.message, error.body)
        return Response(200, content or b"{}", headers={"cache-control": "no-store"})

    async def _sample(self, request: Request) -> Response:
        return await _monitored(self._heat.sample)

    async def _partitions(self, request: Request) -> Response:
        table = request.parameters["table"]
        return await _monitored(lambda: self._heat.partitions(table))


async def _monitored(look: Callable[[], object]) -> Response:
    """What a server tells about itself, if it is a Partita; asked for beside the event loop."""
    try:
        return json_response(await asyncio.to_thread(look), headers={"cache-control": "no-store"})
    except PartitaError as error:
        return _refusal(404, "NotMonitored", str(error))


def _refusal(status: int, code: str, message: str, members: Mapping[str, object] = {}) -> Response:
    """An error in the form in which services have it."""
    return json_response({**members, "__type": code, "message": message}, status)
