"""What a trigger calls: a Python function in a process of its own, or an HTTP endpoint."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Protocol, TypeVar

from partita.limits import MB
from partita.settings import Trigger
from partita.triggers import worker

RESULT_BYTES_MAX = 6 * MB

Result = TypeVar("Result")


class FunctionError(Exception):
    """The function did not succeed; says why."""


class Function(Protocol):
    async def call(self, event: bytes) -> Any:
        """The result of the function; a FunctionError when it has none."""

    async def close(self) -> None: ...


def function_of(trigger: Trigger, folder: Path) -> Function:
    if trigger.function is not None:
        return PythonFunction(trigger.function, folder, trigger.timeout_seconds)
    assert trigger.endpoint is not None
    return HttpEndpoint(trigger.endpoint, trigger.timeout_seconds)


class PythonFunction:
    """`module:callable`, looked for in the folder of the settings first."""

    def __init__(self, name: str, folder: Path, timeout_seconds: float) -> None:
        self._name = name
        self._folder = folder
        self._timeout_seconds = timeout_seconds
        self._process: asyncio.subprocess.Process | None = None

    async def call(self, event: bytes) -> Any:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                line = await self._exchange(event)
        except TimeoutError:
            await self.close()
            raise FunctionError(f"it took longer than {self._timeout_seconds} seconds") from None
        except BaseException:
            # Whatever stopped us, nobody may take the late answer for that of the next call.
            await self.close()
            raise
        answer = json.loads(line)
        if "error" in answer:
            raise FunctionError(f"{answer['error']}: {answer['message']}")
        return answer["result"]

    async def _exchange(self, event: bytes) -> bytes:
        process = self._process = self._process or await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(event + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        except (ConnectionError, ValueError) as error:
            raise FunctionError(f"its process could not be reached: {error}") from error
        if not line.endswith(b"\n"):
            raise FunctionError(f"its process ended with code {await process.wait()}")
        return line

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", worker.__file__),
            *(self._name, str(self._timeout_seconds)),
            cwd=self._folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=RESULT_BYTES_MAX,
        )

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()


class HttpEndpoint:
    """Gets the event in a POST; any status of 2xx is a success."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds

    async def call(self, event: bytes) -> Any:
        content = await in_thread(partial(post, self._url, event, self._timeout_seconds))
        if not content.strip():
            return None
        try:
            return json.loads(content)
        except ValueError:
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


def post(url: str, body: bytes, timeout_seconds: float) -> bytes:
    """The answer to a POST of JSON; a FunctionError unless it is a success."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout_seconds) as response:
            content: bytes = response.read(RESULT_BYTES_MAX)
            # How Lambda's own endpoints say that the function failed.
            if response.headers.get("X-Amz-Function-Error"):
                raise FunctionError(content.decode(errors="replace"))
            return content
    except urllib.error.HTTPError as error:
        with error:
            raise FunctionError(f"{url} answered with status {error.code}") from None
    except (OSError, ValueError) as error:
        raise FunctionError(f"{url} could not be reached: {error}") from error
