"""The fixture of all tests: the shop, on the backend that the command line names."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.suite.backends import *  # noqa: F403  pytest finds fixtures by their names here
from benchmarks.suite.backends import FIXTURES
from benchmarks.suite.shop import Shop


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", choices=list(FIXTURES), default="partita-branch")


@pytest.fixture
def shop(request: pytest.FixtureRequest) -> Shop:
    dynamodb: Any = request.getfixturevalue(FIXTURES[request.config.getoption("--backend")])
    return Shop(dynamodb)
