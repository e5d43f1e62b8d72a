"""A private PostgreSQL, and three servers that share a database in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL

BUCKET = "files"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    PostgreSQL.require()
    with PostgreSQL() as server:
        yield server


def storage_url(postgresql: PostgreSQL, database: str) -> str:
    """Creates a database and returns its URL with the password."""
    url = postgresql.create(database)
    user = postgresql.user
    return url.replace(f"{user}@", f"{user}:{quote(postgresql.password, safe='')}@")


@pytest.fixture(scope="session")
def storage(postgresql: PostgreSQL) -> str:
    """The URL of a database that is initialized for servers."""
    url = storage_url(postgresql, "shared")
    assert processes.run("storage", "init", url).returncode == 0
    return url


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all servers use as a bucket."""
    return tmp_path_factory.mktemp("bucket")


@pytest.fixture(scope="session")
def servers(
    storage: str, bucket: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[processes.Server]]:
    """Three servers; after the tests, all invariants of their database are checked."""
    settings = tmp_path_factory.mktemp("settings") / "partita.toml"
    settings.write_text(f'[[buckets]]\nname = "{BUCKET}"\nfolder = "{bucket}"\n')
    options = ("--port", "0", "--storage", storage, "--config", str(settings))
    with processes.starting() as start:
        yield [start("serve", *options, stderr=None) for _ in range(3)]
    checked = processes.run("storage", "check", storage)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture(scope="session")
def clients(servers: list[processes.Server]) -> list[Any]:
    """A client of each server."""
    return [server.client() for server in servers]
