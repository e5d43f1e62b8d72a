"""Sources with a log, a target, and small moves between them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from partita.migrate.commands import PROGRESS
from partita.migrate.folder import Folder
from partita.migrate.handover.create import create
from partita.migrate.understanding.sources.address import PASSWORD_ENV
from partita.testing import server as dynamodb
from tests.processes import ENVIRONMENT

from ..proving.conftest import designed, sqlite_database
from ..servers import MYSQL, PASSWORD, DatabaseServer, MariaDB, PostgreSQL

KINDS = ("sqlite", "mysql", "postgresql")
_numbers = count(1)


class LoggedMariaDB(MariaDB):
    def command(self) -> list[str]:
        logged = ["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]
        return [*super().command(), *logged, "--binlog-row-metadata=FULL"]


class LoggedMySQL(LoggedMariaDB):
    make = MYSQL


class LoggedPostgreSQL(PostgreSQL):
    def command(self) -> list[str]:
        return [*super().command(), "--wal_level=logical", "--max_replication_slots=40"]


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


class Sql:
    """One database of one source."""

    def __init__(self, kind: str, path: Path, server: DatabaseServer | None, script: str) -> None:
        self.kind = kind
        self.server = server
        self.path = path
        self.database = f"moved{next(_numbers)}"
        if server is None:
            self.file = path / f"{self.database}.db"
            self.url = sqlite_database(self.file, script)
        else:
            self.url = server.create(self.database, script)

    def run(self, script: str) -> None:
        """One transaction."""
        if self.server is None:
            with closing(sqlite3.connect(self.file, timeout=30)) as connection:
                connection.executescript(f"PRAGMA foreign_keys = ON; BEGIN; {script}; COMMIT;")
        else:
            self.server.execute(f"BEGIN; {script}; COMMIT", self.database)

    def folder(self, patterns: dict[str, str], endpoint: str) -> Folder:
        """Designed, with tables of names of its own in the target."""
        folder = designed(self.path / self.database, self.url, patterns)
        model = folder.path / "model.toml"
        renamed = (folder.path / "model.single-table.toml").read_text()
        lines = renamed.splitlines()
        place = lines.index("[[tables]]")
        name = lines[place + 1].partition(" = ")[2].strip('"')
        model.write_text(renamed.replace(f'"{name}"', f'"{name}-{self.database}"'))
        create(folder, endpoint)
        return folder


MakeSource = Callable[..., Sql]


@pytest.fixture
def make_source(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MakeSource:
    """`make_source(kind, script)`; "mysql" is MariaDB, "oracle" is MySQL itself."""
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
    """`partita migrate ...` as a process that can be killed; how far it is, it says on lines."""
    return subprocess.Popen(
        [sys.executable, "-m", "partita.cli", "migrate", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, PASSWORD_ENV: PASSWORD, PROGRESS: "lines"},
    )
