"""Which function answers which operation. What is not here is refused as unknown."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from partita.database.operations.context import ReadHandler, Request, WriteHandler
from partita.database.operations.control_plane import (
    account,
    autoscaling,
    contributor_insights,
    kinesis_destinations,
    tables,
    tags,
)
from partita.database.operations.control_plane import time_to_live as ttl
from partita.database.operations.data_plane import batches, items, queries, scans, transactions
from partita.database.operations.streams import streams
from partita.streams.kinesis import records as kinesis_records
from partita.streams.kinesis import shards as kinesis_shards
from partita.streams.kinesis import streams as kinesis_streams
from partita.streams.kinesis import tags as kinesis_tags


def _partiql(module: str, name: str) -> Callable[..., Any]:
    """Imported with the first statement: many servers never see one, and start sooner."""

    @cache
    def load() -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(
            import_module(f"partita.database.operations.{module}"), name
        )
        return function

    return lambda *given: load()(*given)


READS: dict[str, ReadHandler] = {
    "BatchExecuteStatement": _partiql("statement_batches", "execute_reads"),
    "BatchGetItem": batches.batch_get_item,
    "DescribeContributorInsights": contributor_insights.describe_contributor_insights,
    "DescribeEndpoints": account.describe_endpoints,
    "DescribeKinesisStreamingDestination": (
        kinesis_destinations.describe_kinesis_streaming_destination
    ),
    "DescribeLimits": account.describe_limits,
    "DescribeStream": streams.describe_stream,
    "DescribeTable": tables.describe_table,
    "DescribeTableReplicaAutoScaling": autoscaling.describe_table_replica_auto_scaling,
    "DescribeTimeToLive": ttl.describe_time_to_live,
    "ExecuteStatement": _partiql("statements", "execute_read"),
    "ExecuteTransaction": _partiql("statement_transactions", "execute_reads"),
    "GetItem": items.get_item,
    "GetRecords": streams.get_records,
    "GetShardIterator": streams.get_shard_iterator,
    "Kinesis.DescribeLimits": kinesis_streams.describe_limits,
    "Kinesis.DescribeStream": kinesis_streams.describe_stream,
    "Kinesis.DescribeStreamSummary": kinesis_streams.describe_stream_summary,
    "Kinesis.GetRecords": kinesis_records.get_records,
    "Kinesis.GetShardIterator": kinesis_records.get_shard_iterator,
    "Kinesis.ListShards": kinesis_shards.list_shards,
    "Kinesis.ListStreams": kinesis_streams.list_streams,
    "Kinesis.ListTagsForResource": kinesis_tags.list_tags_for_resource,
    "Kinesis.ListTagsForStream": kinesis_tags.list_tags_for_stream,
    "ListContributorInsights": contributor_insights.list_contributor_insights,
    "ListStreams": streams.list_streams,
    "ListTables": tables.list_tables,
    "ListTagsOfResource": tags.list_tags_of_resource,
    "Query": queries.query,
    "Scan": scans.scan,
    "TransactGetItems": transactions.transact_get_items,
}

WRITES: dict[str, WriteHandler] = {
    "BatchExecuteStatement": _partiql("statement_batches", "execute_writes"),
    "BatchWriteItem": batches.batch_write_item,
    "CreateTable": tables.create_table,
    "DeleteItem": items.delete_item,
    "DeleteTable": tables.delete_table,
    "DisableKinesisStreamingDestination": (
        kinesis_destinations.disable_kinesis_streaming_destination
    ),
    "EnableKinesisStreamingDestination": kinesis_destinations.enable_kinesis_streaming_destination,
    "ExecuteStatement": _partiql("statements", "execute_write"),
    "ExecuteTransaction": _partiql("statement_transactions", "execute_writes"),
    "Kinesis.AddTagsToStream": kinesis_tags.add_tags_to_stream,
    "Kinesis.CreateStream": kinesis_streams.create_stream,
    "Kinesis.DecreaseStreamRetentionPeriod": kinesis_streams.decrease_stream_retention_period,
    "Kinesis.DeleteStream": kinesis_streams.delete_stream,
    "Kinesis.IncreaseStreamRetentionPeriod": kinesis_streams.increase_stream_retention_period,
    "Kinesis.MergeShards": kinesis_shards.merge_shards,
    "Kinesis.PutRecord": kinesis_records.put_record,
    "Kinesis.PutRecords": kinesis_records.put_records,
    "Kinesis.RemoveTagsFromStream": kinesis_tags.remove_tags_from_stream,
    "Kinesis.SplitShard": kinesis_shards.split_shard,
    "Kinesis.TagResource": kinesis_tags.tag_resource,
    "Kinesis.UntagResource": kinesis_tags.untag_resource,
    "Kinesis.UpdateMaxRecordSize": kinesis_streams.update_max_record_size,
    "Kinesis.UpdateShardCount": kinesis_shards.update_shard_count,
    "Kinesis.UpdateStreamMode": kinesis_streams.update_stream_mode,
    "PutItem": items.put_item,
    "TagResource": tags.tag_resource,
    "TransactWriteItems": transactions.transact_write_items,
    "UntagResource": tags.untag_resource,
    "UpdateContributorInsights": contributor_insights.update_contributor_insights,
    "UpdateItem": items.update_item,
    "UpdateKinesisStreamingDestination": kinesis_destinations.update_kinesis_streaming_destination,
    "UpdateTable": tables.update_table,
    "UpdateTableReplicaAutoScaling": autoscaling.update_table_replica_auto_scaling,
    "UpdateTimeToLive": ttl.update_time_to_live,
}

ONLY_READS: dict[str, Callable[[Request], bool]] = {
    "BatchExecuteStatement": _partiql("statement_batches", "only_reads"),
    "ExecuteStatement": _partiql("statements", "only_reads"),
    "ExecuteTransaction": _partiql("statement_transactions", "only_reads"),
}
"""Operations that are in both tables: whether a request is to be answered by the first."""
