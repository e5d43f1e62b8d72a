"""Requests without a client in between: over http.client, or byte by byte over a socket.

With PARTITA_SIGNED set, those over http.client have a signature that a server can verify. An
endpoint may be https; AWS_CA_BUNDLE then has the certificate.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from partita.client.aws_services import SERVICES
from partita.client.request_signing import Credentials, signed_headers

REGION = "us-east-1"
SIGNED: Mapping[str, str] = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=0"
    ),
    "X-Amz-Date": "20260101T000000Z",
}


class Answer(NamedTuple):
    """A raw response: `status, headers, body = raw(...)`; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: Any


Raw = Callable[..., Answer]
Connect = Callable[[], socket.socket]


def raw_requests(endpoint: str) -> Raw:
    """`raw("PutItem", {...})`: the body as given (text and bytes untouched), the answer parsed."""
    address = urlsplit(endpoint)

    def post(
        operation: str,
        body: object = None,
        headers: Mapping[str, str | None] | None = None,
        method: str = "POST",
        path: str = "/",
    ) -> Answer:
        sent = {"X-Amz-Target": f"DynamoDB_20120810.{operation}", **SIGNED, **(headers or {})}
        if os.environ.get("PARTITA_SIGNED") and "Authorization" not in (headers or {}):
            sent |= _signed(address.netloc, sent, _encoded(body))
        connection = _connection(address)
        try:
            connection.request(
                method,
                path,
                body=_encoded(body),
                headers={name: value for name, value in sent.items() if value is not None},
            )
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        received = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, received, _parsed(content))

    return post


def _connection(address: SplitResult) -> http.client.HTTPConnection:
    place = (address.hostname or "", address.port)
    if address.scheme == "https":
        return http.client.HTTPSConnection(*place, timeout=60, context=trusting())
    return http.client.HTTPConnection(*place, timeout=60)


def trusting() -> ssl.SSLContext:
    """A TLS context that trusts the server under test."""
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))


def _signed(host: str, headers: Mapping[str, str | None], body: bytes) -> dict[str, str]:
    target = headers.get("X-Amz-Target")
    covered = {"Host": host, **({} if target is None else {"X-Amz-Target": target})}
    service = "kinesis" if (target or "").startswith("Kinesis") else "dynamodb"
    credentials = Credentials("test", "test")
    return signed_headers(SERVICES[service], REGION, credentials, covered, body, time.time())


def _encoded(body: object) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return b"" if body is None else json.dumps(body).encode()


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content


def message(
    operation: str = "ListTables",
    body: bytes = b"{}",
    *headers: str,
    version: str = "1.1",
    length: int | None = None,
) -> bytes:
    lines = [
        f"POST / HTTP/{version}",
        "Host: localhost",
        "Content-Type: application/x-amz-json-1.0",
        f"X-Amz-Target: DynamoDB_20120810.{operation}",
        f"Authorization: {SIGNED['Authorization']}",
        "X-Amz-Date: 20260101T000000Z",
        *headers,
    ]
    if "Transfer-Encoding: chunked" not in headers:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def read_to_end(connection: socket.socket) -> bytes:
    received = bytearray()
    while part := connection.recv(65_536):
        received += part
    return bytes(received)


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Reads one response with a content length."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65_536)
        assert part, received
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65_536)
    return int(status_line.split()[1]), headers, body
