"""What the operations of recovery need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.operations.context import Service
from partita.server.security.rights.items import PREFIX, find_table, table_arn, tags_of
from partita.server.security.rights.needs import Need, Request, Rights, policy_of

COPY: Final = ("BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem")
"""What one who restores must be allowed to do with the new table (guide, "Using IAM")."""


def _on_table(action: str, member: str = "TableName") -> Rights:
    def rights(service: Service, request: Request) -> Sequence[Need]:
        table = find_table(service, request[member])
        arn = table_arn(service, request[member])
        return (Need(PREFIX + action, arn, lambda: tags_of(table), policy_of(table)),)

    return rights


def _on_arn(action: str, member: str) -> Rights:
    return lambda service, request: (Need(PREFIX + action, request[member]),)


def _on_any(action: str, kind: str) -> Rights:
    """Of an operation that lists what tables have."""
    return lambda service, request: (Need(PREFIX + action, f"{service.table_arn('*')}/{kind}/*"),)


def _on_target(service: Service, request: Request) -> list[Need]:
    arn = table_arn(service, request["TargetTableName"])
    return [Need(PREFIX + action, arn) for action in COPY]


def restore_from_backup(service: Service, request: Request) -> Sequence[Need]:
    return (
        Need(f"{PREFIX}RestoreTableFromBackup", request["BackupArn"]),
        *_on_target(service, request),
    )


def restore_to_point_in_time(service: Service, request: Request) -> Sequence[Need]:
    name = request.get("SourceTableArn") or request.get("SourceTableName") or "*"
    table = find_table(service, name)
    arn = table_arn(service, name)
    return (
        Need(f"{PREFIX}RestoreTableToPointInTime", arn, lambda: tags_of(table), policy_of(table)),
        *_on_target(service, request),
    )


RIGHTS: Final[dict[str, Rights]] = {
    "CreateBackup": _on_table("CreateBackup"),
    "DeleteBackup": _on_arn("DeleteBackup", "BackupArn"),
    "DescribeBackup": _on_arn("DescribeBackup", "BackupArn"),
    "DescribeContinuousBackups": _on_table("DescribeContinuousBackups"),
    "ListBackups": _on_any("ListBackups", "backup"),
    "RestoreTableFromBackup": restore_from_backup,
    "RestoreTableToPointInTime": restore_to_point_in_time,
    "UpdateContinuousBackups": _on_table("UpdateContinuousBackups"),
}
