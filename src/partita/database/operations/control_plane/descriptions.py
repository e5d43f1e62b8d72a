"""How a table is described: the TableDescription of every control-plane answer."""

from __future__ import annotations

from typing import Any

from partita.database.item.keys import KeyAttribute
from partita.database.operations.context import Service
from partita.database.operations.control_plane.definitions import warm_throughput
from partita.database.storage.engine import Reader
from partita.database.tables.schema import (
    ACTIVE,
    CREATING,
    DELETING,
    UPDATING,
    Index,
    Table,
    Throughput,
)
from partita.database.tables.statistics import read_statistics

Description = dict[str, Any]


def description_of(
    service: Service, reader: Reader, table: Table, status: str | None = None
) -> Description:
    """`status` is what the table is at this moment, while a change to it is being answered."""
    status = status or table.status(service.clock())
    statistics = read_statistics(reader, table.number)
    arn = service.table_arn(table.name)
    description: Description = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in table.attribute_types.items()
        ],
        "TableName": table.name,
        "KeySchema": _key_schema((table.partition,), table.sort_attributes),
        "TableStatus": status,
        "CreationDateTime": _seconds(table.created_at),
        "ProvisionedThroughput": _throughput(table.throughput, service.clock()),
        "TableSizeBytes": statistics.size_bytes,
        "ItemCount": statistics.item_count,
        "TableArn": arn,
        "TableId": table.table_id,
        "DeletionProtectionEnabled": table.deletion_protection,
        "WarmThroughput": _warm(table, table.throughput, table.warm_throughput, status),
    }
    if local := table.local_indexes:
        description["LocalSecondaryIndexes"] = [
            _describe_index(service, reader, table, index) for index in local
        ]
    if (global_indexes := table.global_indexes) and status != DELETING:
        description["GlobalSecondaryIndexes"] = [
            _describe_global(service, reader, table, index, status) for index in global_indexes
        ]
    return description | _settings(table, arn, status)


def _settings(table: Table, arn: str, status: str) -> Description:
    """Members that are there only when they say something."""
    settings: Description = {}
    if table.on_demand_since is not None:
        summary: Description = {"BillingMode": table.billing_mode}
        if status == ACTIVE:
            # Known when the change is done (recorded).
            summary["LastUpdateToPayPerRequestDateTime"] = _seconds(table.on_demand_since)
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
        settings["SSEDescription"] = table.sse
    if table.table_class is not None:
        class_summary: Description = {"TableClass": table.table_class}
        if table.table_class_changed_at is not None:
            class_summary["LastUpdateDateTime"] = _seconds(table.table_class_changed_at)
        settings["TableClassSummary"] = class_summary
    return settings


def _describe_index(service: Service, reader: Reader, table: Table, index: Index) -> Description:
    statistics = read_statistics(reader, table.number, index.number)
    return {
        "IndexName": index.name,
        "KeySchema": _key_schema(index.partition, index.sort),
        "Projection": _projection(index),
        "IndexSizeBytes": statistics.size_bytes,
        "ItemCount": statistics.item_count,
        "IndexArn": f"{service.table_arn(table.name)}/index/{index.name}",
    }


def _describe_global(
    service: Service, reader: Reader, table: Table, index: Index, table_status: str
) -> Description:
    description = _describe_index(service, reader, table, index)
    status = CREATING if table_status == CREATING else index.status
    description["IndexStatus"] = status
    description["ProvisionedThroughput"] = _throughput(index.throughput, service.clock())
    if status == CREATING and table_status != CREATING:
        # Resources are allotted while the table is UPDATING, then the index is filled. (Guide,
        # "Managing global secondary indexes".)
        description["Backfilling"] = table_status != UPDATING
    if index.on_demand_throughput is not None:
        description["OnDemandThroughput"] = index.on_demand_throughput
    description["WarmThroughput"] = _warm(table, index.throughput, index.warm_throughput, status)
    return description


def _warm(
    table: Table, units: Throughput, asked: dict[str, int] | None, status: str
) -> Description:
    # While a table is created, its warm throughput is on its way (Alternator's tests, on AWS).
    shown = UPDATING if status == CREATING else status
    return {**warm_throughput(table.billing_mode, units, asked), "Status": shown}


def _key_schema(
    partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]
) -> list[Description]:
    return [{"AttributeName": attribute.name, "KeyType": "HASH"} for attribute in partition] + [
        {"AttributeName": attribute.name, "KeyType": "RANGE"} for attribute in sort
    ]


def _projection(index: Index) -> Description:
    projection: Description = {"ProjectionType": index.projection_type}
    if index.non_key_attributes:
        projection["NonKeyAttributes"] = list(index.non_key_attributes)
    return projection


def _throughput(throughput: Throughput, now: float) -> Description:
    description: Description = {
        "NumberOfDecreasesToday": throughput.decreases_today(now),
        "ReadCapacityUnits": throughput.read_units,
        "WriteCapacityUnits": throughput.write_units,
    }
    if throughput.increased_at is not None:
        description["LastIncreaseDateTime"] = _seconds(throughput.increased_at)
    if throughput.decreased_at is not None:
        description["LastDecreaseDateTime"] = _seconds(throughput.decreased_at)
    return description


def _seconds(time: float) -> float:
    """Timestamps travel as seconds with milliseconds."""
    return round(time, 3)
