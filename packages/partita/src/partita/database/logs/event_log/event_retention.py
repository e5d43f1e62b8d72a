"""Retention of event streams: old records are removed, and closed shards after their last record.

The data of deleted streams is removed too. All of this happens in small pieces.
"""

from __future__ import annotations

from itertools import islice

from msgspec.structs import replace

from partita.database.logs.event_log import event_log_layout
from partita.database.logs.event_log.event_records import RecordBatch, unpack_batch
from partita.database.logs.event_log.event_streams import EventStream, EventStreams
from partita.database.logs.event_log.shard_splits import EventShard
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch

HOUR = 3600


def trim_stream(
    write_batch: WriteBatch,
    snapshot: Snapshot,
    streams: EventStreams,
    stream: EventStream,
    keys_max: int,
) -> bool:
    """Remove the next records that are too old; True if there was anything to do."""
    horizon = write_batch.now() - stream.retention_hours * HOUR
    shards: list[EventShard] = []
    for shard in stream.shards:
        old = _old_batches(snapshot, stream, shard, horizon, keys_max)
        keys_max -= len(old)
        for batch in old:
            write_batch.delete(event_log_layout.batch_key(stream.number, shard.number, batch.first))
        if old:
            shard = replace(shard, trimmed=old[-1].first + old[-1].count - 1)
        if _is_over(shard, horizon):
            write_batch.delete(event_log_layout.tail_key(stream.number, shard.number))
        else:
            shards.append(shard)
    if tuple(shards) == stream.shards:
        return False
    streams.save(write_batch, replace(stream, shards=tuple(shards)))
    return True


def _old_batches(
    snapshot: Snapshot, stream: EventStream, shard: EventShard, horizon: float, keys_max: int
) -> list[RecordBatch]:
    old = []
    start, stop = event_log_layout.batch_range(stream.number, shard.number)
    for key, value in islice(snapshot.range(start, stop), keys_max):
        batch = unpack_batch(key, value)
        if batch.arrived_at >= horizon:
            break
        old.append(batch)
    return old


def _is_over(shard: EventShard, horizon: float) -> bool:
    return shard.closed_at is not None and shard.closed_at < horizon and shard.trimmed == shard.last


def remove_deleted(write_batch: WriteBatch, snapshot: Snapshot, keys_max: int) -> bool:
    """Remove some data of a deleted stream; True if there was a deleted stream."""
    deleted = next(
        snapshot.range(event_log_layout.DELETED, prefix_end(event_log_layout.DELETED)), None
    )
    if deleted is None:
        return False
    left = keys_max
    for prefix in event_log_layout.data_prefixes(event_log_layout.deleted_stream(deleted[0])):
        for key, _ in islice(snapshot.range(prefix, prefix_end(prefix)), left):
            write_batch.delete(key)
            left -= 1
    if left:
        write_batch.delete(deleted[0])
    return True
