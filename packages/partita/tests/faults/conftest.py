"""Servers that are killed, and folders that are checked after it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes

SEED_VARIABLE = "PARTITA_FAULT_SEED"

Serve = Callable[..., processes.Server]
Check = Callable[[Path], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(folder)`: a server that ends with the test."""
    with processes.starting() as start:

        def serve_folder(folder: Path, *options: str, **popen: Any) -> processes.Server:
            return start("serve", "--port", "0", "--data", folder, *options, **popen)

        yield serve_folder


@pytest.fixture
def check() -> Check:
    """`partita check`, as a person runs it."""
    return lambda folder: processes.run("check", folder)


@pytest.fixture
def refused_by_serve() -> Check:
    """`partita serve` on a folder that it will not open."""
    return lambda folder: processes.run("serve", "--port", "0", "--data", folder)


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
