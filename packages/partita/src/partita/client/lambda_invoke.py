"""Lambda's Invoke, over the wire."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from partita.client.aws_client import Client

CALL_SECONDS_MAX = 960.0
"""Longer than the 15 minutes that a function may take."""


class InvokeResult(NamedTuple):
    payload: bytes
    is_error: bool
    """True when the payload is the function's error, in Lambda's JSON form."""
    version: str


async def invoke(
    client: Client, function: str, event: bytes, *, is_event: bool = False, role: str = ""
) -> InvokeResult:
    """Invokes a function, given by name or ARN; with `is_event` it is only queued."""
    path = f"/2015-03-31/functions/{quote(function, safe='')}/invocations"
    headers = {"X-Amz-Invocation-Type": "Event" if is_event else "RequestResponse"}
    response = await client.request(
        *("lambda", "POST", path, event, headers, CALL_SECONDS_MAX),
        is_patient=is_event,
        role=role,
    )
    return InvokeResult(
        response.content,
        b"x-amz-function-error" in response.headers,
        response.headers.get(b"x-amz-executed-version", b"$LATEST").decode("latin-1"),
    )
