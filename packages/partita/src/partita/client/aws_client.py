"""`Client.call` signs and sends one operation of a service, and retries when that may help."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from copy import copy
from typing import Any
from uuid import uuid4

import orjson

from partita.client.aws_services import REQUEST_TOKENS, RIGHTS, ROLE_HEADER, SERVICES
from partita.client.client_errors import THROTTLING, ClientError, refusal
from partita.client.connection_pool import ClientResponse, ConnectionPool
from partita.client.request_signing import (
    UNVERIFIED_KEY,
    Credentials,
    find_credentials,
    presigned_query,
    signed_headers,
    split_target,
    unverified_headers,
)
from partita.foundation.clock import Clock, system_clock

FENCE_HEADER = "X-Partita-Fence"
TRIES_MAX = 10
BACKOFF_SECONDS = 0.05
BACKOFF_SECONDS_MAX = 5.0
CALL_SECONDS_MAX = 60.0
REGION = "us-east-1"


class Client:
    """A client for one event loop. Without an `endpoint` it connects to Amazon."""

    def __init__(
        self,
        endpoint: str | None = None,
        region: str = REGION,
        credentials: Credentials | None = None,
        connections: int = 16,
        *,
        tries: int = TRIES_MAX,
        seconds_max: float = CALL_SECONDS_MAX,
        clock: Clock = system_clock,
        chance: random.Random | None = None,
        certificate: str = "",
        client_certificate: str = "",
        fence: str = "",
        agent: str = "",
    ) -> None:
        """`certificate` is a file with the only certificate to trust, and `client_certificate` a
        file with our own and its key. With `fence`, a fencing token, writes are refused once
        another server is the leader. `agent` is sent as User-Agent."""
        self._fence = fence
        self._endpoint = endpoint
        self._agent = agent
        self._certificate = certificate
        self._client_certificate = client_certificate
        self._region = region
        self._connections = connections
        self._tries = tries
        self._seconds_max = seconds_max
        self._clock = clock
        self._chance = chance or random.Random()
        is_local = bool(certificate) or (endpoint or "").startswith("http://")
        self._credentials = (
            (lambda: credentials) if credentials is not None else find_credentials(is_local)
        )
        self.is_signing = credentials is not None
        """True in a companion process of a server that verifies signatures."""
        self._role = ""
        self._pools: dict[str, ConnectionPool] = {}
        self._heads: dict[tuple[str, str], bytes] = {}

    async def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the response, for example of `call("dynamodb", "GetItem", {...})`, as JSON."""
        return await self.call_for(self._role, service, operation, request)

    async def call_for(
        self, role: str, service: str, operation: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        """Like `call`, with the rights of a role."""
        token = REQUEST_TOKENS.get((service, operation))
        if token is not None and token not in request:
            request = {**request, token: str(uuid4())}
        content = await self.send(service, operation, orjson.dumps(request), role)
        response: dict[str, Any] = orjson.loads(content) if content else {}
        return response

    def acting_for(self, role: str) -> Client:
        """Returns this client with the rights of a role, or its own rights without a role.

        Only companion processes of our own server may act for roles.
        """
        acting = copy(self)
        acting._role = role
        return acting

    async def check_right(self, role: str, action: str, resource: str) -> None:
        """Raises ClientError unless a role has a right; on a server without `--auth` it has all."""
        if self.is_signing:
            await self.call_for(role, RIGHTS, "Check", {"Action": action, "Resource": resource})

    async def check_own_right(self, action: str, resource: str) -> None:
        """Like `check_right`, for the role that this client acts for, if there is one."""
        if self._role:
            await self.check_right(self._role, action, resource)

    async def session_of(self, role: str) -> dict[str, Any]:
        """Returns temporary credentials with the rights of a role, and when they expire."""
        return await self.call_for(role, RIGHTS, "Session", {})

    async def send(self, service: str, operation: str, body: bytes, role: str = "") -> bytes:
        """Like `call`, with the bytes of a request and a response."""
        host = self._pool(service).host
        response = await self._send_with_retries(
            service,
            lambda: self._request(service, operation, host, body, role),
            self._seconds_max,
        )
        return response.content

    async def request(
        self,
        service: str,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        seconds_max: float = CALL_SECONDS_MAX,
        *,
        is_patient: bool = True,
        role: str = "",
    ) -> ClientResponse:
        """Returns the response of a REST service; `is_patient` also retries after throttling."""
        host = self._pool(service).host

        def make() -> bytes:
            aws_service = SERVICES[service]
            fields = {"Host": host, "Content-Type": aws_service.content_type, **(headers or {})}
            if self._credentials is None:
                fields |= unverified_headers(aws_service, self._region)
            else:
                if role or self._role:
                    fields[ROLE_HEADER] = role or self._role
                fields |= signed_headers(
                    *(aws_service, self._region, self._credentials(), fields, body, self._clock()),
                    *(method, *split_target(path)),
                )
            return b"%bContent-Length: %d\r\n\r\n%b" % (
                _lines(fields, f"{method} {path}"),
                len(body),
                body,
            )

        return await self._send_with_retries(service, make, seconds_max, is_patient=is_patient)

    def presigned(self, service: str, path: str, parameters: dict[str, str], seconds: int) -> str:
        """Returns a URL that anybody may GET without a signature of their own, for some seconds."""
        pool = self._pool(service)
        signer = (
            Credentials(UNVERIFIED_KEY, "") if self._credentials is None else self._credentials()
        )
        query = presigned_query(
            *(SERVICES[service], self._region, signer, pool.host, path, parameters),
            *(self._clock(), seconds),
        )
        return f"{pool.endpoint}{path}?{query}"

    async def _send_with_retries(
        self,
        service: str,
        make: Callable[[], bytes],
        seconds_max: float,
        *,
        is_patient: bool = True,
    ) -> ClientResponse:
        # `make` is called for each attempt, because a signature expires after some minutes.
        pool = self._pool(service)
        attempts = 0
        while True:
            attempts += 1
            try:
                response = await pool.send(make(), seconds_max)
                if response.status < 300:
                    return response
                raise refusal(response.status, response.content, response.headers)
            except ClientError as error:
                is_passing = error.is_passing and (is_patient or error.code not in THROTTLING)
                if attempts >= self._tries or not is_passing:
                    raise
            await asyncio.sleep(self._pause_seconds(attempts))

    async def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        # Transports close in the loop's next turn.
        await asyncio.sleep(0)

    def _pool(self, service: str) -> ConnectionPool:
        pool = self._pools.get(service)
        if pool is None:
            amazon = f"https://{SERVICES[service].host.format(self._region)}"
            endpoint = (self._endpoint or amazon).rstrip("/")
            # Services behind the same endpoint share its connections.
            shared = {pool.endpoint: pool for pool in self._pools.values()}
            pool = shared.get(endpoint) or ConnectionPool(
                endpoint, self._connections, self._certificate, self._client_certificate
            )
            self._pools[service] = pool
        return pool

    def _request(
        self, service: str, operation: str, host: str, body: bytes, role: str = ""
    ) -> bytes:
        # Without credentials, all but the body is the same every time.
        if self._credentials is None:
            head = self._heads.get((service, operation))
            if head is None:
                headers = self._headers(service, operation, host)
                headers |= unverified_headers(SERVICES[service], self._region)
                head = self._heads[service, operation] = _lines(headers)
        else:
            headers = self._headers(service, operation, host)
            if role:
                headers[ROLE_HEADER] = role
            headers |= signed_headers(
                SERVICES[service], self._region, self._credentials(), headers, body, self._clock()
            )
            head = _lines(headers)
        return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)

    def _headers(self, service: str, operation: str, host: str) -> dict[str, str]:
        aws_service = SERVICES[service]
        return {
            "Host": host,
            "Content-Type": aws_service.content_type,
            "X-Amz-Target": f"{aws_service.target}.{operation}",
            **({FENCE_HEADER: self._fence} if self._fence else {}),
            **({"User-Agent": self._agent} if self._agent else {}),
        }

    def _pause_seconds(self, attempts: int) -> float:
        """Exponential backoff with full jitter, so that clients do not retry in step."""
        seconds_max = min(BACKOFF_SECONDS * float(2**attempts), BACKOFF_SECONDS_MAX)
        return self._chance.random() * seconds_max


def _lines(headers: dict[str, str], method_and_path: str = "POST /") -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method_and_path} HTTP/1.1\r\n{lines}".encode()
