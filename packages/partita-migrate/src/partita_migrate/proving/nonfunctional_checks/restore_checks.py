"""Recovery: tables are backed up, lost and restored by DynamoDB's own operations."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from partita.client.client_errors import ClientError
from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design, TableDesign
from partita_migrate.proving.proof_run.proof_results import ProofCheck
from partita_migrate.proving.sandbox.design_tables import delete_table, scan_items, wait_for
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient

ITEMS_MAX = 1_000_000
"""A larger table is left out, because it would be read four times."""
WAIT_SECONDS_MAX = 60
PROBE = "partita-test-probe"
BACKUP = "partita-migrate-test"
LOSE, SPOIL = "back up, lose, restore", "spoil, restore to a moment before"

_encode = msgspec.json.Encoder(order="sorted").encode


class TableContent(NamedTuple):
    """The content of a table, in constant size."""

    items: int
    digest: int
    """The sum of the items' digests, because items have no order."""
    first: Item


def recovery_checks(server: DynamoDBClient, design: Design, prefix: str) -> list[ProofCheck]:
    contents = {table.name: _read_content(server, prefix + table.name) for table in design.tables}
    fit = {
        name: content
        for name, content in contents.items()
        if content is not None and content.items <= ITEMS_MAX
    }
    if not fit:
        why = f"every table is empty, or has more than {ITEMS_MAX:,} items."
        return [ProofCheck(name=LOSE, outcome="not done", detail=why)]
    left_out = [
        name for name, content in contents.items() if content is not None and name not in fit
    ]
    tables = [table for table in design.tables if table.name in fit]
    return [
        _lose_and_restore(server, tables, prefix, fit, left_out),
        _spoil_and_restore(server, tables, prefix, fit, left_out),
    ]


def _lose_and_restore(
    server: DynamoDBClient,
    tables: Iterable[TableDesign],
    prefix: str,
    before: Mapping[str, TableContent],
    left_out: list[str],
) -> ProofCheck:
    """Backs up tables, deletes them, and restores them under their names."""
    after: dict[str, TableContent | None] = {}
    try:
        for table in tables:
            place = prefix + table.name
            made = server.call("CreateBackup", TableName=place, BackupName=BACKUP)
            arn = made["BackupDetails"]["BackupArn"]
            _wait_for_backup(server, arn)
            delete_table(server, place)
            server.call("RestoreTableFromBackup", TargetTableName=place, BackupArn=arn)
            wait_for(server, place)
            after[table.name] = _read_content(server, place)
            server.call("DeleteBackup", BackupArn=arn)
    except ClientError as error:
        return ProofCheck(name=LOSE, outcome="not done", detail=f"the server says {error}.")
    return _compare_contents(
        LOSE, before, after, left_out, "CreateBackup and RestoreTableFromBackup"
    )


def _spoil_and_restore(
    server: DynamoDBClient,
    tables: list[TableDesign],
    prefix: str,
    before: Mapping[str, TableContent],
    left_out: list[str],
) -> ProofCheck:
    """Overwrites items, and restores the tables to the moment before."""
    after: dict[str, TableContent | None] = {}
    try:
        for table in tables:
            server.call(
                "UpdateContinuousBackups",
                TableName=prefix + table.name,
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
        moment = _next_second()
        # Only writes after this second are to be undone.
        for table in tables:
            spoilt = {**before[table.name].first, PROBE: {"S": "spoilt"}}
            server.call("PutItem", TableName=prefix + table.name, Item=spoilt)
        _next_second()
        for table in tables:
            place = prefix + table.name
            restored = place[:240] + "-restored"
            server.call(
                "RestoreTableToPointInTime",
                SourceTableName=place,
                TargetTableName=restored,
                RestoreDateTime=moment,
            )
            wait_for(server, restored)
            after[table.name] = _read_content(server, restored)
            server.call("DeleteTable", TableName=restored)
            server.call("PutItem", TableName=place, Item=before[table.name].first)
    except ClientError as error:
        return ProofCheck(name=SPOIL, outcome="not done", detail=f"the server says {error}.")
    return _compare_contents(SPOIL, before, after, left_out, "RestoreTableToPointInTime")


def _compare_contents(
    name: str,
    before: Mapping[str, TableContent],
    after: Mapping[str, TableContent | None],
    left_out: list[str],
    how: str,
) -> ProofCheck:
    changed = [
        f"{table} had {was.items:,} items and came back with {now.items if now else 0:,}"
        for table, was in before.items()
        if (now := after[table]) is None or now[:2] != was[:2]
    ]
    if changed:
        detail = f"not as it was, by {how}: {'; '.join(changed)}."
        return ProofCheck(name=name, outcome="failed", detail=detail)
    items, tables = sum(content.items for content in before.values()), len(before)
    detail = (
        f"{items:,} {'item' if items == 1 else 'items'} of {tables}"
        f" {'table' if tables == 1 else 'tables'} came back, each as it was, by {how}."
    )
    if left_out:
        detail += f" Left out, with more than {ITEMS_MAX:,} items: {', '.join(left_out)}."
    return ProofCheck(name=name, outcome="passed", detail=detail)


def _next_second() -> int:
    """Waits for the next second: tables are restored to whole seconds."""
    moment = int(time.time()) + 1
    time.sleep(max(moment + 0.05 - time.time(), 0))
    return moment


def _wait_for_backup(server: DynamoDBClient, arn: str) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end:
        backup = server.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
        if backup["BackupDetails"]["BackupStatus"] == "AVAILABLE":
            return
        time.sleep(0.05)


def _read_content(server: DynamoDBClient, name: str) -> TableContent | None:
    """Returns the content of a table, None for an empty one. Stops counting above `ITEMS_MAX`."""
    count, total = 0, 0
    first: Item = {}
    for item in scan_items(server, name):
        first = first or item
        count += 1
        digest = hashlib.blake2b(_encode(item), digest_size=16).digest()
        total += int.from_bytes(digest, "big")
        if count > ITEMS_MAX:
            break
    return TableContent(count, total, first) if count else None
