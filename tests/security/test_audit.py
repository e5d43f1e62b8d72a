"""The audit log: who did what, never the data, and no gap that does not show."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.server.security.audit.log import RETRY_SECONDS, AuditLog, verify

from .. import processes
from ..processes import Server, run
from .people import ADMINISTRATOR, People, refusal, statement

TABLE: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
}


def events(folder: Path, log: str = "audit") -> list[dict[str, Any]]:
    text = (folder / log / "audit.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[tuple[People, Path]]:
    """A server that writes down requests for the data of one table."""
    people = People(tmp_path)
    people.add(policies=[ADMINISTRATOR])
    with processes.starting() as start:
        people.server = start(
            *("serve", "--auth", "--port", "0", "--data", tmp_path, "--audit-data", "watched")
        )
        yield people, tmp_path


def test_what_is_written_down(audited: tuple[People, Path]) -> None:
    people, folder = audited
    key = people.add(policies=[ADMINISTRATOR])
    client = people.client(key)
    for name in ("watched", "unwatched"):
        client.create_table(TableName=name, **TABLE)
        client.put_item(TableName=name, Item={"pk": {"S": "s3cr3t"}, "x": {"S": "s3cr3t"}})
    stranger = people.client(people.add(statement("s3:*")))
    denied = refusal(stranger.delete_table, TableName="watched")
    refusal(client.create_table, TableName="watched", **TABLE)
    people.client(key, "sts").get_session_token()
    found = [one for one in events(folder) if one["eventSource"] != "iam.amazonaws.com"]
    assert [(one["eventName"], one.get("errorCode")) for one in found] == [
        ("CreateTable", None),
        ("PutItem", None),
        ("CreateTable", None),
        ("DeleteTable", "AccessDeniedException"),
        ("CreateTable", "ResourceInUseException"),
        ("GetSessionToken", None),
    ]
    first, put, _, refused, *_ = found
    assert first["userIdentity"]["userName"] == people.name_of(key)
    assert first["userIdentity"]["accessKeyId"] == key.id
    assert first["userIdentity"]["type"] == "IAMUser"
    assert first["requestParameters"] == {"tableName": "watched"}
    assert first["sourceIPAddress"] == "127.0.0.1"
    assert first["eventSource"] == "dynamodb.amazonaws.com"
    assert (first["eventCategory"], put["eventCategory"]) == ("Management", "Data")
    assert refused["errorMessage"] == denied[1]
    text = (folder / "audit" / "audit.jsonl").read_text()
    assert "s3cr3t" not in text and key.secret not in text
    assert any(one["eventName"] == "UpdateUsers" for one in events(folder))
    checked = run("audit", "verify", "--data", folder)
    assert checked.returncode == 0 and "are whole; digest" in checked.stdout


def test_the_chain_goes_on_after_a_restart_and_a_kill(tmp_path: Path) -> None:
    people = People(tmp_path)
    key = people.add(policies=[ADMINISTRATOR])

    def served() -> Server:
        server = Server("serve", "--auth", "--port", "0", "--data", tmp_path)
        people.server = server
        return server

    server = served()
    people.client(key).create_table(TableName="one", **TABLE)
    server.kill()
    with (tmp_path / "audit" / "audit.jsonl").open("ab") as file:
        file.write(b'{"half')
    server = served()
    people.client(key).create_table(TableName="two", **TABLE)
    server.terminate()
    assert [one["requestParameters"]["tableName"] for one in events(tmp_path)] == ["one", "two"]
    assert list(verify(tmp_path / "audit")) == []


def test_a_full_disk_refuses_changes_until_there_is_space(tmp_path: Path) -> None:
    people = People(tmp_path)
    key = people.add(policies=[ADMINISTRATOR])
    (tmp_path / "audit").mkdir()
    # The reserve cannot be written, as on a disk that is full.
    (tmp_path / "audit" / "reserve").symlink_to("/dev/full")
    with processes.starting() as start:
        people.server = start("serve", "--auth", "--port", "0", "--data", tmp_path)
        client = people.client(key)
        began = time.monotonic()
        code, text = refusal(client.create_table, TableName="one", **TABLE)
        assert time.monotonic() - began < RETRY_SECONDS
        assert code == "InternalServerError" and "audit log" in text
        assert client.list_tables()["TableNames"] == []
        time.sleep(1.5 * RETRY_SECONDS)
        assert client.create_table(TableName="one", **TABLE)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    log = AuditLog(tmp_path / "log", file_bytes_max=2000, files_max=3)
    yield log
    log.close()


def fill(log: AuditLog, count: int) -> None:
    for number in range(count):
        log.append({"eventName": f"event {number}"})


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_log_that_nobody_touched_is_whole(log: AuditLog, tmp_path: Path) -> None:
    fill(log, 5)
    assert list(verify(tmp_path / "log")) == []


def test_files_are_rotated_and_the_oldest_go(log: AuditLog, tmp_path: Path) -> None:
    fill(log, 200)
    files = list((tmp_path / "log").glob("audit*.jsonl"))
    assert len(files) <= 4
    assert sum(path.stat().st_size for path in files) < 4 * 2400
    assert list(verify(tmp_path / "log")) == []
    oldest = min(path for path in files if path.name != "audit.jsonl")
    oldest.unlink()
    assert any("missing before it" in one for one in verify(tmp_path / "log"))


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_line_that_is_removed_shows(log: AuditLog, tmp_path: Path, place: int) -> None:
    fill(log, 5)
    path = tmp_path / "log" / "audit.jsonl"
    kept = lines(path)
    del kept[place]
    path.write_bytes(b"".join(kept))
    (finding,) = verify(tmp_path / "log")
    assert "missing" in finding


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_line_that_is_changed_shows(log: AuditLog, tmp_path: Path, place: int) -> None:
    fill(log, 5)
    path = tmp_path / "log" / "audit.jsonl"
    kept = lines(path)
    kept[place] = kept[place].replace(b"event", b"EVENT")
    path.write_bytes(b"".join(kept))
    (finding,) = verify(tmp_path / "log")
    assert "has been changed" in finding


def test_what_is_no_event_shows(log: AuditLog, tmp_path: Path) -> None:
    fill(log, 3)
    path = tmp_path / "log" / "audit.jsonl"
    kept = lines(path)
    kept[1] = b"rubbish\n"
    path.write_bytes(b"".join(kept))
    assert any("not an event" in one for one in verify(tmp_path / "log"))


def test_a_folder_without_a_log(tmp_path: Path) -> None:
    assert run("audit", "verify", "--data", tmp_path).returncode == 1


def test_a_server_in_memory_has_its_log_where_it_is_told(tmp_path: Path) -> None:
    people = People(tmp_path / "people")
    people.path.parent.mkdir()
    key = people.add(policies=[ADMINISTRATOR])
    log = tmp_path / "log"
    with processes.starting() as start:
        people.server = start(
            *("serve", "--in-memory", "--port", "0", "--users", people.path, "--audit", log)
        )
        people.client(key).create_table(TableName="audited", **TABLE)
    assert [one["eventName"] for one in events(log.parent, log.name)] == ["CreateTable"]
    assert run("audit", "verify", "--audit", log).returncode == 0
