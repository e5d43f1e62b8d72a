"""The users of an encrypted folder: without its key, nobody can add a user or bring one back."""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from partita.database.storage.sealing import cipher
from partita.database.storage.sealing.encrypted_folders import begin_encryption
from partita.database.storage.sealing.keyring import CONTEXT, AcceptedUsersFile, SealedKeyring
from partita.database.storage.sealing.master_keys import KeySource, fingerprint
from partita.errors import StorageError
from partita.server.security.identities.access_file import AccessFile, begin_sealing
from partita.server.security.identities.user_directory import ROOT_KEY_ID, ROOT_SECRET
from testkit.servers import processes
from testkit.servers.processes import ENVIRONMENT, Server, run
from testkit.servers.users import ADMINISTRATOR, TABLE, client_for

from .test_encryption import Vault, new_key

SECONDS_MAX = 30
UNKNOWN = "UnrecognizedClientException"


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    with processes.starting() as starter:
        yield starter


class Safe(Vault):
    """An encrypted folder with users."""

    @property
    def access(self) -> Path:
        return self.data / "access.json"

    def users(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run("users", *arguments, *self.options)

    def add(self, name: str, *more: str) -> tuple[str, str]:
        done = self.users("add", name, "--policy", ADMINISTRATOR, *more)
        assert done.returncode == 0, done.stderr
        words = dict(line.split("=", 1) for line in done.stdout.splitlines())
        return words["AWS_ACCESS_KEY_ID"], words["AWS_SECRET_ACCESS_KEY"]

    def refused(self) -> str:
        """Returns the reason why a server does not start."""
        done = run("serve", "--port", "0", "--auth", *self.options)
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        return done.stderr

    def events(self) -> list[dict[str, Any]]:
        text = (self.data / "audit" / "audit.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def safe(tmp_path: Path) -> Safe:
    return Safe(tmp_path)


def plain_users(folder: Path) -> tuple[bytes, tuple[str, str]]:
    """Makes what an attacker without the key could make: a plain file with an administrator."""
    done = run("users", "add", "mallory", "--policy", ADMINISTRATOR, "--data", folder)
    words = dict(line.split("=", 1) for line in done.stdout.splitlines())
    key = words["AWS_ACCESS_KEY_ID"], words["AWS_SECRET_ACCESS_KEY"]
    return (folder / "access.json").read_bytes(), key


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_known(server: Server, key: tuple[str, str]) -> bool:
    try:
        return bool(client_for(server.url, *key).list_tables())
    except Exception as error:
        assert UNKNOWN in str(error)
        return False


def test_a_file_that_is_not_sealed_is_refused(
    safe: Safe, tmp_path: Path, start: Callable[..., Server]
) -> None:
    ops = safe.add("ops")
    forged, mallory = plain_users(tmp_path / "mallorys")
    server = safe.serve(start, "--auth", stderr=None)
    assert is_known(server, ops)
    sealed = safe.access.read_bytes()
    safe.access.write_bytes(forged)
    eventually(lambda: any(one["eventName"] == "RefuseUsers" for one in safe.events()))
    assert is_known(server, ops) and not is_known(server, mallory)
    (told,) = (one for one in safe.events() if one["eventName"] == "RefuseUsers")
    assert f"{safe.access} is not encrypted" in told["serviceEventDetails"]["reason"]
    server.terminate()
    assert f"{safe.access} is not encrypted" in safe.refused()
    for arguments in (("list",), ("add", "other"), ("accept",)):
        done = safe.users(*arguments)
        assert done.returncode == 1 and "is not encrypted" in done.stderr
    safe.access.write_bytes(sealed)
    assert is_known(safe.serve(start, "--auth"), ops)


def test_an_older_file_does_not_bring_a_user_back(safe: Safe, start: Callable[..., Server]) -> None:
    ops, gone = safe.add("ops"), safe.add("gone")
    server = safe.serve(start, "--auth", stderr=None)
    assert is_known(server, gone)
    before = safe.access.read_bytes()
    assert safe.users("disable", "gone").returncode == 0
    eventually(lambda: not is_known(server, gone))
    safe.access.write_bytes(before)
    eventually(lambda: any(one["eventName"] == "RefuseUsers" for one in safe.events()))
    assert is_known(server, ops) and not is_known(server, gone)
    server.terminate()
    told = safe.refused()
    assert f"{safe.access} is older than the one in use" in told
    assert "it is change 2, and change 3 has been accepted" in told
    # Nothing is built on it either, which would make it the newest.
    done = safe.users("add", "other")
    assert done.returncode == 1 and "is older than the one in use" in done.stderr
    # Who has the key may want just this.
    accepted = safe.users("accept")
    assert accepted.returncode == 0 and "user gone" in accepted.stdout
    server = safe.serve(start, "--auth")
    assert is_known(server, ops) and is_known(server, gone)


def test_a_file_that_is_gone_is_refused(safe: Safe, start: Callable[..., Server]) -> None:
    ops = safe.add("ops")
    root = {**ENVIRONMENT, ROOT_KEY_ID: "rootkey1", ROOT_SECRET: "s3cret"}
    server = safe.serve(start, "--auth", env=root, stderr=None)
    assert is_known(server, ops)
    safe.access.unlink()
    eventually(lambda: any(one["eventName"] == "RefuseUsers" for one in safe.events()))
    assert is_known(server, ops)
    server.terminate()
    done = run("serve", "--port", "0", "--auth", *safe.options, env=root)
    assert done.returncode == 1 and f"{safe.access} is missing" in done.stderr
    assert safe.users("add", "other").returncode == 1
    assert safe.users("accept").returncode == 0
    other = safe.add("other")
    server = safe.serve(start, "--auth")
    assert is_known(server, other) and not is_known(server, ops)


def test_another_file_of_the_same_number_is_refused(
    safe: Safe, start: Callable[..., Server]
) -> None:
    safe.add("ops")
    fork = safe.copy("fork")
    run("users", "add", "fork", "--policy", ADMINISTRATOR, *fork.options)
    safe.add("second")
    safe.serve(start, "--auth").terminate()
    shutil.copy(fork.data / "access.json", safe.access)
    assert f"{safe.access} is not the one in use: both are change 2" in safe.refused()


def test_a_file_that_was_changed_or_is_anothers_is_refused(safe: Safe, tmp_path: Path) -> None:
    safe.add("ops")
    (tmp_path / "others").mkdir()
    other = Safe(tmp_path / "others")
    other.key = safe.key
    other.add("ops")
    sealed = json.loads(safe.access.read_text())
    content = bytearray(base64.b64decode(sealed["sealed"]))
    content[-1] ^= 1
    changed = json.dumps({**sealed, "sealed": base64.b64encode(content).decode()})
    for text in (
        json.dumps({**sealed, "change": 99}),
        changed,
        other.access.read_text(),
    ):
        safe.access.write_text(text)
        assert f"{safe.access} was changed, or is that of another data folder" in safe.refused()


def test_an_older_keyring_does_not_help_an_older_file(
    safe: Safe, start: Callable[..., Server]
) -> None:
    safe.add("ops")
    safe.add("gone")
    safe.serve(start, "--auth").terminate()
    kept = {name: (safe.data / name).read_bytes() for name in ("keyring", "access.json")}
    assert safe.users("remove", "gone").returncode == 0
    safe.serve(start, "--auth").terminate()
    for name, content in kept.items():
        (safe.data / name).write_bytes(content)
    assert f"{safe.access} is older than the one in use" in safe.refused()
    assert run("check", safe.data, *safe.options[2:]).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("users", "list"),
        ("users", "disable", "ops"),
        ("users", "group", "readers"),
        ("policies", "list"),
        ("policies", "attach", "AdministratorAccess", "--user", "ops"),
        ("policies", "explain", "ops", "dynamodb:GetItem", "*"),
    ],
)
def test_commands_need_the_key(safe: Safe, arguments: tuple[str, ...]) -> None:
    safe.add("ops")
    done = run(*arguments, "--data", safe.data)
    assert done.returncode == 1
    assert "is encrypted, and so are its users: give --encryption-key" in done.stderr
    assert run(*arguments, *safe.options).returncode == 0


def test_users_made_over_the_wire_are_sealed(safe: Safe, start: Callable[..., Server]) -> None:
    ops = safe.add("ops")
    server = safe.serve(start, "--auth")
    answer = ask(server, ops, "CreateUser", {"UserName": "new", "Policies": [ADMINISTRATOR]})
    secret = answer["SecretAccessKey"]
    assert secret.encode() not in safe.access.read_bytes()
    eventually(lambda: is_known(server, (answer["AccessKeyId"], secret)))
    assert "user new" in safe.users("list").stdout


def ask(server: Server, key: tuple[str, str], operation: str, body: dict[str, Any]) -> Any:
    headers = {
        "X-Amz-Target": f"PartitaAccess.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
    }
    request = AWSRequest("POST", server.url + "/", headers, json.dumps(body).encode())
    SigV4Auth(Credentials(*key), "partita", "us-east-1").add_auth(request)
    answer = URLLib3Session().send(request.prepare())
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


# Folders of earlier versions


def as_earlier_version(safe: Safe) -> tuple[tuple[str, str], bytes]:
    """Gives a folder the form of earlier versions, which did not encrypt the whole file."""
    key = safe.add("ops")
    (master,) = KeySource(f"file:{safe.key}").read()
    ring = safe.keyring()
    content = json.loads(cipher.unseal(master, _envelope(safe).sealed, CONTEXT))
    secret = cipher.new_key()
    for name in ("files", "accepted", "seals_heads"):
        del content[name]
    content["others"]["users"] = base64.b64encode(secret).decode()
    sealed = cipher.seal(master, json.dumps(content).encode(), CONTEXT)
    envelope = SealedKeyring(fingerprint(master), sealed)
    (safe.data / "keyring").write_bytes(msgspec.json.encode(envelope))
    directory = json.loads(msgspec.json.encode(AccessFile(safe.access, lambda: ring).load()))

    def seal(text: str, context: str) -> str:
        wrapped = cipher.seal(secret, text.encode(), context.encode())
        return f"sealed:{base64.b64encode(wrapped).decode()}"

    directory["session_key"] = seal(directory["session_key"], "sessions")
    for user in directory["users"].values():
        for one in user["keys"]:
            one["secret"] = seal(one["secret"], one["id"])
    old = json.dumps(directory).encode()
    safe.access.write_bytes(old)
    return key, old


def _envelope(safe: Safe) -> SealedKeyring:
    return msgspec.json.decode((safe.data / "keyring").read_bytes(), type=SealedKeyring)


def test_a_folder_of_an_earlier_version_is_taken_over_once(
    safe: Safe, tmp_path: Path, start: Callable[..., Server]
) -> None:
    ops, old = as_earlier_version(safe)
    server = safe.serve(start, "--auth")
    assert is_known(server, ops)
    assert sorted(json.loads(safe.access.read_text())) == ["change", "sealed"]
    server.terminate()
    for text in (old, plain_users(tmp_path / "mallorys")[0]):
        safe.access.write_bytes(text)
        assert "is not encrypted, and in this folder it always is" in safe.refused()


def test_an_earlier_keyring_does_not_have_users_taken_over_again(
    safe: Safe, start: Callable[..., Server]
) -> None:
    _, old = as_earlier_version(safe)
    keyring = (safe.data / "keyring").read_bytes()
    safe.serve(start, "--auth").terminate()
    (safe.data / "keyring").write_bytes(keyring)
    safe.access.write_bytes(old)
    assert f"{safe.access} is older than the one in use" in safe.refused()


def test_commands_take_an_earlier_folder_over_unless_it_is_served(
    safe: Safe, start: Callable[..., Server]
) -> None:
    ops, _ = as_earlier_version(safe)
    assert "user ops" in safe.users("list").stdout
    safe.add("second")
    assert is_known(safe.serve(start, "--auth"), ops)


def test_a_kill_while_it_is_taken_over_does_no_harm(
    safe: Safe, start: Callable[..., Server]
) -> None:
    ops, old = as_earlier_version(safe)
    # The keyring is written, and the file is not.
    safe.keyring().begin_files(AcceptedUsersFile(0, sha256(old).digest()))
    assert is_known(safe.serve(start, "--auth"), ops)


# Rotation, copies, kills


def test_a_new_key_seals_the_users_anew(safe: Safe, start: Callable[..., Server]) -> None:
    ops = safe.add("ops")
    server = safe.serve(start, "--auth")
    assert is_known(server, ops)
    before = json.loads(safe.access.read_text())
    safe.key.write_text(new_key() + safe.key.read_text())
    eventually(lambda: json.loads(safe.access.read_text())["change"] > before["change"])
    eventually(lambda: safe.keyring().file_generation == 2)
    content = base64.b64decode(json.loads(safe.access.read_text())["sealed"])
    with pytest.raises(cipher.CannotUnseal):
        safe.keyring().open_file("access", base64.b64decode(before["sealed"]), before["change"])
    assert content[:2] == b"\x00\x02" and is_known(server, ops)
    assert safe.users("rotate", "ops").returncode == 0
    eventually(lambda: "none under way" in safe.show())
    server.terminate()
    assert run("audit", "verify", *safe.options).returncode == 0
    safe.key.write_text(safe.key.read_text().split()[0])
    assert is_known(safe.serve(start, "--auth"), ops)


def test_a_restored_folder_has_users_of_its_own(
    safe: Safe, tmp_path: Path, start: Callable[..., Server]
) -> None:
    ops = safe.add("ops")
    server = safe.serve(start, "--auth")
    client_for(server.url, *ops).create_table(TableName="kept", **TABLE)
    signed = {"AWS_ACCESS_KEY_ID": ops[0], "AWS_SECRET_ACCESS_KEY": ops[1]}
    option = ("--encryption-key", f"file:{safe.key}")
    done = run(
        *("backup", tmp_path / "place", "--endpoint", server.url, *option),
        env={**ENVIRONMENT, **signed},
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "elsewhere").mkdir()
    restored = Safe(tmp_path / "elsewhere")
    restored.key = safe.key
    done = run("restore", tmp_path / "place", "--data", restored.data, *option)
    assert done.returncode == 0, done.stderr
    other = restored.add("other")
    again = restored.serve(start, "--auth", stderr=None)
    assert client_for(again.url, *other).list_tables()["TableNames"] == ["kept"]
    assert not [one for one in restored.events() if one["eventName"] == "AuditLogDamaged"]
    # What is made of one cannot be taken to the other.
    shutil.copy(safe.access, restored.access)
    eventually(lambda: any(one["eventName"] == "RefuseUsers" for one in restored.events()))
    assert is_known(again, other) and not is_known(again, ops)


KILLED = """
import os, signal, sys
from partita.cli.command_groups import commands
calls = iter(range(1, 100))
stop_at = int(sys.argv[1])
def counted(name):
    real = getattr(os, name)
    def call(*arguments, **more):
        if next(calls) == stop_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **more)
    setattr(os, name, call)
for name in ("open", "fsync", "replace"):
    counted(name)
commands(sys.argv[2:])
"""


@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "plain"])
def test_a_kill_while_users_are_written_leaves_the_old_or_the_new(
    safe: Safe, is_sealed: bool
) -> None:
    options = safe.options if is_sealed else safe.options[:2]
    assert run("users", "add", "ops", *options).returncode == 0
    killed, stop_at = 0, 1
    while True:
        name = f"user{stop_at}"
        arguments = [*map(str, (stop_at, "users", "add", name, *options))]
        done = subprocess.run(
            [sys.executable, "-c", KILLED, *arguments],
            env=ENVIRONMENT,
            capture_output=True,
            timeout=60,
            check=False,
        )
        listed = run("users", "list", *options)
        assert listed.returncode == 0 and "user ops" in listed.stdout, listed.stderr
        is_there = f"user {name}" in listed.stdout
        if done.returncode == 0:
            assert is_there
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        killed += 1
        stop_at += 1
    # The lock, the new file, its sync, its name, the folder and its sync.
    assert killed >= 6
    assert sorted(path.name for path in safe.data.iterdir() if "access" in path.name) == [
        "access.json",
        "access.lock",
    ]


def test_the_file_is_on_the_disk_before_it_has_its_name(
    safe: Safe, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def call(*arguments: Any, real: Any = real, name: str = name) -> Any:
            order.append(name)
            return real(*arguments)

        monkeypatch.setattr(os, name, call)
    safe.data.mkdir(0o700)
    with AccessFile(safe.access).changing() as change:
        change.directory = change.directory
    assert order == ["fsync", "replace", "fsync"]


# Clocks, descriptors, others who start in the same moment


def test_users_that_could_not_be_read_are_read_again(
    safe: Safe, start: Callable[..., Server]
) -> None:
    safe.add("ops")
    gone = safe.add("gone")
    server = safe.serve(start, "--auth", stderr=None)
    assert is_known(server, gone)
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    assert safe.users("disable", "gone").returncode == 0
    # The audit log is open already.
    eventually(lambda: any(one["eventName"] == "RefuseUsers" for one in safe.events()))
    time.sleep(2.5)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    eventually(lambda: not is_known(server, gone))
    # It is told once, however often it is tried.
    told = [one for one in safe.events() if one["eventName"] == "RefuseUsers"]
    assert len(told) == 1 and "Too many open files" in told[0]["serviceEventDetails"]["reason"]


def test_no_clock_keeps_users_from_being_accepted(safe: Safe, start: Callable[..., Server]) -> None:
    ops = safe.add("ops")
    safe.serve(start, "--auth").terminate()
    kept = {name: (safe.data / name).read_bytes() for name in ("keyring", "access.json")}
    # As a clock that was ahead had numbered it in earlier versions.
    assert safe.users("accept", "--above", "4000000000000").returncode == 0
    safe.serve(start, "--auth").terminate()
    for name, content in kept.items():
        (safe.data / name).write_bytes(content)
    told = safe.refused()
    command = re.search(r"`partita users (accept --above \d+)`", told)
    assert command, told
    assert safe.users(*command[1].split()).returncode == 0
    assert is_known(safe.serve(start, "--auth"), ops)


def test_a_new_keyring_does_not_replace_one_that_was_made_meanwhile(safe: Safe) -> None:
    late = safe.keyring()
    assert late.is_new
    safe.add("ops")
    with pytest.raises(StorageError, match="was encrypted by another Partita just now"):
        begin_encryption(safe.data, late)
    assert "user ops" in safe.users("list").stdout


def test_what_was_written_while_a_server_started_is_not_undone(safe: Safe) -> None:
    as_earlier_version(safe)
    late = safe.keyring()
    safe.add("second")
    late.begin()
    begin_sealing(safe.data, late)
    late.add_up_to(1)
    assert "user second" in safe.users("list").stdout
