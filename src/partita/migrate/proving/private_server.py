"""A DynamoDB of our own for the length of a test: in memory, on a port of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

from partita.client.client import Client
from partita.errors import PartitaError


@contextmanager
def private_server(capacity: str = "observe") -> Iterator[str]:
    """Its endpoint, while the block runs."""
    program = "from partita.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--in-memory"]
    # Settings of another server, in a file or in the environment, are not meant for this one.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PARTITA_SERVE_")
    }
    process = subprocess.Popen(
        [*command, "--capacity", capacity],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=gettempdir(),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        endpoint = next((word for word in line.split() if word.startswith("http://")), None)
        if endpoint is None:
            said = process.stderr.read() if process.stderr else ""
            raise PartitaError(f"The private server did not start: {(said or line).strip()}.")
        yield endpoint
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class DynamoDB:
    """Calls one after the other, or many at once."""

    def __init__(self, endpoint: str | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = Client(endpoint)
        self.calls = 0

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        self.calls += 1
        return self._loop.run_until_complete(self._client.call("dynamodb", operation, request))

    def call_all(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """At the same time; in the order of the calls."""

        async def run() -> list[dict[str, Any]]:
            waiting = [self._client.call("dynamodb", name, request) for name, request in calls]
            return list(await asyncio.gather(*waiting))

        return self._loop.run_until_complete(run())

    def try_all(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> int:
        """How many of calls at the same time were not refused."""

        async def run() -> list[Any]:
            waiting = [self._client.call("dynamodb", name, request) for name, request in calls]
            return list(await asyncio.gather(*waiting, return_exceptions=True))

        answers = self._loop.run_until_complete(run())
        return sum(not isinstance(one, BaseException) for one in answers)

    def close(self) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()
