"""`Client.call`: one operation of one service, signed, sent, tried again where that may help."""

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
    """For one event loop. Without an `endpoint` it speaks to Amazon."""

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
        """`certificate` is the file of the only one that is trusted, where it is given, and
        `client_certificate` that of our own, with its key. Writes count only while `fence` is the
        fencing token of the server that leads, where it is given. `agent`: what we call
        ourselves."""
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
        """Whether we are a part of a server that knows us, and asks for signatures."""
        self._role = ""
        self._pools: dict[str, ConnectionPool] = {}
        self._heads: dict[tuple[str, str], bytes] = {}

    async def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """`call("dynamodb", "GetItem", {...})`: the answer, in the JSON of the wire."""
        return await self.call_for(self._role, service, operation, request)

    async def call_for(
        self, role: str, service: str, operation: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        """The same with the rights of a role."""
        token = REQUEST_TOKENS.get((service, operation))
        if token is not None and token not in request:
            request = {**request, token: str(uuid4())}
        content = await self.send(service, operation, orjson.dumps(request), role)
        answer: dict[str, Any] = orjson.loads(content) if content else {}
        return answer

    def acting_for(self, role: str) -> Client:
        """The same client with the rights of a role, as parts of our own server ask; without a
        role, with their own."""
        acting = copy(self)
        acting._role = role
        return acting

    async def check_right(self, role: str, action: str, resource: str) -> None:
        """Raises unless a role may do that; where nobody signs, everybody may do everything."""
        if self.is_signing:
            asked = {"Action": action, "Resource": resource}
            await self.call_for(role, RIGHTS, "Check", asked)

    async def check_own_right(self, action: str, resource: str) -> None:
        """The same for the role that we act for, if we do."""
        if self._role:
            await self.check_right(self._role, action, resource)

    async def session_of(self, role: str) -> dict[str, Any]:
        """What signs requests with the rights of a role, and until when."""
        return await self.call_for(role, RIGHTS, "Session", {})

    async def send(self, service: str, operation: str, body: bytes, role: str = "") -> bytes:
        """The same with the bytes of the wire."""
        host = self._pool(service).host
        answer = await self._answered(
            service,
            lambda: self._request(service, operation, host, body, role),
            self._seconds_max,
        )
        return answer.content

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
        """The answer of a service whose protocol is REST; also after it has throttled us, if we are
        patient."""
        host = self._pool(service).host

        def make() -> bytes:
            described = SERVICES[service]
            sent = {"Host": host, "Content-Type": described.content_type, **(headers or {})}
            if self._credentials is None:
                sent |= unverified_headers(described, self._region)
            else:
                if role or self._role:
                    sent[ROLE_HEADER] = role or self._role
                sent |= signed_headers(
                    *(described, self._region, self._credentials(), sent, body, self._clock()),
                    *(method, *split_target(path)),
                )
            return b"%bContent-Length: %d\r\n\r\n%b" % (
                _lines(sent, f"{method} {path}"),
                len(body),
                body,
            )

        return await self._answered(service, make, seconds_max, is_patient=is_patient)

    def presigned(self, service: str, path: str, parameters: dict[str, str], seconds: int) -> str:
        """A URL that whoever has it may get, for some seconds."""
        pool = self._pool(service)
        signer = (
            Credentials(UNVERIFIED_KEY, "") if self._credentials is None else self._credentials()
        )
        query = presigned_query(
            *(SERVICES[service], self._region, signer, pool.host, path, parameters),
            *(self._clock(), seconds),
        )
        return f"{pool.endpoint}{path}?{query}"

    async def _answered(
        self,
        service: str,
        make: Callable[[], bytes],
        seconds_max: float,
        *,
        is_patient: bool = True,
    ) -> ClientResponse:
        pool = self._pool(service)
        tried = 0
        while True:
            tried += 1
            try:
                answer = await pool.send(make(), seconds_max)
                if answer.status < 300:
                    return answer
                raise refusal(answer.status, answer.content, answer.headers)
            except ClientError as error:
                is_passing = error.is_passing and (is_patient or error.code not in THROTTLING)
                if tried >= self._tries or not is_passing:
                    raise
            await asyncio.sleep(self._pause_seconds(tried))

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
            shared = {known.endpoint: known for known in self._pools.values()}
            pool = shared.get(endpoint) or ConnectionPool(
                endpoint, self._connections, self._certificate, self._client_certificate
            )
            self._pools[service] = pool
        return pool

    def _request(
        self, service: str, operation: str, host: str, body: bytes, role: str = ""
    ) -> bytes:
        """Without credentials, all but the body is the same every time."""
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
        description = SERVICES[service]
        return {
            "Host": host,
            "Content-Type": description.content_type,
            "X-Amz-Target": f"{description.target}.{operation}",
            **({FENCE_HEADER: self._fence} if self._fence else {}),
            **({"User-Agent": self._agent} if self._agent else {}),
        }

    def _pause_seconds(self, tried: int) -> float:
        """Twice as long each time, at random up to that, so that callers do not come in step."""
        seconds_max = min(BACKOFF_SECONDS * float(2**tried), BACKOFF_SECONDS_MAX)
        return self._chance.random() * seconds_max


def _lines(headers: dict[str, str], asked: str = "POST /") -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{asked} HTTP/1.1\r\n{lines}".encode()
