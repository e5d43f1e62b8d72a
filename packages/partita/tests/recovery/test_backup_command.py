"""`partita backup` and `partita restore` of whole databases that are being written to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes
from testkit.servers.users import People, statement

from .test_faults import import_of, settings, start_import
from .test_kill import (
    ON,
    create,
    is_active,
    is_available,
    items_of,
    put_many,
    restorable,
    until,
)

KEY = {"PARTITA_TEST_KEY": "ab" * 32}
SECRET = b"never in the clear"


@pytest.fixture
def start() -> Iterator[Any]:
    with processes.starting() as starting:
        yield starting


def serve(start: Any, folder: Path, *options: str) -> Any:
    return start("serve", "--port", "0", "--data", str(folder), *options)


def back_up(server: Any, place: object, *options: str, **more: Any) -> str:
    done = processes.run("backup", str(place), "--endpoint", server.url, *options, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_busy_database_is_restored_as_of_one_commit(start: Any, tmp_path: Path) -> None:
    """Transactions write to two tables: a backup never has half of a transaction."""
    server = serve(start, tmp_path / "data")
    client = server.client()
    for name in ("left", "right"):
        create(client, name)
        put_many(client, name, range(1500))
    client.update_continuous_backups(TableName="left", PointInTimeRecoverySpecification=ON)
    arn = client.create_backup(TableName="right", BackupName="inner")["BackupDetails"]["BackupArn"]
    until(lambda: restorable(client, "left"))
    is_done = threading.Event()
    writing = threading.Thread(target=transact, args=(server.client(), is_done))
    writing.start()
    try:
        back_up(server, tmp_path / "place", "--no-check")
    finally:
        is_done.set()
        writing.join()
    server.terminate()
    done = processes.run("restore", tmp_path / "place", "--data", tmp_path / "restored")
    assert done.returncode == 0, done.stderr
    assert "no findings" in done.stdout
    client = serve(start, tmp_path / "restored").client()
    left, right = items_of(client, "left"), items_of(client, "right")
    assert left["k0"]["v"] == right["k0"]["v"]
    assert int(left["k0"]["v"]["S"]) > 0
    assert items_of(client, "left", IndexName="by_g").keys() == left.keys()
    client.restore_table_from_backup(TargetTableName="again", BackupArn=arn)
    client.restore_table_to_point_in_time(
        SourceTableName="left", TargetTableName="was", UseLatestRestorableTime=True
    )
    until(lambda: is_active(client, "again") and is_active(client, "was"))
    assert items_of(client, "was") == left
    assert len(items_of(client, "again")) == 1500


def transact(client: Any, is_done: threading.Event) -> None:
    number = 0
    while not is_done.is_set():
        number += 1
        puts = [
            {
                "Put": {
                    "TableName": name,
                    "Item": {"pk": {"S": f"k{key}"}, "g": {"S": "t"}, "v": {"S": str(number)}},
                }
            }
            for name in ("left", "right")
            for key in (0, 700 + number % 300)
        ]
        client.transact_write_items(TransactItems=puts)


@pytest.mark.soak
def test_a_second_backup_writes_what_changed_and_old_ones_are_removed(
    start: Any, tmp_path: Path
) -> None:
    server = serve(start, tmp_path / "data")
    client = server.client()
    create(client, "large")
    put_many(client, "large", range(2500))
    place = tmp_path / "place"
    back_up(server, place)
    first = size_of(place)
    client.delete_item(TableName="large", Key={"pk": {"S": "k7"}})
    back_up(server, place)
    assert size_of(place) - first < first / 2
    put_many(client, "large", range(4000, 4050))
    kept = back_up(server, place, "--keep", "1")
    assert kept.count("is removed") == 2
    assert len(list((place / "backups").iterdir())) == 1
    assert size_of(place) < 1.3 * first
    server.terminate()
    assert processes.run("check", place).returncode == 0
    spoiled = max((place / "chunks").rglob("*"), key=lambda path: path.stat().st_size)
    spoiled.write_bytes(spoiled.read_bytes()[:-9])
    assert processes.run("check", place).returncode != 0
    refused = processes.run("restore", place, "--data", tmp_path / "new")
    assert refused.returncode == 1
    assert not (tmp_path / "new").exists()


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_backups_of_an_encrypted_database_are_encrypted(start: Any, tmp_path: Path) -> None:
    environment = {**processes.ENVIRONMENT, **KEY}
    option = ("--encryption-key", "env:PARTITA_TEST_KEY")
    server = start(
        *("serve", "--port", "0", "--data", str(tmp_path / "data"), *option), env=environment
    )
    client = server.client()
    create(client, "secret")
    client.put_item(TableName="secret", Item={"pk": {"S": SECRET.decode()}})
    place = tmp_path / "place"
    back_up(server, place, *option, env=environment)
    server.terminate()
    for path in place.rglob("*"):
        assert not path.is_file() or SECRET not in path.read_bytes()
    refused = processes.run("restore", place, "--data", tmp_path / "new")
    assert refused.returncode == 1
    assert "is encrypted" in refused.stderr
    done = processes.run("restore", place, "--data", tmp_path / "new", *option, env=environment)
    assert done.returncode == 0, done.stderr
    again = start(
        *("serve", "--port", "0", "--data", str(tmp_path / "new"), *option), env=environment
    )
    assert items_of(again.client(), "secret").keys() == {SECRET.decode()}
    again.terminate()


def test_what_cannot_be_backed_up_or_restored_is_said_in_a_sentence(tmp_path: Path) -> None:
    for arguments, said in (
        (("backup", tmp_path / "place", "--endpoint", "http://127.0.0.1:9"), "No answer from"),
        (("backup", tmp_path / "place", "--every", "often"), "is not a duration"),
        (("restore", tmp_path / "nowhere", "--data", tmp_path / "new"), "does not exist"),
        (("restore", tmp_path, "--data", tmp_path / "new"), "There are no backups in"),
    ):
        done = processes.run(*arguments)
        assert done.returncode != 0
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_only_those_who_have_the_right_back_up_a_server_with_users(
    start: Any, tmp_path: Path
) -> None:
    people = People(tmp_path / "data")
    (tmp_path / "data").mkdir()
    reader = people.add(statement("dynamodb:*"))
    keeper = people.add(statement("partita:BackUpDatabase"))
    server = start("serve", "--port", "0", "--data", str(tmp_path / "data"), "--auth")
    command = ("backup", tmp_path / "place", "--endpoint", server.url)
    for key, code in ((reader, 1), (keeper, 0)):
        signed = {
            "AWS_ACCESS_KEY_ID": key.id,
            "AWS_SECRET_ACCESS_KEY": key.secret,
        }
        done = processes.run(*command, env={**processes.ENVIRONMENT, **signed})
        assert done.returncode == code, done.stderr
        assert ("partita:BackUpDatabase" in done.stderr) == bool(code)


@pytest.mark.soak
def test_a_database_is_copied_while_tables_are_restored_and_imported(
    start: Any, tmp_path: Path
) -> None:
    (tmp_path / "bucket").mkdir()
    lines = [
        json.dumps({"Item": {"pk": {"S": f"k{n}"}, "g": {"S": f"g{n % 9}"}}}) for n in range(30_000)
    ]
    (tmp_path / "bucket" / "many.json").write_text("\n".join(lines))
    config = settings(tmp_path, files=tmp_path / "bucket")
    server = serve(start, tmp_path / "data", "--config", str(config))
    client = server.client()
    import_of(client, start_import(client, "source", "files", "many"))
    until(lambda: is_active(client, "source"))
    arn = client.create_backup(TableName="source", BackupName="all")["BackupDetails"]["BackupArn"]
    until(lambda: is_available(client, arn))
    client.restore_table_from_backup(TargetTableName="restored", BackupArn=arn)
    start_import(client, "imported", "files", "many")
    assert "no findings" in back_up(server, tmp_path / "place")
    server.terminate()
    done = processes.run("restore", tmp_path / "place", "--data", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    again = serve(start, tmp_path / "new", "--config", str(config))
    client = again.client()
    before = items_of(client, "source")
    assert len(before) == 30_000
    for name in ("restored", "imported"):
        until(lambda name=name: is_active(client, name))
        assert items_of(client, name) == before
        assert client.describe_table(TableName=name)["Table"]["ItemCount"] == 30_000
    again.terminate()
    assert processes.run("check", tmp_path / "new").returncode == 0
