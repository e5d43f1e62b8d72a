"""What the operations of recovery need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.operations.context import Service
from partita.server.security.rights.items import PREFIX, find_table, table_arn, tags_of
from partita.server.security.rights.needs import Need, Request, Rights, policy_of

S3: Final = "arn:aws:s3:::"
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


def export_table(service: Service, request: Request) -> Sequence[Need]:
    table = find_table(service, request["TableArn"])
    return (
        Need(
            f"{PREFIX}ExportTableToPointInTime",
            table_arn(service, request["TableArn"]),
            lambda: tags_of(table),
            policy_of(table),
        ),
        Need("s3:PutObject", f"{S3}{request['S3Bucket']}/*"),
    )


def import_table(service: Service, request: Request) -> Sequence[Need]:
    bucket = request["S3BucketSource"]["S3Bucket"]
    name = request["TableCreationParameters"]["TableName"]
    return (
        Need(f"{PREFIX}ImportTable", f"{table_arn(service, name)}/import/*"),
        Need("s3:ListBucket", f"{S3}{bucket}"),
        Need("s3:GetObject", f"{S3}{bucket}/*"),
    )


def start_bulk_put_items(service: Service, request: Request) -> Sequence[Need]:
    table = find_table(service, request["TableName"])
    arn = table_arn(service, request["TableName"])
    source = request["InputS3Configuration"]["S3Bucket"]
    output = request["OutputS3Configuration"].get("S3Bucket", "*")
    return (
        Need(f"{PREFIX}StartBulkPutItems", arn, lambda: tags_of(table), policy_of(table)),
        Need("s3:ListBucket", f"{S3}{source}"),
        Need("s3:GetObject", f"{S3}{source}/*"),
        Need("s3:PutObject", f"{S3}{output}/*"),
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
