"""A source that restarts is waited for, and no change is missed."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from partita_migrate.moving.loading.load import load
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import PATTERNS, LoggedMariaDB, LoggedPostgreSQL, Sql, script
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .conftest import start
from .test_move import assert_same, live

FOLLOWED_SECONDS_MAX = 60


def wait_for_name(name: str, process: subprocess.Popen[str], folder: Folder, target: str) -> None:
    end = time.monotonic() + FOLLOWED_SECONDS_MAX
    while not any(item.get("name") == {"S": name} for item in live(folder, target)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_following_goes_on_after_the_source_was_killed(
    tmp_path: Path, target: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    server_type: type[DatabaseServer] = LoggedMariaDB if kind == "mysql" else LoggedPostgreSQL
    server_type.require()
    with server_type() as server:
        source = Sql(kind, tmp_path, server, script())
        folder = source.folder(PATTERNS, target)
        load(folder, target, is_followed=True)
        process = start("follow", folder.path, "--endpoint", target)
        source.run("UPDATE author SET name = 'Before' WHERE id = 1")
        wait_for_name("Before", process, folder, target)
        server.kill()
        time.sleep(1)
        server.start()
        source.run("UPDATE author SET name = 'After' WHERE id = 1")
        wait_for_name("After", process, folder, target)
        process.kill()
        process.communicate()
        assert_same(verify(folder, target))
