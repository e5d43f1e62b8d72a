"""CreateBackup, DescribeBackup, ListBackups, DeleteBackup."""

from __future__ import annotations

from typing import Any

from partita.database.operations.answers import encode
from partita.database.operations.context import (
    ReadContext,
    Request,
    Service,
    WriteContext,
    table_name,
)
from partita.database.operations.control_plane.descriptions import (
    key_schema,
    projection_of,
    rounded,
)
from partita.database.operations.recovery.resources import (
    existing_table,
    id_in_arn,
    new_id,
    resource_arn,
    workplace,
)
from partita.database.recovery.records import SYSTEM, USER, Backup
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.schema import PAY_PER_REQUEST, Index, Table, Throughput
from partita.database.tables.statistics import read_statistics
from partita.errors import BackupInUseException, BackupNotFoundException
from partita.limits import LIST_BACKUPS_PAGE_MAX, SYSTEM_BACKUP_SECONDS

BACKUP = "backup"
ALL = "ALL"
CREATING, AVAILABLE, DELETED = "CREATING", "AVAILABLE", "DELETED"

Description = dict[str, Any]


def create_backup(context: WriteContext, request: Request) -> bytes:
    service = context.service
    table = existing_table(service, request["TableName"])
    backup = new_backup(service, context.write_batch, table, request["BackupName"], USER)
    return encode({"BackupDetails": _details(service, backup)})


def describe_backup(context: ReadContext, request: Request) -> bytes:
    backup = find_backup(context.service, request["BackupArn"])
    return encode({"BackupDescription": _description(context.service, backup)})


def delete_backup(context: WriteContext, request: Request) -> bytes:
    service = context.service
    backup = find_backup(service, request["BackupArn"])
    refuse_in_use(service, backup, request["BackupArn"])
    workplace(service).records.remove(context.write_batch, backup)
    description = _description(service, backup)
    description["BackupDetails"]["BackupStatus"] = DELETED
    return encode({"BackupDescription": description})


def list_backups(context: ReadContext, request: Request) -> bytes:
    service = context.service
    backups = [backup for backup in _all_backups(service) if _is_asked_for(backup, request)]
    start = id_in_arn(request.get("ExclusiveStartBackupArn", ""), BACKUP)
    backups = [backup for backup in backups if backup.id > start]
    limit = request.get("Limit", LIST_BACKUPS_PAGE_MAX)
    page: Description = {
        "BackupSummaries": [_summary(service, backup) for backup in backups[:limit]]
    }
    if len(backups) > limit:
        page["LastEvaluatedBackupArn"] = backup_arn(service, backups[limit - 1])
    return encode(page)


def new_backup(
    service: Service, write_batch: WriteBatch, table: Table, name: str, kind: str
) -> Backup:
    """Ask for a backup, which is taken in the background."""
    statistics = read_statistics(write_batch, table.number)
    now = service.clock()
    backup = Backup(
        id=new_id(service),
        name=name,
        kind=kind,
        table=table,
        created_at=now,
        item_count=statistics.item_count,
        size_bytes=statistics.size_bytes,
        expires_at=now + SYSTEM_BACKUP_SECONDS if kind == SYSTEM else None,
    )
    workplace(service).records.save(write_batch, backup)
    return backup


def back_up_deleted_table(service: Service, write_batch: WriteBatch, table: Table) -> None:
    """A table with recovery on can be restored for some time after it was deleted."""
    if table.recovery is not None:
        new_backup(service, write_batch, table, f"{table.name}$DeletedTableBackup", SYSTEM)


def find_backup(service: Service, arn: str) -> Backup:
    backup = workplace(service).records.find(Backup, id_in_arn(arn, BACKUP))
    if backup is None or backup_arn(service, backup) != arn:
        raise BackupNotFoundException(f"Backup not found: {arn}")
    return backup


def refuse_in_use(service: Service, backup: Backup, arn: str) -> None:
    """A backup that is being taken, or restored from, is not deleted."""
    restoring = [
        table.origin
        for table in service.catalog
        if table.origin and table.origin.is_in_progress and table.origin.backup_arn == arn
    ]
    if not backup.is_available or restoring:
        doing = "restored" if restoring else "created"
        raise BackupInUseException(f"Backup is being {doing}: {arn}")


def backup_arn(service: Service, backup: Backup) -> str:
    return resource_arn(service, backup.table.name, BACKUP, backup.id)


def _all_backups(service: Service) -> list[Backup]:
    return sorted(workplace(service).records.of(Backup), key=lambda backup: backup.id)


def _is_asked_for(backup: Backup, request: Request) -> bool:
    # On-demand backups are listed unless others are asked for (API reference).
    kind = request.get("BackupType", USER)
    if "TableName" in request and backup.table.name != table_name(request["TableName"]):
        return False
    # As it is shown, so that what was read off a list can be asked for.
    created_at = rounded(backup.created_at)
    if created_at < request.get("TimeRangeLowerBound", 0.0):
        return False
    if "TimeRangeUpperBound" in request and created_at >= request["TimeRangeUpperBound"]:
        return False
    return kind in (ALL, backup.kind)


def _status(backup: Backup) -> str:
    return AVAILABLE if backup.is_available else CREATING


def _details(service: Service, backup: Backup) -> Description:
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


def _summary(service: Service, backup: Backup) -> Description:
    table = backup.table
    return {
        "TableName": table.name,
        "TableId": table.table_id,
        "TableArn": service.table_arn(table.name),
        **_details(service, backup),
    }


def _description(service: Service, backup: Backup) -> Description:
    return {
        "BackupDetails": _details(service, backup),
        "SourceTableDetails": _source(service, backup),
        "SourceTableFeatureDetails": _features(backup.table),
    }


def _source(service: Service, backup: Backup) -> Description:
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


def _features(table: Table) -> Description:
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
    if table.ttl_attribute is None:
        features["TimeToLiveDescription"] = {"TimeToLiveStatus": "DISABLED"}
    else:
        features["TimeToLiveDescription"] = {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": table.ttl_attribute,
        }
    if table.sse is not None:
        features["SSEDescription"] = table.sse
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


def _units(throughput: Throughput) -> Description:
    return {
        "ReadCapacityUnits": throughput.read_units,
        "WriteCapacityUnits": throughput.write_units,
    }
