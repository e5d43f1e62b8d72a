"""A database that enforces capacity, on a clock that the test moves; a client that tries once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita import testing

from .tables import make, once


@pytest.fixture
def database() -> Iterator[testing.Database]:
    with make("enforce") as database:
        yield database


@pytest.fixture
def client(database: testing.Database) -> Any:
    return once(database)
