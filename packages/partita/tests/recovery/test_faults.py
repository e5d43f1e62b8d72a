"""Kills, full disks, bad files and buckets: an operation succeeds, is FAILED, or leaves nothing."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes

from .test_kill import ON, create, items_of, put_many, restorable, until

DISK_BYTES = 6 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a filesystem")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no filesystem can be mounted here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def settings(tmp_path: Path, **buckets: Path) -> Path:
    path = tmp_path / "partita.toml"
    path.write_text(
        "".join(f'[[buckets]]\nname = "{name}"\nfolder = "{at}"\n' for name, at in buckets.items())
    )
    return path


def schema(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_g",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


def start_import(client: Any, name: str, bucket: str, prefix: str, **more: Any) -> str:
    answer = client.import_table(
        S3BucketSource={"S3Bucket": bucket, "S3KeyPrefix": prefix},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters=schema(name),
        **more,
    )
    return str(answer["ImportTableDescription"]["ImportArn"])


def import_of(client: Any, arn: str) -> dict[str, Any]:
    def described() -> dict[str, Any]:
        answer = client.describe_import(ImportArn=arn)
        found: dict[str, Any] = answer["ImportTableDescription"]
        return found

    until(lambda: described()["ImportStatus"] != "IN_PROGRESS")
    return described()


def export_of(client: Any, arn: str) -> dict[str, Any]:
    def described() -> dict[str, Any]:
        found: dict[str, Any] = client.describe_export(ExportArn=arn)["ExportDescription"]
        return found

    until(lambda: described()["ExportStatus"] != "IN_PROGRESS")
    return described()


def start_export(client: Any, name: str, bucket: str) -> str:
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    answer = client.export_table_to_point_in_time(TableArn=arn, S3Bucket=bucket)
    return str(answer["ExportDescription"]["ExportArn"])


def with_recovery(client: Any, name: str, count: int) -> dict[str, Any]:
    create(client, name)
    client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=ON)
    put_many(client, name, range(count))
    until(lambda: restorable(client, name))
    return items_of(client, name)


@pytest.mark.soak
def test_exports_and_imports_that_are_killed_are_whole_after_the_restart(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    config = settings(tmp_path, files=tmp_path / "bucket")
    options = ("--port", "0", "--data", str(tmp_path / "data"), "--config", str(config))
    with processes.starting() as start:
        server = start("serve", *options)
        client = server.client()
        before = with_recovery(client, "source", 3000)
        arn = start_export(client, "source", "files")
        for pause in (0.0, 0.04):
            time.sleep(pause)
            server.kill()
            server = start("serve", *options)
        client = server.client()
        export = export_of(client, arn)
        assert (export["ExportStatus"], export["ItemCount"]) == ("COMPLETED", 3000)
        manifest = tmp_path / "bucket" / export["ExportManifest"]
        files = (manifest.parent / "manifest-files.json").read_text().splitlines()
        found = {}
        for line in files:
            content = gzip.decompress(
                (tmp_path / "bucket" / json.loads(line)["dataFileS3Key"]).read_bytes()
            )
            for one in content.splitlines():
                item = json.loads(one)["Item"]
                found[item["pk"]["S"]] = item
        assert found == before
        prefix = str(Path(json.loads(files[0])["dataFileS3Key"]).parent)
        arn = start_import(client, "again", "files", prefix, InputCompressionType="GZIP")
        for pause in (0.0, 0.05, 0.15):
            time.sleep(pause)
            server.kill()
            server = start("serve", *options)
        client = server.client()
        done = import_of(client, arn)
        assert done["ImportStatus"] == "COMPLETED"
        until(lambda: client.describe_table(TableName="again")["Table"]["TableStatus"] == "ACTIVE")
        assert items_of(client, "again") == before
        assert items_of(client, "again", IndexName="by_g") == before
        described = client.describe_table(TableName="again")["Table"]
        assert described["ItemCount"] == 3000
        assert described["GlobalSecondaryIndexes"][0]["ItemCount"] == 3000
        server.terminate()
    assert processes.run("check", tmp_path / "data").returncode == 0


@pytest.mark.soak
def test_a_backup_that_is_killed_is_absent_and_the_next_one_is_whole(tmp_path: Path) -> None:
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", str(tmp_path / "data"))
        client = server.client()
        create(client, "large")
        put_many(client, "large", range(2000))
        before = items_of(client, "large")
        command = [*processes.COMMAND, "backup", str(tmp_path / "place"), "--endpoint", server.url]
        for pause in (0.5, 0.8, 1.0):
            process = subprocess.Popen(
                command,
                env=processes.ENVIRONMENT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(pause)
            process.kill()
            process.wait()
            if (tmp_path / "place" / "backups").is_dir():
                assert processes.run("check", tmp_path / "place").returncode == 0
        done = processes.run(*command[len(processes.COMMAND) :])
        assert done.returncode == 0, done.stderr
        server.terminate()
        restored = processes.run("restore", tmp_path / "place", "--data", tmp_path / "new")
        assert restored.returncode == 0, restored.stderr
        again = start("serve", "--port", "0", "--data", str(tmp_path / "new"))
        assert items_of(again.client(), "large") == before


def test_what_is_wrong_with_files_and_buckets_is_said_and_nothing_is_left(
    tmp_path: Path, small_disk: Path
) -> None:
    good, gone = tmp_path / "good", tmp_path / "gone"
    for folder in (good, gone):
        folder.mkdir()
    config = settings(tmp_path, good=good, gone=gone, full=small_disk)
    line = json.dumps({"Item": {"pk": {"S": "a"}}}).encode() + b"\n"
    (good / "torn.json.gz").write_bytes(gzip.compress(os.urandom(90_000).hex().encode())[:-200])
    (good / "zip").write_bytes(b"PK not gzip at all")
    (good / "mixed.json").write_bytes(line + b"\xff\xfe\n" + b'{"Item": 3}\n' + b"[]\n" + line)
    (small_disk / "ballast").write_bytes(bytes(DISK_BYTES - (300 << 10)))
    with processes.starting() as start:
        options = ("--port", "0", "--data", str(tmp_path / "data"), "--config", str(config))
        server = start("serve", *options)
        client = server.client()
        before = with_recovery(client, "source", 3000)
        for name in ("torn.json.gz", "zip"):
            arn = start_import(client, "bad", "good", name, InputCompressionType="GZIP")
            done = import_of(client, arn)
            assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
            assert (done["ErrorCount"], done["ImportedItemCount"]) == (1, 0)
            assert items_of(client, "bad") == {}
            client.delete_table(TableName="bad")
        done = import_of(client, start_import(client, "mixed", "good", "mixed"))
        assert (done["ProcessedItemCount"], done["ErrorCount"]) == (5, 3)
        assert items_of(client, "mixed").keys() == {"a"}
        shutil.rmtree(gone)
        done = import_of(client, start_import(client, "none", "gone", ""))
        assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
        export = export_of(client, start_export(client, "source", "gone"))
        assert (export["ExportStatus"], export["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
        big = {"pk": {"S": "big"}, "v": {"S": os.urandom(190_000).hex()}}
        for number in range(4):
            client.put_item(TableName="source", Item={**big, "pk": {"S": f"big{number}"}})
        export = export_of(client, start_export(client, "source", "full"))
        assert export["ExportStatus"] == "FAILED"
        assert "No space left" in export["FailureMessage"]
        assert not list(small_disk.rglob("manifest-summary.json"))
        done_ = processes.run("backup", small_disk / "place", "--endpoint", server.url)
        assert done_.returncode == 1
        assert "No space left" in done_.stderr and "Traceback" not in done_.stderr
        assert not list(small_disk.rglob("backups/*"))
        assert items_of(client, "source").keys() > before.keys()
        assert server.terminate()[0] == 0
    assert processes.run("check", tmp_path / "data").returncode == 0


def test_a_full_disk_under_the_archive_loses_nothing(tmp_path: Path, small_disk: Path) -> None:
    data = small_disk / "data"
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", str(data))
        client = server.client()
        before = with_recovery(client, "source", 400)
        free = shutil.disk_usage(small_disk).free
        (small_disk / "ballast").write_bytes(bytes(max(free - (40 << 10), 0)))
        arn = client.create_backup(TableName="source", BackupName="kept")["BackupDetails"][
            "BackupArn"
        ]
        time.sleep(0.5)
        assert items_of(client, "source") == before
        (small_disk / "ballast").unlink()

        def status() -> str:
            answer = client.describe_backup(BackupArn=arn)["BackupDescription"]
            return str(answer["BackupDetails"]["BackupStatus"])

        until(lambda: status() == "AVAILABLE")
        client.restore_table_from_backup(TargetTableName="again", BackupArn=arn)
        until(lambda: client.describe_table(TableName="again")["Table"]["TableStatus"] == "ACTIVE")
        assert items_of(client, "again") == before
        server.terminate()
    assert processes.run("check", data).returncode == 0


def test_a_fifty_first_restore_or_import_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    lines = [json.dumps({"Item": {"pk": {"S": f"k{n}"}}}) for n in range(20_000)]
    (tmp_path / "bucket" / "many.json").write_text("\n".join(lines))
    config = settings(tmp_path, files=tmp_path / "bucket")
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", "--config", str(config))
        client = server.client()
        assert import_of(client, start_import(client, "source", "files", "many"))[
            "ImportedItemCount"
        ]
        until(lambda: client.describe_table(TableName="source")["Table"]["TableStatus"] == "ACTIVE")
        client.update_continuous_backups(TableName="source", PointInTimeRecoverySpecification=ON)
        until(lambda: restorable(client, "source"))
        said = "Only 50 restore operations can be done simultaneously"
        with pytest.raises(client.exceptions.LimitExceededException, match=said):
            for number in range(51):
                client.restore_table_to_point_in_time(
                    SourceTableName="source",
                    TargetTableName=f"restored{number}",
                    UseLatestRestorableTime=True,
                )
        with pytest.raises(client.exceptions.LimitExceededException, match="50 imports"):
            for number in range(51):
                start_import(client, f"imported{number}", "files", "many")
        server.kill()
