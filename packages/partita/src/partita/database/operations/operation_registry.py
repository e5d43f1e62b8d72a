"""The handler of each operation of DynamoDB and DynamoDB Streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from partita.database.operations.control_plane import (
    account_limits,
    auto_scaling_settings,
    contributor_insights,
    kinesis_destinations,
    resource_policies,
    table_tags,
    time_to_live,
)
from partita.database.operations.control_plane.tables import table_operations
from partita.database.operations.data_plane import (
    batch_items,
    fast_paths,
    item_operations,
    query,
    scan,
    transact_items,
)
from partita.database.operations.operation_context import (
    PlainHandler,
    ReadHandler,
    Request,
    WriteHandler,
)
from partita.database.operations.streams import stream_operations


def _later(load: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A handler that is imported with its first request, so that servers start faster."""
    loaded = cache(load)
    return lambda *arguments: loaded()(*arguments)


def _partiql_batches() -> ModuleType:
    from partita.database.operations.partiql import batch_execute_statement

    return batch_execute_statement


def _partiql_statements() -> ModuleType:
    from partita.database.operations.partiql import execute_statement

    return execute_statement


def _partiql_transactions() -> ModuleType:
    from partita.database.operations.partiql import execute_transaction

    return execute_transaction


def _backups() -> ModuleType:
    from partita.database.operations.recovery import table_backups

    return table_backups


def _bulk() -> ModuleType:
    from partita.database.operations.recovery import bulk_put_items

    return bulk_put_items


def _continuous() -> ModuleType:
    from partita.database.operations.recovery import point_in_time_recovery

    return point_in_time_recovery


def _exports() -> ModuleType:
    from partita.database.operations.recovery import table_exports

    return table_exports


def _imports() -> ModuleType:
    from partita.database.operations.recovery import table_imports

    return table_imports


def _restores() -> ModuleType:
    from partita.database.operations.recovery import table_restores

    return table_restores


READS: dict[str, ReadHandler] = {
    "BatchExecuteStatement": _later(lambda: _partiql_batches().execute_reads),
    "BatchGetItem": batch_items.batch_get_item,
    "DescribeBackup": _later(lambda: _backups().describe_backup),
    "DescribeBulkOperation": _later(lambda: _bulk().describe_bulk_operation),
    "DescribeContinuousBackups": _later(lambda: _continuous().describe_continuous_backups),
    "DescribeContributorInsights": contributor_insights.describe_contributor_insights,
    "DescribeEndpoints": account_limits.describe_endpoints,
    "DescribeExport": _later(lambda: _exports().describe_export),
    "DescribeImport": _later(lambda: _imports().describe_import),
    "DescribeKinesisStreamingDestination": (
        kinesis_destinations.describe_kinesis_streaming_destination
    ),
    "DescribeLimits": account_limits.describe_limits,
    "DescribeStream": stream_operations.describe_stream,
    "DescribeTable": table_operations.describe_table,
    "DescribeTableReplicaAutoScaling": auto_scaling_settings.describe_table_replica_auto_scaling,
    "DescribeTimeToLive": time_to_live.describe_time_to_live,
    "ExecuteStatement": _later(lambda: _partiql_statements().execute_read),
    "ExecuteTransaction": _later(lambda: _partiql_transactions().execute_reads),
    "GetItem": item_operations.get_item,
    "GetRecords": stream_operations.get_records,
    "GetResourcePolicy": resource_policies.get_resource_policy,
    "GetShardIterator": stream_operations.get_shard_iterator,
    "ListBackups": _later(lambda: _backups().list_backups),
    "ListBulkOperations": _later(lambda: _bulk().list_bulk_operations),
    "ListContributorInsights": contributor_insights.list_contributor_insights,
    "ListExports": _later(lambda: _exports().list_exports),
    "ListImports": _later(lambda: _imports().list_imports),
    "ListStreams": stream_operations.list_streams,
    "ListTables": table_operations.list_tables,
    "ListTagsOfResource": table_tags.list_tags_of_resource,
    "Query": query.query,
    "Scan": scan.scan,
    "TransactGetItems": transact_items.transact_get_items,
}

PLAIN_READS: dict[str, PlainHandler] = {
    "GetItem": fast_paths.get_plain_item,
    "Query": fast_paths.query_plain_range,
}
"""Fast paths, which answer the simplest form of a request from its undecoded body."""

WRITES: dict[str, WriteHandler] = {
    "BatchExecuteStatement": _later(lambda: _partiql_batches().execute_writes),
    "BatchWriteItem": batch_items.batch_write_item,
    "CancelBulkOperation": _later(lambda: _bulk().cancel_bulk_operation),
    "CreateBackup": _later(lambda: _backups().create_backup),
    "CreateTable": table_operations.create_table,
    "DeleteBackup": _later(lambda: _backups().delete_backup),
    "DeleteItem": item_operations.delete_item,
    "DeleteResourcePolicy": resource_policies.delete_resource_policy,
    "DeleteTable": table_operations.delete_table,
    "DisableKinesisStreamingDestination": (
        kinesis_destinations.disable_kinesis_streaming_destination
    ),
    "EnableKinesisStreamingDestination": kinesis_destinations.enable_kinesis_streaming_destination,
    "ExecuteStatement": _later(lambda: _partiql_statements().execute_write),
    "ExecuteTransaction": _later(lambda: _partiql_transactions().execute_writes),
    "ExportTableToPointInTime": _later(lambda: _exports().export_table_to_point_in_time),
    "ImportTable": _later(lambda: _imports().import_table),
    "PutItem": item_operations.put_item,
    "PutResourcePolicy": resource_policies.put_resource_policy,
    "RestoreTableFromBackup": _later(lambda: _restores().restore_table_from_backup),
    "RestoreTableToPointInTime": _later(lambda: _restores().restore_table_to_point_in_time),
    "StartBulkPutItems": _later(lambda: _bulk().start_bulk_put_items),
    "TagResource": table_tags.tag_resource,
    "TransactWriteItems": transact_items.transact_write_items,
    "UntagResource": table_tags.untag_resource,
    "UpdateContinuousBackups": _later(lambda: _continuous().update_continuous_backups),
    "UpdateContributorInsights": contributor_insights.update_contributor_insights,
    "UpdateItem": item_operations.update_item,
    "UpdateKinesisStreamingDestination": kinesis_destinations.update_kinesis_streaming_destination,
    "UpdateTable": table_operations.update_table,
    "UpdateTableReplicaAutoScaling": auto_scaling_settings.update_table_replica_auto_scaling,
    "UpdateTimeToLive": time_to_live.update_time_to_live,
}

ONLY_READS: dict[str, Callable[[Request], bool]] = {
    "BatchExecuteStatement": _later(lambda: _partiql_batches().only_reads),
    "ExecuteStatement": _later(lambda: _partiql_statements().only_reads),
    "ExecuteTransaction": _later(lambda: _partiql_transactions().only_reads),
}
"""Tells, for operations in both READS and WRITES, whether a request only reads."""

OF_ARCHIVES = frozenset(
    {
        "CancelBulkOperation",
        "CreateBackup",
        "DeleteBackup",
        "DescribeBackup",
        "DescribeBulkOperation",
        "DescribeContinuousBackups",
        "DescribeExport",
        "DescribeImport",
        "ExportTableToPointInTime",
        "ImportTable",
        "ListBackups",
        "ListBulkOperations",
        "ListExports",
        "ListImports",
        "RestoreTableFromBackup",
        "RestoreTableToPointInTime",
        "StartBulkPutItems",
        "UpdateContinuousBackups",
    }
)
"""Operations that need the archive of backups and commits beside the storage engine."""
