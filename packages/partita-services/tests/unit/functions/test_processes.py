"""Functions that break the rules: each such call fails, and the next one is answered."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita_services.functions.mappings.mapping_targets import CallFailed, HttpEndpoint
from partita_services.functions.runtime import function_process
from partita_services.functions.runtime.function_process import (
    FunctionError,
    FunctionProcess,
    FunctionSpec,
)
from partita_services.functions.runtime.function_worker import STARTED

EVENT = b'{"Records": []}'
TIMEOUT_SECONDS = 60
ARN = "arn:aws:lambda:us-east-1:123456789012:function:t"

INTO_THE_PIPE = """
import os
from contextlib import suppress
from pathlib import Path

def handle(event, context):
    if Path("is-tame").exists():
        return "tame"
    Path("is-tame").touch()
    for number in range(3, 10):
        with suppress(OSError):
            os.write(number, {said})
    return "wild"
"""


def python_function(folder: Path, module: str, timeout_seconds: int, starts: asyncio.Lock) -> Any:
    (folder / "shop.py").write_text(module)
    function = FunctionSpec("t", "shop:handle", folder, timeout_seconds, ARN, dict(os.environ))
    return FunctionProcess(function, starts)


async def outcome(function: FunctionProcess) -> Any:
    """The result of a call, or its error."""
    called = await function.call(EVENT)
    return called.error or json.loads(called.payload)


async def answer_of(endpoint: HttpEndpoint) -> Any:
    try:
        return await endpoint.call(EVENT)
    except CallFailed as error:
        return error


@pytest.mark.parametrize(
    "said",
    [
        r"b'garbage\n'",
        r"b'[]\n'",
        r"""b'{"result": "forged"}\n'""",
        r"""b'{"errorType": "forged"}\n'""",
        r"""b'{"requestId": "%b"}\n' % context.aws_request_id.encode()""",
        r"b'[' * 100_000 + b'\n'",
        "b'x' * 13_000_000",
    ],
)
def test_what_a_function_writes_into_the_pipe_of_its_results_fails_the_call(
    tmp_path: Path, said: str
) -> None:
    async def call_twice() -> list[Any]:
        module = INTO_THE_PIPE.format(said=said)
        function = python_function(tmp_path, module, TIMEOUT_SECONDS, asyncio.Lock())
        outcomes = [await outcome(function), await outcome(function)]
        await function.close()
        return outcomes

    failed, succeeded = asyncio.run(call_twice())
    assert isinstance(failed, FunctionError)
    assert "Runtime.Unknown" in str(failed)
    assert succeeded == "tame"


def test_a_process_that_died_between_two_calls_is_replaced(tmp_path: Path) -> None:
    module = "import os\ndef handle(event, context): return os.getpid()"

    async def call_twice() -> list[Any]:
        function = python_function(tmp_path, module, TIMEOUT_SECONDS, asyncio.Lock())
        outcomes = [await outcome(function)]
        os.kill(outcomes[0], signal.SIGKILL)
        await function._process.wait()
        outcomes.append(await outcome(function))
        await function.close()
        return outcomes

    killed, replaced = asyncio.run(call_twice())
    assert isinstance(replaced, int)
    assert replaced != killed


def test_a_function_is_told_what_it_is_called(tmp_path: Path) -> None:
    module = (
        "def handle(event, context): return [context.function_name, context.invoked_function_arn]"
    )

    async def run() -> Any:
        function = python_function(tmp_path, module, TIMEOUT_SECONDS, asyncio.Lock())
        try:
            return await outcome(function)
        finally:
            await function.close()

    assert asyncio.run(run()) == ["t", ARN]


def test_importing_does_not_count_towards_the_timeout(tmp_path: Path) -> None:
    module = "import time\ntime.sleep(2.5)\ndef handle(event, context): return 1"

    async def call() -> Any:
        function = python_function(tmp_path, module, 2, asyncio.Lock())
        result = await outcome(function)
        await function.close()
        return result

    assert asyncio.run(call()) == 1


def test_processes_start_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    spawn, expect = FunctionProcess._spawn, function_process._expect

    async def seen_spawn(self: FunctionProcess) -> asyncio.subprocess.Process:
        steps.append("spawned")
        return await spawn(self)

    def seen_expect(word: bytes, line: bytes, request_id: str) -> None:
        if word == STARTED:
            steps.append("started")
        expect(word, line, request_id)

    monkeypatch.setattr(FunctionProcess, "_spawn", seen_spawn)
    monkeypatch.setattr(function_process, "_expect", seen_expect)

    async def call_at_once() -> list[Any]:
        starts = asyncio.Lock()
        module = "def handle(event, context): return 1"
        functions = [python_function(tmp_path, module, TIMEOUT_SECONDS, starts) for _ in range(4)]
        results = await asyncio.gather(*map(outcome, functions))
        for function in functions:
            await function.close()
        return results

    assert asyncio.run(call_at_once()) == [1, 1, 1, 1]
    assert steps == ["spawned", "started"] * 4


class Endpoint:
    """Answers every connection with the same bytes, a piece at a time."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.seconds_between = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://{}:{}/".format(*self._listener.getsockname())
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                request = b""
                while not request.endswith(EVENT):
                    request += connection.recv(65536)
                for piece in self.pieces:
                    try:
                        connection.sendall(piece)
                    except OSError:
                        break
                    time.sleep(self.seconds_between)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"",
        HEAD % 10 + b"short",
        HEAD % 7_000_000 + b"x" * 7_000_000,
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
    ids=["garbage", "nothing", "less than announced", "7 MB", "a redirect", "broken chunks"],
)
def test_an_endpoint_that_answers_garbage_has_failed(endpoint: Endpoint, answer: bytes) -> None:
    endpoint.pieces = [answer]
    failed = asyncio.run(answer_of(HttpEndpoint(endpoint.url, TIMEOUT_SECONDS)))
    assert isinstance(failed, CallFailed)


def test_an_endpoint_that_keeps_talking_has_taken_too_long(endpoint: Endpoint) -> None:
    endpoint.pieces = [HEAD % 100, *[b"x"] * 100]
    endpoint.seconds_between = 0.1
    failed = asyncio.run(answer_of(HttpEndpoint(endpoint.url, 1)))
    assert isinstance(failed, CallFailed)
    assert "took longer than 1 seconds" in str(failed)


def test_the_log_of_a_call_is_its_own(tmp_path: Path) -> None:
    module = "def handle(event, context): print('said', context.aws_request_id)"

    async def call_twice() -> list[bytes]:
        function = python_function(tmp_path, module, TIMEOUT_SECONDS, asyncio.Lock())
        logs = [(await function.call(EVENT, f"call-{number}")).log for number in (1, 2)]
        await function.close()
        return logs

    for number, log in enumerate(asyncio.run(call_twice()), 1):
        start, said, end, report = log.decode().splitlines()
        assert start == f"START RequestId: call-{number} Version: $LATEST"
        assert said == f"said call-{number}"
        assert end == f"END RequestId: call-{number}"
        assert report.startswith(f"REPORT RequestId: call-{number}\tDuration: ")


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        ("shop.handle", None),
        ("shop:handle", None),
        ("inner/shop.handle", "Runtime.ImportModuleError"),
        ("handle", "Runtime.MalformedHandlerName"),
    ],
)
def test_handlers_are_named_as_lambda_names_them(
    tmp_path: Path, handler: str, error: str | None
) -> None:
    (tmp_path / "shop.py").write_text("def handle(event, context): return 1")

    async def call() -> FunctionError | None:
        function = FunctionProcess(
            FunctionSpec("t", handler, tmp_path, TIMEOUT_SECONDS, ARN, dict(os.environ))
        )
        called = await function.call(EVENT)
        await function.close()
        return called.error

    failed = asyncio.run(call())
    assert (failed.error_type if failed else None) == error
