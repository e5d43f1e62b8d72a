"""Copies and restores that are killed at any moment continue when they are run again."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from testkit.data.item_tables import active, backed_up, create, item, until
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.proxy import Proxy
from testkit.servers.shared_storage import storage_url

from .test_faults import Writers
from .test_recovery import numbers, recovering, transfers

KILLS, KILLS_MIN, KILLS_MAX = 6, 3, 40
"""The number of kills of a whole run; runs that continue have less to do."""
KILL_SECONDS_MAX = 60
ROWS = 40


def run(*arguments: str | Path) -> str:
    done = processes.run(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*processes.COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=processes.ENVIRONMENT,
    )


@contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A command that is killed at the end of the block, unless it has ended before."""
    process = started(*arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run_killed(proxy: Proxy, step: int, *arguments: str | Path) -> tuple[int, str]:
    """Run a command until it completes, killing it in the middle of a round trip, each time one
    step later. Returns how often it was killed, and the output of the complete run."""
    for kills in range(KILLS_MAX):
        proxy.stop_after(1 + kills * step)
        process = started(*arguments)
        try:
            while process.poll() is None and not proxy.is_stopped.wait(0.01):
                pass
        finally:
            process.kill()
            said, _ = process.communicate()
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, said
            return kills, said
        proxy.mend()
    raise AssertionError("never came to its end")


def through(proxy: Proxy, postgresql: PostgreSQL, url: str) -> str:
    return url.replace(f":{postgresql.port}/", f":{proxy.port}/")


def filled(client: Any) -> tuple[str, float]:
    """A table with a past, a backup and a stream; and a time in its past."""
    spec = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    table = create(client, StreamSpecification=spec)
    recovering(client, table)
    for place in range(ROWS):
        client.put_item(TableName=table, Item=item(f"k{place}", n=place))
    backed_up(client, table)
    # Recovery times are given in whole seconds.
    moment = time.time() + 1.0
    time.sleep(2.1)
    client.delete_item(TableName=table, Key=item("k0"))
    return table, moment


def content(client: Any, table: str) -> Any:
    described = client.describe_table(TableName=table)["Table"]
    return numbers(client, table), described["ItemCount"], described["TableSizeBytes"]


@contextmanager
def folder_with_a_past(folder: Path) -> Iterator[tuple[processes.Server, str, float]]:
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", folder)
        table, moment = filled(server.client())
        yield server, table, moment


@pytest.mark.soak
def test_a_restore_that_was_killed_goes_on(postgresql: PostgreSQL, tmp_path: Path) -> None:
    with folder_with_a_past(tmp_path / "data") as (server, table, moment):
        before = content(server.client(), table)
        run("backup", tmp_path / "backup", "--endpoint", server.url)
    targets = [storage_url(postgresql, name) for name in ("restored_at_once", "restored_late")]
    with Proxy(postgresql.port) as proxy:
        at_once, late = (through(proxy, postgresql, target) for target in targets)
        run("restore", tmp_path / "backup", "--storage", at_once)
        step = proxy.trips // KILLS
        kills, said = run_killed(proxy, step, "restore", tmp_path / "backup", "--storage", late)
    assert kills >= KILLS_MIN
    assert "no findings" in said
    assert archived(postgresql, "restored_late") == archived(postgresql, "restored_at_once")
    with processes.starting() as start:
        client = start("serve", "--port", "0", "--storage", targets[1]).client()
        assert content(client, table) == before
        client.restore_table_to_point_in_time(
            SourceTableName=table,
            TargetTableName="was",
            RestoreDateTime=datetime.fromtimestamp(moment, UTC),
        )
        active(client, "was")
        assert numbers(client, "was") == {**before[0], "k0": 0}


def archived(postgresql: PostgreSQL, database: str) -> Any:
    """The number of files of each kind, and their bytes."""
    with postgresql.connect(database) as connection:
        return connection.execute(
            """SELECT split_part(name, '/', 1), count(*), sum(octet_length(content))
            FROM partita_archive GROUP BY 1 ORDER BY 1"""
        ).fetchall()


@pytest.mark.soak
def test_a_copy_of_a_folder_that_was_killed_goes_on(postgresql: PostgreSQL, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with folder_with_a_past(folder) as (server, table, _):
        before = content(server.client(), table)
    at_once, late = (storage_url(postgresql, name) for name in ("copied_at_once", "copied_late"))
    with Proxy(postgresql.port) as proxy:
        run("storage", "copy", folder, through(proxy, postgresql, at_once))
        step, target = proxy.trips // KILLS, through(proxy, postgresql, late)
        proxy.stop_after(proxy.trips // 2)
        with running("storage", "copy", folder, target):
            assert proxy.is_stopped.wait(KILL_SECONDS_MAX)
        proxy.mend()
        refused = processes.run("serve", "--port", "0", "--storage", late)
        assert "A copy into the database was not finished" in refused.stderr
        kills, said = run_killed(proxy, step, "storage", "copy", folder, target)
    assert kills >= KILLS_MIN
    assert "no findings" in said
    assert archived(postgresql, "copied_late") == archived(postgresql, "copied_at_once")
    with processes.starting() as start:
        client = start("serve", "--port", "0", "--storage", late).client()
        assert content(client, table) == before


@pytest.mark.soak
def test_a_copy_into_a_folder_that_was_killed_goes_on_while_servers_write(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    storage, folder = storage_url(postgresql, "copied_back"), tmp_path / "data"
    run("storage", "init", storage)
    with Proxy(postgresql.port) as proxy, processes.starting() as start:
        servers = [start("serve", "--port", "0", "--storage", storage) for _ in range(2)]
        clients = [server.client() for server in servers]
        table, _ = filled(clients[0])
        for place in range(len(clients)):
            clients[0].put_item(TableName=table, Item=item(f"a{place}", n=1000))
            clients[0].put_item(TableName=table, Item=item(f"b{place}", n=0))
        source = through(proxy, postgresql, storage)
        with transfers(clients, table):
            run("storage", "copy", source, tmp_path / "other")
            step = proxy.trips // KILLS
            proxy.stop_after(proxy.trips // 2)
            with running("storage", "copy", source, folder):
                assert proxy.is_stopped.wait(KILL_SECONDS_MAX)
            proxy.mend()
            refused = processes.run("serve", "--port", "0", "--data", folder)
            assert "A copy into the data folder was not finished" in refused.stderr
            kills, said = run_killed(proxy, step, "storage", "copy", source, folder)
        assert kills >= KILLS_MIN
        assert "no findings" in said
        server = start("serve", "--port", "0", "--data", folder)
        found = numbers(server.client(), table)
        assert len(found) == ROWS - 1 + 2 * len(clients)
        for place in range(len(clients)):
            assert found[f"a{place}"] + found[f"b{place}"] == 1000


@pytest.mark.soak
def test_a_copy_of_a_served_folder_that_was_killed_goes_on(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    folder, storage = tmp_path / "data", storage_url(postgresql, "followed_late")
    with Proxy(postgresql.port) as proxy:
        target = through(proxy, postgresql, storage)
        with folder_with_a_past(folder) as (server, table, _):
            client = server.client()
            with Writers([client] * 2, table) as writers:
                for kills in range(KILLS):
                    proxy.stop_after(1 + kills * 40)
                    with running("storage", "copy", folder, target):
                        assert proxy.is_stopped.wait(KILL_SECONDS_MAX)
                    proxy.mend()
                    writers.wait_for(5)
            with running("storage", "copy", folder, target) as copying:
                assert copying.stdout is not None
                while "Stop the server" not in (said := copying.stdout.readline()):
                    assert said
                client.put_item(TableName=table, Item=item("last", n=1))
                before = content(client, table)
                assert server.terminate()[0] == 0
                said = copying.stdout.read()
                assert copying.wait(KILL_SECONDS_MAX) == 0, said
    assert "no findings" in said
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    with processes.starting() as start:
        assert (
            content(start("serve", "--port", "0", "--storage", storage).client(), table) == before
        )


@pytest.mark.soak
def test_a_copy_that_hangs_ends_when_another_has_begun(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    folder, storage = tmp_path / "data", storage_url(postgresql, "taken_over")
    with folder_with_a_past(folder):
        pass
    # A folder can only be opened by one process at a time.
    shutil.copytree(folder, tmp_path / "same")
    run("storage", "init", storage)
    with (
        Proxy(postgresql.port) as proxy,
        running("storage", "copy", folder, through(proxy, postgresql, storage)) as hanging,
    ):
        proxy.delay_seconds = 0.2
        until(lambda: proxy.statements[b"UPDATE partita_format SET version = $1"])
        run("storage", "copy", tmp_path / "same", storage)
        proxy.delay_seconds = 0.0
        assert hanging.stdout is not None
        said = hanging.stdout.read()
        assert hanging.wait(KILL_SECONDS_MAX) == 1
    assert "Another copy into the database has begun: this one ends." in said
    assert processes.run("storage", "check", storage).returncode == 0
