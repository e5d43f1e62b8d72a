"""The console's web service: its static files, and an API that forwards requests to an endpoint.

Credentials stay in this process. A page proves with a token that it is the console's own, because
only a page of the same origin can read the token. The Host header is checked too, since a foreign
site could resolve its own name to this address (DNS rebinding). On a server with `--auth`, users
sign in first, and the console has exactly their rights.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
import orjson

from partita import __version__
from partita.client import ClientError, Credentials
from partita.client.aws_client import REGION
from partita.client.aws_services import SERVICES
from partita.console.console_endpoints import ConsoleEndpoint, OwnServer, PageUser
from partita.console.console_modes import READ_ONLY
from partita.console.console_sessions import ConsoleSession, ConsoleSessions, cookie
from partita.console.heat_map import sample
from partita.console.migration_runs import MigrationFolder, MigrationFolders, RunRequest
from partita.console.read_only_requests import only_reads
from partita.console.static_files import HEADERS, StaticFiles
from partita.errors import PartitaError
from partita.server.http.connection_limits import ConnectionLimits
from partita.server.http.cors import is_same_origin
from partita.server.http.host_header import AllowedHosts
from partita.server.http.http_messages import HttpRequest, Reply
from partita.server.http.web.web_routes import Handler
from partita.server.http.web.web_service import (
    WebRequest,
    WebResponse,
    WebService,
    json_response,
    problem,
)

TOKEN = b"x-console-token"
CONTENT_TYPE = b"application/vnd.partita.console+json"
"""The content type of all POST requests. A form on another site cannot send it without a preflight
request, and no operation of DynamoDB has it."""
UNREACHABLE = 502
NOT_KEPT: Final = {"cache-control": "no-store"}
INVALID_KEY_CODES: Final = frozenset(
    (
        *("ExpiredTokenException", "InvalidSignatureException", "UnrecognizedClientException"),
        *("Http403", "Http401"),
    )
)
"""Error codes for a key that is wrong, expired or deactivated."""
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The exceptions that decoding a body raises."""
_ARN: Final = re.compile(r"<Arn>([^<]*)</Arn>")

Answering = Callable[[WebRequest, PageUser], Awaitable[WebResponse]]


class SignInRequest(msgspec.Struct, frozen=True):
    AccessKeyId: str
    SecretAccessKey: str
    SessionToken: str = ""


class ExplainRequest(msgspec.Struct, frozen=True):
    Statement: str
    Parameters: list[msgspec.Raw] = []


class Console:
    def __init__(
        self,
        endpoint: ConsoleEndpoint,
        mode: str,
        hosts: AllowedHosts | None = None,
        region: str = REGION,
        signing: OwnServer | None = None,
        moves: MigrationFolders | None = None,
    ) -> None:
        """`hosts` are the allowed hosts of the server that the console is part of, if there is one.

        `signing` is that server if its users must sign in.
        """
        self.web = WebService(ConnectionLimits(pipelined_max=1))
        self._hosts = hosts or self.web.hosts
        self._endpoint = endpoint
        self._mode = mode
        self._region = region
        self._signing = signing
        self._moves = moves
        self._sessions = ConsoleSessions()
        self._everybody = ConsoleSession(None, "", 0.0)
        files = StaticFiles()
        for path in ("/console", "/console/"):
            self.web.add("GET", path, files.index)
        self.web.add("GET", "/console/static/{name}", files.file)
        self.web.add("GET", "/console/static/{folder}/{name}", files.file)
        for method, path, answering in (
            ("GET", "heat", self._heat),
            ("GET", "partitions/{table}", self._page_of("/partitions")),
            ("GET", "insights/{table}", self._page_of("/insights")),
            ("GET", "requests", self._page("/requests")),
            ("POST", "explain", self._explain),
            ("GET", "mappings", self._mappings),
            ("GET", "moves", _of_move(self._moves_page)),
            ("GET", "moves/{name}", _of_move(self._move)),
            ("GET", "moves/{name}/designs", _of_move(self._designs)),
            ("POST", "moves/{name}/start", _of_move(self._start_move)),
            ("POST", "moves/{name}/stop", _of_move(self._stop_move)),
            ("POST", "{service}/{operation}", self._pass_on),
        ):
            self.web.add(method, f"/console/api/{path}", self._of_own_page(answering))
        self.web.add("GET", "/console/api/session", self._of_own_host(self._session))
        self.web.add("POST", "/console/api/sign-in", self._of_own_host(self._sign_in))
        self.web.add("POST", "/console/api/sign-out", self._of_own_page(self._sign_out))

    def handle(self, request: HttpRequest, reply: Reply) -> None:
        self.web.handle(request, reply)

    def knows(self, request: HttpRequest) -> bool:
        """True when the request has the cookie of a signed-in user."""
        return self._sessions.find(request.headers.get(b"cookie")) is not None

    def _of_own_host(self, handler: Handler) -> Handler:
        async def guarded(request: WebRequest) -> WebResponse:
            host, origin = request.header(b"host"), request.header(b"origin")
            if host is not None and not self._hosts.allows_data(host):
                return problem(421, self._hosts.refusal(host))
            if origin is not None and not is_same_origin(origin, host):
                return problem(403, "Only the console's own page may ask for this.")
            if request.method == "POST" and request.header(b"content-type") != CONTENT_TYPE:
                return problem(415, f"Requests have the content type {CONTENT_TYPE.decode()}.")
            return await handler(request)

        return guarded

    def _of_own_page(self, answering: Answering) -> Handler:
        async def guarded(request: WebRequest) -> WebResponse:
            session = self._session_of(request)
            if session is None:
                return _refusal(401, "SignedOut", "Sign in to go on.")
            if not hmac.compare_digest(request.header(TOKEN) or b"", session.token.encode()):
                return problem(403, "The console's token is missing or old: load the page again.")
            return await answering(request, PageUser(session.credentials, request.peer))

        return self._of_own_host(guarded)

    def _session_of(self, request: WebRequest) -> ConsoleSession | None:
        if self._signing is None:
            return self._everybody
        return self._sessions.find(request.header(b"cookie"))

    async def _session(self, request: WebRequest) -> WebResponse:
        session = self._session_of(request)
        description = {
            "Mode": self._mode,
            "Endpoint": self._endpoint.url,
            "Region": self._region,
            "Version": __version__,
            "SignsIn": self._signing is not None,
        }
        if session is not None:
            description |= {"Token": session.token, "User": session.arn}
        return json_response(description, headers=HEADERS | NOT_KEPT)

    async def _sign_in(self, request: WebRequest) -> WebResponse:
        if self._signing is None:
            return _refusal(400, "NotAsked", "This console has no sign-in.")
        try:
            sign_in = msgspec.json.decode(request.body, type=SignInRequest)
        except UNREADABLE:
            return _refusal(400, "Incomplete", "Give an access key and its secret.")
        credentials = Credentials(
            sign_in.AccessKeyId.strip(),
            sign_in.SecretAccessKey.strip(),
            sign_in.SessionToken.strip() or None,
        )
        try:
            identity = await self._signing.identify(PageUser(credentials, request.peer))
        except ClientError as error:
            return _not_signed_in(error)
        arn = _ARN.search(identity)
        value = self._sessions.open(credentials, arn[1] if arn else sign_in.AccessKeyId)
        is_secure = (request.header(b"origin") or b"").startswith(b"https://")
        return json_response(
            {}, headers={**NOT_KEPT, "set-cookie": cookie(value, is_secure=is_secure)}
        )

    async def _sign_out(self, request: WebRequest, user: PageUser) -> WebResponse:
        self._sessions.close(request.header(b"cookie"))
        return json_response({}, headers={**NOT_KEPT, "set-cookie": cookie("", is_secure=False)})

    async def _pass_on(self, request: WebRequest, user: PageUser) -> WebResponse:
        service, operation = request.parameters["service"], request.parameters["operation"]
        if service not in SERVICES or not operation.isalpha():
            return problem(404, f"The console does not know {operation} of {service}.")
        if self._mode == READ_ONLY and not only_reads(service, operation, request.body):
            return _refusal(
                403, "ReadOnlyConsole", f"{operation} is off: this console is read-only."
            )
        try:
            content = await self._endpoint.send(service, operation, request.body or b"{}", user)
        except ClientError as error:
            if user.credentials is not None and error.code in INVALID_KEY_CODES:
                self._sessions.close(request.header(b"cookie"))
                return _refusal(401, "SignedOut", "Your key is no longer valid: sign in again.")
            status = error.status or UNREACHABLE
            return _refusal(status, error.code, error.message, error.body)
        return WebResponse(200, content or b"{}", headers=NOT_KEPT)

    async def _heat(self, request: WebRequest, user: PageUser) -> WebResponse:
        try:
            return json_response(
                sample(await self._endpoint.page("/metrics", user)), headers=NOT_KEPT
            )
        except PartitaError as error:
            return _refusal(404, "NotMonitored", str(error))

    # Moves from SQL, if the console was started with `--move`.

    async def _moves_page(self, request: WebRequest, user: PageUser) -> WebResponse:
        names = [] if self._moves is None else self._moves.names()
        if names:
            await self._check_right("/moves", user)
        return json_response({"Moves": names}, headers=NOT_KEPT)

    async def _check_right(self, page: str, user: PageUser) -> None:
        """Fetches a page of the server that only users with the right may see; raises otherwise.

        /moves stands for the right to look at moves, /moves/steer for the right to steer them.
        """
        if user.credentials is not None:
            await self._endpoint.page(page, user)

    async def _move(self, request: WebRequest, user: PageUser) -> WebResponse:
        await self._check_right("/moves", user)
        move = self._find_move(request)
        status = await move.status()
        run = None if move.run is None else move.run.to_json()
        return json_response({**status, "run": run, "lag": move.lag}, headers=NOT_KEPT)

    async def _designs(self, request: WebRequest, user: PageUser) -> WebResponse:
        await self._check_right("/moves", user)
        designs = await self._find_move(request).designs()
        return json_response({"designs": designs}, headers=NOT_KEPT)

    async def _start_move(self, request: WebRequest, user: PageUser) -> WebResponse:
        if self._mode == READ_ONLY:
            return _refusal(403, "ReadOnlyConsole", "Moving is off: this console only reads.")
        await self._check_right("/moves/steer", user)
        try:
            run_request = msgspec.json.decode(request.body, type=RunRequest)
        except UNREADABLE:
            return _refusal(400, "Incomplete", "Give a Command and a list of Options.")
        number = await self._find_move(request).start(run_request, user.credentials)
        return json_response({"Number": number}, headers=NOT_KEPT)

    async def _stop_move(self, request: WebRequest, user: PageUser) -> WebResponse:
        if self._mode == READ_ONLY:
            return _refusal(403, "ReadOnlyConsole", "Moving is off: this console only reads.")
        await self._check_right("/moves/steer", user)
        self._find_move(request).stop()
        return json_response({}, headers=NOT_KEPT)

    def _find_move(self, request: WebRequest) -> MigrationFolder:
        name = request.parameters["name"]
        if self._moves is None:
            raise PartitaError(f"There is no move {name}.")
        return self._moves.find(name)

    async def _mappings(self, request: WebRequest, user: PageUser) -> WebResponse:
        """Returns all event source mappings: which function is invoked with records of a stream."""
        mappings: list[object] = []
        marker = ""
        try:
            while True:
                page = orjson.loads(await self._endpoint.mappings(marker, user))
                mappings += page["EventSourceMappings"]
                marker = page.get("NextMarker") or ""
                if not marker:
                    break
        except ClientError as error:
            if error.status >= 500:
                # Other DynamoDB implementations answer unknown paths with many kinds of 5xx.
                return _refusal(404, "NotMonitored", error.message)
            return _refusal(error.status or UNREACHABLE, error.code, error.message)
        except (KeyError, TypeError, ValueError):
            return _refusal(404, "NotMonitored", "The endpoint has no event source mappings.")
        return json_response({"EventSourceMappings": mappings}, headers=NOT_KEPT)

    def _page_of(self, path: str) -> Answering:
        """Returns a handler that forwards a monitoring page about one table."""

        async def answer(request: WebRequest, user: PageUser) -> WebResponse:
            return await self._forward_page(path, user, table=request.parameters["table"])

        return answer

    def _page(self, path: str) -> Answering:
        """Returns a handler that forwards a monitoring page about the whole server."""

        async def answer(request: WebRequest, user: PageUser) -> WebResponse:
            return await self._forward_page(path, user)

        return answer

    async def _explain(self, request: WebRequest, user: PageUser) -> WebResponse:
        """Returns the plan with which the server would execute a PartiQL statement."""
        try:
            explain = msgspec.json.decode(request.body, type=ExplainRequest)
        except UNREADABLE:
            return _refusal(400, "Incomplete", "Give a Statement and a list of Parameters.")
        query = {"statement": explain.Statement}
        if explain.Parameters:
            query["parameters"] = msgspec.json.encode(explain.Parameters).decode()
        return await self._forward_page("/explain", user, **query)

    async def _forward_page(self, path: str, user: PageUser, **query: str) -> WebResponse:
        try:
            page = orjson.loads(await self._endpoint.page(path, user, **query))
        except ValueError:
            return _refusal(404, "NotMonitored", f"The endpoint does not have {path}.")
        except PartitaError as error:
            return _refusal(404, "NotMonitored", str(error))
        return json_response(page, headers=NOT_KEPT)


def _of_move(answering: Answering) -> Answering:
    """Wraps a handler, so that an error of a move is shown with its own message."""

    async def answer(request: WebRequest, user: PageUser) -> WebResponse:
        try:
            return await answering(request, user)
        except PartitaError as error:
            return _refusal(400, "Move", str(error))

    return answer


def _not_signed_in(error: ClientError) -> WebResponse:
    """Returns the response to a failed sign-in: too many attempts, or a wrong key or secret."""
    if "Throttling" in error.message:
        return _refusal(
            429, "TooManyTries", "Too many failed sign-ins from your address: wait a little."
        )
    return _refusal(401, "NotKnown", "The access key or its secret is wrong.")


def _refusal(
    status: int, code: str, message: str, members: Mapping[str, object] = {}
) -> WebResponse:
    """Returns an error in the JSON form of AWS's services."""
    return json_response({**members, "__type": code, "message": message}, status)
