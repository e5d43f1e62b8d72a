"""Errors of operations on backups, restores, exports and imports have the service's texts.

The words were recorded on Amazon DynamoDB in October 2026 (ack-api-quirks, services/dynamodb).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .conftest import wait_until_active
from .test_backups import available, fill, refused, target
from .test_continuous_backups import enable

__all__ = ["target"]

ACCOUNT = "123456789012"
OTHERS = "999999999999"
INDEX = {
    "IndexName": "by_g",
    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}

TRIES = 20

Asked = dict[str, Any]


class World:
    """A table with recovery and a backup, and one without."""

    def __init__(self, client: Any, source: str, plain: str) -> None:
        self.source, self.plain = source, plain
        enable(client, source)
        backup = client.create_backup(TableName=source, BackupName="first")["BackupDetails"]
        self.backup: str = backup["BackupArn"]
        available(client, self.backup)
        self.table: str = client.describe_table(TableName=source)["Table"]["TableArn"]

    def arn(self, kind: str) -> str:
        return f"{self.table}/{kind}/01791504762511-2779fadd"


@pytest.fixture(scope="module")
def world(client: Any, table_names: Iterator[str]) -> Iterator[World]:
    names = [next(table_names), next(table_names)]
    for name in names:
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": one, "AttributeType": "S"} for one in ("pk", "g")
            ],
            GlobalSecondaryIndexes=[INDEX],
            BillingMode="PAY_PER_REQUEST",
        )
        wait_until_active(client, name)
    yield World(client, *names)
    for name in names:
        client.delete_table(TableName=name)


V, DENIED = "ValidationException", "AccessDeniedException"
REQUEST = "Invalid Request: "
PARAMETER = "One or more parameter values were invalid: "

Row = tuple[str, Callable[[World], Asked], str, str]


def restore(**more: Any) -> Callable[[World], Asked]:
    return lambda world: {"TargetTableName": "target", "BackupArn": world.backup, **more}


def to_moment(source: str = "source", **more: Any) -> Callable[[World], Asked]:
    return lambda world: {
        "TargetTableName": "target",
        "SourceTableName": getattr(world, source, source),
        **more,
    }


def export(**more: Any) -> Callable[[World], Asked]:
    return lambda world: {"TableArn": world.table, "S3Bucket": "bucket", **more}


def incremental(**times: Any) -> Callable[[World], Asked]:
    return export(ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=times)


ROWS: list[Row] = [
    ("describe_backup", lambda world: {"BackupArn": world.table}, V, "Invalid Backup ARN"),
    ("delete_backup", lambda world: {"BackupArn": "x" * 40}, V, "Invalid Backup ARN"),
    (
        "describe_backup",
        lambda world: {"BackupArn": world.backup.replace(ACCOUNT, OTHERS)},
        DENIED,
        "Access is denied",
    ),
    (
        "describe_backup",
        lambda world: {"BackupArn": world.arn("backup")},
        "BackupNotFoundException",
        "Backup not found: arn:",
    ),
    (
        "list_backups",
        lambda world: {"TimeRangeLowerBound": 2, "TimeRangeUpperBound": 1},
        V,
        f"{PARAMETER}Time range lower bound must be less than or equal to upper bound",
    ),
    (
        "update_continuous_backups",
        lambda world: {
            "TableName": world.source,
            "PointInTimeRecoverySpecification": {
                "PointInTimeRecoveryEnabled": False,
                "RecoveryPeriodInDays": 3,
            },
        },
        V,
        f"{REQUEST}Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.",
    ),
    (
        "restore_table_from_backup",
        restore(ProvisionedThroughputOverride=UNITS),
        V,
        f"{REQUEST}Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED",
    ),
    (
        "restore_table_from_backup",
        restore(BillingModeOverride="PAY_PER_REQUEST", ProvisionedThroughputOverride=UNITS),
        V,
        f"{REQUEST}Cannot override ProvisionedThroughput if BillingMode is overridden to "
        "PAY_PER_REQUEST",
    ),
    (
        "restore_table_from_backup",
        restore(BillingModeOverride="PROVISIONED"),
        V,
        f"{REQUEST}Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED",
    ),
    (
        "restore_table_from_backup",
        restore(OnDemandThroughputOverride={"MaxReadRequestUnits": 0}),
        V,
        f"{REQUEST}Requested MaxReadRequestUnits for OnDemandThroughput is outside of valid range",
    ),
    (
        "restore_table_from_backup",
        restore(
            BillingModeOverride="PROVISIONED",
            ProvisionedThroughputOverride=UNITS,
            GlobalSecondaryIndexOverride=[INDEX],
        ),
        V,
        f"{REQUEST}Must specify provisioned throughput for index by_g",
    ),
    (
        "restore_table_from_backup",
        restore(
            GlobalSecondaryIndexOverride=[{**INDEX, "Projection": {"ProjectionType": "ALL"}}],
        ),
        V,
        f"{REQUEST}Index by_g does not match a secondary index that existed in the source table "
        "and cannot be created during the restore operation",
    ),
    (
        "restore_table_to_point_in_time",
        to_moment("plain", RestoreDateTime=1, UseLatestRestorableTime=True),
        V,
        f"{REQUEST}Both RestoreDateTime and UseLatestRestorableTime cannot be set for "
        "point-in-time restore request.",
    ),
    (
        "restore_table_to_point_in_time",
        to_moment("plain", UseLatestRestorableTime=False),
        V,
        f"{REQUEST}Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but "
        "not both",
    ),
    (
        "restore_table_to_point_in_time",
        lambda world: {"TargetTableName": "target", "UseLatestRestorableTime": True},
        V,
        "The parameter 'TableName' is required but was not present in the request",
    ),
    (
        "restore_table_to_point_in_time",
        lambda world: {
            **to_moment(UseLatestRestorableTime=True)(world),
            "SourceTableArn": world.table,
        },
        V,
        "Must provide exactly one of: sourceTableArn, sourceTableName",
    ),
    (
        "restore_table_to_point_in_time",
        to_moment("missing", UseLatestRestorableTime=True),
        "TableNotFoundException",
        "Table not found: missing",
    ),
    (
        "restore_table_to_point_in_time",
        lambda world: {
            **to_moment("plain", UseLatestRestorableTime=True)(world),
            "TargetTableName": world.source,
        },
        "PointInTimeRecoveryUnavailableException",
        "Point in time recovery is not enabled for table '",
    ),
    (
        "restore_table_to_point_in_time",
        lambda world: {
            **to_moment(RestoreDateTime=1_700_000_000)(world),
            "TargetTableName": world.plain,
        },
        "InvalidRestoreTimeException",
        "RestoreDateTime '2023-11-14T22:13:20Z' must be within EarliestRestorableDateTime '",
    ),
    (
        "restore_table_to_point_in_time",
        lambda world: {
            **to_moment(UseLatestRestorableTime=True)(world),
            "TargetTableName": world.plain,
        },
        "TableAlreadyExistsException",
        "Table already exists: ",
    ),
    (
        "export_table_to_point_in_time",
        export(TableArn="bare"),
        V,
        f"{PARAMETER}tableArn is not a valid ARN",
    ),
    (
        "export_table_to_point_in_time",
        lambda world: {"TableArn": f"{world.table}/index/by_g", "S3Bucket": "bucket"},
        V,
        f"{REQUEST}Table ARN is invalid.",
    ),
    (
        "export_table_to_point_in_time",
        lambda world: {"TableArn": f"{world.table}x", "S3Bucket": "bucket"},
        "TableNotFoundException",
        "Table not found: arn:aws:dynamodb:",
    ),
    (
        "export_table_to_point_in_time",
        lambda world: {"TableArn": world.table.replace(ACCOUNT, OTHERS), "S3Bucket": "bucket"},
        DENIED,
        "Access is denied",
    ),
    (
        "export_table_to_point_in_time",
        export(ExportTime=1_700_000_000),
        "InvalidExportTimeException",
        "Export Time is invalid",
    ),
    (
        "export_table_to_point_in_time",
        export(S3SseKmsKeyId="key"),
        V,
        f"{REQUEST}KMS Key Id is not supported for this encryption type",
    ),
    (
        "export_table_to_point_in_time",
        export(IncrementalExportSpecification={}),
        V,
        f"{REQUEST}Export Type expected to be Incremental Export when incremental export "
        "specification is provided",
    ),
    (
        "export_table_to_point_in_time",
        export(ExportType="FULL_EXPORT", IncrementalExportSpecification={}),
        V,
        f"{REQUEST}When Export Type is Full Export , Incremental Export Specification should not "
        "be provided",
    ),
    (
        "export_table_to_point_in_time",
        export(ExportType="INCREMENTAL_EXPORT"),
        V,
        f"{REQUEST}Incremental Export Specification expected when export type is set as "
        "Incremental Export",
    ),
    (
        "export_table_to_point_in_time",
        incremental(ExportViewType="NEW_IMAGE"),
        V,
        f"{REQUEST}ExportFromTime must be provided in IncrementalExportSpecification",
    ),
    (
        "export_table_to_point_in_time",
        incremental(ExportFromTime=1_700_000_000),
        "InvalidExportTimeException",
        "Incremental export period from time cannot be less than the table creation time : "
        "2023-11-14T22:13:20Z",
    ),
    (
        "export_table_to_point_in_time",
        incremental(ExportFromTime=time.time() + 3600, ExportToTime=4_000_000_000),
        "InvalidExportTimeException",
        "Incremental export period to time cannot be greater than the current time : "
        "2096-10-02T07:06:40Z",
    ),
    (
        "describe_export",
        lambda world: {"ExportArn": world.arn("export")},
        "ExportNotFoundException",
        "Export not found: Export not found: arn:",
    ),
    ("describe_export", lambda world: {"ExportArn": world.arn("import")}, V, "Invalid Export ARN"),
    ("describe_import", lambda world: {"ImportArn": world.table}, V, "Invalid Import ARN"),
    (
        "list_exports",
        lambda world: {"NextToken": "zz" * 56},
        V,
        f"{REQUEST}Provided nextToken is invalid: zz",
    ),
    (
        "import_table",
        lambda world: {
            "S3BucketSource": {"S3Bucket": "bucket"},
            "InputFormat": "DYNAMODB_JSON",
            "InputFormatOptions": {"Csv": {"Delimiter": ";"}},
            "TableCreationParameters": {
                "TableName": "imported",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        },
        V,
        f"{REQUEST}Unsupported InputFormatOptions for the given input format: DYNAMODB_JSON.",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[3][:60]}")
def test_what_is_refused_is_said_as_the_service_says_it(
    client: Any, world: World, row: Row
) -> None:
    operation, asked, code, message = row
    with refused(client, code, message):
        getattr(client, operation)(**asked(world))


def test_a_system_backup_cannot_be_deleted_and_shows_no_features(client: Any, table: Any) -> None:
    name = table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    enable(client, name)
    client.delete_table(TableName=name)
    (backup,) = client.list_backups(TableName=name, BackupType="SYSTEM")["BackupSummaries"]
    assert backup["BackupArn"].endswith("-00000000")
    assert available(client, backup["BackupArn"])["SourceTableFeatureDetails"] == {}
    said = f"{REQUEST}User is not allowed to delete the system backup with arn "
    with refused(client, V, said):
        client.delete_backup(BackupArn=backup["BackupArn"])


def test_a_plain_table_has_no_features_to_show(client: Any, table: Any) -> None:
    arn = client.create_backup(TableName=table(), BackupName="all")["BackupDetails"]["BackupArn"]
    assert available(client, arn)["SourceTableFeatureDetails"] == {}


def test_a_backup_feeds_one_restore_at_a_time(client: Any, table: Any, target: Any) -> None:
    name = table(sk="N")
    fill(client, name, 300)
    arn = client.create_backup(TableName=name, BackupName="all")["BackupDetails"]["BackupArn"]
    available(client, arn)
    said = ""
    for _ in range(TRIES):
        # The first may be done before the second comes.
        first, second = target(), target()
        client.restore_table_from_backup(TargetTableName=first, BackupArn=arn)
        with suppress(client.exceptions.BackupInUseException):
            try:
                client.restore_table_from_backup(TargetTableName=second, BackupArn=arn)
            except ClientError as error:
                said = error.response["Error"]["Message"]
                raise
        wait_until_active(client, first)
        if said:
            break
        wait_until_active(client, second)
    assert said == f"Backup is being used to restore another table: {arn}"
    client.delete_backup(BackupArn=arn)
