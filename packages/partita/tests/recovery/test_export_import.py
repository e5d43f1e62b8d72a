"""Exports in AWS's layout, read by other programs; imports of all formats."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from amazon.ion import simpleion
from botocore.exceptions import ClientError

from testkit.servers import processes

from .test_kill import restorable, until

SECONDS_MAX = 30
ON = {"PointInTimeRecoveryEnabled": True}
ITEMS: list[dict[str, Any]] = [
    {
        "pk": {"S": f"key {number} \u00e9\U0001f600\n"},
        "n": {"N": value},
        "b": {"B": b"\x00\xff"},
        "l": {"L": [{"NULL": True}, {"BOOL": False}, {"S": '"quoted"'}]},
        "m": {"M": {"a b": {"SS": ["x", "y"]}, "ns": {"NS": ["1", "2.5"]}}},
        "bs": {"BS": [b"a", b"b"]},
    }
    for number, value in enumerate(["1", "-0.5", "1E+30", "123456789012345678901234567890"])
]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


@pytest.fixture(scope="module")
def client(bucket: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    settings = tmp_path_factory.mktemp("settings") / "partita.toml"
    settings.write_text(f'[[buckets]]\nname = "files"\nfolder = "{bucket}"\n')
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", "--config", str(settings))
        client = server.client()
        create(client, "source")
        client.update_continuous_backups(TableName="source", PointInTimeRecoverySpecification=ON)
        for item in ITEMS:
            client.put_item(TableName="source", Item=item)
        until(lambda: restorable(client, "source"))
        yield client


def schema(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


def create(client: Any, name: str) -> None:
    client.create_table(**schema(name))


def arn_of(client: Any, name: str) -> str:
    return str(client.describe_table(TableName=name)["Table"]["TableArn"])


def exported(client: Any, name: str, **more: Any) -> dict[str, Any]:
    arn = client.export_table_to_point_in_time(
        TableArn=arn_of(client, name), S3Bucket="files", **more
    )["ExportDescription"]["ExportArn"]
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        found: dict[str, Any] = client.describe_export(ExportArn=arn)["ExportDescription"]
        if found["ExportStatus"] != "IN_PROGRESS":
            return found
        assert time.monotonic() < deadline
        time.sleep(0.02)


def imported(client: Any, name: str, prefix: str, **more: Any) -> dict[str, Any]:
    arn = client.import_table(
        S3BucketSource={"S3Bucket": "files", "S3KeyPrefix": prefix},
        TableCreationParameters=schema(name),
        **more,
    )["ImportTableDescription"]["ImportArn"]
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        found: dict[str, Any] = client.describe_import(ImportArn=arn)["ImportTableDescription"]
        if found["ImportStatus"] != "IN_PROGRESS":
            return found
        assert time.monotonic() < deadline
        time.sleep(0.02)


def items_of(client: Any, name: str) -> dict[str, Any]:
    return {item["pk"]["S"]: item for item in client.scan(TableName=name)["Items"]}


def data_files(bucket: Path, export: dict[str, Any]) -> list[Path]:
    """Reads the data files that the manifest names, and verifies their checksums."""
    folder = (bucket / export["ExportManifest"]).parent
    assert (folder / "_started").read_bytes() == b""
    for name in ("manifest-summary", "manifest-files"):
        digest = hashlib.md5((folder / f"{name}.json").read_bytes()).digest()
        assert base64.b64decode((folder / f"{name}.checksum").read_bytes()) == digest
    found = []
    for line in (folder / "manifest-files.json").read_text().splitlines():
        entry = json.loads(line)
        path = bucket / entry["dataFileS3Key"]
        digest = hashlib.md5(path.read_bytes()).digest()
        assert base64.b64decode(entry["md5Checksum"]) == digest
        found.append(path)
    return found


def test_a_full_export_is_read_back_and_imported(client: Any, bucket: Path) -> None:
    export = exported(client, "source", S3Prefix="daily")
    assert export["ExportStatus"] == "COMPLETED", export
    assert export["ItemCount"] == len(ITEMS)
    assert export["ExportManifest"].startswith("daily/AWSDynamoDB/")
    summary = json.loads((bucket / export["ExportManifest"]).read_text())
    assert summary["itemCount"] == len(ITEMS)
    assert summary["exportArn"] == export["ExportArn"]
    assert summary["outputFormat"] == "DYNAMODB_JSON"
    lines = [
        json.loads(line)["Item"]
        for path in data_files(bucket, export)
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    assert {item["pk"]["S"] for item in lines} == {item["pk"]["S"] for item in ITEMS}
    folder = str(Path(export["ExportManifest"]).parent / "data")
    done = imported(
        client, "json_copy", folder, InputFormat="DYNAMODB_JSON", InputCompressionType="GZIP"
    )
    assert done["ImportStatus"] == "COMPLETED", done
    assert (done["ImportedItemCount"], done["ErrorCount"]) == (len(ITEMS), 0)
    assert items_of(client, "json_copy") == items_of(client, "source")


def test_an_export_in_ion_is_what_amazons_reader_reads(client: Any, bucket: Path) -> None:
    export = exported(client, "source", ExportFormat="ION")
    assert export["ExportStatus"] == "COMPLETED", export
    (path,) = data_files(bucket, export)
    values = simpleion.loads(gzip.decompress(path.read_bytes()), single_value=False)
    found = {str(value["Item"]["pk"]): value["Item"] for value in values}
    assert set(found) == {item["pk"]["S"] for item in ITEMS}
    first = found[ITEMS[0]["pk"]["S"]]
    assert first["m"]["a b"].ion_annotations[0].text == "$dynamodb_SS"
    assert bytes(first["b"]) == b"\x00\xff"
    folder = str(Path(export["ExportManifest"]).parent / "data")
    done = imported(client, "ion_copy", folder, InputFormat="ION", InputCompressionType="GZIP")
    assert (done["ImportStatus"], done["ErrorCount"]) == ("COMPLETED", 0)
    assert items_of(client, "ion_copy") == items_of(client, "source")


def test_an_incremental_export_has_what_changed(client: Any, bucket: Path) -> None:
    create(client, "changing")
    client.update_continuous_backups(TableName="changing", PointInTimeRecoverySpecification=ON)
    for key in ("same", "changed", "gone"):
        client.put_item(TableName="changing", Item={"pk": {"S": key}, "v": {"N": "1"}})
    start = int(time.time()) + 1
    time.sleep(start + 0.01 - time.time())
    client.put_item(TableName="changing", Item={"pk": {"S": "changed"}, "v": {"N": "2"}})
    client.put_item(TableName="changing", Item={"pk": {"S": "new"}, "v": {"N": "3"}})
    client.put_item(TableName="changing", Item={"pk": {"S": "short"}})
    client.delete_item(TableName="changing", Key={"pk": {"S": "short"}})
    client.delete_item(TableName="changing", Key={"pk": {"S": "gone"}})
    end = int(time.time()) + 1
    time.sleep(end + 0.01 - time.time())
    client.put_item(TableName="changing", Item={"pk": {"S": "later"}})
    export = exported(
        client,
        "changing",
        ExportType="INCREMENTAL_EXPORT",
        IncrementalExportSpecification={"ExportFromTime": start, "ExportToTime": end},
    )
    assert export["ExportStatus"] == "COMPLETED", export
    (path,) = data_files(bucket, export)
    assert path.parent.as_posix().endswith("AWSDynamoDB/data")
    found = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        record = json.loads(line)
        micros = int(record["Metadata"]["WriteTimestampMicros"])
        assert start * 1_000_000 <= micros < end * 1_000_000
        images = [record.get(name, {}).get("v", {}).get("N") for name in ("OldImage", "NewImage")]
        found[record["Keys"]["pk"]["S"]] = images
    assert found == {"changed": ["1", "2"], "gone": ["1", None], "new": [None, "3"]}


def test_csv_in_zstd_is_imported_and_bad_rows_are_counted(client: Any, bucket: Path) -> None:
    folder = bucket / "csv"
    folder.mkdir()
    with (folder / "plain.csv").open("w", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerows([["pk", "a"], ["one", "x;y"], ["two", ""], ["three"], ["", "no key"]])
    packed = folder / "packed.csv"
    packed.write_bytes(zstandard.compress((folder / "plain.csv").read_bytes()))
    (folder / "plain.csv").unlink()
    done = imported(
        client,
        "from_csv",
        "csv/",
        InputFormat="CSV",
        InputFormatOptions={"Csv": {"Delimiter": ";"}},
        InputCompressionType="ZSTD",
    )
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert (done["ProcessedItemCount"], done["ImportedItemCount"], done["ErrorCount"]) == (4, 2, 2)
    assert items_of(client, "from_csv") == {
        "one": {"pk": {"S": "one"}, "a": {"S": "x;y"}},
        "two": {"pk": {"S": "two"}},
    }


def test_what_cannot_be_read_or_written_is_said(client: Any, bucket: Path) -> None:
    (bucket / "torn.json.gz").write_bytes(gzip.compress(b'{"Item":{"pk":{"S":"a"}}}\n' * 999)[:-9])
    done = imported(
        client, "torn", "torn", InputFormat="DYNAMODB_JSON", InputCompressionType="GZIP"
    )
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert done["ErrorCount"] == 1
    nothing = imported(client, "nothing", "not-there/", InputFormat="DYNAMODB_JSON")
    assert (nothing["ImportStatus"], nothing["ProcessedItemCount"]) == ("COMPLETED", 0)
    assert items_of(client, "nothing") == {}
    arn = arn_of(client, "source")
    answer = client.export_table_to_point_in_time(TableArn=arn, S3Bucket="elsewhere")
    export_arn = answer["ExportDescription"]["ExportArn"]
    deadline = time.monotonic() + SECONDS_MAX
    export: dict[str, Any] = {}
    while export.get("ExportStatus") != "FAILED":
        assert time.monotonic() < deadline
        time.sleep(0.02)
        export = client.describe_export(ExportArn=export_arn)["ExportDescription"]
    assert export["FailureCode"] == "S3NoSuchBucket"
    create(client, "plain")
    with pytest.raises(ClientError, match="PointInTimeRecoveryUnavailableException"):
        client.export_table_to_point_in_time(TableArn=arn_of(client, "plain"), S3Bucket="files")


def test_a_client_token_starts_one_export_and_lists_are_paged(client: Any) -> None:
    arn = arn_of(client, "source")
    first, second = (
        client.export_table_to_point_in_time(TableArn=arn, S3Bucket="files", ClientToken="once")
        for _ in range(2)
    )
    assert first["ExportDescription"]["ExportArn"] == second["ExportDescription"]["ExportArn"]
    with pytest.raises(client.exceptions.ExportConflictException):
        client.export_table_to_point_in_time(
            TableArn=arn, S3Bucket="files", ClientToken="once", S3Prefix="other"
        )
    client.list_exports(TableArn=arn, MaxResults=25)
    with pytest.raises(ClientError, match="ValidationException"):
        client.list_exports(TableArn=arn, MaxResults=26)
    page = client.list_exports(TableArn=arn, MaxResults=1)
    assert len(page["ExportSummaries"]) == 1
    rest = client.list_exports(TableArn=arn, NextToken=page["NextToken"])
    assert page["ExportSummaries"][0] not in rest["ExportSummaries"]
