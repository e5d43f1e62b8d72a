"""The rights that backups, restores, exports and imports need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.item_rights import PREFIX, find_table, table_arn, tags_of
from partita.server.security.rights.requested_rights import (
    Request,
    RequestedRight,
    Rights,
    policy_of,
)

S3: Final = "arn:aws:s3:::"
COPY: Final = ("BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem")
"""The actions on the new table that a restore needs (developer guide, "Using IAM")."""


def _on_table(action: str, member: str = "TableName") -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        table = find_table(service, request[member])
        arn = table_arn(service, request[member])
        return (RequestedRight(PREFIX + action, arn, lambda: tags_of(table), policy_of(table)),)

    return rights


def _on_arn(action: str, member: str) -> Rights:
    return lambda service, request: (RequestedRight(PREFIX + action, request[member]),)


def _on_any(action: str, kind: str) -> Rights:
    """Makes the rights of an operation that lists the backups, exports or imports of all tables."""
    return lambda service, request: (
        RequestedRight(PREFIX + action, f"{service.table_arn('*')}/{kind}/*"),
    )


def _on_target(service: DatabaseService, request: Request) -> list[RequestedRight]:
    arn = table_arn(service, request["TargetTableName"])
    return [RequestedRight(PREFIX + action, arn) for action in COPY]


def restore_from_backup(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    return (
        RequestedRight(f"{PREFIX}RestoreTableFromBackup", request["BackupArn"]),
        *_on_target(service, request),
    )


def restore_to_point_in_time(
    service: DatabaseService, request: Request
) -> Sequence[RequestedRight]:
    name = request.get("SourceTableArn") or request.get("SourceTableName") or "*"
    table = find_table(service, name)
    arn = table_arn(service, name)
    return (
        RequestedRight(
            f"{PREFIX}RestoreTableToPointInTime", arn, lambda: tags_of(table), policy_of(table)
        ),
        *_on_target(service, request),
    )


def export_table(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    table = find_table(service, request["TableArn"])
    return (
        RequestedRight(
            f"{PREFIX}ExportTableToPointInTime",
            table_arn(service, request["TableArn"]),
            lambda: tags_of(table),
            policy_of(table),
        ),
        RequestedRight("s3:PutObject", f"{S3}{request['S3Bucket']}/*"),
    )


def import_table(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    bucket = request["S3BucketSource"]["S3Bucket"]
    name = request["TableCreationParameters"]["TableName"]
    return (
        RequestedRight(f"{PREFIX}ImportTable", f"{table_arn(service, name)}/import/*"),
        RequestedRight("s3:ListBucket", f"{S3}{bucket}"),
        RequestedRight("s3:GetObject", f"{S3}{bucket}/*"),
    )


def start_bulk_put_items(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    table = find_table(service, request["TableName"])
    arn = table_arn(service, request["TableName"])
    source = request["InputS3Configuration"]["S3Bucket"]
    output = request["OutputS3Configuration"].get("S3Bucket", "*")
    return (
        RequestedRight(f"{PREFIX}StartBulkPutItems", arn, lambda: tags_of(table), policy_of(table)),
        RequestedRight("s3:ListBucket", f"{S3}{source}"),
        RequestedRight("s3:GetObject", f"{S3}{source}/*"),
        RequestedRight("s3:PutObject", f"{S3}{output}/*"),
    )


RIGHTS: Final[dict[str, Rights]] = {
    "CancelBulkOperation": _on_arn("CancelBulkOperation", "BulkOperationArn"),
    "CreateBackup": _on_table("CreateBackup"),
    "DeleteBackup": _on_arn("DeleteBackup", "BackupArn"),
    "DescribeBackup": _on_arn("DescribeBackup", "BackupArn"),
    "DescribeBulkOperation": _on_arn("DescribeBulkOperation", "BulkOperationArn"),
    "DescribeContinuousBackups": _on_table("DescribeContinuousBackups"),
    "DescribeExport": _on_arn("DescribeExport", "ExportArn"),
    "DescribeImport": _on_arn("DescribeImport", "ImportArn"),
    "ExportTableToPointInTime": export_table,
    "ImportTable": import_table,
    "ListExports": _on_any("ListExports", "export"),
    "ListImports": _on_any("ListImports", "import"),
    "ListBulkOperations": _on_any("ListBulkOperations", "bulk"),
    "ListBackups": _on_any("ListBackups", "backup"),
    "RestoreTableFromBackup": restore_from_backup,
    "RestoreTableToPointInTime": restore_to_point_in_time,
    "StartBulkPutItems": start_bulk_put_items,
    "UpdateContinuousBackups": _on_table("UpdateContinuousBackups"),
}
