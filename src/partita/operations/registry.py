"""Which function answers which operation. What is not here is refused as unknown."""

from __future__ import annotations

from partita.operations import (
    account,
    batches,
    items,
    queries,
    scans,
    tables,
    tags,
    transactions,
    ttl,
)
from partita.operations.context import ReadHandler, WriteHandler

READS: dict[str, ReadHandler] = {
    "BatchGetItem": batches.batch_get_item,
    "DescribeEndpoints": account.describe_endpoints,
    "DescribeLimits": account.describe_limits,
    "DescribeTable": tables.describe_table,
    "DescribeTimeToLive": ttl.describe_time_to_live,
    "GetItem": items.get_item,
    "ListTables": tables.list_tables,
    "ListTagsOfResource": tags.list_tags_of_resource,
    "Query": queries.query,
    "Scan": scans.scan,
    "TransactGetItems": transactions.transact_get_items,
}

WRITES: dict[str, WriteHandler] = {
    "BatchWriteItem": batches.batch_write_item,
    "CreateTable": tables.create_table,
    "DeleteItem": items.delete_item,
    "DeleteTable": tables.delete_table,
    "PutItem": items.put_item,
    "TagResource": tags.tag_resource,
    "TransactWriteItems": transactions.transact_write_items,
    "UntagResource": tags.untag_resource,
    "UpdateItem": items.update_item,
    "UpdateTable": tables.update_table,
    "UpdateTimeToLive": ttl.update_time_to_live,
}
