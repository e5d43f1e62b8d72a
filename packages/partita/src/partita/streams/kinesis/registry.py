"""Which function answers which operation of Kinesis."""

from __future__ import annotations

from partita.database.operations.context import ReadHandler, WriteHandler
from partita.streams.kinesis import records, shards, streams, tags

READS: dict[str, ReadHandler] = {
    "Kinesis.DescribeLimits": streams.describe_limits,
    "Kinesis.DescribeStream": streams.describe_stream,
    "Kinesis.DescribeStreamSummary": streams.describe_stream_summary,
    "Kinesis.GetRecords": records.get_records,
    "Kinesis.GetShardIterator": records.get_shard_iterator,
    "Kinesis.ListShards": shards.list_shards,
    "Kinesis.ListStreams": streams.list_streams,
    "Kinesis.ListTagsForResource": tags.list_tags_for_resource,
    "Kinesis.ListTagsForStream": tags.list_tags_for_stream,
}

WRITES: dict[str, WriteHandler] = {
    "Kinesis.AddTagsToStream": tags.add_tags_to_stream,
    "Kinesis.CreateStream": streams.create_stream,
    "Kinesis.DecreaseStreamRetentionPeriod": streams.decrease_stream_retention_period,
    "Kinesis.DeleteStream": streams.delete_stream,
    "Kinesis.IncreaseStreamRetentionPeriod": streams.increase_stream_retention_period,
    "Kinesis.MergeShards": shards.merge_shards,
    "Kinesis.PutRecord": records.put_record,
    "Kinesis.PutRecords": records.put_records,
    "Kinesis.RemoveTagsFromStream": tags.remove_tags_from_stream,
    "Kinesis.SplitShard": shards.split_shard,
    "Kinesis.TagResource": tags.tag_resource,
    "Kinesis.UntagResource": tags.untag_resource,
    "Kinesis.UpdateMaxRecordSize": streams.update_max_record_size,
    "Kinesis.UpdateShardCount": shards.update_shard_count,
    "Kinesis.UpdateStreamMode": streams.update_stream_mode,
}
