"""CreateBackup, DescribeBackup, ListBackups, DeleteBackup, RestoreTableFromBackup."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .conftest import wait_until_active

SECONDS_MAX = 30


@contextmanager
def refused(client: Any, code: str, text: str = "") -> Iterator[None]:
    with pytest.raises(ClientError) as caught:
        yield
    error = caught.value.response["Error"]
    assert error["Code"] == code
    assert text in error["Message"]


def available(client: Any, arn: str) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        described: dict[str, Any] = client.describe_backup(BackupArn=arn)["BackupDescription"]
        if described["BackupDetails"]["BackupStatus"] == "AVAILABLE":
            return described
        assert time.monotonic() < deadline, described
        time.sleep(0.02)


def items_of(client: Any, table: str, **more: Any) -> dict[str, Any]:
    pages = client.get_paginator("scan").paginate(TableName=table, **more)
    found = [item for page in pages for item in page["Items"]]
    return {str(sorted(item.items())): item for item in found}


@pytest.fixture
def target(client: Any, table_names: Iterator[str]) -> Iterator[Callable[[], str]]:
    names: list[str] = []

    def name() -> str:
        names.append(next(table_names))
        return names[-1]

    yield name
    for one in names:
        with suppress(client.exceptions.ResourceNotFoundException):
            wait_until_active(client, one)
            client.delete_table(TableName=one)


def fill(client: Any, table: str, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        item = {
            "pk": {"S": f"p{number % 7}"},
            "sk": {"N": str(number)},
            "g": {"S": f"g{number % 3}"},
        }
        client.put_item(TableName=table, Item=item)


INDEXES: dict[str, Any] = {
    "attributes": {"g": "S"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "g", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def test_a_backup_keeps_what_the_table_had_and_outlives_it(
    client: Any, table: Any, target: Any
) -> None:
    name = table(sk="N", **INDEXES)
    fill(client, name, 60)
    before = items_of(client, name)
    details = client.create_backup(TableName=name, BackupName="nightly")["BackupDetails"]
    assert re.fullmatch(rf"arn:.*:table/{name}/backup/\d{{14}}-[0-9a-f]{{8}}", details["BackupArn"])
    assert details["BackupType"] == "USER"
    described = available(client, details["BackupArn"])
    assert described["SourceTableDetails"]["ItemCount"] == 60
    fill(client, name, 20, start=100)
    client.delete_table(TableName=name)
    restored = target()
    answer = client.restore_table_from_backup(
        TargetTableName=restored, BackupArn=details["BackupArn"]
    )["TableDescription"]
    assert answer["TableStatus"] == "CREATING"
    assert answer["RestoreSummary"]["RestoreInProgress"] is True
    assert answer["RestoreSummary"]["SourceBackupArn"] == details["BackupArn"]
    description = wait_until_active(client, restored)
    assert description["ItemCount"] == 60
    assert "RestoreSummary" not in description
    assert items_of(client, restored) == before
    assert len(items_of(client, restored, IndexName="by_g")) == 60
    assert len(items_of(client, restored, IndexName="local")) == 60
    counts = {index["ItemCount"] for index in description["GlobalSecondaryIndexes"]}
    assert counts == {60}
    client.delete_backup(BackupArn=details["BackupArn"])


def test_a_restored_table_has_no_stream_ttl_tags_or_protection(
    client: Any, table: Any, target: Any
) -> None:
    name = table(
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        DeletionProtectionEnabled=True,
        Tags=[{"Key": "a", "Value": "b"}],
    )
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "t"}
    )
    arn = client.create_backup(TableName=name, BackupName="all")["BackupDetails"]["BackupArn"]
    features = available(client, arn)["SourceTableFeatureDetails"]
    assert features["StreamDescription"]["StreamViewType"] == "NEW_IMAGE"
    assert features["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "t",
    }
    restored = target()
    client.restore_table_from_backup(TargetTableName=restored, BackupArn=arn)
    description = wait_until_active(client, restored)
    assert "StreamSpecification" not in description
    assert description["DeletionProtectionEnabled"] is False
    assert client.list_tags_of_resource(ResourceArn=description["TableArn"])["Tags"] == []
    ttl = client.describe_time_to_live(TableName=restored)["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "DISABLED"}


def test_indexes_and_billing_can_be_changed_on_restore(
    client: Any, table: Any, target: Any
) -> None:
    name = table(sk="N", **INDEXES)
    fill(client, name, 5)
    arn = client.create_backup(TableName=name, BackupName="all")["BackupDetails"]["BackupArn"]
    available(client, arn)
    restored = target()
    client.restore_table_from_backup(
        TargetTableName=restored,
        BackupArn=arn,
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride={"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
        GlobalSecondaryIndexOverride=[],
        LocalSecondaryIndexOverride=[],
    )
    description = wait_until_active(client, restored)
    assert description["ProvisionedThroughput"]["ReadCapacityUnits"] == 3
    assert "GlobalSecondaryIndexes" not in description
    assert len(description["AttributeDefinitions"]) == 2
    renamed = {**INDEXES["GlobalSecondaryIndexes"][0], "IndexName": "other"}
    restored = target()
    client.restore_table_from_backup(
        TargetTableName=restored, BackupArn=arn, GlobalSecondaryIndexOverride=[renamed]
    )
    (index,) = wait_until_active(client, restored)["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["ItemCount"]) == ("other", 5)


def test_backups_are_listed_by_table_time_and_page(client: Any, table: Any) -> None:
    name = table()
    arns = [
        client.create_backup(TableName=name, BackupName=f"backup{number}")["BackupDetails"][
            "BackupArn"
        ]
        for number in range(3)
    ]
    for arn in arns:
        available(client, arn)
    first = client.list_backups(TableName=name, Limit=2)
    assert len(first["BackupSummaries"]) == 2
    second = client.list_backups(
        TableName=name, ExclusiveStartBackupArn=first["LastEvaluatedBackupArn"]
    )
    assert "LastEvaluatedBackupArn" not in second
    listed = [one["BackupArn"] for one in first["BackupSummaries"] + second["BackupSummaries"]]
    assert sorted(listed) == sorted(arns)
    assert len(client.list_backups(TableName=name, Limit=100)["BackupSummaries"]) == 3
    with refused(client, "ValidationException"):
        client.list_backups(TableName=name, Limit=101)
    assert client.list_backups(TableName=name, BackupType="SYSTEM")["BackupSummaries"] == []
    assert client.list_backups(TableName=name, TimeRangeUpperBound=1)["BackupSummaries"] == []
    deleted = client.delete_backup(BackupArn=arns[0])["BackupDescription"]
    assert deleted["BackupDetails"]["BackupStatus"] == "DELETED"
    with refused(client, "BackupNotFoundException"):
        client.describe_backup(BackupArn=arns[0])


def test_refusals_have_their_own_names(client: Any, table: Any) -> None:
    name = table()
    with refused(client, "TableNotFoundException", "Table not found: nothing"):
        client.create_backup(TableName="nothing", BackupName="abc")
    with refused(client, "ValidationException"):
        client.create_backup(TableName=name, BackupName="a")
    arn = client.create_backup(TableName=name, BackupName="abc")["BackupDetails"]["BackupArn"]
    available(client, arn)
    with refused(client, "TableAlreadyExistsException", f"Table already exists: {name}"):
        client.restore_table_from_backup(TargetTableName=name, BackupArn=arn)
    with refused(client, "BackupNotFoundException"):
        client.restore_table_from_backup(TargetTableName="other", BackupArn=arn[:-4] + "0000")
