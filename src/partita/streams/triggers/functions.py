"""What a trigger calls: a Python function in a process of its own, or an HTTP endpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from partita.functions import process
from partita.functions.process import FunctionProcess
from partita.functions.worker import RESULT_BYTES_MAX
from partita.settings import Trigger

Result = TypeVar("Result")


class CallFailed(Exception):
    """What was called did not succeed; says why."""


class Function(Protocol):
    arn: str
    """What it is called by where a failure is told of."""

    async def call(self, event: bytes) -> Any:
        """The result of the function; CallFailed when it has none."""

    async def close(self) -> None: ...


def function_of(trigger: Trigger, arn: str, folder: Path, starts: asyncio.Lock) -> Function:
    """`arn` is that of a Python function; `starts` is shared by all whose processes start one
    after the other."""
    name, timeout_seconds = trigger.name, trigger.timeout_seconds
    if trigger.function is not None:
        function = process.Function(name, trigger.function, folder, timeout_seconds, arn)
        return PythonFunction(function, starts)
    assert trigger.endpoint is not None
    return HttpEndpoint(trigger.endpoint, timeout_seconds)


class PythonFunction:
    """In a process of its own, looked for in the folder of the settings first."""

    def __init__(self, function: process.Function, starts: asyncio.Lock) -> None:
        self.arn = function.arn
        self._process = FunctionProcess(function, starts)

    async def call(self, event: bytes) -> Any:
        try:
            return await self._process.call(event)
        except process.FunctionError as error:
            raise CallFailed(str(error)) from error

    async def close(self) -> None:
        await self._process.close()


class HttpEndpoint:
    """Gets the event in a POST; any status of 2xx is a success."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self.arn = self._url = url
        self._timeout_seconds = timeout_seconds

    async def call(self, event: bytes) -> Any:
        try:
            # Sockets wait that long for each piece of an answer; this is for all of them.
            async with asyncio.timeout(self._timeout_seconds):
                content = await in_thread(partial(post, self._url, event, self._timeout_seconds))
        except TimeoutError:
            raise CallFailed(
                f"{self._url} took longer than {self._timeout_seconds} seconds"
            ) from None
        if not content.strip():
            return None
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            # Nothing was asked of an endpoint but its status.
            return None

    async def close(self) -> None:
        pass


async def in_thread(call: Callable[[], Result]) -> Result:
    """The result of a call that waits for others; a server that stops does not wait for it."""
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
        # The loop may be gone meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(step)

    Thread(target=run, name="partita-trigger", daemon=True).start()
    return await future


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST would become a GET without the event, and its success prove nothing."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_NoRedirects)


def post(url: str, body: bytes, timeout_seconds: float) -> bytes:
    """The answer to a POST of JSON; CallFailed unless it is a success."""
    request = Request(url, body, {"Content-Type": "application/json"})
    try:
        with _opener.open(request, timeout=timeout_seconds) as response:
            content: bytes = response.read(RESULT_BYTES_MAX)
            # What is still to come of the announced length; there may be failures reported in it.
            if response.length:
                raise CallFailed(f"{url} sent less or more than a whole answer")
            # How Lambda's own endpoints say that the function failed.
            if response.headers.get("X-Amz-Function-Error"):
                raise CallFailed(content.decode(errors="replace"))
            return content
    except HTTPError as error:
        with error:
            raise CallFailed(f"{url} answered with status {error.code}") from None
    except (OSError, ValueError, HTTPException) as error:
        raise CallFailed(f"{url} could not be reached: {error!r}") from error
