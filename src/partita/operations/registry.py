"""Which function answers which operation. What is not here is refused as unknown."""

from __future__ import annotations

from partita.operations import (
    account,
    autoscaling,
    batches,
    contributor_insights,
    items,
    queries,
    scans,
    statement_batches,
    statement_transactions,
    statements,
    streams,
    tables,
    tags,
    transactions,
    ttl,
)
from partita.operations.context import ReadHandler, WriteHandler

READS: dict[str, ReadHandler] = {
    "BatchGetItem": batches.batch_get_item,
    "DescribeContributorInsights": contributor_insights.describe_contributor_insights,
    "DescribeEndpoints": account.describe_endpoints,
    "DescribeLimits": account.describe_limits,
    "DescribeStream": streams.describe_stream,
    "DescribeTable": tables.describe_table,
    "DescribeTableReplicaAutoScaling": autoscaling.describe_table_replica_auto_scaling,
    "DescribeTimeToLive": ttl.describe_time_to_live,
    "GetItem": items.get_item,
    "GetRecords": streams.get_records,
    "GetShardIterator": streams.get_shard_iterator,
    "ListContributorInsights": contributor_insights.list_contributor_insights,
    "ListStreams": streams.list_streams,
    "ListTables": tables.list_tables,
    "ListTagsOfResource": tags.list_tags_of_resource,
    "Query": queries.query,
    "Scan": scans.scan,
    "TransactGetItems": transactions.transact_get_items,
}

WRITES: dict[str, WriteHandler] = {
    "BatchExecuteStatement": statement_batches.batch_execute_statement,
    "BatchWriteItem": batches.batch_write_item,
    "CreateTable": tables.create_table,
    "DeleteItem": items.delete_item,
    "DeleteTable": tables.delete_table,
    "ExecuteStatement": statements.execute_statement,
    "ExecuteTransaction": statement_transactions.execute_transaction,
    "PutItem": items.put_item,
    "TagResource": tags.tag_resource,
    "TransactWriteItems": transactions.transact_write_items,
    "UntagResource": tags.untag_resource,
    "UpdateContributorInsights": contributor_insights.update_contributor_insights,
    "UpdateItem": items.update_item,
    "UpdateTable": tables.update_table,
    "UpdateTableReplicaAutoScaling": autoscaling.update_table_replica_auto_scaling,
    "UpdateTimeToLive": ttl.update_time_to_live,
}
