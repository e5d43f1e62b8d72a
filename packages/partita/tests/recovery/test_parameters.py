"""Every member of every request of the 18 operations, by botocore's model: honoured, or refused.

A row names the members that it shows the effect of. A member of the model without a row fails.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from testkit.servers import processes

from .test_export_import import ON, arn_of
from .test_kill import is_active, is_available, restorable, until

OPERATIONS = (
    *("CreateBackup", "DescribeBackup", "ListBackups", "DeleteBackup", "RestoreTableFromBackup"),
    *("UpdateContinuousBackups", "DescribeContinuousBackups", "RestoreTableToPointInTime"),
    *("ExportTableToPointInTime", "DescribeExport", "ListExports"),
    *("ImportTable", "DescribeImport", "ListImports"),
    *("StartBulkPutItems", "DescribeBulkOperation", "ListBulkOperations", "CancelBulkOperation"),
)
RESTORES = ("RestoreTableFromBackup", "RestoreTableToPointInTime")
SOMEBODY_ELSE = "999999999999"
GLOBAL = {
    "IndexName": "by_g",
    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]},
}
LOCAL = {
    "IndexName": "by_v",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "v", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
SCHEMA: dict[str, Any] = {
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in (("pk", "S"), ("sk", "N"), ("g", "S"), ("v", "S"))
    ],
    "GlobalSecondaryIndexes": [GLOBAL],
    "LocalSecondaryIndexes": [LOCAL],
    "BillingMode": "PAY_PER_REQUEST",
}
VECTOR = {
    "IndexName": "by_vector",
    "VectorAttribute": {"AttributeName": "e"},
    "SearchSchema": [{"AttributeName": "g", "SearchSchemaElementType": "HASH"}],
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]},
    "Dimensions": 3,
    "DistanceFunction": "COSINE",
}


class World:
    """A server with a table `source` of six items, its backup, and a bucket."""

    def __init__(self, client: Any, bucket: Path) -> None:
        self.client = client
        self.bucket = bucket
        self.count = 0
        client.create_table(TableName="source", **SCHEMA)
        client.update_continuous_backups(TableName="source", PointInTimeRecoverySpecification=ON)
        for number in range(6):
            client.put_item(TableName="source", Item=item(number))
        until(lambda: restorable(client, "source"))
        backup = client.create_backup(TableName="source", BackupName="first")["BackupDetails"]
        self.backup_arn = backup["BackupArn"]
        until(lambda: is_available(client, self.backup_arn))

    def new_name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def restored(self, operation: str, **more: Any) -> dict[str, Any]:
        """The description of a table that is restored with overrides."""
        name = self.new_name("restored")
        if operation == "RestoreTableFromBackup":
            self.client.restore_table_from_backup(
                TargetTableName=name, BackupArn=self.backup_arn, **more
            )
        else:
            self.client.restore_table_to_point_in_time(
                SourceTableName="source",
                TargetTableName=name,
                UseLatestRestorableTime=True,
                **more,
            )
        until(lambda: is_active(self.client, name))
        found: dict[str, Any] = self.client.describe_table(TableName=name)["Table"]
        self.client.delete_table(TableName=name)
        return found

    def export(self, **more: Any) -> tuple[dict[str, Any], list[Any]]:
        """The description of an export, and its lines."""
        asked = {"TableArn": arn_of(self.client, "source"), "S3Bucket": "files", **more}
        started = self.client.export_table_to_point_in_time(**asked)["ExportDescription"]
        arn = started["ExportArn"]

        def described() -> dict[str, Any]:
            found: dict[str, Any] = self.client.describe_export(ExportArn=arn)
            return found["ExportDescription"]  # type: ignore[no-any-return]

        until(lambda: described()["ExportStatus"] != "IN_PROGRESS")
        found = described()
        assert found["ExportStatus"] == "COMPLETED", found
        folder = self.bucket / Path(found["ExportManifest"]).parent
        manifest = (folder / "manifest-files.json").read_text().splitlines()
        files = [json.loads(line)["dataFileS3Key"] for line in manifest]
        lines = [
            line
            for file in files
            for line in gzip.decompress((self.bucket / file).read_bytes()).splitlines()
        ]
        is_json = found["ExportFormat"] == "DYNAMODB_JSON"
        return found, [json.loads(line) if is_json else line for line in lines]

    def put_file(self, content: str) -> str:
        name = self.new_name("file")
        (self.bucket / name).mkdir()
        (self.bucket / name / "items").write_text(content)
        return f"{name}/"

    def imported(self, content: str, **more: Any) -> tuple[dict[str, Any], list[Any]]:
        """The description of an import, and the items of its table."""
        name = self.new_name("imported")
        parameters = {
            "TableName": name,
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
            **more.pop("TableCreationParameters", {}),
        }
        parameters = {key: value for key, value in parameters.items() if value is not None}
        asked = {
            "S3BucketSource": {"S3Bucket": "files", "S3KeyPrefix": self.put_file(content)},
            "InputFormat": "DYNAMODB_JSON",
            "TableCreationParameters": parameters,
            **more,
        }
        arn = self.client.import_table(**asked)["ImportTableDescription"]["ImportArn"]

        def described() -> dict[str, Any]:
            found: dict[str, Any] = self.client.describe_import(ImportArn=arn)
            return found["ImportTableDescription"]  # type: ignore[no-any-return]

        until(lambda: described()["ImportStatus"] != "IN_PROGRESS")
        until(lambda: is_active(self.client, parameters["TableName"]))
        return described(), self.client.scan(TableName=parameters["TableName"])["Items"]

    def bulk(self, content: str, **more: Any) -> tuple[dict[str, Any], str]:
        """The description of a bulk put, and the prefix of its output."""
        prefix = self.new_name("told")
        output = {"S3Bucket": "files", "S3KeyPrefix": prefix, "OutputType": ["ERROR"]}
        asked: dict[str, Any] = {
            "TableName": "source",
            "InputS3Configuration": {
                "S3Bucket": "files",
                "S3KeyPrefix": self.put_file(content),
                "InputFormat": "DYNAMODB_JSON",
                **more.pop("InputS3Configuration", {}),
            },
            "OutputS3Configuration": {**output, **more.pop("OutputS3Configuration", {})},
            **more,
        }
        started = self.client.start_bulk_put_items(**asked)["BulkOperationDescription"]
        arn = started["BulkOperationArn"]

        def described() -> dict[str, Any]:
            found: dict[str, Any] = self.client.describe_bulk_operation(BulkOperationArn=arn)
            return found["BulkOperationDescription"]  # type: ignore[no-any-return]

        until(lambda: described()["BulkOperationStatus"] not in ("IN_PROGRESS", "CANCELLING"))
        return described(), prefix


def item(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": f"p{number % 2}"},
        "sk": {"N": str(number)},
        "g": {"S": f"g{number}"},
        "v": {"S": f"v{number}"},
    }


def line(**members: Any) -> str:
    return json.dumps({"Item": members}) + "\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("parameters")
    (folder / "bucket").mkdir()
    settings = folder / "partita.toml"
    settings.write_text(f'[[buckets]]\nname = "files"\nfolder = "{folder / "bucket"}"\n')
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", "--config", str(settings))
        yield World(server.client(), folder / "bucket")


Row = Callable[[World], None]
ROWS: list[tuple[Row, set[str]]] = []


def shows(*members: str) -> Callable[[Row], Row]:
    def remember(row: Row) -> Row:
        ROWS.append((row, set(members)))
        return row

    return remember


def below(operations: tuple[str, ...] | str, prefix: str, *members: str) -> tuple[str, ...]:
    names = (operations,) if isinstance(operations, str) else operations
    start = f".{prefix}." if prefix else "."
    return tuple(f"{name}{start}{member}" for name in names for member in members)


def refused(message: str) -> Any:
    return pytest.raises(ClientError, match=message)


INDEX = ("[].IndexName", "[].KeySchema.[].AttributeName", "[].KeySchema.[].KeyType")
PROJECTION = ("[].Projection.ProjectionType", "[].Projection.NonKeyAttributes.[]")
UNITS = ("ReadCapacityUnits", "WriteCapacityUnits")
MAXIMUMS = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
WARM = ("[].WarmThroughput.ReadUnitsPerSecond", "[].WarmThroughput.WriteUnitsPerSecond")
SSE = ("Enabled", "SSEType", "KMSMasterKeyId")
VECTORS = (
    *("[].IndexName", "[].VectorAttribute.AttributeName", "[].SearchSchema.[].AttributeName"),
    *("[].SearchSchema.[].SearchSchemaElementType", *PROJECTION, "[].Dimensions"),
    "[].DistanceFunction",
)


@shows(
    *("CreateBackup.TableName", "CreateBackup.BackupName", "DescribeBackup.BackupArn"),
    *("ListBackups.TableName", "ListBackups.TimeRangeLowerBound", "ListBackups.Limit"),
    *("ListBackups.TimeRangeUpperBound", "ListBackups.ExclusiveStartBackupArn"),
    *("ListBackups.BackupType", "DeleteBackup.BackupArn"),
)
def backups_are_named_listed_and_deleted(world: World) -> None:
    client = world.client
    table = client.describe_table(TableName="source")["Table"]
    made = client.create_backup(TableName=table["TableArn"], BackupName="second")
    arn = made["BackupDetails"]["BackupArn"]
    until(lambda: is_available(client, arn))
    described = client.describe_backup(BackupArn=arn)["BackupDescription"]
    assert described["BackupDetails"]["BackupName"] == "second"

    def listed(**more: Any) -> list[str]:
        pages = client.get_paginator("list_backups").paginate(**more)
        return [one["BackupName"] for page in pages for one in page["BackupSummaries"]]

    created = described["BackupDetails"]["BackupCreationDateTime"].timestamp()
    assert listed(TableName="source") == ["first", "second"]
    assert listed(TableName="other") == []
    assert listed(PaginationConfig={"PageSize": 1}) == ["first", "second"]
    assert listed(TimeRangeLowerBound=created) == ["second"]
    assert listed(TimeRangeUpperBound=created) == ["first"]
    assert listed(BackupType="SYSTEM") == []
    assert listed(ExclusiveStartBackupArn=world.backup_arn) == ["second"]
    client.delete_backup(BackupArn=arn)
    assert listed(BackupType="ALL") == ["first"]


@shows(
    *below(RESTORES, "", "TargetTableName", "BillingModeOverride"),
    *below(RESTORES, "ProvisionedThroughputOverride", *UNITS),
    *below(RESTORES, "GlobalSecondaryIndexOverride", *INDEX, *PROJECTION),
    *below(RESTORES, "GlobalSecondaryIndexOverride.[].ProvisionedThroughput", *UNITS),
    *below(RESTORES, "LocalSecondaryIndexOverride", *INDEX, *PROJECTION),
    *("RestoreTableFromBackup.BackupArn", "RestoreTableToPointInTime.SourceTableName"),
    "RestoreTableToPointInTime.UseLatestRestorableTime",
)
def billing_and_indexes_are_overridden(world: World) -> None:
    units = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}
    for operation in RESTORES:
        found = world.restored(
            operation,
            BillingModeOverride="PROVISIONED",
            ProvisionedThroughputOverride=units,
            GlobalSecondaryIndexOverride=[{**GLOBAL, "ProvisionedThroughput": units}],
            LocalSecondaryIndexOverride=[],
        )
        assert found["ItemCount"] == 6
        (index,) = found["GlobalSecondaryIndexes"]
        assert "LocalSecondaryIndexes" not in found
        for throughput in (found["ProvisionedThroughput"], index["ProvisionedThroughput"]):
            assert {name: throughput[name] for name in UNITS} == units
        with refused("Must specify provisioned throughput for index by_g"):
            world.restored(
                operation, BillingModeOverride="PROVISIONED", ProvisionedThroughputOverride=units
            )
        renamed = {**LOCAL, "IndexName": "renamed"}
        found = world.restored(operation, LocalSecondaryIndexOverride=[renamed])
        assert [one["IndexName"] for one in found["LocalSecondaryIndexes"]] == ["renamed"]
        for override, index in (("Local", LOCAL), ("Global", GLOBAL)):
            changes: list[dict[str, Any]] = [
                {"Projection": {"ProjectionType": "ALL"}},
                {"Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["other"]}},
                {"KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}]},
            ]
            for change in changes:
                with refused("ValidationException"):
                    world.restored(
                        operation, **{f"{override}SecondaryIndexOverride": [{**index, **change}]}
                    )


@shows(
    *below(RESTORES, "OnDemandThroughputOverride", *MAXIMUMS),
    *below(RESTORES, "GlobalSecondaryIndexOverride.[].OnDemandThroughput", *MAXIMUMS),
    *below(RESTORES, "GlobalSecondaryIndexOverride", *WARM),
)
def throughput_is_overridden(world: World) -> None:
    maximums = {"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 6}
    warm = {"ReadUnitsPerSecond": 15_000, "WriteUnitsPerSecond": 5_000}
    for operation in RESTORES:
        index = {**GLOBAL, "OnDemandThroughput": maximums, "WarmThroughput": warm}
        found = world.restored(
            operation,
            OnDemandThroughputOverride=maximums,
            GlobalSecondaryIndexOverride=[index],
        )
        (described,) = found["GlobalSecondaryIndexes"]
        assert found["OnDemandThroughput"] == maximums == described["OnDemandThroughput"]
        assert {name: described["WarmThroughput"][name] for name in warm} == warm
        with refused("lower than current WarmThroughput"):
            low = {"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 1}
            world.restored(
                operation, GlobalSecondaryIndexOverride=[{**index, "WarmThroughput": low}]
            )


@shows(
    *below(RESTORES, "SSESpecificationOverride", *SSE),
    *below("ImportTable", "TableCreationParameters.SSESpecification", *SSE),
)
def encryption_settings_are_shown(world: World) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    sse = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
    for operation in RESTORES:
        found = world.restored(operation, SSESpecificationOverride=sse)["SSEDescription"]
        assert (found["SSEType"], found["KMSMasterKeyArn"]) == ("KMS", key)
        with refused("KMSMasterKeyId|KMS"):
            world.restored(
                operation, SSESpecificationOverride={"Enabled": False, "KMSMasterKeyId": key}
            )
    done, _ = world.imported("", TableCreationParameters={"SSESpecification": sse})
    name = done["TableArn"].rpartition("/")[2]
    table = world.client.describe_table(TableName=name)["Table"]
    assert table["SSEDescription"]["KMSMasterKeyArn"] == key


@shows(
    *below(RESTORES, "VectorIndexOverride", *VECTORS),
    *below("ImportTable", "TableCreationParameters.VectorIndexes", *VECTORS),
)
def vector_indexes_are_refused(world: World) -> None:
    for operation in RESTORES:
        with refused("VectorIndexOverride is not supported"):
            world.restored(operation, VectorIndexOverride=[VECTOR])
    with refused("VectorIndexes"):
        world.imported("", TableCreationParameters={"VectorIndexes": [VECTOR]})


@shows(
    *("RestoreTableToPointInTime.SourceTableArn", "RestoreTableToPointInTime.RestoreDateTime"),
    *("DescribeContinuousBackups.TableName", "UpdateContinuousBackups.TableName"),
    *below(
        "UpdateContinuousBackups",
        "PointInTimeRecoverySpecification",
        *("PointInTimeRecoveryEnabled", "RecoveryPeriodInDays"),
    ),
)
def a_table_is_restored_by_its_arn_to_a_moment(world: World) -> None:
    client = world.client
    changed = client.update_continuous_backups(
        TableName="source", PointInTimeRecoverySpecification={**ON, "RecoveryPeriodInDays": 9}
    )["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert changed["RecoveryPeriodInDays"] == 9
    seen = client.describe_continuous_backups(TableName="source")["ContinuousBackupsDescription"]
    latest = seen["PointInTimeRecoveryDescription"]["LatestRestorableDateTime"]
    target = world.new_name("restored")
    client.restore_table_to_point_in_time(
        SourceTableArn=arn_of(client, "source"), TargetTableName=target, RestoreDateTime=latest
    )
    until(lambda: is_active(client, target))
    assert client.describe_table(TableName=target)["Table"]["ItemCount"] == 6
    with refused("InvalidRestoreTimeException"):
        client.restore_table_to_point_in_time(
            SourceTableName="source", TargetTableName="never", RestoreDateTime=1_000_000_000
        )
    off = {"PointInTimeRecoveryEnabled": False}
    client.update_continuous_backups(TableName=target, PointInTimeRecoverySpecification=off)
    with refused("PointInTimeRecoveryUnavailableException"):
        client.restore_table_to_point_in_time(
            SourceTableName=target, TargetTableName="never", UseLatestRestorableTime=True
        )


EXPORT = "ExportTableToPointInTime"


@shows(
    *below(EXPORT, "", "TableArn", "ExportTime", "ClientToken", "S3Bucket", "S3Prefix"),
    *below(EXPORT, "", "S3BucketOwner", "S3SseAlgorithm", "S3SseKmsKeyId"),
    *below(EXPORT, "", "ExportFormat", "ExportType"),
    *("DescribeExport.ExportArn", "ListExports.TableArn", "ListExports.MaxResults"),
    "ListExports.NextToken",
)
def exports_go_where_they_shall(world: World) -> None:
    client = world.client
    now = time.time()
    asked = {"S3Prefix": "here", "ClientToken": "once", "ExportTime": now}
    done, lines = world.export(**asked, ExportType="FULL_EXPORT", S3BucketOwner="123456789012")
    assert done["ExportManifest"].startswith("here/AWSDynamoDB/")
    assert len(lines) == 6
    again, _ = world.export(**asked, ExportType="FULL_EXPORT", S3BucketOwner="123456789012")
    assert again["ExportArn"] == done["ExportArn"]
    with refused("ExportConflictException"):
        world.export(**{**asked, "S3Prefix": "there"})
    done, lines = world.export(ExportFormat="ION")
    assert lines[0].startswith(b"$ion_1_0 ")
    for wrong in (
        {"S3BucketOwner": SOMEBODY_ELSE},
        {"S3SseAlgorithm": "AES256"},
        {"S3SseKmsKeyId": "key"},
        {"ExportType": "INCREMENTAL_EXPORT"},
    ):
        with refused("ValidationException"):
            world.export(**wrong)
    with refused("InvalidExportTimeException"):
        world.export(ExportTime=1_000_000_000)
    arn = arn_of(client, "source")
    first = client.list_exports(TableArn=arn, MaxResults=1)
    second = client.list_exports(TableArn=arn, MaxResults=1, NextToken=first["NextToken"])
    assert first["ExportSummaries"] != second["ExportSummaries"]
    assert client.list_exports(TableArn=f"{arn}x")["ExportSummaries"] == []


FILTER = "FilterSpecification"
VALUES = {":p": {"S": "p1"}, ":n": {"N": "3"}}


@shows(
    *below(EXPORT, FILTER, "FilterExpression", "ProjectionExpression", "KeyConditionExpression"),
    *below(EXPORT, FILTER, "ExpressionAttributeNames", "ExpressionAttributeValues"),
)
def exports_are_filtered_and_projected(world: World) -> None:
    by_key = {
        "KeyConditionExpression": "pk = :p AND sk >= :n",
        "ProjectionExpression": "sk, #g",
        "ExpressionAttributeNames": {"#g": "g"},
        "ExpressionAttributeValues": VALUES,
    }
    done, lines = world.export(FilterSpecification=by_key)
    expected = [{"sk": {"N": str(n)}, "g": {"S": f"g{n}"}} for n in (3, 5)]
    assert [one["Item"] for one in lines] == expected
    assert (done["ItemCount"], done["FilterSpecification"]) == (2, by_key)
    by_filter = {
        "FilterExpression": "begins_with(pk, :p) AND NOT sk = :n",
        "ExpressionAttributeValues": VALUES,
    }
    _, lines = world.export(FilterSpecification=by_filter)
    assert sorted(one["Item"]["sk"]["N"] for one in lines) == ["1", "5"]
    for wrong, message in (
        ({}, "The specification can not be empty"),
        ({**by_filter, "KeyConditionExpression": "pk = :p"}, "non-primary key attributes"),
        ({"KeyConditionExpression": "g = :p", "ExpressionAttributeValues": VALUES}, "unused"),
        ({"KeyConditionExpression": "g = :n", "ExpressionAttributeValues": VALUES}, "unused"),
        ({"FilterExpression": "no = = sense"}, "Syntax error"),
        ({"ProjectionExpression": "#x"}, "not defined"),
    ):
        with refused(message):
            world.export(FilterSpecification=wrong)


@shows(
    *below(
        EXPORT,
        "IncrementalExportSpecification",
        *("ExportFromTime", "ExportToTime", "ExportViewType"),
    )
)
def changes_are_exported_filtered_by_their_latest_image(world: World) -> None:
    client = world.client
    start = int(time.time()) + 1
    time.sleep(max(start + 0.01 - time.time(), 0))
    client.put_item(TableName="source", Item={**item(2), "v": {"S": "changed"}})
    client.delete_item(TableName="source", Key={"pk": {"S": "p0"}, "sk": {"N": "4"}})
    end = int(time.time()) + 1
    time.sleep(max(end + 0.05 - time.time(), 0))
    client.put_item(TableName="source", Item=item(2))
    client.put_item(TableName="source", Item=item(4))
    asked: dict[str, Any] = {
        "ExportType": "INCREMENTAL_EXPORT",
        "IncrementalExportSpecification": {"ExportFromTime": start, "ExportToTime": end},
    }
    _, lines = world.export(**asked)
    assert sorted(one["Keys"]["sk"]["N"] for one in lines) == ["2", "4"]
    assert all("OldImage" in one for one in lines)
    values = {":v": {"S": "v4"}}
    filtering = {
        "FilterExpression": "v = :v",
        "ProjectionExpression": "v",
        "ExpressionAttributeValues": values,
    }
    _, lines = world.export(**asked, FilterSpecification=filtering)
    assert [(one["Keys"]["sk"]["N"], one["OldImage"]) for one in lines] == [
        ("4", {"v": {"S": "v4"}})
    ]
    asked["IncrementalExportSpecification"]["ExportViewType"] = "NEW_IMAGE"
    _, lines = world.export(**asked)
    assert not any("OldImage" in one for one in lines)


IMPORT = "ImportTable"
SOURCE = ("S3Bucket", "S3KeyPrefix", "S3BucketOwner")
CREATION = "TableCreationParameters"


@shows(
    *below(IMPORT, "S3BucketSource", *SOURCE),
    *below(IMPORT, "", "ClientToken", "InputFormat", "InputCompressionType"),
    *below(IMPORT, "InputFormatOptions.Csv", "Delimiter", "HeaderList.[]"),
    *("DescribeImport.ImportArn", "ListImports.TableArn", "ListImports.PageSize"),
    "ListImports.NextToken",
)
def imports_read_what_they_shall(world: World) -> None:
    client = world.client
    options = {"Csv": {"Delimiter": ";", "HeaderList": ["pk", "v"]}}
    asked = {"InputFormat": "CSV", "InputFormatOptions": options, "InputCompressionType": "NONE"}
    done, items = world.imported("a;1\n", **asked, ClientToken="one-import")
    assert items == [{"pk": {"S": "a"}, "v": {"S": "1"}}]
    with refused("ImportConflictException"):
        world.imported("", ClientToken="one-import")
    done, items = world.imported(line(pk={"S": "a"}), InputCompressionType="GZIP")
    assert (done["ErrorCount"], items) == (1, [])
    for wrong in (
        {"S3BucketSource": {"S3Bucket": "files", "S3BucketOwner": SOMEBODY_ELSE}},
        {"InputFormatOptions": options},
    ):
        with refused("ValidationException"):
            world.imported("", **wrong)
    arn = done["TableArn"]
    (only,) = client.list_imports(TableArn=arn)["ImportSummaryList"]
    assert only["ImportArn"] == done["ImportArn"]
    first = client.list_imports(PageSize=1)
    second = client.list_imports(PageSize=1, NextToken=first["NextToken"])
    assert first["ImportSummaryList"] != second["ImportSummaryList"]


@shows(
    *below(IMPORT, CREATION, "TableName", "BillingMode"),
    *below(IMPORT, f"{CREATION}.AttributeDefinitions", "[].AttributeName", "[].AttributeType"),
    *below(IMPORT, f"{CREATION}.KeySchema", "[].AttributeName", "[].KeyType"),
    *below(IMPORT, f"{CREATION}.ProvisionedThroughput", *UNITS),
    *below(IMPORT, f"{CREATION}.GlobalSecondaryIndexes", *INDEX, *PROJECTION),
    *below(IMPORT, f"{CREATION}.GlobalSecondaryIndexes.[].ProvisionedThroughput", *UNITS),
)
def an_import_makes_a_provisioned_table(world: World) -> None:
    units = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}
    parameters = {
        "KeySchema": SCHEMA["KeySchema"],
        "AttributeDefinitions": SCHEMA["AttributeDefinitions"][:3],
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": units,
        "GlobalSecondaryIndexes": [{**GLOBAL, "ProvisionedThroughput": units}],
    }
    done, items = world.imported(line(**item(1)), TableCreationParameters=parameters)
    assert items == [item(1)]
    name = done["TableArn"].rpartition("/")[2]
    found = world.client.describe_table(TableName=name)["Table"]
    (index,) = found["GlobalSecondaryIndexes"]
    assert {key: index[key] for key in GLOBAL} == GLOBAL
    for throughput in (found["ProvisionedThroughput"], index["ProvisionedThroughput"]):
        assert {name: throughput[name] for name in UNITS} == units
    assert found["AttributeDefinitions"] == parameters["AttributeDefinitions"]
    assert found["KeySchema"] == parameters["KeySchema"]


@shows(
    *below(IMPORT, f"{CREATION}.OnDemandThroughput", *MAXIMUMS),
    *below(IMPORT, f"{CREATION}.GlobalSecondaryIndexes.[].OnDemandThroughput", *MAXIMUMS),
    *below(IMPORT, f"{CREATION}.GlobalSecondaryIndexes", *WARM),
)
def an_import_makes_a_table_on_demand(world: World) -> None:
    maximums = {"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 6}
    warm = {"ReadUnitsPerSecond": 15_000, "WriteUnitsPerSecond": 5_000}
    parameters = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "g")
        ],
        "OnDemandThroughput": maximums,
        "GlobalSecondaryIndexes": [
            {**GLOBAL, "OnDemandThroughput": maximums, "WarmThroughput": warm}
        ],
    }
    done, _ = world.imported("", TableCreationParameters=parameters)
    name = done["TableArn"].rpartition("/")[2]
    found = world.client.describe_table(TableName=name)["Table"]
    (index,) = found["GlobalSecondaryIndexes"]
    assert found["OnDemandThroughput"] == maximums == index["OnDemandThroughput"]
    assert {key: index["WarmThroughput"][key] for key in warm} == warm


BULK = "StartBulkPutItems"


@shows(
    *below(BULK, "", "ClientToken", "TableName", "MaxWriteRequestUnits", "PerformanceTier"),
    *below(BULK, "InputS3Configuration", *SOURCE, "InputFormat", "InputCompressionType"),
    *below(BULK, "OutputS3Configuration", *SOURCE, "OutputType.[]"),
    *below(BULK, "OutputS3Configuration", "S3SseAlgorithm", "S3SseKmsKeyId"),
    *("DescribeBulkOperation.BulkOperationArn", "ListBulkOperations.MaxResults"),
    *("ListBulkOperations.NextToken", "CancelBulkOperation.BulkOperationArn"),
)
def bulk_puts_read_write_and_tell_what_they_shall(world: World) -> None:
    client = world.client
    content = line(**item(1)) + "nothing\n"
    done, prefix = world.bulk(
        content, MaxWriteRequestUnits=2048, PerformanceTier="ACCELERATED", ClientToken="one-bulk"
    )
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (2, 1)
    assert (done["MaxWriteRequestUnits"], done["PerformanceTier"]) == (2048, "ACCELERATED")
    (told,) = (world.bucket / prefix).rglob("data/*.json")
    assert json.loads(told.read_text())["Type"] == "ERROR"
    done, prefix = world.bulk(
        content, OutputS3Configuration={"OutputType": ["CONDITION_CHECK_FAILURE"]}
    )
    assert not list((world.bucket / prefix).rglob("data/*.json"))
    with refused("IdempotentParameterMismatchException"):
        world.bulk(content, ClientToken="one-bulk")
    with refused("ResourceNotFoundException"):
        world.bulk(content, TableName="nobody")
    done, _ = world.bulk("{Item:{pk:{S:1}}}", InputS3Configuration={"InputFormat": "ION"})
    assert done["FailedItemCount"] == 1
    done, _ = world.bulk(content, InputS3Configuration={"InputCompressionType": "GZIP"})
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (0, 1)
    for wrong in (
        {"InputS3Configuration": {"S3BucketOwner": SOMEBODY_ELSE}},
        {"OutputS3Configuration": {"S3BucketOwner": SOMEBODY_ELSE}},
        {"OutputS3Configuration": {"S3SseAlgorithm": "AES256"}},
        {"OutputS3Configuration": {"S3SseKmsKeyId": "key"}},
    ):
        with refused("ValidationException"):
            world.bulk(content, **wrong)
    with refused("ended already"):
        client.cancel_bulk_operation(BulkOperationArn=done["BulkOperationArn"])
    first = client.list_bulk_operations(MaxResults=1)
    second = client.list_bulk_operations(MaxResults=1, NextToken=first["NextToken"])
    assert first["BulkOperationsSummaryList"] != second["BulkOperationsSummaryList"]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.__name__) for row, _ in ROWS])
def test_a_parameter_is_honoured_or_refused(world: World, row: Row) -> None:
    row(world)


def leaves(shape: Any, path: str) -> Iterator[str]:
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            yield from leaves(member, f"{path}.{name}")
    elif shape.type_name == "list":
        yield from leaves(shape.member, f"{path}.[]")
    else:
        yield path


def test_every_member_of_the_model_has_a_row() -> None:
    model = botocore.session.get_session().get_service_model("dynamodb")
    members = {
        leaf
        for operation in OPERATIONS
        for leaf in leaves(model.operation_model(operation).input_shape, operation)
    }
    shown = {member for _, row in ROWS for member in row}
    assert members - shown == set()
    assert shown - members == set()
