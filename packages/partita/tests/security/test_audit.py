"""The audit log: it records who did what, never data, and every gap in it shows."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError

from partita.server.security.audit.audit_log import RETRY_SECONDS, AuditLog, verify
from testkit.servers import processes
from testkit.servers.processes import Server, run
from testkit.servers.users import (
    ADMINISTRATOR,
    TABLE,
    People,
    client_for,
    events,
    refusal,
    statement,
)


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[tuple[People, Path]]:
    """A server that records the data requests for one table."""
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
    assert checked.returncode == 0 and "are complete; digest" in checked.stdout


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


# Lines that are cut off while no server runs


def cut(path: Path, count: int) -> None:
    path.write_bytes(b"".join(lines(path)[:-count]))


def damages(folder: Path) -> list[str]:
    """Returns the damages that the server has recorded about its log."""
    return [
        one["serviceEventDetails"]["reason"]
        for one in events(folder)
        if one["eventName"] == "AuditLogDamaged"
    ]


class Audited:
    """A data folder whose server writes an event for each ListTables."""

    def __init__(self, folder: Path, *options: str | Path) -> None:
        self.folder = folder
        self.options = ("--data", folder, *options)
        self.log = folder / "audit" / "audit.jsonl"
        added = run("users", "add", "ops", "--policy", ADMINISTRATOR, *self.options)
        words = dict(line.split("=", 1) for line in added.stdout.splitlines())
        self.key = words["AWS_ACCESS_KEY_ID"], words["AWS_SECRET_ACCESS_KEY"]

    def serve(self, count: int, *, is_killed: bool = False) -> None:
        """Serves until `count` more events are written."""
        server = Server("serve", "--auth", "--port", "0", *self.options)
        for _ in range(count):
            client_for(server.url, *self.key).list_tables()
        if is_killed:
            server.kill()
        else:
            assert server.terminate()[0] == 0

    def verify(self) -> list[str]:
        done = run("audit", "verify", *self.options)
        assert (done.returncode == 0) == ("are complete" in done.stdout), done.stderr
        return [] if done.returncode == 0 else done.stdout.splitlines()


@pytest.fixture(params=["plain", "encrypted"])
def audited_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Audited:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(run("keys", "new").stdout)
    options = ("--encryption-key", f"file:{key}") if request.param == "encrypted" else ()
    return Audited(tmp_path / "data", *options)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_lines_cut_off_over_a_restart_show_ever_after(
    audited_folder: Audited, is_killed: bool
) -> None:
    audited_folder.serve(5, is_killed=is_killed)
    assert audited_folder.verify() == []
    cut(audited_folder.log, 2)
    audited_folder.serve(3)
    assert damages(audited_folder.folder) == ["Events 4 to 5 are missing."]
    found = audited_folder.verify()
    assert any("4 to 5 are missing before it" in one for one in found)
    audited_folder.serve(2)
    assert audited_folder.verify() == found
    assert damages(audited_folder.folder) == ["Events 4 to 5 are missing."]


def test_a_last_line_that_was_changed_shows_after_a_restart(audited_folder: Audited) -> None:
    audited_folder.serve(3)
    kept = lines(audited_folder.log)
    kept[-1] = kept[-1].replace(b"ListTables", b"ListTablet")
    audited_folder.log.write_bytes(b"".join(kept))
    audited_folder.serve(1)
    assert damages(audited_folder.folder) == ["Event 3 was changed or removed."]
    assert any("the event before it, 3, has been changed" in one for one in audited_folder.verify())


def test_an_older_log_with_its_own_head_shows(audited_folder: Audited) -> None:
    audited_folder.serve(3)
    older = audited_folder.folder.parent / "older"
    shutil.copytree(audited_folder.log.parent, older)
    audited_folder.serve(4)
    shutil.rmtree(audited_folder.log.parent)
    shutil.copytree(older, audited_folder.log.parent)
    audited_folder.serve(1)
    assert damages(audited_folder.folder) == ["Events 4 to 7 are missing."]
    assert audited_folder.verify()
    shutil.rmtree(audited_folder.log.parent)
    audited_folder.serve(1)
    missing = "Events 1 to 9 are missing."
    assert damages(audited_folder.folder) == ["The head of the audit log is missing.", missing]


def test_lines_that_follow_what_a_server_has_written_show(audited_folder: Audited) -> None:
    audited_folder.serve(2)
    last = lines(audited_folder.log)[-1]
    event = {**json.loads(last), "sequence": 3, "previousDigest": sha256(last).hexdigest()}
    with audited_folder.log.open("ab") as file:
        file.write(json.dumps(event).encode() + b"\n")
    audited_folder.serve(1)
    told = "Events 3 to 3 were added after the server had stopped."
    assert damages(audited_folder.folder) == [told]
    assert any(told in one for one in audited_folder.verify())


@pytest.mark.parametrize("content", [b"", b"rubbish\n", b"[]\n", b"\xff\n"])
def test_a_log_of_rubbish_does_not_keep_a_server_from_starting(
    audited_folder: Audited, content: bytes
) -> None:
    audited_folder.serve(2)
    audited_folder.log.write_bytes(content)
    audited_folder.serve(1)
    text = audited_folder.log.read_bytes().splitlines()
    found = [json.loads(line) for line in text if line.startswith(b'{"')]
    told = [
        one["serviceEventDetails"]["reason"]
        for one in found
        if one["eventName"] == "AuditLogDamaged"
    ]
    assert "Events 1 to 2 are missing." in told
    assert audited_folder.verify()


def test_a_head_that_nobody_with_the_key_has_written_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(run("keys", "new").stdout)
    folder = Audited(tmp_path / "data", "--encryption-key", f"file:{key}")
    folder.serve(5)
    without = run("audit", "verify", "--data", folder.folder)
    assert without.returncode == 1 and "is encrypted: give --encryption-key" in without.stderr
    cut(folder.log, 2)
    last = lines(folder.log)[-1]
    head = folder.log.parent / "head"
    head.write_text(json.dumps([1, 3, sha256(last).hexdigest(), True]))
    assert any("head of the audit log is not encrypted" in one for one in folder.verify())
    folder.serve(1)
    assert damages(folder.folder) == [
        "The head of the audit log is not encrypted, and in this folder it always is.",
        "Events 4 to 5 are missing.",
    ]


def test_kills_never_look_like_tampering(audited_folder: Audited) -> None:
    total = 0
    for _ in range(3):
        server = Server("serve", "--auth", "--port", "0", *audited_folder.options)
        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask_until_gone, server, audited_folder.key) for _ in range(4)]
            time.sleep(0.5)
            server.kill()
        total += sum(one.result() for one in asking)
        assert audited_folder.verify() == []
    assert damages(audited_folder.folder) == [] and total > 10
    assert len(events(audited_folder.folder)) >= total


def ask_until_gone(server: Server, key: tuple[str, str]) -> int:
    """Sends requests until the server is gone. Returns how many it has answered."""
    client = client_for(server.url, *key)
    for count in itertools.count():
        try:
            client.list_tables()
        except BotoCoreError:
            return count
    raise AssertionError
