"""Partita in a process: start it, send requests, terminate or kill it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
RUN_SECONDS_MAX = 300
COMMAND = (sys.executable, "-m", "partita.cli")
# A test may start a server in another folder, where a relative path to our source is wrong.
SOURCES = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, SOURCES))}


class Server:
    """A server process, from its ready line to its end."""

    def __init__(
        self, *arguments: str | Path, command: Sequence[str] = COMMAND, **popen: Any
    ) -> None:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [*command, *map(str, arguments)], **{**pipes, "env": ENVIRONMENT, **popen}
        )
        self.ready_line = self._ready_line()
        match = re.search(r"http://[^\s/]+", self.ready_line)
        assert match, f"not ready: {self.ready_line!r} {self.ended()}"
        self.url = match.group()
        self.port = int(self.url.rpartition(":")[2])

    def _ready_line(self) -> str:
        assert self.process.stdout is not None
        timer = threading.Timer(READY_SECONDS_MAX, self.process.kill)
        timer.start()
        try:
            return self.process.stdout.readline()
        finally:
            timer.cancel()

    def client(self, service: str = "dynamodb") -> Any:
        """Returns a boto3 client that never retries."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=60,
                read_timeout=60,
                max_pool_connections=32,
            ),
        )

    def terminate(self) -> tuple[int, str]:
        """Sends SIGTERM; returns the exit code, and the output after the ready line."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> str:
        """Sends SIGKILL; returns the output after the ready line."""
        self.process.kill()
        return self.ended()[1]

    def ended(self) -> tuple[int, str]:
        try:
            output, errors = self.process.communicate(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, output + (errors or "")


class SecureServer(Server):
    def _ready_line(self) -> str:
        # Most tests are written for plain HTTP.
        return super()._ready_line().replace("https://", "http://")


@contextmanager
def starting() -> Iterator[Callable[..., Server]]:
    """Yields `start("serve", "--port", "0", ...)`, whose servers end with the block."""
    servers: list[Server] = []

    def start(*arguments: str | Path, **popen: Any) -> Server:
        servers.append(Server(*arguments, **popen))
        return servers[-1]

    try:
        yield start
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.terminate()


def run(
    *arguments: str | Path, command: Sequence[str] = COMMAND, **popen: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a command that ends by itself."""
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
        **{"env": ENVIRONMENT, **popen},
    )
