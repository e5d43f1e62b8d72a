"""Seeds for tests with random input: a few that are always the same, or new ones for a long time.

A test that fails says its seed; put it into `KNOWN` to have it tried forever.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from secrets import randbits

import pytest

KNOWN = range(40)
SOAK_SECONDS = float(os.environ.get("PARTITA_FUZZ_SECONDS") or 300)
"""Of each test, in soak."""


@pytest.fixture(params=["short", pytest.param("long", marks=pytest.mark.soak)])
def seeds(request: pytest.FixtureRequest) -> Iterator[int]:
    return iter(KNOWN) if request.param == "short" else _new_ones()


def _new_ones() -> Iterator[int]:
    end = time.monotonic() + SOAK_SECONDS
    while time.monotonic() < end:
        yield randbits(48)
