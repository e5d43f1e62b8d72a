"""Recovery: a table is saved, lost and restored, and compared with what it was."""

from __future__ import annotations

from partita.client.failures import ClientError
from partita.database.item.values import Item
from partita.migrate.model.design import Design, TableDesign
from partita.migrate.proving.private_server import DynamoDB
from partita.migrate.proving.results import Check
from partita.migrate.proving.tables import create_request, put_all, scanned, wait_for

ITEMS_MAX = 5000
"""A larger table is not copied through memory."""
NOT_BUILT = ("UnknownOperationException", "SerializationException")


def recovery_checks(server: DynamoDB, design: Design, prefix: str) -> list[Check]:
    return [_backup(server, design, prefix), _export(server, design, prefix)]


def _backup(server: DynamoDB, design: Design, prefix: str) -> Check:
    """By the service's own backup, where the server has it."""
    name = "back up, lose, restore"
    table = design.tables[0].name if design.tables else ""
    restored = f"{prefix}{table}-restored"[:255]
    try:
        made = server.call(
            "CreateBackup", TableName=prefix + table, BackupName="partita-migrate-test"
        )
        arn = made["BackupDetails"]["BackupArn"]
        server.call("RestoreTableFromBackup", TargetTableName=restored, BackupArn=arn)
        wait_for(server, restored)
        ours, theirs = _held(server, prefix + table), _held(server, restored)
        server.call("DeleteTable", TableName=restored)
        server.call("DeleteBackup", BackupArn=arn)
    except ClientError as error:
        return Check(name=name, outcome="not done", detail=f"the server says {error}.")
    same = ours == theirs
    return Check(
        name=name,
        outcome="passed" if same else "failed",
        detail=f"{len(theirs):,} items of {table} came back of {len(ours):,}.",
    )


def _export(server: DynamoDB, design: Design, prefix: str) -> Check:
    """By reading all of a table, deleting it, and putting the items again."""
    name = "export, lose, load again"
    table = _small(server, design, prefix)
    if table is None:
        return Check(name=name, outcome="not done", detail="no table is small enough.")
    place = prefix + table.name
    saved = _held(server, place)
    server.call("DeleteTable", TableName=place)
    server.call("CreateTable", **create_request(table, prefix))
    wait_for(server, place)
    for _ in put_all(server, ((place, item) for item in saved.values())):
        pass
    after = _held(server, place)
    return Check(
        name=name,
        outcome="passed" if after == saved else "failed",
        detail=f"{len(after):,} items of {table.name} came back of {len(saved):,}.",
    )


def _small(server: DynamoDB, design: Design, prefix: str) -> TableDesign | None:
    for table in design.tables:
        items = sum(1 for _, _ in zip(scanned(server, prefix + table.name), range(ITEMS_MAX + 1),
                                      strict=False))  # fmt: skip
        if 0 < items <= ITEMS_MAX:
            return table
    return None


def _held(server: DynamoDB, name: str) -> dict[str, Item]:
    found = list(scanned(server, name))
    return {repr(sorted(item.items())): item for item in found}
