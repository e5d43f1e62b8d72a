"""Everything that the wire suite says holds over PostgreSQL too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .. import processes

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
def test_the_wire_suite_runs_over_shared_storage(servers: list[processes.Server]) -> None:
    suite = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/wire"],
        cwd=ROOT,
        env={**os.environ, "PARTITA_ENDPOINT": servers[0].url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert suite.returncode == 0, suite.stdout[-5000:]
