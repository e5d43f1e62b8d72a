"""A power failure at any moment: what was acknowledged is there, whatever the disk had not done.

`recorded_disk.c` keeps a record of what an engine does to its files; `power_failure.py` makes of it
what they may be like afterwards.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from testkit.servers import processes

from .preloading import compiled

LIBRARY_SOURCE = Path(__file__).with_name("recorded_disk.c")
LOAD = Path(__file__).with_name("power_failure.py")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(LIBRARY_SOURCE, tmp_path_factory.mktemp("library"))


@pytest.mark.parametrize("number", range(3))
def test_a_power_failure_loses_nothing_that_was_acknowledged(
    library: Path, tmp_path: Path, seed: int, number: int
) -> None:
    environment = {
        **processes.ENVIRONMENT,
        "LD_PRELOAD": str(library),
        "PARTITA_RECORDED_DISK": str(tmp_path / "data"),
        "PARTITA_RECORD": str(tmp_path / "record"),
    }
    load = [sys.executable, str(LOAD), str(seed + number)]
    completed = subprocess.run(load, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr[-5000:]
