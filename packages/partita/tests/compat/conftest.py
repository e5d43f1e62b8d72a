"""The two servers: Partita, and DynamoDB Local where Java and npm (or a download) are there.

PARTITA_ENDPOINT and DYNAMODB_LOCAL_ENDPOINT name servers that run already. Where DynamoDB Local
cannot run, the comparison is skipped; in CI (the variable CI is set) it fails, unless Java or npm
is not installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, NoReturn

import pytest

from testkit import ROOT

from .endpoints import Endpoint

STOP_SECONDS_MAX = 60
# How the script says that Java, npm or the download is missing.
EXIT_UNAVAILABLE = 3
# It answers some thousand requests: optimizing its code would take longer than that.
JAVA_OPTIONS = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
DYNAMODB_LOCAL = ROOT / "scripts" / "dynamodb_local.py"


@pytest.fixture(scope="session")
def partita() -> Iterator[Endpoint]:
    command = ["-m", "partita.cli", "serve", "--port", "0", "--in-memory"]
    with _given("PARTITA_ENDPOINT") or _started(command) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def local() -> Iterator[Endpoint]:
    command = [str(DYNAMODB_LOCAL), "--port", "0"]
    with _given("DYNAMODB_LOCAL_ENDPOINT") or _started(command) as endpoint:
        yield endpoint


def _given(variable: str) -> Endpoint | None:
    url = os.environ.get(variable)
    return Endpoint(url) if url else None


@contextmanager
def _started(arguments: list[str]) -> Iterator[Endpoint]:
    """A server of our own, which says its address in the first line that it prints."""
    with (
        TemporaryFile("w+") as said,
        subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**os.environ, **JAVA_OPTIONS},
        ) as server,
    ):
        assert server.stdout is not None
        try:
            address = re.search(r"http://[\w.:]+", server.stdout.readline())
            if address is None:
                _give_up(server.wait(STOP_SECONDS_MAX), said)
            else:
                with Endpoint(address.group()) as endpoint:
                    yield endpoint
        finally:
            server.terminate()
            server.wait(STOP_SECONDS_MAX)


def _give_up(code: int, said: IO[str]) -> NoReturn:
    said.seek(0)
    reason = said.read().strip()
    if code == EXIT_UNAVAILABLE and may_be_skipped(os.environ):
        pytest.skip(reason)
    pytest.fail(f"the server ended with {code}: {reason}")


def may_be_skipped(environment: Mapping[str, str]) -> bool:
    """True when DynamoDB Local may be unavailable: in CI, only if its tools are not installed."""
    path = environment.get("PATH")
    installed = all(shutil.which(tool, path=path) for tool in ("java", "npm"))
    return not (installed and environment.get("CI"))
