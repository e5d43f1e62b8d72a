"""Servers as processes of their own: started, asked, terminated, killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

READY_SECONDS_MAX = 20
STOP_SECONDS_MAX = 20
COMMAND = (sys.executable, "-m", "partita.cli")
# A test may start a server in another folder, where a relative path to our source means nothing.
SOURCES = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, SOURCES))}


class Server:
    """One process of `partita`, from its ready line to its end."""

    def __init__(self, arguments: tuple[str, ...], **popen: Any) -> None:
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            **popen,
        )
        self.ready_line = self._ready_line()
        match = re.search(r"http://\S+", self.ready_line)
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

    def client(self) -> Any:
        return boto3.client(
            "dynamodb",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(
                retries={"total_max_attempts": 1}, connect_timeout=10, max_pool_connections=32
            ),
        )

    def terminate(self) -> tuple[int, str, str]:
        """SIGTERM; the exit code, and what the server said after its ready line."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        self.process.kill()
        self.ended()

    def ended(self) -> tuple[int, str, str]:
        output, errors = self.process.communicate(timeout=STOP_SECONDS_MAX)
        return self.process.returncode, output, errors


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve("serve", "--port", "0", ...)`: a server that ends with the test."""
    servers: list[Server] = []

    def start(*arguments: str | Path, **popen: Any) -> Server:
        server = Server(tuple(map(str, arguments)), **popen)
        servers.append(server)
        return server

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.terminate()


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run() -> Run:
    """`run("local", "-help")`: a command that ends by itself."""

    def execute(
        *arguments: str | Path, command: Sequence[str] = COMMAND, **popen: Any
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=READY_SECONDS_MAX,
            check=False,
            env=ENVIRONMENT,
            **popen,
        )

    return execute
