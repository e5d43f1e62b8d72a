"""Everything that the wire suite says holds over PostgreSQL too.

In pieces of some minutes: `pytest -m soak tests/shared/test_wire.py -k piece4`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .. import processes

ROOT = Path(__file__).parents[2]
PIECES = 9


@pytest.mark.soak
@pytest.mark.parametrize("piece", range(PIECES), ids="piece{}".format)
def test_the_wire_suite_runs_over_shared_storage(
    servers: list[processes.Server], piece: int
) -> None:
    files = sorted(map(str, ROOT.glob("tests/wire/test_*.py")))[piece::PIECES]
    suite = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "PARTITA_ENDPOINT": servers[0].url}
    assert subprocess.call(suite, cwd=ROOT, env=environment) == 0
