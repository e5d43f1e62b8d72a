"""Backups and restores of tables that are being created or deleted."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita import testing

SECONDS = 5.0


def create(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def status(client: Any, name: str) -> str:
    return str(client.describe_table(TableName=name)["Table"]["TableStatus"])


def test_a_table_is_backed_up_while_it_is_deleted_and_not_while_it_is_created() -> None:
    with testing.database(transient_seconds=SECONDS) as database:
        client = database.client()
        create(client, "table")
        with pytest.raises(ClientError, match="Table not found: table"):
            client.create_backup(TableName="table", BackupName="early")
        database.clock.advance(seconds=SECONDS)
        client.put_item(TableName="table", Item={"pk": {"S": "a"}})
        client.delete_table(TableName="table")
        assert status(client, "table") == "DELETING"
        arn = client.create_backup(TableName="table", BackupName="late")["BackupDetails"][
            "BackupArn"
        ]
        with pytest.raises(ClientError, match="Table already exists: table"):
            client.restore_table_from_backup(TargetTableName="table", BackupArn=arn)
        database.clock.advance(seconds=SECONDS)
        database.settle()
        client.restore_table_from_backup(TargetTableName="again", BackupArn=arn)
        assert status(client, "again") == "CREATING"
        database.clock.advance(seconds=SECONDS)
        database.settle()
        assert client.scan(TableName="again")["Items"] == [{"pk": {"S": "a"}}]
