"""Sinks: where messages to SNS topics, SQS queues, EventBridge buses and S3 buckets go.

This server does not implement these services. The settings name a sink by the ARN that it stands
for: a file, a URL, a function or a Kinesis stream. Functions and streams are reached over the wire.
"""

from __future__ import annotations

import asyncio
import base64
import os
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from partita.client import Client, ClientError
from partita.client.lambda_invoke import invoke
from partita.foundation.clock import system_clock
from partita.foundation.server_settings import SinkSettings
from partita_services.functions import function_arns
from partita_services.functions.runtime.function_worker import RESULT_BYTES_MAX
from partita_services.iso_time import iso_time

Result = TypeVar("Result")
SEND_SECONDS_MAX = 60.0
URLS = ("http://", "https://")
ACTIONS = {
    "events": "events:PutEvents",
    "s3": "s3:PutObject",
    "sns": "sns:Publish",
    "sqs": "sqs:SendMessage",
}
"""The action that a policy must allow for sending to a resource of each service."""


class SendFailed(Exception):
    """Raised when a message did not arrive; its text is the reason."""


class Sinks:
    def __init__(self, sinks: Iterable[SinkSettings], folder: Path, client: Client) -> None:
        self._sinks = {sink.arn: sink for sink in sinks}
        self._folder = folder
        self._own = self._client = client

    def acting_for(self, role: str) -> Sinks:
        """The same sinks, used with the rights of a role."""
        acting = copy(self)
        acting._client = self._own.acting_for(role)
        return acting

    def find(self, arn: str) -> SinkSettings | None:
        """The sink for an ARN. Region and account need not be the same."""
        return self._sinks.get(arn) or next(
            (sink for sink_arn, sink in self._sinks.items() if _same(sink_arn, arn)), None
        )

    def named(self, service: str, name: str) -> SinkSettings | None:
        """The sink of a service's resource with this name."""
        for arn, sink in self._sinks.items():
            parts = arn.split(":", 5)
            if parts[2] == service and parts[5].rpartition("/")[2] == name:
                return sink
        return None

    async def send(self, sink: SinkSettings, message: bytes, key: str) -> None:
        """Returns when the message, which is JSON, has arrived; raises SendFailed when it has not.

        `key` is the partition key in a Kinesis stream. The role needs the right to send to the
        resource that the sink stands for. It needs no right on the file, function or stream behind
        it, which the server uses itself.
        """
        await self.check_right(sink)
        # From here on with the server's own rights, not with those of the role.
        own = self.acting_for("")
        if sink.file is not None:
            await append(self._folder / sink.file, message)
        elif sink.url is not None:
            await in_thread(partial(post, sink.url, message, SEND_SECONDS_MAX))
        elif sink.function is not None:
            await own.call(sink.function, message)
        else:
            assert sink.stream is not None
            await own.put_record(sink.stream, message, key)

    async def check_right(self, sink: SinkSettings) -> None:
        """Raises SendFailed when the role may not send to the resource that the sink stands for."""
        try:
            await self._client.check_own_right(ACTIONS[sink.arn.split(":")[2]], sink.arn)
        except ClientError as error:
            raise SendFailed(error.message) from error

    async def call(self, function: str, message: bytes) -> None:
        try:
            await invoke(self._client, function, message, is_event=True)
        except ClientError as error:
            raise SendFailed(f"{function} could not be invoked: {error}") from error

    async def put_record(self, stream: str, message: bytes, key: str) -> None:
        data = base64.b64encode(message).decode()
        request: dict[str, Any] = {"StreamName": stream, "Data": data, "PartitionKey": key}
        try:
            await self._client.call("kinesis", "PutRecord", request)
        except ClientError as error:
            raise SendFailed(f"The stream {stream} did not accept it: {error}") from error


def event_of_bus(
    source: str,
    detail_type: str,
    detail: Any,
    resources: Iterable[str] = (),
    time: str | None = None,
) -> dict[str, Any]:
    """An event as EventBridge passes it on."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": detail_type,
        "source": source,
        "account": function_arns.ACCOUNT,
        "time": time or iso_time(system_clock(), "seconds"),
        "region": function_arns.REGION,
        "resources": list(resources),
        "detail": detail,
    }


def _same(sink_arn: str, arn: str) -> bool:
    sink_parts, parts = sink_arn.split(":", 5), arn.split(":", 5)
    return len(parts) == 6 and (sink_parts[2], sink_parts[5]) == (parts[2], parts[5])


async def append(path: Path, line: bytes) -> None:
    """Append a line to a file; returns when it is on disk."""
    await in_thread(partial(_append, path, line))


def _append(path: Path, line: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(line + b"\n")
            file.flush()
            # The caller deletes its copy of the message after this.
            os.fsync(file.fileno())
    except OSError as error:
        raise SendFailed(f"{path} could not be written: {error.strerror}") from error


async def in_thread(call: Callable[[], Result]) -> Result:
    """Run a blocking call in a thread of its own. A server that stops does not wait for it, as it
    would for the threads of an executor."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not future.done():
            set_outcome(outcome)

    def run() -> None:
        try:
            step = partial(settle, future.set_result, call())
        except Exception as error:
            step = partial(settle, future.set_exception, error)
        # The loop may have been closed in the meantime.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(step)

    # Not an executor, whose threads Python joins at exit.
    Thread(target=run, name="partita-sending", daemon=True).start()
    return await future


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST would become a GET without the event, and its success would prove
    nothing."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_NoRedirects)


def post(url: str, body: bytes, timeout_seconds: float) -> bytes:
    """Post JSON and return the answer; raises SendFailed unless the status is 2xx."""
    request = Request(url, body, {"Content-Type": "application/json"})
    try:
        with _opener.open(request, timeout=timeout_seconds) as response:
            content: bytes = response.read(RESULT_BYTES_MAX)
            # A truncated answer is not a success: its missing end may report failures.
            if response.length:
                raise SendFailed(f"{url} sent an incomplete answer, or one that is too long")
            # Lambda answers 200 with this header when the function failed.
            if response.headers.get("X-Amz-Function-Error"):
                raise SendFailed(content.decode(errors="replace"))
            return content
    except HTTPError as error:
        with error:
            raise SendFailed(f"{url} answered with status {error.code}") from None
    except (OSError, ValueError, HTTPException) as error:
        raise SendFailed(f"{url} could not be reached: {error!r}") from error
