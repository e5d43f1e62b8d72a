"""The wire suite passes over PostgreSQL too, with each request sent to the next server.

In pieces of some minutes: `pytest -m soak tests/shared/test_wire.py -k piece4`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from testkit import ROOT
from testkit.servers import processes

from .balancer import Balancer

PIECES = 9
OF_ONE_SERVER = (
    "test_the_endpoint_is_the_one_that_was_asked",
    "test_what_was_counted_is_at_a_page_without_a_signature",
)
"""Tests that do not apply: each server names its own address, and counts its own contributors."""


@pytest.mark.soak
@pytest.mark.parametrize("piece", range(PIECES), ids="piece{}".format)
def test_the_wire_suite_runs_over_shared_storage(
    servers: list[processes.Server], piece: int
) -> None:
    files = sorted(map(str, ROOT.glob("packages/partita/tests/wire/test_*.py")))[piece::PIECES]
    suite = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", *files]
    suite += ["-k", " and ".join(f"not {name}" for name in OF_ONE_SERVER)]
    with Balancer([server.port for server in servers]) as balancer:
        url = f"http://127.0.0.1:{balancer.port}"
        environment = {**os.environ, "PARTITA_ENDPOINT": url}
        assert subprocess.call(suite, cwd=ROOT, env=environment) == 0
        assert min(balancer.requests.values()) > 0
