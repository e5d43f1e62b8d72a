"""The handler of each operation of DynamoDB and DynamoDB Streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from partita.database.operations.context import (
    PlainHandler,
    ReadHandler,
    Request,
    WriteHandler,
)
from partita.database.operations.control_plane import (
    account,
    autoscaling,
    contributor_insights,
    kinesis_destinations,
    resource_policies,
    tables,
    tags,
    time_to_live,
)
from partita.database.operations.data_plane import (
    batches,
    items,
    plain_reads,
    queries,
    scans,
    transactions,
)
from partita.database.operations.streams import streams


def _later(load: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A handler that is imported with its first request, so that servers start faster."""
    loaded = cache(load)
    return lambda *arguments: loaded()(*arguments)


def _partiql_batches() -> ModuleType:
    from partita.database.operations.partiql import batches

    return batches


def _partiql_statements() -> ModuleType:
    from partita.database.operations.partiql import statements

    return statements


def _partiql_transactions() -> ModuleType:
    from partita.database.operations.partiql import transactions

    return transactions


def _backups() -> ModuleType:
    from partita.database.operations.recovery import backups

    return backups


def _bulk() -> ModuleType:
    from partita.database.operations.recovery import bulk

    return bulk


def _continuous() -> ModuleType:
    from partita.database.operations.recovery import continuous

    return continuous


def _exports() -> ModuleType:
    from partita.database.operations.recovery import exports

    return exports


def _imports() -> ModuleType:
    from partita.database.operations.recovery import imports

    return imports


def _restores() -> ModuleType:
    from partita.database.operations.recovery import restores

    return restores


READS: dict[str, ReadHandler] = {
    "BatchExecuteStatement": _later(lambda: _partiql_batches().execute_reads),
    "BatchGetItem": batches.batch_get_item,
    "DescribeBackup": _later(lambda: _backups().describe_backup),
    "DescribeBulkOperation": _later(lambda: _bulk().describe_bulk_operation),
    "DescribeContinuousBackups": _later(lambda: _continuous().describe_continuous_backups),
    "DescribeContributorInsights": contributor_insights.describe_contributor_insights,
    "DescribeEndpoints": account.describe_endpoints,
    "DescribeExport": _later(lambda: _exports().describe_export),
    "DescribeImport": _later(lambda: _imports().describe_import),
    "DescribeKinesisStreamingDestination": (
        kinesis_destinations.describe_kinesis_streaming_destination
    ),
    "DescribeLimits": account.describe_limits,
    "DescribeStream": streams.describe_stream,
    "DescribeTable": tables.describe_table,
    "DescribeTableReplicaAutoScaling": autoscaling.describe_table_replica_auto_scaling,
    "DescribeTimeToLive": time_to_live.describe_time_to_live,
    "ExecuteStatement": _later(lambda: _partiql_statements().execute_read),
    "ExecuteTransaction": _later(lambda: _partiql_transactions().execute_reads),
    "GetItem": items.get_item,
    "GetRecords": streams.get_records,
    "GetResourcePolicy": resource_policies.get_resource_policy,
    "GetShardIterator": streams.get_shard_iterator,
    "ListBackups": _later(lambda: _backups().list_backups),
    "ListBulkOperations": _later(lambda: _bulk().list_bulk_operations),
    "ListContributorInsights": contributor_insights.list_contributor_insights,
    "ListExports": _later(lambda: _exports().list_exports),
    "ListImports": _later(lambda: _imports().list_imports),
    "ListStreams": streams.list_streams,
    "ListTables": tables.list_tables,
    "ListTagsOfResource": tags.list_tags_of_resource,
    "Query": queries.query,
    "Scan": scans.scan,
    "TransactGetItems": transactions.transact_get_items,
}

PLAIN_READS: dict[str, PlainHandler] = {
    "GetItem": plain_reads.get_plain_item,
    "Query": plain_reads.query_plain_range,
}
"""Fast paths, which answer the simplest form of a request from its undecoded body."""

WRITES: dict[str, WriteHandler] = {
    "BatchExecuteStatement": _later(lambda: _partiql_batches().execute_writes),
    "BatchWriteItem": batches.batch_write_item,
    "CancelBulkOperation": _later(lambda: _bulk().cancel_bulk_operation),
    "CreateBackup": _later(lambda: _backups().create_backup),
    "CreateTable": tables.create_table,
    "DeleteBackup": _later(lambda: _backups().delete_backup),
    "DeleteItem": items.delete_item,
    "DeleteResourcePolicy": resource_policies.delete_resource_policy,
    "DeleteTable": tables.delete_table,
    "DisableKinesisStreamingDestination": (
        kinesis_destinations.disable_kinesis_streaming_destination
    ),
    "EnableKinesisStreamingDestination": kinesis_destinations.enable_kinesis_streaming_destination,
    "ExecuteStatement": _later(lambda: _partiql_statements().execute_write),
    "ExecuteTransaction": _later(lambda: _partiql_transactions().execute_writes),
    "ExportTableToPointInTime": _later(lambda: _exports().export_table_to_point_in_time),
    "ImportTable": _later(lambda: _imports().import_table),
    "PutItem": items.put_item,
    "PutResourcePolicy": resource_policies.put_resource_policy,
    "RestoreTableFromBackup": _later(lambda: _restores().restore_table_from_backup),
    "RestoreTableToPointInTime": _later(lambda: _restores().restore_table_to_point_in_time),
    "StartBulkPutItems": _later(lambda: _bulk().start_bulk_put_items),
    "TagResource": tags.tag_resource,
    "TransactWriteItems": transactions.transact_write_items,
    "UntagResource": tags.untag_resource,
    "UpdateContinuousBackups": _later(lambda: _continuous().update_continuous_backups),
    "UpdateContributorInsights": contributor_insights.update_contributor_insights,
    "UpdateItem": items.update_item,
    "UpdateKinesisStreamingDestination": kinesis_destinations.update_kinesis_streaming_destination,
    "UpdateTable": tables.update_table,
    "UpdateTableReplicaAutoScaling": autoscaling.update_table_replica_auto_scaling,
    "UpdateTimeToLive": time_to_live.update_time_to_live,
}

ONLY_READS: dict[str, Callable[[Request], bool]] = {
    "BatchExecuteStatement": _later(lambda: _partiql_batches().only_reads),
    "ExecuteStatement": _later(lambda: _partiql_statements().only_reads),
    "ExecuteTransaction": _later(lambda: _partiql_transactions().only_reads),
}
"""For operations in both READS and WRITES: True for a request that only reads."""

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
