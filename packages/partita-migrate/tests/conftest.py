"""Private database servers, and migration folders that point at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.database_servers import PASSWORD, DatabaseServer, MariaDB, MySQL, PostgreSQL
from testkit.session import pytest_collection_modifyitems  # noqa: F401


@pytest.fixture(scope="session")
def mariadb() -> Iterator[DatabaseServer]:
    yield from _serve(MariaDB)


@pytest.fixture(scope="session")
def mysql() -> Iterator[DatabaseServer]:
    yield from _serve(MySQL)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[DatabaseServer]:
    yield from _serve(PostgreSQL)


@pytest.fixture(scope="session", params=["mariadb", "postgresql"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each of the servers in turn."""
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


def _serve(kind: type[DatabaseServer]) -> Iterator[DatabaseServer]:
    kind.require()
    with kind() as server:
        yield server


MakeFolder = Callable[..., Folder]


@pytest.fixture
def make_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeFolder:
    """`make_folder(url)`: a migration folder; the servers' password is in the environment."""
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)

    def make(url: str, more: str = "") -> Folder:
        (tmp_path / "migration.toml").write_text(f'[source]\nurl = "{url}"\n{more}')
        return Folder.open(tmp_path)

    return make
