"""Fixtures for clients that users have: they get a URL and credentials, and nothing else."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

STOP_SECONDS_MAX = 60
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
}


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The server of PARTITA_ENDPOINT, or a new one that keeps its data in memory."""
    given = os.environ.get("PARTITA_ENDPOINT")
    if given:
        yield given.rstrip("/")
        return
    command = [sys.executable, "-m", "partita.cli", "serve", "--port", "0", "--in-memory"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            match = re.search(r"http://\S+", line)
            assert match, f"the server did not say that it is ready: {line!r}"
            yield match.group()
        finally:
            server.terminate()
            server.wait(timeout=STOP_SECONDS_MAX)


@pytest.fixture(scope="session")
def environment(endpoint: str) -> dict[str, str]:
    """The environment of a user: AWS_ENDPOINT_URL_DYNAMODB, credentials, and no other settings."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**rest, **CREDENTIALS, "AWS_ENDPOINT_URL_DYNAMODB": endpoint}


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    """Table names that no other run uses."""
    run = f"{os.getpid()}_{int(time.time())}"
    return (f"c_{run}_{number}" for number in itertools.count(1))
