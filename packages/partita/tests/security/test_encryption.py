"""Encryption at rest, from outside: what is on the disk, who can read it, what is detected."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from partita.database.storage.data_folder.embedded_engine import EmbeddedEngine, open_for_reading
from partita.database.storage.sealing.encrypted_folders import keyring_of
from partita.database.storage.sealing.keyring import Keyring
from partita.database.storage.sealing.master_keys import KeySource, new_printed_key
from partita.database.storage.sealing.sealed_engine import HEADER_BYTES, NUMBERED, ValueCipher
from testkit.servers import processes
from testkit.servers.processes import Server, run

NAME = "Books"
SECONDS_MAX = 60
SORTED: dict[str, Any] = {
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "genre")
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "genre", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "global",
            "KeySchema": [
                {"AttributeName": "genre", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}
SECRETS = (b"partitionkey", b"wordsinside", b"recordsinside", b"partitionofrecord")
LONG = "partitionkey" + "x" * 300


def item(number: int, words: str = "wordsinside") -> dict[str, Any]:
    pk = LONG if number == 0 else f"partitionkey{number}"
    content = {"pk": pk, "sk": f"sort{number:04d}", "genre": f"genre{number}", "v": words}
    return {name: {"S": text} for name, text in content.items()}


def new_key() -> str:
    return f"{new_printed_key()}\n"


class Vault:
    """A data folder and the file with its key."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.key = folder / "key"
        self.key.touch(0o600)
        self.key.write_text(new_key())
        self._folder = folder

    @property
    def options(self) -> tuple[str | Path, ...]:
        return "--data", self.data, "--encryption-key", f"file:{self.key}"

    def serve(self, start: Callable[..., Server], *more: str | Path, **popen: Any) -> Server:
        return start("serve", "--port", "0", *self.options, *more, **popen)

    def check(self) -> str:
        return run("check", self.data, "--encryption-key", f"file:{self.key}").stdout

    def show(self) -> str:
        return run("keys", "show", *self.options).stdout

    def keyring(self) -> Keyring:
        return keyring_of(self.data, KeySource(f"file:{self.key}"))

    def copy(self, name: str) -> Vault:
        copied = object.__new__(Vault)
        copied.data, copied.key, copied._folder = self._folder / name, self.key, self._folder
        shutil.copytree(self.data, copied.data)
        copied.data.chmod(0o700)
        return copied

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.data)): path.read_bytes()
            for path in sorted(self.data.rglob("*"))
            if path.is_file()
        }

    def stored(self) -> dict[bytes, bytes]:
        """Returns everything as it is on the disk."""
        with open_for_reading(self.data) as snapshot:
            return dict(snapshot.range(b"\x00", b"\xff" * 600))

    def change(self, changes: dict[bytes, bytes | None]) -> None:
        engine = EmbeddedEngine(self.data)
        engine.commit(changes)
        engine.refresh()
        engine.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    with processes.starting() as starter:
        yield starter


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """A folder with everything in it; tests work on copies."""
    vault = Vault(tmp_path_factory.mktemp("vault"))
    with processes.starting() as starter:
        server = vault.serve(starter)
        client, kinesis = server.client(), server.client("kinesis")
        client.create_table(TableName=NAME, **SORTED)
        client.update_time_to_live(
            TableName=NAME, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
        )
        for number in range(30):
            client.put_item(TableName=NAME, Item=item(number))
        later = {**item(0), "ttl": {"N": str(int(time.time()) + 86_400)}}
        client.transact_write_items(TransactItems=[{"Put": {"TableName": NAME, "Item": later}}])
        kinesis.create_stream(StreamName="events", ShardCount=1)
        kinesis.get_waiter("stream_exists").wait(
            StreamName="events", WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000}
        )
        kinesis.put_record(
            StreamName="events", Data=b"recordsinside", PartitionKey="partitionofrecord"
        )
        # The write-ahead log still has the last of it.
        server.kill()
    return vault


def test_nothing_of_the_data_is_on_the_disk(filled: Vault) -> None:
    files = filled.files()
    assert {"data.mdb", "journal.0", "journal.1", "keyring"} <= files.keys()
    for name, content in files.items():
        found = [secret for secret in SECRETS if secret in content]
        assert not found, name
    # As the documentation says.
    assert b"sort0007" in b"".join(files.values())


def test_all_of_it_is_sealed_but_the_format(filled: Vault, tmp_path: Path) -> None:
    plain = [key for key, value in filled.copy("sealed").stored().items() if len(value) < 34]
    assert plain == [b"\x00format"]


def test_files_are_for_their_owner_alone(filled: Vault) -> None:
    for path in (filled.data, *filled.data.rglob("*")):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), path


def test_it_is_read_again_after_a_kill(filled: Vault, start: Callable[..., Server]) -> None:
    vault = filled.copy("again")
    client = vault.serve(start).client()
    assert client.scan(TableName=NAME)["Count"] == 30
    key = {name: item(7)[name] for name in ("pk", "sk")}
    assert client.get_item(TableName=NAME, Key=key)["Item"] == item(7)
    for index, condition, values in (
        (None, "pk = :v", {":v": {"S": LONG}}),
        ("local", "pk = :v", {":v": {"S": "partitionkey3"}}),
        ("global", "genre = :v", {":v": {"S": "genre3"}}),
    ):
        more = {} if index is None else {"IndexName": index}
        found = client.query(
            TableName=NAME,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            **more,
        )
        assert found["Count"] == 1
    segments = [
        client.scan(TableName=NAME, Segment=segment, TotalSegments=4)["Count"]
        for segment in range(4)
    ]
    assert sum(segments) == 30 and min(segments) < 30


def test_check_finds_nothing_wrong(filled: Vault) -> None:
    checked = filled.check()
    assert "30 items" in checked and checked.endswith("no findings.\n")


@pytest.mark.parametrize("source", ["none", "other", "missing", "nonsense", "command", "env"])
def test_without_the_right_key_it_does_not_start_and_touches_nothing(
    filled: Vault, tmp_path: Path, source: str
) -> None:
    other = tmp_path / "other"
    other.touch(0o600)
    other.write_text(new_key())
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("my password")
    given = {
        "none": (),
        "other": ("--encryption-key", f"file:{other}"),
        "missing": ("--encryption-key", f"file:{tmp_path / 'nowhere'}"),
        "nonsense": ("--encryption-key", f"file:{nonsense}"),
        "command": ("--encryption-key", "command:false"),
        "env": ("--encryption-key", "env:NOT_THERE"),
    }[source]
    before = filled.files()
    times = {path: path.stat().st_mtime_ns for path in filled.data.rglob("*")}
    refused = run("serve", "--port", "0", "--data", filled.data, *given)
    assert refused.returncode == 1
    assert refused.stderr.startswith("partita: ") and refused.stderr.count("\n") == 1
    assert "password" not in refused.stderr
    assert filled.files() == before
    assert {path: path.stat().st_mtime_ns for path in filled.data.rglob("*")} == times


def test_the_key_comes_from_the_environment_or_a_command_too(
    filled: Vault, start: Callable[..., Server]
) -> None:
    text = filled.key.read_text().strip()
    for number, given in enumerate((f"command:cat {filled.key}", "env:THE_KEY")):
        vault = filled.copy(f"source{number}")
        environment = {**processes.ENVIRONMENT, "THE_KEY": text}
        server = start(
            *("serve", "--port", "0", "--data", vault.data, "--encryption-key", given),
            env=environment,
        )
        assert server.client().scan(TableName=NAME)["Count"] == 30


def test_plain_data_is_not_taken_for_encrypted(
    tmp_path: Path, start: Callable[..., Server]
) -> None:
    vault = Vault(tmp_path)
    start("serve", "--port", "0", "--data", vault.data).terminate()
    vault.data.chmod(0o700)
    refused = run("serve", "--port", "0", *vault.options)
    assert refused.returncode == 1 and "not encrypted" in refused.stderr
    assert not (vault.data / "keyring").exists()


def test_a_folder_that_others_can_look_into_is_refused(filled: Vault) -> None:
    vault = filled.copy("open")
    vault.data.chmod(0o755)
    refused = run("serve", "--port", "0", *vault.options)
    assert refused.returncode == 1 and "chmod 700" in refused.stderr


def test_a_key_in_the_data_folder_is_refused(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.data.mkdir(mode=0o700)
    vault.key = Path(shutil.copy(vault.key, vault.data / "key"))
    refused = run("serve", "--port", "0", *vault.options)
    assert refused.returncode == 1 and "does not protect the data" in refused.stderr


def item_keys(stored: dict[bytes, bytes]) -> list[bytes]:
    return [key for key in stored if key[0] == 0x10]


def test_a_flipped_byte_is_found_and_named(filled: Vault, start: Callable[..., Server]) -> None:
    vault = filled.copy("flipped")
    stored = vault.stored()
    for key in (item_keys(stored)[5], next(key for key in stored if key[0] == 0x12)):
        damaged = bytearray(stored[key])
        damaged[HEADER_BYTES + 3] ^= 1
        vault.change({key: bytes(damaged)})
        found = run("check", vault.data, "--encryption-key", f"file:{vault.key}")
        assert found.returncode == 1
        assert f"storage key {key.hex()}, was changed or moved" in found.stdout
    server = vault.serve(start)
    with pytest.raises(ClientError) as caught:
        server.client().scan(TableName=NAME)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    # The others are still there.
    whole = sum(_is_there(server.client(), number) for number in range(30))
    assert whole == 29
    assert f"an item of table {NAME}" in server.terminate()[1]


def _is_there(client: Any, number: int) -> bool:
    key = {name: item(number)[name] for name in ("pk", "sk")}
    try:
        return "Item" in client.get_item(TableName=NAME, Key=key)
    except ClientError:
        return False


def test_two_values_that_changed_places_are_found(filled: Vault) -> None:
    vault = filled.copy("swapped")
    stored = vault.stored()
    one, other = item_keys(stored)[3:5]
    vault.change({one: stored[other], other: stored[one]})
    found = vault.check()
    for key in (one, other):
        assert f"storage key {key.hex()}, was changed or moved" in found


def test_a_value_of_another_table_is_found(filled: Vault, start: Callable[..., Server]) -> None:
    vault = filled.copy("tables")
    server = vault.serve(start)
    server.client().create_table(TableName="Other", **SORTED)
    server.client().put_item(TableName="Other", Item=item(1))
    server.terminate()
    stored = vault.stored()
    numbers = sorted({key[1:5] for key in item_keys(stored)})
    one, other = (
        next(key for key in item_keys(stored) if key[1:5] == number) for number in numbers
    )
    vault.change({one: stored[other]})
    assert f"storage key {one.hex()}, was changed or moved" in vault.check()


def nonces(stored: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Returns the stored values by owner and nonce."""
    return {
        (key[1:5] if key[0] in NUMBERED else b"folder") + value[:HEADER_BYTES]: value
        for key, value in stored.items()
        if key != b"\x00format"
    }


def test_an_old_copy_that_is_written_on_repeats_no_nonce(
    filled: Vault, start: Callable[..., Server]
) -> None:
    copies = [filled.copy("one"), filled.copy("two")]
    written = []
    for number, vault in enumerate(copies):
        server = vault.serve(start)
        for place in range(20):
            server.client().put_item(TableName=NAME, Item=item(place, f"copy {number} {place}"))
        server.kill()
        written.append(nonces(vault.stored()))
    assert len(written[0]) > 60
    for nonce in written[0].keys() & written[1].keys():
        # What both have is what neither wrote.
        assert written[0][nonce] == written[1][nonce]
    epochs = [{nonce[:-6] for nonce in one} for one in written]
    assert epochs[0] - epochs[1] and epochs[1] - epochs[0]


def test_no_nonce_is_used_twice_in_a_folder(filled: Vault) -> None:
    stored = filled.copy("nonces").stored()
    assert len(nonces(stored)) == len(stored) - 1


def settled(vault: Vault, generation: int) -> None:
    rotated_to(vault, generation)
    deadline = time.monotonic() + SECONDS_MAX
    while vault.keyring().is_rotating:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    shown = vault.show()
    assert f"generation {generation}" in shown and "none under way" in shown


def rotated_to(vault: Vault, generation: int) -> None:
    """Waits until a server uses a new key. Older values may still be under the old one."""
    deadline = time.monotonic() + SECONDS_MAX
    while vault.keyring().generation != generation:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_keys_rotate_while_the_server_runs(filled: Vault, start: Callable[..., Server]) -> None:
    vault = filled.copy("rotated")
    vault.key = Path(shutil.copy(vault.key, vault.data.parent / "rotated-key"))
    before = vault.stored()
    server = vault.serve(start)
    client = server.client()
    old = vault.key.read_text()
    vault.key.write_text(new_key() + old)
    settled(vault, 2)
    assert client.scan(TableName=NAME)["Count"] == 30
    client.put_item(TableName=NAME, Item=item(30))
    server.kill()
    after = vault.stored()
    kept = [key for key in before if before[key] == after.get(key)]
    assert kept == [b"\x00format"]
    # The old key is of no use any more, and is not needed.
    new = vault.key.read_text().split()[0]
    vault.key.write_text(old)
    assert run("serve", "--port", "0", *vault.options).returncode == 1
    vault.key.write_text(new)
    assert vault.serve(start).client().scan(TableName=NAME)["Count"] == 31


def test_a_kill_in_the_middle_of_a_rotation_loses_nothing(
    filled: Vault, start: Callable[..., Server]
) -> None:
    vault = filled.copy("killed")
    vault.key = Path(shutil.copy(vault.key, vault.data.parent / "killed-key"))
    server = vault.serve(start)
    client = server.client()
    for number in range(0, 1500, 25):
        puts = [{"PutRequest": {"Item": item(number + more)}} for more in range(25)]
        client.batch_write_item(RequestItems={NAME: puts})
    states = set()
    for generation in range(2, 4):
        vault.key.write_text(run("keys", "new").stdout + vault.key.read_text())
        rotated_to(vault, generation)
        server.kill()
        states.add("under way" in vault.show())
        assert vault.check().endswith("no findings.\n")
        server = vault.serve(start)
        client = server.client()
        assert client.get_item(TableName=NAME, Key={name: item(77)[name] for name in ("pk", "sk")})[
            "Item"
        ] == item(77)
    settled(vault, 3)
    assert True in states
    server.terminate()
    checked = vault.check()
    assert "1500 items" in checked and checked.endswith("no findings.\n")
    vault.key.write_text(vault.key.read_text().split()[0])
    assert vault.check().endswith("no findings.\n")


def test_deleting_a_table_destroys_its_key(filled: Vault, start: Callable[..., Server]) -> None:
    vault = filled.copy("deleted")
    source = KeySource(f"file:{vault.key}")
    stored = vault.stored()
    key = item_keys(stored)[0]
    number = int.from_bytes(key[1:5], "big")
    assert ValueCipher(keyring_of(vault.data, source)).open(key, stored[key])
    server = vault.serve(start)
    server.client().delete_table(TableName=NAME)
    deadline = time.monotonic() + SECONDS_MAX
    while number in keyring_of(vault.data, source).numbers:
        assert time.monotonic() < deadline
    # Of what the disk still has, nothing can be read with the server's key.
    assert ValueCipher(keyring_of(vault.data, source)).open(key, stored[key]) is None
    server.kill()
    assert vault.check().endswith("no findings.\n")
    server = vault.serve(start)
    server.client().create_table(TableName=NAME, **SORTED)
    server.client().put_item(TableName=NAME, Item=item(1))
    assert server.client().scan(TableName=NAME)["Count"] == 1
    server.terminate()
    assert vault.check().endswith("no findings.\n")


def test_what_is_described_is_true(
    filled: Vault, start: Callable[..., Server], tmp_path: Path
) -> None:
    definition = {**SORTED, "SSESpecification": {"Enabled": True}}
    client = filled.copy("described").serve(start).client()
    described = client.create_table(TableName="Asked", **definition)["TableDescription"]
    own = described["SSEDescription"]
    assert own["Status"] == "ENABLED" and own["SSEType"] == "KMS"
    with pytest.raises(ClientError) as caught:
        sse = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "another"}
        client.create_table(TableName="Another", **{**SORTED, "SSESpecification": sse})
    assert "KMS validation error" in caught.value.response["Error"]["Message"]
    sse["KMSMasterKeyId"] = own["KMSMasterKeyArn"]
    client.create_table(TableName="Own", **{**SORTED, "SSESpecification": sse})
    plain = start("serve", "--port", "0", "--data", tmp_path / "plain").client()
    described = plain.create_table(TableName="Asked", **definition)["TableDescription"]
    assert described["SSEDescription"] == {"Status": "DISABLED"}
    arn = plain.create_backup(TableName="Asked", BackupName="one")["BackupDetails"]["BackupArn"]
    backup = plain.describe_backup(BackupArn=arn)["BackupDescription"]
    assert backup["SourceTableFeatureDetails"]["SSEDescription"] == {"Status": "DISABLED"}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    vault = Vault(tmp_path)
    vault.key.chmod(mode)
    done = run("serve", "--port", "0", *vault.options)
    assert done.returncode == 1
    assert f"can be read by other users: run chmod 600 {vault.key}." in done.stderr
    assert not vault.data.exists()
    vault.key.chmod(0o400)
    assert run("keys", "show", *vault.options).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_key_that_another_user_mounts_is_taken(tmp_path: Path) -> None:
    """Docker and Kubernetes mount secrets like this: owned by root, mode 0444, for another user."""
    vault = Vault(tmp_path)
    vault.key.chmod(0o444)
    os.chown(vault.key, 12345, 12345)
    assert run("keys", "show", *vault.options).returncode == 0


def test_secrets_of_users_are_sealed(tmp_path: Path, start: Callable[..., Server]) -> None:
    vault = Vault(tmp_path)
    policy = ("--policy", "AdministratorAccess")
    added = run("users", "add", "ops", *policy, *vault.options)
    assert "encrypted" in added.stderr and "not encrypted" not in added.stderr
    words = dict(line.split("=", 1) for line in added.stdout.splitlines())
    kept = (vault.data / "access.json").read_text()
    assert words["AWS_SECRET_ACCESS_KEY"] not in kept
    assert sorted(json.loads(kept)) == ["change", "sealed"] and "ops" not in kept
    server = vault.serve(start, "--auth")
    client = boto3.client(
        "dynamodb",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id=words["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=words["AWS_SECRET_ACCESS_KEY"],
    )
    assert client.list_tables()["TableNames"] == []
    refused = run("users", "rotate", "ops", "--data", vault.data)
    assert refused.returncode == 1 and "--encryption-key" in refused.stderr
    assert run("users", "rotate", "ops", *vault.options).returncode == 0
    assert client.list_tables()["TableNames"] == []


def test_secrets_from_before_are_sealed_when_the_server_starts(
    tmp_path: Path, start: Callable[..., Server]
) -> None:
    vault = Vault(tmp_path)
    added = run("users", "add", "ops", "--data", vault.data).stdout
    secret = added.splitlines()[1].partition("=")[2]
    path = vault.data / "access.json"
    assert secret in path.read_text()
    vault.data.chmod(0o700)
    vault.serve(start, "--auth")
    assert secret not in path.read_text()


def test_backups_and_recovery_are_sealed_and_restore_after_a_kill(
    filled: Vault, start: Callable[..., Server]
) -> None:
    vault = filled.copy("backups")
    server = vault.serve(start)
    client = server.client()
    count = client.scan(TableName=NAME)["Count"]
    recovery = {"PointInTimeRecoveryEnabled": True}
    client.update_continuous_backups(TableName=NAME, PointInTimeRecoverySpecification=recovery)
    arn = client.create_backup(TableName=NAME, BackupName="sealed")["BackupDetails"]["BackupArn"]
    _wait_for_backups(client, "USER")
    client.delete_item(TableName=NAME, Key={name: item(1)[name] for name in ("pk", "sk")})
    server.kill()
    server = vault.serve(start)
    client = server.client()
    client.restore_table_from_backup(TargetTableName="FromBackup", BackupArn=arn)
    client.restore_table_to_point_in_time(
        SourceTableName=NAME, TargetTableName="Latest", UseLatestRestorableTime=True
    )
    # The key of a deleted table goes when its last backup is taken, not before.
    client.delete_table(TableName=NAME)
    (last,) = _wait_for_backups(client, "SYSTEM")
    client.restore_table_from_backup(TargetTableName="FromSystem", BackupArn=last["BackupArn"])
    for name, expected in (("FromBackup", count), ("Latest", count - 1), ("FromSystem", count - 1)):
        client.get_waiter("table_exists").wait(
            TableName=name, WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000}
        )
        assert client.scan(TableName=name)["Count"] == expected
        key = {part: item(2)[part] for part in ("pk", "sk")}
        assert client.get_item(TableName=name, Key=key)["Item"] == item(2)
    server.terminate()
    assert vault.check().endswith("no findings.\n")
    archived = {name: content for name, content in vault.files().items() if "recovery" in name}
    assert archived
    assert not [
        name for name, content in archived.items() if any(one in content for one in SECRETS)
    ]
    name = next(name for name in archived if "chunks" in name)
    (vault.data / name).write_bytes(archived[name][:-1] + bytes([archived[name][-1] ^ 1]))
    assert not vault.check().endswith("no findings.\n")


def _wait_for_backups(client: Any, kind: str) -> list[Any]:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        found: list[Any] = client.list_backups(BackupType=kind)["BackupSummaries"]
        if found and all(one["BackupStatus"] == "AVAILABLE" for one in found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"no {kind} backup is available")


def test_a_command_is_run_again_when_the_server_is_told_to(
    filled: Vault, start: Callable[..., Server]
) -> None:
    vault = filled.copy("command")
    vault.key = Path(shutil.copy(vault.key, vault.data.parent / "command-key"))
    server = start(
        *("serve", "--port", "0", "--data", vault.data),
        *("--encryption-key", f"command:cat {vault.key}"),
    )
    vault.key.write_text(new_key() + vault.key.read_text())
    server.process.send_signal(signal.SIGHUP)
    settled(vault, 2)
    assert server.client().scan(TableName=NAME)["Count"] == 30
    vault.key.write_text("nothing that is a key")
    server.process.send_signal(signal.SIGHUP)
    assert server.client().scan(TableName=NAME)["Count"] == 30


# From plain to encrypted


def test_a_plain_folder_becomes_an_encrypted_one(
    tmp_path: Path, start: Callable[..., Server]
) -> None:
    vault, plain = Vault(tmp_path), tmp_path / "plain"
    added = run("users", "add", "ops", "--policy", "AdministratorAccess", "--data", plain)
    words = dict(line.split("=", 1) for line in added.stdout.splitlines())
    start("serve", "--port", "0", "--data", plain, "--auth").terminate()
    server = start("serve", "--port", "0", "--data", plain)
    client = server.client()
    client.create_table(TableName=NAME, **SORTED)
    client.update_time_to_live(
        TableName=NAME, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    later = {"ttl": {"N": str(int(time.time()) + 86_400)}}
    items = [{**item(number), **later} for number in range(30)]
    for one in items:
        client.put_item(TableName=NAME, Item=one)
    client.create_table(TableName="Gone", **SORTED)
    client.put_item(TableName="Gone", Item=item(1))
    client.delete_table(TableName="Gone")
    arn = client.describe_table(TableName=NAME)["Table"]["LatestStreamArn"]
    server.terminate()
    before = {path: path.stat().st_mtime_ns for path in plain.rglob("*")}
    key = ("--encryption-key", f"file:{vault.key}")
    said = run("keys", "encrypt", plain, vault.data, *key)
    assert said.returncode == 0 and "1 tables, 30 items encrypted" in said.stdout, said.stderr
    assert {path: path.stat().st_mtime_ns for path in plain.rglob("*")} == before
    assert not [
        name for name, content in vault.files().items() if any(one in content for one in SECRETS)
    ]
    assert sorted(json.loads((vault.data / "access.json").read_text())) == ["change", "sealed"]
    assert words["AWS_ACCESS_KEY_ID"] in run("users", "list", *vault.options).stdout
    assert run("audit", "verify", *vault.options).returncode == 0
    assert vault.check().endswith("no findings.\n")
    again = run("keys", "encrypt", plain, vault.data, *key)
    assert again.returncode == 1 and "choose a new folder" in again.stderr

    server = vault.serve(start)
    client = server.client()
    assert sorted(one["sk"]["S"] for one in client.scan(TableName=NAME)["Items"]) == [
        one["sk"]["S"] for one in items
    ]
    for one in (items[0], items[7]):
        names = {name: one[name] for name in ("pk", "sk")}
        assert client.get_item(TableName=NAME, Key=names)["Item"] == one
    asked = {"ExpressionAttributeValues": {":g": {"S": "genre7"}}}
    found = client.query(
        TableName=NAME, IndexName="global", KeyConditionExpression="genre = :g", **asked
    )
    assert found["Items"] == [items[7]]
    described = client.describe_table(TableName=NAME)["Table"]
    client.put_item(TableName=NAME, Item=item(30))
    # What was in the stream is still there; a new one goes on.
    assert described["LatestStreamArn"] != arn and changes_in(server, arn) == 30
    assert changes_in(server, described["LatestStreamArn"]) == 1


KILLED = """
import os, signal, sys
from importlib import import_module
from partita.cli import main
def kill(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)
module, name = sys.argv.pop(1).split(":")
setattr(import_module(module), name, kill)
main()
"""


@pytest.mark.parametrize(
    "step",
    [
        "partita.database.at_rest.folder_encryption:check",
        "partita.server.security.administration.keys_command:begin_sealing",
        "partita.server.security.administration.keys_command:seal_head",
    ],
)
def test_a_copy_that_is_killed_before_its_end_is_not_served(
    tmp_path: Path, start: Callable[..., Server], step: str
) -> None:
    """While it was being checked, and while its users were being copied."""
    vault, plain = Vault(tmp_path), tmp_path / "plain"
    run("users", "add", "ops", "--policy", "AdministratorAccess", "--data", plain)
    server = start("serve", "--port", "0", "--data", plain)
    server.client().create_table(TableName=NAME, **SORTED)
    server.client().put_item(TableName=NAME, Item=item(1))
    server.terminate()
    command = (sys.executable, "-c", KILLED, step)
    key = ("--encryption-key", f"file:{vault.key}")
    killed = run("keys", "encrypt", plain, vault.data, *key, command=command)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    # A server refuses it for the same reason.
    refused = run("check", vault.data, *key)
    assert refused.returncode == 2 and "not finished" in refused.stderr


def changes_in(server: Server, arn: str) -> int:
    streams = server.client("dynamodbstreams")
    count = 0
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        count += len(streams.get_records(ShardIterator=iterator)["Records"])
    return count


# Exports


def test_exports_to_a_folder_are_sealed_and_can_be_imported_and_opened(
    tmp_path: Path, start: Callable[..., Server]
) -> None:
    vault, bucket = Vault(tmp_path), tmp_path / "bucket"
    bucket.mkdir()
    settings = tmp_path / "partita.toml"
    settings.write_text(f'[[buckets]]\nname = "exports"\nfolder = "{bucket}"\n')
    server = vault.serve(start, "--config", settings)
    client = server.client()
    client.create_table(TableName=NAME, **SORTED)
    recovery = {"PointInTimeRecoveryEnabled": True}
    client.update_continuous_backups(TableName=NAME, PointInTimeRecoverySpecification=recovery)
    for number in range(3):
        client.put_item(TableName=NAME, Item=item(number))
    wait(lambda: {"is": "there" if is_restorable(client) else "IN_PROGRESS"}, "is")
    table_arn = client.describe_table(TableName=NAME)["Table"]["TableArn"]
    exported = client.export_table_to_point_in_time(TableArn=table_arn, S3Bucket="exports")
    arn = exported["ExportDescription"]["ExportArn"]
    wait(lambda: client.describe_export(ExportArn=arn)["ExportDescription"], "ExportStatus")
    files = [path for path in bucket.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        assert content.startswith(b"partita sealed 1\n")
        assert NAME.encode() not in content and b"wordsinside" not in content

    opened = run(
        *("keys", "decrypt", bucket, tmp_path / "opened"),
        *("--encryption-key", f"file:{vault.key}"),
    )
    assert opened.returncode == 0, opened.stderr
    (data,) = (tmp_path / "opened").rglob("*.json.gz")
    assert b"wordsinside" in gzip.decompress(data.read_bytes())

    sealed = next(bucket.rglob("*.json.gz"))
    prefix = sealed.parent.relative_to(bucket).as_posix()
    assert imported(client, "Again", prefix) == ("COMPLETED", 3)
    content = sealed.read_bytes()
    sealed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert imported(client, "Damaged", prefix)[0] == "FAILED"


def imported(client: Any, name: str, prefix: str) -> tuple[str, int]:
    asked = client.import_table(
        S3BucketSource={"S3Bucket": "exports", "S3KeyPrefix": f"{prefix}/"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters={
            "TableName": name,
            "KeySchema": SORTED["KeySchema"],
            "AttributeDefinitions": SORTED["AttributeDefinitions"][:2],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    arn = asked["ImportTableDescription"]["ImportArn"]
    done = wait(lambda: client.describe_import(ImportArn=arn)["ImportTableDescription"])
    return done["ImportStatus"], done.get("ImportedItemCount", 0)


def is_restorable(client: Any) -> bool:
    described = client.describe_continuous_backups(TableName=NAME)["ContinuousBackupsDescription"]
    return "EarliestRestorableDateTime" in described["PointInTimeRecoveryDescription"]


def wait(described: Callable[[], Any], status: str = "ImportStatus") -> Any:
    deadline = time.monotonic() + SECONDS_MAX
    while (found := described())[status] == "IN_PROGRESS":
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found
