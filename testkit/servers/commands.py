"""What the tests of commands are given: servers, and commands that end by themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from testkit.servers import processes

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[..., processes.Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve("serve", "--port", "0", ...)`: a server that ends with the test."""
    with processes.starting() as start:
        yield start


@pytest.fixture
def run() -> Run:
    """`run("local", "-help")`: a command that ends by itself."""
    return processes.run
