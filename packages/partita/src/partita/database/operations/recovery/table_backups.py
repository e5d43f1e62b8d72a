"""CreateBackup, DescribeBackup, ListBackups, DeleteBackup: the operations on table backups."""

from __future__ import annotations

from typing import Any

from partita.database.operations.control_plane.server_side_encryption import current_sse
from partita.database.operations.control_plane.tables.table_descriptions import (
    key_schema,
    projection_of,
    rounded,
)
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.recovery.point_in_time_recovery import iso_second
from partita.database.operations.recovery.recovery_resources import (
    check_arn,
    existing_table,
    find_record,
    new_id,
    recovery_context,
)
from partita.database.operations.response_members import encode
from partita.database.recovery.recovery_records import SYSTEM, USER, BackupRecord
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_schema import (
    PAY_PER_REQUEST,
    Index,
    ProvisionedThroughput,
    Table,
)
from partita.database.tables.table_statistics import read_statistics
from partita.errors import (
    INVALID,
    INVALID_REQUEST,
    BackupInUseException,
    BackupNotFoundException,
    ValidationException,
)
from partita.foundation.service_limits import LIST_BACKUPS_PAGE_MAX, SYSTEM_BACKUP_SECONDS

ALL = "ALL"
CREATING, AVAILABLE, DELETED = "CREATING", "AVAILABLE", "DELETED"

Description = dict[str, Any]


def create_backup(context: WriteContext, request: Request) -> bytes:
    service = context.service
    # A table that is being deleted can still be backed up (recorded).
    table = existing_table(service, request["TableName"], but=(CREATING,))
    backup = new_backup(service, context.write_batch, table, request["BackupName"], USER)
    return encode({"BackupDetails": _details(service, backup)})


def describe_backup(context: ReadContext, request: Request) -> bytes:
    backup = find_backup(context.service, request["BackupArn"])
    return encode({"BackupDescription": _description(context.service, backup)})


def delete_backup(context: WriteContext, request: Request) -> bytes:
    service = context.service
    backup = find_backup(service, request["BackupArn"])
    if backup.kind == SYSTEM:
        raise ValidationException(
            f"{INVALID_REQUEST}User is not allowed to delete the system backup with arn "
            f"{request['BackupArn']}. It will automatically expire on "
            f"{iso_second(backup.expires_at or 0.0)}"
        )
    refuse_unfinished(service, backup, request["BackupArn"], "table")
    recovery_context(service).records.remove(context.write_batch, backup)
    description = _description(service, backup)
    description["BackupDetails"]["BackupStatus"] = DELETED
    return encode({"BackupDescription": description})


def list_backups(context: ReadContext, request: Request) -> bytes:
    service = context.service
    lower, upper = request.get("TimeRangeLowerBound"), request.get("TimeRangeUpperBound")
    if lower is not None and upper is not None and lower > upper:
        raise ValidationException(
            f"{INVALID}Time range lower bound must be less than or equal to upper bound"
        )
    backups = [backup for backup in _all_backups(service) if _is_requested(backup, request)]
    start = request.get("ExclusiveStartBackupArn", "").partition("/backup/")[2]
    backups = [backup for backup in backups if backup.id > start]
    limit = request.get("Limit", LIST_BACKUPS_PAGE_MAX)
    page: Description = {
        "BackupSummaries": [_summary(service, backup) for backup in backups[:limit]]
    }
    if len(backups) > limit:
        page["LastEvaluatedBackupArn"] = backup_arn(service, backups[limit - 1])
    return encode(page)


def new_backup(
    service: DatabaseService, write_batch: WriteBatch, table: Table, name: str, kind: str
) -> BackupRecord:
    """Record a backup, which is then taken in the background."""
    statistics = read_statistics(write_batch, table.number)
    now = service.clock()
    backup = BackupRecord(
        # The ids of system backups end with zeros (recorded).
        id=new_id(service, "0" * 8 if kind == SYSTEM else None),
        name=name,
        kind=kind,
        table=table,
        created_at=now,
        item_count=statistics.item_count,
        size_bytes=statistics.size_bytes,
        expires_at=now + SYSTEM_BACKUP_SECONDS if kind == SYSTEM else None,
    )
    recovery_context(service).records.save(write_batch, backup)
    return backup


def back_up_deleted_table(service: DatabaseService, write_batch: WriteBatch, table: Table) -> None:
    """Take a system backup of a table with point-in-time recovery that is being deleted.

    So it can be restored for 35 days after that, as in the service.
    """
    if table.recovery is not None:
        new_backup(service, write_batch, table, f"{table.name}$DeletedTableBackup", SYSTEM)


def find_backup(service: DatabaseService, arn: str) -> BackupRecord:
    check_arn(service, BackupRecord, arn)
    backup = find_record(service, BackupRecord, arn)
    if backup is None:
        raise BackupNotFoundException(f"Backup not found: {arn}")
    return backup


def refuse_unfinished(service: DatabaseService, backup: BackupRecord, arn: str, use: str) -> None:
    """Refuse to use a backup that is being taken, or that a table is being restored from."""
    if not backup.is_available:
        raise BackupInUseException(f"Backup is being created: {arn}")
    origins = [table.origin for table in service.catalog if table.origin]
    if any(origin.is_in_progress and origin.backup_arn == arn for origin in origins):
        raise BackupInUseException(f"Backup is being used to restore {use}: {arn}")


def backup_arn(service: DatabaseService, backup: BackupRecord) -> str:
    return recovery_context(service).arn(backup)


def _all_backups(service: DatabaseService) -> list[BackupRecord]:
    return sorted(recovery_context(service).records.of(BackupRecord), key=lambda backup: backup.id)


def _is_requested(backup: BackupRecord, request: Request) -> bool:
    # The default is to list on-demand backups (API reference).
    kind = request.get("BackupType", USER)
    if "TableName" in request and backup.table.name != table_name(request["TableName"]):
        return False
    # Compare the rounded time that responses show, so that a time from a list finds its backup.
    created_at = rounded(backup.created_at)
    if created_at < request.get("TimeRangeLowerBound", 0.0):
        return False
    if "TimeRangeUpperBound" in request and created_at >= request["TimeRangeUpperBound"]:
        return False
    return kind in (ALL, backup.kind)


def _status(backup: BackupRecord) -> str:
    return AVAILABLE if backup.is_available else CREATING


def _details(service: DatabaseService, backup: BackupRecord) -> Description:
    details: Description = {
        "BackupArn": backup_arn(service, backup),
        "BackupName": backup.name,
        "BackupSizeBytes": backup.size_bytes,
        "BackupStatus": _status(backup),
        "BackupType": backup.kind,
        "BackupCreationDateTime": rounded(backup.created_at),
    }
    if backup.expires_at is not None:
        details["BackupExpiryDateTime"] = rounded(backup.expires_at)
    return details


def _summary(service: DatabaseService, backup: BackupRecord) -> Description:
    table = backup.table
    return {
        "TableName": table.name,
        "TableId": table.table_id,
        "TableArn": service.table_arn(table.name),
        **_details(service, backup),
    }


def _description(service: DatabaseService, backup: BackupRecord) -> Description:
    return {
        "BackupDetails": _details(service, backup),
        "SourceTableDetails": _source(service, backup),
        # A system backup has no feature details (recorded).
        "SourceTableFeatureDetails": {}
        if backup.kind == SYSTEM
        else _features(service, backup.table),
    }


def _source(service: DatabaseService, backup: BackupRecord) -> Description:
    table = backup.table
    details: Description = {
        "TableName": table.name,
        "TableId": table.table_id,
        "TableArn": service.table_arn(table.name),
        "TableSizeBytes": backup.size_bytes,
        "KeySchema": key_schema((table.partition,), table.sort_attributes),
        "TableCreationDateTime": rounded(table.created_at),
        "ProvisionedThroughput": _units(table.throughput),
        "ItemCount": backup.item_count,
        "BillingMode": table.billing_mode,
    }
    if table.on_demand_throughput is not None:
        details["OnDemandThroughput"] = table.on_demand_throughput
    return details


def _features(service: DatabaseService, table: Table) -> Description:
    features: Description = {}
    if table.local_indexes:
        features["LocalSecondaryIndexes"] = [_index(index) for index in table.local_indexes]
    if table.global_indexes:
        features["GlobalSecondaryIndexes"] = [
            _global_index(table, index) for index in table.global_indexes
        ]
    if table.stream_view_type is not None:
        features["StreamDescription"] = {
            "StreamEnabled": True,
            "StreamViewType": table.stream_view_type,
        }
    if table.ttl_attribute is not None:
        features["TimeToLiveDescription"] = {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": table.ttl_attribute,
        }
    if table.sse is not None:
        features["SSEDescription"] = current_sse(service, table.sse)
    return features


def _index(index: Index) -> Description:
    return {
        "IndexName": index.name,
        "KeySchema": key_schema(index.partition, index.sort),
        "Projection": projection_of(index),
    }


def _global_index(table: Table, index: Index) -> Description:
    described = {**_index(index), "ProvisionedThroughput": _units(index.throughput)}
    if table.billing_mode == PAY_PER_REQUEST and index.on_demand_throughput is not None:
        described["OnDemandThroughput"] = index.on_demand_throughput
    return described


def _units(throughput: ProvisionedThroughput) -> Description:
    return {
        "ReadCapacityUnits": throughput.read_units,
        "WriteCapacityUnits": throughput.write_units,
    }
