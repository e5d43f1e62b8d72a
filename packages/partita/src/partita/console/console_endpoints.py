"""Whom the console asks: the server that it is part of, or a DynamoDB elsewhere.

Requests to its own server do not leave the process. They are signed, admitted and written down as
all others are, with the rights and the address of whoever is at the page.
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
    """Who is at the page: nobody in particular where nobody has to sign in."""

    credentials: Credentials | None = None
    peer: Peer | None = None


class ConsoleEndpoint(Protocol):
    @property
    def url(self) -> str:
        """As clients elsewhere name it."""

    async def send(self, service: str, operation: str, body: bytes, asker: PageUser) -> bytes:
        """The answer of an operation; ClientError when it is refused."""

    async def page(self, path: str, asker: PageUser, **query: str) -> bytes:
        """One of the pages of a Partita; PartitaError when it has none, or shows it to others."""

    async def mappings(self, marker: str, asker: PageUser) -> bytes:
        """A page of the event source mappings; ClientError where there are none."""


class RemoteEndpoint:
    """Asked over the network, with the credentials of this process."""

    def __init__(self, client: Client, url: str) -> None:
        self.url = url
        self._client = client

    async def send(self, service: str, operation: str, body: bytes, asker: PageUser) -> bytes:
        return await self._client.send(service, operation, body)

    async def page(self, path: str, asker: PageUser, **query: str) -> bytes:
        return await asyncio.to_thread(partial(fetch, self.url, path, **query))

    async def mappings(self, marker: str, asker: PageUser) -> bytes:
        answer = await self._client.request("lambda", "GET", _mappings_path(marker))
        return answer.content


class OwnServer:
    def __init__(self, handle: Handle, find_url: Callable[[], str]) -> None:
        """`find_url` tells where the server listens, once it does."""
        self._handle = handle
        self._find_url = find_url

    @property
    def url(self) -> str:
        return self._find_url()

    async def send(self, service: str, operation: str, body: bytes, asker: PageUser) -> bytes:
        described = SERVICES[service]
        target = {"X-Amz-Target": f"{described.target}.{operation}"}
        response = await self._answer(described, "POST", "/", target, body, asker)
        if response.status >= 300:
            raise refusal(response.status, response.body)
        return response.body

    async def page(self, path: str, asker: PageUser, **query: str) -> bytes:
        target = f"{path}?{urlencode(query)}" if query else path
        response = await self._answer(SERVICES["partita"], "GET", target, {}, b"", asker)
        if response.status >= 300:
            raise PartitaError(refusal(response.status, response.body).message)
        return response.body

    async def mappings(self, marker: str, asker: PageUser) -> bytes:
        """Without their table there are none, and nobody has to be started to say so."""
        try:
            described = orjson.dumps({"TableName": FUNCTIONS_TABLE})
            await self.send("dynamodb", "DescribeTable", described, asker)
        except ClientError as error:
            if error.code != "ResourceNotFoundException":
                raise
            return NO_MAPPINGS
        path = _mappings_path(marker)
        response = await self._answer(SERVICES["lambda"], "GET", path, {}, b"", asker)
        if response.status >= 300:
            raise refusal(response.status, response.body)
        return response.body

    async def identify(self, asker: PageUser) -> str:
        """What AWS STS says of somebody, in its XML; ClientError when the key is not known."""
        sign_in = {SIGN_IN_HEADER: "console"}
        response = await self._answer(STS, "POST", "/", sign_in, IDENTITY, asker)
        if response.status >= 300:
            raise refusal(response.status, response.body)
        return response.body.decode()

    async def _answer(
        self,
        service: AwsService,
        method: str,
        target: str,
        more: dict[str, str],
        body: bytes,
        asker: PageUser,
    ) -> HttpResponse:
        headers = {
            "Host": self.url.rpartition("//")[2],
            "Content-Type": service.content_type,
            "User-Agent": AGENT,
            **more,
        }
        if asker.credentials is None:
            headers |= unverified_headers(service, REGION)
        else:
            headers |= signed_headers(
                *(service, REGION, asker.credentials, headers, body, system_clock()),
                *(method, *split_target(target)),
            )
        request = HttpRequest(
            method.encode(),
            target.encode(),
            {name.lower().encode(): value.encode() for name, value in headers.items()},
            body,
        )
        request.peer = asker.peer
        answered: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

        def reply(response: HttpResponse) -> None:
            if not answered.done():
                answered.set_result(response)

        self._handle(request, reply)
        try:
            return await asyncio.wait_for(answered, CALL_SECONDS_MAX)
        except TimeoutError as error:
            raise Unreachable(self.url, "it took too long") from error


def _mappings_path(marker: str) -> str:
    query = f"?{urlencode({'Marker': marker})}" if marker else ""
    return f"/2015-03-31/event-source-mappings/{query}"
