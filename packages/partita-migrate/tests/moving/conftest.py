"""Sources with a log, a target, and small moves between them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita.testing import server as dynamodb
from partita_migrate.commands import PROGRESS
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from testkit.data.moves import LoggedMariaDB, LoggedMySQL, LoggedPostgreSQL, Sql
from testkit.servers.database_servers import PASSWORD, DatabaseServer
from testkit.servers.processes import ENVIRONMENT

KINDS = ("sqlite", "mysql", "postgresql")


@pytest.fixture(scope="session")
def logged_mariadb() -> Iterator[DatabaseServer]:
    LoggedMariaDB.require()
    with LoggedMariaDB() as server:
        yield server


@pytest.fixture(scope="session")
def logged_mysql() -> Iterator[DatabaseServer]:
    LoggedMySQL.require()
    with LoggedMySQL() as server:
        yield server


@pytest.fixture(scope="session")
def logged_postgresql() -> Iterator[DatabaseServer]:
    LoggedPostgreSQL.require()
    with LoggedPostgreSQL() as server:
        yield server


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    with dynamodb() as url:
        yield url


MakeSource = Callable[..., Sql]


@pytest.fixture
def make_source(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MakeSource:
    """`make_source(kind, script)`; "mysql" is MariaDB, "oracle" is MySQL."""
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    fixtures = {
        "mysql": "logged_mariadb",
        "oracle": "logged_mysql",
        "postgresql": "logged_postgresql",
    }

    def make(kind: str, script: str) -> Sql:
        server = request.getfixturevalue(fixtures[kind]) if kind in fixtures else None
        return Sql(server.scheme if server else kind, tmp_path, server, script)

    return make


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Starts `partita migrate ...` as a process that can be killed; it prints its progress in
    lines."""
    return subprocess.Popen(
        [sys.executable, "-m", "partita.cli", "migrate", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, PASSWORD_ENV: PASSWORD, PROGRESS: "lines"},
    )
