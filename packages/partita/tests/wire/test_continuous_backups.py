"""UpdateContinuousBackups, DescribeContinuousBackups, RestoreTableToPointInTime."""

from __future__ import annotations

import time
from typing import Any

from .conftest import wait_until_active
from .test_backups import available, fill, items_of, refused, target

__all__ = ["target"]
SECONDS_MAX = 30
ON = {"PointInTimeRecoveryEnabled": True}
OFF = {"PointInTimeRecoveryEnabled": False}


def described(client: Any, name: str) -> dict[str, Any]:
    answer = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    assert answer["ContinuousBackupsStatus"] == "ENABLED"
    recovery: dict[str, Any] = answer["PointInTimeRecoveryDescription"]
    return recovery


def enable(client: Any, name: str, **more: Any) -> dict[str, Any]:
    """Switch recovery on, and wait for the first moment that can be restored."""
    client.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={**ON, **more}
    )
    deadline = time.monotonic() + SECONDS_MAX
    while "EarliestRestorableDateTime" not in (found := described(client, name)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def next_second() -> int:
    """A whole second, the only moments that boto3 can ask for, with nothing written around it."""
    moment = int(time.time()) + 1
    time.sleep(moment + 0.01 - time.time())
    return moment


def test_recovery_is_off_until_it_is_switched_on(client: Any, table: Any) -> None:
    name = table()
    assert described(client, name) == {"PointInTimeRecoveryStatus": "DISABLED"}
    found = enable(client, name, RecoveryPeriodInDays=7)
    assert found["PointInTimeRecoveryStatus"] == "ENABLED"
    assert found["RecoveryPeriodInDays"] == 7
    assert found["EarliestRestorableDateTime"] <= found["LatestRestorableDateTime"]
    client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=OFF)
    assert described(client, name) == {"PointInTimeRecoveryStatus": "DISABLED"}
    with refused(client, "TableNotFoundException", "Table not found: nothing"):
        client.describe_continuous_backups(TableName="nothing")
    with refused(client, "ValidationException"):
        client.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={**ON, "RecoveryPeriodInDays": 36}
        )


def test_a_table_is_restored_to_any_second(client: Any, table: Any, target: Any) -> None:
    name = table(sk="N")
    fill(client, name, 10)
    enable(client, name)
    fill(client, name, 10, start=10)
    first, before = next_second(), items_of(client, name)
    client.delete_item(TableName=name, Key={"pk": {"S": "p0"}, "sk": {"N": "0"}})
    fill(client, name, 5, start=50)
    second, after = next_second(), items_of(client, name)
    fill(client, name, 5, start=90)
    for moment, expected in ((first, before), (second, after)):
        restored = target()
        answer = client.restore_table_to_point_in_time(
            SourceTableName=name, TargetTableName=restored, RestoreDateTime=moment
        )["TableDescription"]
        assert answer["RestoreSummary"]["RestoreDateTime"].timestamp() == moment
        wait_until_active(client, restored)
        assert items_of(client, restored) == expected
    latest = target()
    client.restore_table_to_point_in_time(
        SourceTableArn=answer["RestoreSummary"]["SourceTableArn"],
        TargetTableName=latest,
        UseLatestRestorableTime=True,
    )
    wait_until_active(client, latest)
    assert items_of(client, latest) == items_of(client, name)


def test_moments_outside_of_the_period_are_refused(client: Any, table: Any) -> None:
    name = table()
    with refused(client, "PointInTimeRecoveryUnavailableException"):
        client.restore_table_to_point_in_time(
            SourceTableName=name, TargetTableName="other", UseLatestRestorableTime=True
        )
    enable(client, name)
    for moment in (int(time.time()) - 3600, int(time.time()) + 3600):
        with refused(client, "InvalidRestoreTimeException"):
            client.restore_table_to_point_in_time(
                SourceTableName=name, TargetTableName="other", RestoreDateTime=moment
            )
    with refused(client, "ValidationException"):
        client.restore_table_to_point_in_time(SourceTableName=name, TargetTableName="other")


def test_a_deleted_table_leaves_a_system_backup(client: Any, table: Any, target: Any) -> None:
    name = table(sk="N")
    fill(client, name, 12)
    enable(client, name)
    fill(client, name, 12, start=20)
    before = items_of(client, name)
    client.delete_table(TableName=name)
    listed = client.list_backups(TableName=name, BackupType="SYSTEM")["BackupSummaries"]
    assert [one["BackupName"] for one in listed] == [f"{name}$DeletedTableBackup"]
    kept = listed[0]["BackupExpiryDateTime"] - listed[0]["BackupCreationDateTime"]
    assert kept.days == 35
    available(client, listed[0]["BackupArn"])
    restored = target()
    client.restore_table_from_backup(TargetTableName=restored, BackupArn=listed[0]["BackupArn"])
    wait_until_active(client, restored)
    assert items_of(client, restored) == before


def test_a_backup_of_a_table_with_recovery_has_all_that_was_acknowledged(
    client: Any, table: Any, target: Any
) -> None:
    name = table(sk="N")
    enable(client, name)
    fill(client, name, 30)
    before = items_of(client, name)
    arn = client.create_backup(TableName=name, BackupName="now")["BackupDetails"]["BackupArn"]
    available(client, arn)
    fill(client, name, 5, start=50)
    restored = target()
    client.restore_table_from_backup(TargetTableName=restored, BackupArn=arn)
    wait_until_active(client, restored)
    assert items_of(client, restored) == before
