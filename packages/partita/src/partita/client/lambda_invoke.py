"""Lambda's Invoke, over the wire."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from partita.client.aws_client import Client

CALL_SECONDS_MAX = 960.0
"""Longer than any function may take."""


class InvokeResult(NamedTuple):
    payload: bytes
    is_error: bool
    """Whether the payload is the function's error, in Lambda's shape."""
    version: str


async def invoke(
    client: Client, function: str, event: bytes, *, is_event: bool = False, role: str = ""
) -> InvokeResult:
    """`function` is a name or an ARN. An event is accepted now, and the function called later."""
    path = f"/2015-03-31/functions/{quote(function, safe='')}/invocations"
    headers = {"X-Amz-Invocation-Type": "Event" if is_event else "RequestResponse"}
    answer = await client.request(
        *("lambda", "POST", path, event, headers, CALL_SECONDS_MAX),
        is_patient=is_event,
        role=role,
    )
    return InvokeResult(
        answer.content,
        b"x-amz-function-error" in answer.headers,
        answer.headers.get(b"x-amz-executed-version", b"$LATEST").decode("latin-1"),
    )
