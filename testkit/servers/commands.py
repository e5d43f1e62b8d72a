"""Fixtures for tests of commands: servers, and commands that end by themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from testkit.servers import processes

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[..., processes.Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that end with the test: `serve("serve", "--port", "0", ...)`."""
    with processes.starting() as start:
        yield start


@pytest.fixture
def run() -> Run:
    """Runs a command that ends by itself: `run("local", "-help")`."""
    return processes.run
