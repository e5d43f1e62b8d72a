"""The endpoint behind a console: the server that the console is part of, or one elsewhere.

Requests to its own server do not leave the process. They are signed, authorized and audited like
all others, with the rights and the address of the user at the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol
from urllib.parse import urlencode

import orjson

from partita import __version__
from partita.client import Client, ClientError, Credentials
from partita.client.aws_client import CALL_SECONDS_MAX, REGION
from partita.client.aws_services import FUNCTIONS_TABLE, SERVICES, SIGN_IN_HEADER, AwsService
from partita.client.client_errors import Unreachable, refusal
from partita.client.request_signing import signed_headers, split_target, unverified_headers
from partita.errors import PartitaError
from partita.foundation.clock import system_clock
from partita.server.http.http_messages import Handle, HttpRequest, HttpResponse, Peer
from partita.server.monitoring.page_fetching import fetch

STS = AwsService("", "application/x-www-form-urlencoded", "", "sts")
IDENTITY = b"Action=GetCallerIdentity&Version=2011-06-15"
NO_MAPPINGS = b'{"EventSourceMappings":[]}'
AGENT = f"Partita-Console/{__version__}"


class PageUser(NamedTuple):
    """The user at a page; without credentials where the server has no sign-in."""

    credentials: Credentials | None = None
    peer: Peer | None = None


class ConsoleEndpoint(Protocol):
    @property
    def url(self) -> str:
        """The URL at which clients reach the endpoint."""

    async def send(self, service: str, operation: str, body: bytes, user: PageUser) -> bytes:
        """Returns the response body of an operation; raises ClientError when it is refused."""

    async def page(self, path: str, user: PageUser, **query: str) -> bytes:
        """Returns a monitoring page of a Partita server, such as /metrics.

        Raises PartitaError when the endpoint has no such page, or does not show it to this user.
        """

    async def mappings(self, marker: str, user: PageUser) -> bytes:
        """Returns one page of event source mappings; raises ClientError when that is refused."""


class RemoteEndpoint:
    """An endpoint that is reached over the network, with the credentials of this process."""

    def __init__(self, client: Client, url: str) -> None:
        self.url = url
        self._client = client

    async def send(self, service: str, operation: str, body: bytes, user: PageUser) -> bytes:
        return await self._client.send(service, operation, body)

    async def page(self, path: str, user: PageUser, **query: str) -> bytes:
        return await asyncio.to_thread(partial(fetch, self.url, path, **query))

    async def mappings(self, marker: str, user: PageUser) -> bytes:
        response = await self._client.request("lambda", "GET", _mappings_path(marker))
        return response.content


class OwnServer:
    """The server that the console is part of, called in process."""

    def __init__(self, handle: Handle, find_url: Callable[[], str]) -> None:
        """`find_url` is called once the server listens: its port may be known only then."""
        self._handle = handle
        self._find_url = find_url

    @property
    def url(self) -> str:
        return self._find_url()

    async def send(self, service: str, operation: str, body: bytes, user: PageUser) -> bytes:
        aws_service = SERVICES[service]
        target = {"X-Amz-Target": f"{aws_service.target}.{operation}"}
        response = await self._answer(aws_service, "POST", "/", target, body, user)
        if response.status >= 300:
            raise refusal(response.status, response.body)
        return response.body

    async def page(self, path: str, user: PageUser, **query: str) -> bytes:
        target = f"{path}?{urlencode(query)}" if query else path
        response = await self._answer(SERVICES["partita"], "GET", target, {}, b"", user)
        if response.status >= 300:
            raise PartitaError(refusal(response.status, response.body).message)
        return response.body

    async def mappings(self, marker: str, user: PageUser) -> bytes:
        """Returns one page of event source mappings.

        Without their table there are no mappings. That is checked first, because a request to
        Lambda would start the companion process that answers for it.
        """
        try:
            describe_request = orjson.dumps({"TableName": FUNCTIONS_TABLE})
            await self.send("dynamodb", "DescribeTable", describe_request, user)
        except ClientError as error:
            if error.code != "ResourceNotFoundException":
                raise
            return NO_MAPPINGS
        path = _mappings_path(marker)
        response = await self._answer(SERVICES["lambda"], "GET", path, {}, b"", user)
        if response.status >= 300:
            raise refusal(response.status, response.body)
        return response.body

    async def identify(self, user: PageUser) -> str:
        """Returns the XML of GetCallerIdentity; raises ClientError when the key is unknown."""
        sign_in = {SIGN_IN_HEADER: "console"}
        response = await self._answer(STS, "POST", "/", sign_in, IDENTITY, user)
        if response.status >= 300:
            raise refusal(response.status, response.body)
        return response.body.decode()

    async def _answer(
        self,
        service: AwsService,
        method: str,
        target: str,
        extra_headers: dict[str, str],
        body: bytes,
        user: PageUser,
    ) -> HttpResponse:
        headers = {
            "Host": self.url.rpartition("//")[2],
            "Content-Type": service.content_type,
            "User-Agent": AGENT,
            **extra_headers,
        }
        if user.credentials is None:
            headers |= unverified_headers(service, REGION)
        else:
            headers |= signed_headers(
                *(service, REGION, user.credentials, headers, body, system_clock()),
                *(method, *split_target(target)),
            )
        request = HttpRequest(
            method.encode(),
            target.encode(),
            {name.lower().encode(): value.encode() for name, value in headers.items()},
            body,
        )
        request.peer = user.peer
        answer: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

        def reply(response: HttpResponse) -> None:
            if not answer.done():
                answer.set_result(response)

        self._handle(request, reply)
        try:
            return await asyncio.wait_for(answer, CALL_SECONDS_MAX)
        except TimeoutError as error:
            raise Unreachable(self.url, "it took too long") from error


def _mappings_path(marker: str) -> str:
    query = f"?{urlencode({'Marker': marker})}" if marker else ""
    return f"/2015-03-31/event-source-mappings/{query}"
