"""Recovery: tables are backed up, lost and restored, by the service's own operations."""

from __future__ import annotations

import time

from partita.client.failures import ClientError
from partita.database.item.values import Item
from partita.migrate.model.design import Design, TableDesign
from partita.migrate.proving.private_server import DynamoDB
from partita.migrate.proving.results import Check
from partita.migrate.proving.tables import scanned, wait_for

ITEMS_MAX = 5000
"""A larger table is not compared through memory."""
WAIT_SECONDS_MAX = 60
PROBE = "partita-test-probe"
BACKUP = "partita-migrate-test"


def recovery_checks(server: DynamoDB, design: Design, prefix: str) -> list[Check]:
    table = _largest(server, design, prefix)
    if table is None:
        why = f"every table is empty, or larger than the {ITEMS_MAX:,} items that are compared."
        return [Check(name="back up, lose, restore", outcome="not done", detail=why)]
    return [_backup(server, table, prefix), _point_in_time(server, table, prefix)]


def _backup(server: DynamoDB, table: TableDesign, prefix: str) -> Check:
    """The table itself is deleted, and comes back under its name."""
    name = "back up, lose, restore"
    place = prefix + table.name
    try:
        made = server.call("CreateBackup", TableName=place, BackupName=BACKUP)
        arn = made["BackupDetails"]["BackupArn"]
        _wait_for_backup(server, arn)
        before = _held(server, place)
        server.call("DeleteTable", TableName=place)
        _wait_until_gone(server, place)
        server.call("RestoreTableFromBackup", TargetTableName=place, BackupArn=arn)
        wait_for(server, place)
        after = _held(server, place)
        server.call("DeleteBackup", BackupArn=arn)
    except ClientError as error:
        return Check(name=name, outcome="not done", detail=f"the server says {error}.")
    return _compared(name, table, before, after, "CreateBackup and RestoreTableFromBackup")


def _point_in_time(server: DynamoDB, table: TableDesign, prefix: str) -> Check:
    """What a wrong write spoiled is brought back as it was a moment before."""
    name = "spoil, restore to a moment before"
    place, restored = prefix + table.name, f"{prefix}{table.name}"[:240] + "-restored"
    try:
        server.call(
            "UpdateContinuousBackups",
            TableName=place,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
        before = _held(server, place)
        moment = _next_second()
        item = next(iter(before.values()))
        key = {one.name: item[one.name] for one in table.keys}
        server.call("PutItem", TableName=place, Item={**item, PROBE: {"S": "spoilt"}})
        _next_second()
        server.call(
            "RestoreTableToPointInTime",
            SourceTableName=place,
            TargetTableName=restored,
            RestoreDateTime=moment,
        )
        wait_for(server, restored)
        after = _held(server, restored)
        server.call("DeleteTable", TableName=restored)
        server.call("PutItem", TableName=place, Item=item)
        is_spoilt = server.call("GetItem", TableName=place, Key=key).get("Item") != item
    except ClientError as error:
        return Check(name=name, outcome="not done", detail=f"the server says {error}.")
    if is_spoilt:
        return Check(name=name, outcome="failed", detail="the item could not be put back.")
    return _compared(name, table, before, after, "RestoreTableToPointInTime")


def _compared(
    name: str, table: TableDesign, before: dict[str, Item], after: dict[str, Item], how: str
) -> Check:
    missing, strange = len(before.keys() - after.keys()), len(after.keys() - before.keys())
    return Check(
        name=name,
        outcome="passed" if before == after else "failed",
        detail=f"{len(after):,} items of {table.name} came back of {len(before):,}, {missing:,}"
        f" missing and {strange:,} others, by {how}.",
    )


def _next_second() -> int:
    """Waits for the second to end: moments to restore to are whole ones."""
    moment = int(time.time()) + 1
    time.sleep(max(moment + 0.05 - time.time(), 0))
    return moment


def _wait_for_backup(server: DynamoDB, arn: str) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end:
        found = server.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
        if found["BackupDetails"]["BackupStatus"] == "AVAILABLE":
            return
        time.sleep(0.05)


def _wait_until_gone(server: DynamoDB, name: str) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end:
        try:
            server.call("DescribeTable", TableName=name)
        except ClientError as error:
            if error.code == "ResourceNotFoundException":
                return
            raise
        time.sleep(0.05)


def _largest(server: DynamoDB, design: Design, prefix: str) -> TableDesign | None:
    """Of those that are small enough, the one with the most items."""
    counts = {table.name: _count(server, prefix + table.name) for table in design.tables}
    fit = [one for one in design.tables if 0 < counts[one.name] <= ITEMS_MAX]
    return max(fit, key=lambda one: counts[one.name], default=None)


def _count(server: DynamoDB, name: str) -> int:
    """Up to the limit: beyond it, nobody asks how many there are."""
    return sum(1 for _ in zip(scanned(server, name), range(ITEMS_MAX + 1), strict=False))


def _held(server: DynamoDB, name: str) -> dict[str, Item]:
    return {repr(sorted(item.items())): item for item in scanned(server, name)}
