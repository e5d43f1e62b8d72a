"""`partita backup` and `restore` of a shared database, also of an earlier state (`--at`)."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from testkit.data.item_tables import active, backed_up, create, item
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

from .test_recovery import numbers, recovering, transfers

KEY = {"PARTITA_TEST_KEY": "ab" * 32}


def run(*arguments: str | Path, **more: Any) -> str:
    done = processes.run(*arguments, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refusal(*arguments: str | Path) -> str:
    done = processes.run(*arguments)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def filled(clients: list[Any]) -> tuple[str, str, float]:
    """A table with recovery on and a past, the ARN of its backup, and a time in the past."""
    first, last = clients[0], clients[-1]
    table = create(first)
    for place in range(len(clients)):
        first.put_item(TableName=table, Item=item(f"a{place}", n=1000))
        first.put_item(TableName=table, Item=item(f"b{place}", n=0))
    recovering(first, table)
    last.put_item(TableName=table, Item=item("then", n=1))
    # Recovery times are given in whole seconds.
    moment = time.time() + 1.0
    time.sleep(2.1)
    last.delete_item(TableName=table, Key=item("then"))
    return table, backed_up(first, table), moment


@pytest.fixture(scope="module")
def past(clients: list[Any]) -> tuple[str, str, float]:
    return filled(clients)


def check_restored(client: Any, table: str, backup: str, moment: float) -> None:
    found = numbers(client, table)
    pairs = len(found) // 2
    assert [found[f"a{n}"] + found[f"b{n}"] for n in range(pairs)] == [1000] * pairs
    assert "then" not in found
    client.restore_table_to_point_in_time(
        SourceTableName=table,
        TargetTableName="was",
        RestoreDateTime=datetime.fromtimestamp(moment, UTC),
    )
    client.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName="now", UseLatestRestorableTime=True
    )
    client.restore_table_from_backup(BackupArn=backup, TargetTableName="again")
    for name in ("was", "now", "again"):
        active(client, name)
    assert numbers(client, "was") == {
        **{f"a{n}": 1000 for n in range(pairs)},
        **{f"b{n}": 0 for n in range(pairs)},
        "then": 1,
    }
    assert numbers(client, "now") == found
    assert len(numbers(client, "again")) == 2 * pairs


def test_what_servers_share_is_backed_up_and_restored_with_its_past(
    postgresql: PostgreSQL,
    storage: str,
    clients: list[Any],
    past: tuple[str, str, float],
    tmp_path: Path,
) -> None:
    table, backup, moment = past
    with transfers(clients, table):
        assert "no findings" in run("backup", tmp_path, "--storage", storage)
    target = storage_url(postgresql, "restored_whole")
    assert "no findings" in run("restore", tmp_path, "--storage", target)
    assert "has data already" in refusal("restore", tmp_path, "--storage", target)
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--storage", target)
        check_restored(server.client(), table, backup, moment)


def test_a_shared_table_is_read_and_compared_as_it_was(
    servers: list[processes.Server], past: tuple[str, str, float]
) -> None:
    table, _, moment = past
    then = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = run("scan", table, "--at", then, "--endpoint", servers[1].url)
    assert len(told.splitlines()) == 7
    key = ("--key", "pk = :pk", "--values", json.dumps({":pk": {"S": "then"}}))
    assert '"then"' in run("query", table, "--at", then, *key, "--endpoint", servers[2].url)
    compared = processes.run(
        *("diff", table, "--at", then, "--only", "deleted", "--endpoint", servers[0].url)
    )
    assert (compared.returncode, compared.stdout.splitlines()[-1]) == (
        1,
        "0 added, 0 changed, 1 deleted.",
    )


@pytest.mark.soak
def test_a_backup_goes_from_either_engine_into_either(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    storage, second = (storage_url(postgresql, name) for name in ("either", "other"))
    run("storage", "init", storage)
    with processes.starting() as start:
        servers = [start("serve", "--port", "0", "--storage", storage) for _ in range(2)]
        clients = [server.client() for server in servers]
        table, backup, moment = filled(clients)
        run("backup", tmp_path / "shared", "--storage", storage)
        for place in range(3000):
            clients[0].put_item(TableName=table, Item=item(f"more{place}", n=place))
        again = run("backup", tmp_path / "shared", "--storage", storage)
        assert "backups" in {path.name for path in (tmp_path / "shared").iterdir()}, again
        assert "--storage" in refusal("backup", tmp_path / "no", "--endpoint", servers[0].url)
    first, _ = run("restore", tmp_path / "shared", "--list").split()
    folder = tmp_path / "folder"
    run("restore", tmp_path / "shared", "--backup", first, "--data", folder)
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", folder)
        check_restored(server.client(), table, backup, moment)
        run("backup", tmp_path / "embedded", "--endpoint", server.url)
        kept = numbers(server.client(), table)
    run("restore", tmp_path / "embedded", "--storage", second)
    with processes.starting() as start:
        client = start("serve", "--port", "0", "--storage", second).client()
        assert numbers(client, table) == kept
        for name in ("was", "now", "again"):
            client.delete_table(TableName=name)
            client.get_waiter("table_not_exists").wait(TableName=name)
        check_restored(client, table, backup, moment)


@pytest.mark.soak
def test_an_encrypted_backup_is_not_restored_in_the_clear(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    key = ("--encryption-key", "env:PARTITA_TEST_KEY")
    environment = {**processes.ENVIRONMENT, **KEY}
    with processes.starting() as start:
        serve = ("serve", "--port", "0", "--data", tmp_path / "data", *key)
        server = start(*serve, env=environment)
        create(server.client())
        run("backup", tmp_path / "place", "--endpoint", server.url, *key, env=environment)
    told = refusal("restore", tmp_path / "place", "--storage", storage_url(postgresql, "clear"))
    assert "is encrypted" in told
