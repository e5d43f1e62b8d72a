"""A private DynamoDB for the duration of a test: in memory, on a free port."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

from partita.client.aws_client import Client
from partita.errors import PartitaError

SERVE = ("-c", "from partita.cli import main; main()", "serve", "--port", "0", "--in-memory")
CLOCKED = ("-m", "partita.testing.clocked_server")


@contextmanager
def private_server(capacity: str = "observe") -> Iterator[str]:
    """Yields the server's endpoint while the block runs."""
    with _process(*SERVE, "--capacity", capacity) as process:
        yield _endpoint(process)


class ClockedServer:
    """A server that enforces capacity by a clock which the caller advances."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.endpoint = _endpoint(process)

    def advance(self, seconds: float) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise PartitaError("The private server for the load test has ended.")


@contextmanager
def clocked_server() -> Iterator[ClockedServer]:
    with _process(*CLOCKED, "enforce") as process:
        yield ClockedServer(process)


@contextmanager
def _process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    # PARTITA_SERVE_* variables configure the user's own server, not this one.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PARTITA_SERVE_")
    }
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # Away from a partita.toml in the current folder.
        cwd=gettempdir(),
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _endpoint(process: subprocess.Popen[str]) -> str:
    """Returns the endpoint that the server's first line of output contains."""
    assert process.stdout is not None
    line = process.stdout.readline()
    endpoint = next((word for word in line.split() if word.startswith("http://")), None)
    if endpoint is None:
        output = process.stderr.read() if process.stderr else ""
        raise PartitaError(f"The private server did not start: {(output or line).strip()}.")
    return endpoint


class DynamoDBClient:
    """A client that sends calls one after the other, or many at once."""

    def __init__(self, endpoint: str | None, *, is_retrying: bool = True) -> None:
        self.endpoint = endpoint
        self._loop = asyncio.new_event_loop()
        self._client = Client(endpoint) if is_retrying else Client(endpoint, tries=1)
        self.calls = 0

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        self.calls += 1
        return self._loop.run_until_complete(self._client.call("dynamodb", operation, request))

    def call_all(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Sends calls at the same time; returns the answers in the order of the calls."""

        async def run() -> list[dict[str, Any]]:
            waiting = [self._client.call("dynamodb", name, request) for name, request in calls]
            return list(await asyncio.gather(*waiting))

        return self._loop.run_until_complete(run())

    def try_all(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> int:
        """Sends calls at the same time; returns how many were not refused."""

        async def run() -> list[Any]:
            waiting = [self._client.call("dynamodb", name, request) for name, request in calls]
            return list(await asyncio.gather(*waiting, return_exceptions=True))

        answers = self._loop.run_until_complete(run())
        return sum(not isinstance(answer, BaseException) for answer in answers)

    def close(self) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()
