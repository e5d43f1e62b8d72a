"""Plain requests over sockets, which take less processor time than AWS's clients."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

CONNECTIONS = 16
POLL_SECONDS = 0.01
IDLE_SECONDS = 5.0
HEADERS = (
    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-amz-json-1.0\r\n"
    "X-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a/20260101/"
    "us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n"
)


class Connection:
    """A connection that is opened again after a long pause, because the server closes idle ones."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._used_at = 0.0

    @classmethod
    async def to(cls, port: int) -> Connection:
        connection = cls(port)
        await connection._open()
        return connection

    async def _open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._used_at = time.monotonic()

    async def ask(self, operation: str, request: Any) -> Any:
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self._writer.close()
            await self._open()
        self._used_at = time.monotonic()
        body = json.dumps(request)
        target = f"X-Amz-Target: DynamoDB_20120810.{operation}\r\n"
        self._writer.write(f"{HEADERS}{target}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith("content-length:"))
        answer = json.loads(await self._reader.readexactly(length))
        if " 200 " not in lines[0]:
            raise RuntimeError(f"{operation}: {answer}")
        return answer


def schema(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


async def spread(port: int, requests: Iterator[tuple[str, Any]]) -> None:
    async def work() -> None:
        connection = await Connection.to(port)
        for operation, request in requests:
            await connection.ask(operation, request)

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))


async def until(
    connection: Connection, operation: str, request: Any, path: tuple[str, ...], status: str
) -> None:
    """Waits until a description has a status; raises an error if it failed."""
    while True:
        answer = await connection.ask(operation, request)
        for name in path:
            answer = answer[name]
        if answer == status:
            return
        if answer == "FAILED":
            raise RuntimeError(operation)
        await asyncio.sleep(POLL_SECONDS)
