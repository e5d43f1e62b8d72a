"""The TableDescription in control-plane responses."""

from __future__ import annotations

from typing import Any

from partita.database.item.key_encoding import KeyAttribute
from partita.database.operations.control_plane.server_side_encryption import current_sse
from partita.database.operations.operation_context import DatabaseService
from partita.database.storage.engine import Reader
from partita.database.tables.definition.table_schema import (
    ACTIVE,
    CREATING,
    DELETING,
    UPDATING,
    Index,
    ProvisionedThroughput,
    RestoreOrigin,
    Table,
)
from partita.database.tables.definition.table_throughput import warm_throughput
from partita.database.tables.table_statistics import read_statistics

Description = dict[str, Any]


def description_of(
    service: DatabaseService, reader: Reader, table: Table, status: str | None = None
) -> Description:
    """Returns the TableDescription of a table.

    `status` overrides the table's own status, in the response to the request that changes it.
    """
    status = status or table.status(service.clock())
    statistics = read_statistics(reader, table.number)
    arn = service.table_arn(table.name)
    # A table that is being deleted shows no keys, indexes or creation date (recorded).
    design = {} if status == DELETING else _design(service, reader, table, status)
    return {
        **design,
        "TableName": table.name,
        "TableStatus": status,
        "ProvisionedThroughput": throughput_of(table.throughput, service.clock()),
        "TableSizeBytes": statistics.size_bytes,
        "ItemCount": statistics.item_count,
        "TableArn": arn,
        "TableId": table.table_id,
        "DeletionProtectionEnabled": table.deletion_protection,
        "WarmThroughput": _warm(table, table.throughput, table.warm_throughput, status),
        **_settings(service, table, arn, status),
    }


def _design(service: DatabaseService, reader: Reader, table: Table, status: str) -> Description:
    """Returns the keys, the indexes and the creation date."""
    design: Description = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in table.attribute_types.items()
        ],
        "KeySchema": key_schema((table.partition,), table.sort_attributes),
        "CreationDateTime": rounded(table.created_at),
    }
    if local := table.local_indexes:
        design["LocalSecondaryIndexes"] = [
            _describe_index(service, reader, table, index) for index in local
        ]
    if global_indexes := table.global_indexes:
        design["GlobalSecondaryIndexes"] = [
            _describe_global(service, reader, table, index, status) for index in global_indexes
        ]
    return design


def _settings(service: DatabaseService, table: Table, arn: str, status: str) -> Description:
    """Returns the members that are only present if they are set."""
    settings: Description = {}
    if table.on_demand_since is not None:
        summary: Description = {"BillingMode": table.billing_mode}
        if status == ACTIVE:
            # This member appears when the change is complete (recorded).
            summary["LastUpdateToPayPerRequestDateTime"] = rounded(table.on_demand_since)
        settings["BillingModeSummary"] = summary
    if table.on_demand_throughput is not None:
        settings["OnDemandThroughput"] = table.on_demand_throughput
    if table.stream_view_type is not None:
        settings["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": table.stream_view_type,
        }
    if table.stream_label is not None:
        settings["LatestStreamLabel"] = table.stream_label
        settings["LatestStreamArn"] = f"{arn}/stream/{table.stream_label}"
    if table.sse is not None:
        settings["SSEDescription"] = current_sse(service, table.sse)
    if table.table_class is not None:
        class_summary: Description = {"TableClass": table.table_class}
        if table.table_class_changed_at is not None:
            class_summary["LastUpdateDateTime"] = rounded(table.table_class_changed_at)
        settings["TableClassSummary"] = class_summary
    if table.origin is not None and status == CREATING:
        # The summary disappears when the table becomes ACTIVE (recorded).
        settings["RestoreSummary"] = _restore_summary(table.origin)
    return settings


def _restore_summary(origin: RestoreOrigin) -> Description:
    summary: Description = {
        "SourceTableArn": origin.table_arn,
        "RestoreDateTime": rounded(origin.restored_to),
        "RestoreInProgress": True,
    }
    if origin.backup_arn is not None:
        summary["SourceBackupArn"] = origin.backup_arn
    return summary


def _describe_index(
    service: DatabaseService, reader: Reader, table: Table, index: Index
) -> Description:
    statistics = read_statistics(reader, table.number, index.number)
    return {
        "IndexName": index.name,
        "KeySchema": key_schema(index.partition, index.sort),
        "Projection": projection_of(index),
        "IndexSizeBytes": statistics.size_bytes,
        "ItemCount": statistics.item_count,
        "IndexArn": f"{service.table_arn(table.name)}/index/{index.name}",
    }


def _describe_global(
    service: DatabaseService, reader: Reader, table: Table, index: Index, table_status: str
) -> Description:
    description = _describe_index(service, reader, table, index)
    status = CREATING if table_status == CREATING else index.status
    description["IndexStatus"] = status
    description["ProvisionedThroughput"] = throughput_of(index.throughput, service.clock())
    if status == CREATING and table_status != CREATING:
        # While the table is UPDATING, resources are allocated; after that, the index is backfilled
        # (guide, "Managing global secondary indexes").
        description["Backfilling"] = table_status != UPDATING
    if index.on_demand_throughput is not None:
        description["OnDemandThroughput"] = index.on_demand_throughput
    description["WarmThroughput"] = _warm(table, index.throughput, index.warm_throughput, status)
    return description


def _warm(
    table: Table, units: ProvisionedThroughput, requested: dict[str, int] | None, status: str
) -> Description:
    # While a table is CREATING, its warm throughput is UPDATING (ScyllaDB Alternator's tests, run
    # on AWS).
    shown = UPDATING if status == CREATING else status
    return {**warm_throughput(table.billing_mode, units, requested), "Status": shown}


def key_schema(
    partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]
) -> list[Description]:
    return [{"AttributeName": attribute.name, "KeyType": "HASH"} for attribute in partition] + [
        {"AttributeName": attribute.name, "KeyType": "RANGE"} for attribute in sort
    ]


def projection_of(index: Index) -> Description:
    projection: Description = {"ProjectionType": index.projection_type}
    if index.non_key_attributes:
        projection["NonKeyAttributes"] = list(index.non_key_attributes)
    return projection


def throughput_of(throughput: ProvisionedThroughput, now: float) -> Description:
    description: Description = {
        "NumberOfDecreasesToday": throughput.decreases_today(now),
        "ReadCapacityUnits": throughput.read_units,
        "WriteCapacityUnits": throughput.write_units,
    }
    if throughput.increased_at is not None:
        description["LastIncreaseDateTime"] = rounded(throughput.increased_at)
    if throughput.decreased_at is not None:
        description["LastDecreaseDateTime"] = rounded(throughput.decreased_at)
    return description


def rounded(time: float) -> float:
    """Returns a time as the service's responses have it: seconds with three decimals."""
    return round(time, 3)
