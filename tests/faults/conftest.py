"""Servers that are killed, and folders that are checked after it."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

READY_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30
COMMAND = (sys.executable, "-m", "partita.cli")
SEED_VARIABLE = "PARTITA_FAULT_SEED"


class Server:
    """One process of `partita serve` on a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", "--data", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ready_line = self._ready_line()
        match = re.search(r"http://\S+", self.ready_line)
        assert match, f"not ready: {self.ready_line!r} {self.process.communicate()}"
        self.url = match.group()

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
                retries={"total_max_attempts": 1},
                connect_timeout=10,
                read_timeout=30,
                max_pool_connections=32,
            ),
        )

    def kill(self) -> str:
        """kill -9; what the server had said on stderr."""
        self.process.kill()
        return self.process.communicate(timeout=STOP_SECONDS_MAX)[1]

    def terminate(self) -> tuple[int, str]:
        self.process.terminate()
        errors = self.process.communicate(timeout=STOP_SECONDS_MAX)[1]
        return self.process.returncode, errors


Serve = Callable[..., Server]
Check = Callable[[Path], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(folder)`: a server that ends with the test."""
    servers: list[Server] = []

    def start(folder: Path, *options: str) -> Server:
        servers.append(Server(folder, *options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def check() -> Check:
    """`partita check`, as a person runs it."""
    return lambda folder: run("check", folder)


@pytest.fixture
def refused_by_serve() -> Check:
    """`partita serve` on a folder that it will not open."""
    return lambda folder: run("serve", "--port", "0", "--data", folder)


@pytest.fixture
def assert_clean(check: Check) -> Callable[[Path], None]:
    def look(folder: Path) -> None:
        completed = check(folder)
        assert completed.returncode == 0, completed.stdout[-5000:] + completed.stderr
        assert completed.stdout.endswith("no findings.\n")

    return look


@pytest.fixture
def seed() -> int:
    """Printed when a test fails; set the variable to run the same again."""
    seed = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(1 << 32))
    sys.stdout.write(f"{SEED_VARIABLE}={seed}\n")
    return seed
