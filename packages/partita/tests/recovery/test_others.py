"""Other programs and recovery: DuckDB reads exports, exports go to another S3, the AWS CLI, a state
machine that takes a backup."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.requirements import needs_services
from testkit.servers import processes

from .test_faults import (
    export_of,
    import_of,
    schema,
    settings,
    start_export,
    start_import,
    with_recovery,
)
from .test_kill import is_active, items_of, until

PACKAGES = ("duckdb", "moto[server]")
VIRTUALENV = "PARTITA_TOOLS_VENV"
"""The environment variable with a virtualenv that has the packages; otherwise one is created."""
ANYBODY = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of a virtualenv."""
    if given := os.environ.get(VIRTUALENV):
        return Path(given) / "bin"
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", *PACKAGES]
    if subprocess.run(pip, check=False).returncode:
        pytest.skip("DuckDB and moto cannot be installed here")
    return folder / "bin"


def duckdb(tools: Path, query: str) -> Any:
    script = f"import duckdb, json; print(json.dumps(duckdb.sql({query!r}).fetchall()))"
    done = subprocess.run(
        [tools / "python", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def s3(tools: Path) -> Iterator[str]:
    command = [str(tools / "moto_server"), "-p", "0", "-H", "127.0.0.1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(one for one in process.stderr if "Running on" in one)
            yield line.rpartition(" ")[2].strip()
        finally:
            process.kill()


@pytest.mark.soak
def test_duckdb_reads_what_is_exported(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    config = settings(tmp_path, files=tmp_path / "bucket")
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", "--config", str(config))
        client = server.client()
        before = with_recovery(client, "source", 1000)
        export = export_of(client, start_export(client, "source", "files"))
        data = tmp_path / "bucket" / Path(export["ExportManifest"]).parent / "data"
        (row,) = duckdb(
            tools,
            f"SELECT count(*), count(DISTINCT Item.pk.S), min(length(Item.v.S)) "
            f"FROM read_json('{data}/*.json.gz', format='newline_delimited')",
        )
        assert row == [len(before), len(before), 200]
        for name in ("items.parquet", "items.csv"):
            path = tmp_path / name
            done = processes.run("export", "source", path, "--endpoint", server.url)
            assert done.returncode == 0, done.stderr
            (row,) = duckdb(tools, f"SELECT count(DISTINCT pk), min(g) FROM '{path}'")
            assert row == [len(before), "g0"]


@pytest.mark.soak
def test_an_s3_endpoint_takes_exports_imports_and_backups(s3: str, tmp_path: Path) -> None:
    import boto3

    store = boto3.client(
        "s3",
        endpoint_url=s3,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    store.create_bucket(Bucket="there")
    environment = {**processes.ENVIRONMENT, **ANYBODY, "AWS_ENDPOINT_URL_S3": s3}
    with processes.starting() as start:
        folder = tmp_path / "data"
        server = start("serve", "--port", "0", "--data", str(folder), env=environment)
        client = server.client()
        before = with_recovery(client, "source", 1500)
        export = export_of(client, start_export(client, "source", "there"))
        assert export["ExportStatus"] == "COMPLETED", export
        prefix = str(Path(export["ExportManifest"]).parent / "data")
        arn = start_import(client, "again", "there", prefix, InputCompressionType="GZIP")
        assert import_of(client, arn)["ImportedItemCount"] == 1500
        until(lambda: client.describe_table(TableName="again")["Table"]["TableStatus"] == "ACTIVE")
        assert items_of(client, "again") == before
        failed = export_of(client, start_export(client, "source", "not-there"))
        assert (failed["ExportStatus"], failed["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
        for _ in range(2):
            done = processes.run(
                *("backup", "s3://there/copies", "--keep", "1", "--endpoint", server.url),
                env=environment,
            )
            assert done.returncode == 0, done.stderr
        server.terminate()
        listed = processes.run("restore", "s3://there/copies", "--list", env=environment)
        assert len(listed.stdout.split()) == 1
        done = processes.run(
            "restore", "s3://there/copies", "--data", tmp_path / "new", env=environment
        )
        assert done.returncode == 0, done.stderr
        again = start("serve", "--port", "0", "--data", str(tmp_path / "new"))
        assert items_of(again.client(), "source") == before


def aws(url: str, *arguments: str) -> Any:
    environment = {
        **processes.ENVIRONMENT,
        **ANYBODY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "AWS_PAGER": "",
    }
    command = [str(Path(sys.executable).with_name("aws")), "dynamodb", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.mark.soak
@pytest.mark.skipif(
    not Path(sys.executable).with_name("aws").exists(), reason="there is no AWS CLI here"
)
def test_the_aws_cli_works_with_all_operations_that_it_knows(tmp_path: Path) -> None:
    (tmp_path / "bucket" / "in").mkdir(parents=True)
    (tmp_path / "bucket" / "in" / "a.json").write_text('{"Item": {"pk": {"S": "one"}}}\n')
    config = settings(tmp_path, files=tmp_path / "bucket")
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", "--config", str(config))
        client = server.client()
        asked: set[str] = set()

        def cli(command: str, *options: str) -> Any:
            asked.add(command)
            return aws(server.url, command, *options)

        before = with_recovery(client, "source", 50)
        table = client.describe_table(TableName="source")["Table"]["TableArn"]
        back_up(client, cli, before)
        recover(client, cli, before)
        started = cli("export-table-to-point-in-time", "--table-arn", table, "--s3-bucket", "files")
        export = export_of(client, started["ExportDescription"]["ExportArn"])
        assert (export["ExportStatus"], export["ItemCount"]) == ("COMPLETED", 50)
        described = cli("describe-export", "--export-arn", export["ExportArn"])
        assert described["ExportDescription"]["ExportStatus"] == "COMPLETED"
        assert len(cli("list-exports", "--table-arn", table)["ExportSummaries"]) == 1
        load(client, cli)
        if knows("start-bulk-put-items"):
            put_in_bulk(cli)
            assert len(asked) == 18
        assert len(asked) >= 14, sorted(asked)


def knows(command: str) -> bool:
    """Skips if this version of the CLI has no bulk operations."""
    program = [str(Path(sys.executable).with_name("aws")), "dynamodb", command]
    asked = subprocess.run([*program, "--generate-cli-skeleton"], capture_output=True, check=False)
    return asked.returncode == 0


def back_up(client: Any, cli: Any, before: dict[str, Any]) -> None:
    created = cli("create-backup", "--table-name", "source", "--backup-name", "first")
    arn = created["BackupDetails"]["BackupArn"]
    until(lambda: client.list_backups()["BackupSummaries"][0]["BackupStatus"] == "AVAILABLE")
    found = cli("describe-backup", "--backup-arn", arn)["BackupDescription"]
    assert found["SourceTableDetails"]["ItemCount"] == 50
    assert len(cli("list-backups", "--table-name", "source")["BackupSummaries"]) == 1
    cli("restore-table-from-backup", "--target-table-name", "again", "--backup-arn", arn)
    until(lambda: is_active(client, "again"))
    assert items_of(client, "again") == before
    deleted = cli("delete-backup", "--backup-arn", arn)["BackupDescription"]
    assert deleted["BackupDetails"]["BackupStatus"] == "DELETED"


def recover(client: Any, cli: Any, before: dict[str, Any]) -> None:
    cli(
        *("update-continuous-backups", "--table-name", "source"),
        "--point-in-time-recovery-specification",
        "PointInTimeRecoveryEnabled=true,RecoveryPeriodInDays=7",
    )
    answer = cli("describe-continuous-backups", "--table-name", "source")
    found = answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert found["RecoveryPeriodInDays"] == 7
    cli(
        *("restore-table-to-point-in-time", "--source-table-name", "source"),
        *("--target-table-name", "then", "--restore-date-time", str(time.time())),
    )
    until(lambda: is_active(client, "then"))
    assert items_of(client, "then") == before


def load(client: Any, cli: Any) -> None:
    started = cli(
        *("import-table", "--input-format", "DYNAMODB_JSON"),
        *("--s3-bucket-source", "S3Bucket=files,S3KeyPrefix=in/"),
        *("--table-creation-parameters", json.dumps(schema("imported"))),
    )
    arn = started["ImportTableDescription"]["ImportArn"]
    assert import_of(client, arn)["ImportStatus"] == "COMPLETED"
    assert items_of(client, "imported").keys() == {"one"}
    described = cli("describe-import", "--import-arn", arn)["ImportTableDescription"]
    assert described["ImportedItemCount"] == 1
    assert len(cli("list-imports")["ImportSummaryList"]) == 1


def put_in_bulk(cli: Any) -> None:
    source = "S3Bucket=files,S3KeyPrefix=in/,InputFormat=DYNAMODB_JSON"
    started = cli(
        *("start-bulk-put-items", "--table-name", "source"),
        *("--input-s3-configuration", source),
        *("--output-s3-configuration", "S3Bucket=files,OutputType=ERROR"),
    )
    arn = started["BulkOperationDescription"]["BulkOperationArn"]

    def status() -> str:
        answer = cli("describe-bulk-operation", "--bulk-operation-arn", arn)
        return str(answer["BulkOperationDescription"]["BulkOperationStatus"])

    until(lambda: status() == "COMPLETED")
    assert len(cli("list-bulk-operations")["BulkOperationsSummaryList"]) == 1
    with pytest.raises(AssertionError, match="ended already"):
        cli("cancel-bulk-operation", "--bulk-operation-arn", arn)


@needs_services
def test_a_state_machine_backs_a_table_up_before_it_changes_it(tmp_path: Path) -> None:
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory")
        client = server.client()
        before = with_recovery(client, "source", 20)
        states = server.client("stepfunctions")
        sdk = "arn:aws:states:::aws-sdk:dynamodb"
        machine = {
            "StartAt": "Back up",
            "States": {
                "Back up": {
                    "Type": "Task",
                    "Resource": f"{sdk}:createBackup",
                    "Parameters": {"TableName": "source", "BackupName": "before-the-change"},
                    "ResultPath": "$.backup",
                    "Next": "Look",
                },
                "Look": {
                    "Type": "Task",
                    "Resource": f"{sdk}:describeBackup",
                    "Parameters": {"BackupArn.$": "$.backup.BackupDetails.BackupArn"},
                    "ResultPath": "$.look",
                    "Next": "Is it there",
                },
                "Is it there": {
                    "Type": "Choice",
                    "Choices": [
                        {
                            "Variable": "$.look.BackupDescription.BackupDetails.BackupStatus",
                            "StringEquals": "AVAILABLE",
                            "Next": "Change",
                        }
                    ],
                    "Default": "Wait",
                },
                "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Look"},
                "Change": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::dynamodb:deleteItem",
                    "Parameters": {"TableName": "source", "Key": {"pk": {"S": "k1"}}},
                    "ResultPath": None,
                    "End": True,
                },
            },
        }
        made = states.create_state_machine(
            name="careful",
            definition=json.dumps(machine),
            roleArn="arn:aws:iam::123456789012:role/x",
        )
        run = states.start_execution(stateMachineArn=made["stateMachineArn"])["executionArn"]
        until(lambda: states.describe_execution(executionArn=run)["status"] != "RUNNING")
        found = states.describe_execution(executionArn=run)
        assert found["status"] == "SUCCEEDED", found
        assert items_of(client, "source").keys() == before.keys() - {"k1"}
        (backup,) = client.list_backups()["BackupSummaries"]
        client.restore_table_from_backup(TargetTableName="again", BackupArn=backup["BackupArn"])
        until(lambda: client.describe_table(TableName="again")["Table"]["TableStatus"] == "ACTIVE")
        assert items_of(client, "again") == before
