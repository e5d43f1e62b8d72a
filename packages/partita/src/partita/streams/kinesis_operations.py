"""The function for each operation of Kinesis."""

from __future__ import annotations

from partita.database.operations.operation_context import ReadHandler, WriteHandler
from partita.streams import kinesis_records, kinesis_shards, kinesis_streams, kinesis_tags

READS: dict[str, ReadHandler] = {
    "Kinesis.DescribeLimits": kinesis_streams.describe_limits,
    "Kinesis.DescribeStream": kinesis_streams.describe_stream,
    "Kinesis.DescribeStreamSummary": kinesis_streams.describe_stream_summary,
    "Kinesis.GetRecords": kinesis_records.get_records,
    "Kinesis.GetShardIterator": kinesis_records.get_shard_iterator,
    "Kinesis.ListShards": kinesis_shards.list_shards,
    "Kinesis.ListStreams": kinesis_streams.list_streams,
    "Kinesis.ListTagsForResource": kinesis_tags.list_tags_for_resource,
    "Kinesis.ListTagsForStream": kinesis_tags.list_tags_for_stream,
}

WRITES: dict[str, WriteHandler] = {
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
}
