"""Everything that the wire suite says holds over PostgreSQL too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .. import processes

ROOT = Path(__file__).parents[2]
NOT_BUILT = ("tests/wire/test_backups.py", "tests/wire/test_continuous_backups.py")
"""Recovery keeps its archive beside a data folder: its operations are refused here."""
KNOWN = "test_an_operation_that_is_built_is_known"
RECOVERY = "Backup or Export or Import or RestoreTable"


@pytest.mark.soak
def test_the_wire_suite_runs_over_shared_storage(servers: list[processes.Server]) -> None:
    suite = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/wire"),
            *(f"--ignore={path}" for path in NOT_BUILT),
            *("-k", f"not ({KNOWN} and ({RECOVERY}))"),
        ],
        cwd=ROOT,
        env={**os.environ, "PARTITA_ENDPOINT": servers[0].url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert suite.returncode == 0, suite.stdout[-5000:]
