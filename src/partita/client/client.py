"""`Client.call`: one operation of one service, signed, sent, tried again where that may help."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import uuid4

import orjson

from partita.client.connections import Pool
from partita.client.failures import ClientError, refusal
from partita.client.services import REQUEST_TOKENS, RIGHTS, ROLE_HEADER, SERVICES
from partita.client.signing import (
    Credentials,
    find_credentials,
    signed_headers,
    unverified_headers,
)
from partita.clock import Clock, system_clock

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
    ) -> None:
        """`certificate` is the file of the only one that is trusted, where it is given, and
        `client_certificate` that of our own, with its key."""
        self._endpoint = endpoint
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
        self._pools: dict[str, Pool] = {}
        self._heads: dict[tuple[str, str], bytes] = {}

    async def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """`call("dynamodb", "GetItem", {...})`: the answer, in the JSON of the wire."""
        return await self.call_for("", service, operation, request)

    async def call_for(
        self, role: str, service: str, operation: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        """The same with the rights of a role, as parts of our own server ask."""
        token = REQUEST_TOKENS.get((service, operation))
        if token is not None and token not in request:
            request = {**request, token: str(uuid4())}
        content = await self.send(service, operation, orjson.dumps(request), role)
        answer: dict[str, Any] = orjson.loads(content) if content else {}
        return answer

    @property
    def is_signing(self) -> bool:
        return self._credentials is not None

    async def check_right(self, role: str, action: str, resource: str) -> None:
        """Raises unless a role may do that; where nobody signs, everybody may do everything."""
        if self.is_signing:
            asked = {"Action": action, "Resource": resource}
            await self.call_for(role, RIGHTS, "Check", asked)

    async def send(self, service: str, operation: str, body: bytes, role: str = "") -> bytes:
        """The same with the bytes of the wire."""
        pool = self._pool(service)
        tried = 0
        while True:
            tried += 1
            try:
                answer = await pool.send(
                    self._request(service, operation, pool.host, body, role),
                    self._seconds_max,
                )
                if answer.status == 200:
                    return answer.content
                raise refusal(answer.status, answer.content)
            except ClientError as error:
                if tried >= self._tries or not error.is_passing:
                    raise
            await asyncio.sleep(self._pause_seconds(tried))

    async def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        # Transports close in the loop's next turn.
        await asyncio.sleep(0)

    def _pool(self, service: str) -> Pool:
        pool = self._pools.get(service)
        if pool is None:
            amazon = f"https://{SERVICES[service].host.format(self._region)}"
            endpoint = (self._endpoint or amazon).rstrip("/")
            shared = {known.endpoint: known for known in self._pools.values()}
            pool = shared.get(endpoint) or Pool(
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
        }

    def _pause_seconds(self, tried: int) -> float:
        """Twice as long each time, at random up to that, so that callers do not come in step."""
        seconds_max = min(BACKOFF_SECONDS * float(2**tried), BACKOFF_SECONDS_MAX)
        return self._chance.random() * seconds_max


def _lines(headers: dict[str, str]) -> bytes:
    return ("POST / HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items())).encode()
