"""One request to a server on this machine, as an SDK would send it."""

from __future__ import annotations

import http.client
from typing import Any

import orjson

HOST = "127.0.0.1"
ANSWER_SECONDS_MAX = 60


class WireError(Exception):
    """Raised when the response is not 200, or when none comes."""


def headers(target: str) -> dict[str, str]:
    """Returns headers with a dummy signature, because no server verifies it in this benchmark."""
    return {
        "X-Amz-Target": f"DynamoDB_20120810.{target}",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": (
            "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date;x-amz-target, "
            f"Signature={'0' * 64}"
        ),
    }


class Client:
    """A persistent connection, which is opened again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_SECONDS_MAX)

    def call(self, target: str, request: Any) -> dict[str, Any]:
        return self.send(target, orjson.dumps(request))

    def send(self, target: str, body: bytes) -> dict[str, Any]:
        try:
            self._connection.request("POST", "/", body, headers(target))
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise WireError(f"{target} was not answered: {error!r}") from error
        if response.status != http.client.OK:
            raise WireError(f"{target} was answered with {response.status}: {answer[:200]!r}")
        decoded: dict[str, Any] = orjson.loads(answer) if answer else {}
        return decoded

    def close(self) -> None:
        self._connection.close()
