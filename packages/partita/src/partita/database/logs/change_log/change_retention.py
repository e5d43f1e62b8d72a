"""Retention of streams: changes older than a day are removed in small pieces, then empty shards.

A closed stream is removed after its last shard.
"""

from __future__ import annotations

from itertools import islice

from msgspec.structs import replace

from partita.database.logs.change_log import change_log_layout
from partita.database.logs.change_log.change_records import created_at
from partita.database.logs.change_log.change_streams import (
    ChangeStream,
    ChangeStreamShard,
    read_stream,
    save_stream,
)
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.foundation.service_limits import STREAM_RETENTION_SECONDS


def trim_stream(
    write_batch: WriteBatch, snapshot: Snapshot, committed: ChangeStream, keys_max: int
) -> bool:
    """Remove the next changes of a stream that are too old; True if there was anything to do.

    `committed` is the stream as the snapshot has it: if a shard is closed there, the snapshot has
    all of the shard's changes too.
    """
    stream = read_stream(write_batch, committed.table_name, committed.label)
    if stream is None:
        return False
    if stream.closed_at is not None and not committed.shards:
        _remove_stream(write_batch, snapshot, stream)
        return True
    horizon = write_batch.now() - STREAM_RETENTION_SECONDS
    committed_shards = {shard.number: shard for shard in committed.shards}
    shards: list[ChangeStreamShard] = []
    for shard in stream.shards:
        if shard.number in committed_shards and committed_shards[shard.number].is_over:
            _remove_under(
                write_batch,
                snapshot,
                change_log_layout.checkpoints_prefix(stream.number, shard.number),
            )
            continue
        old = _old_changes(snapshot, stream, shard, horizon, keys_max)
        keys_max -= len(old)
        for key in old:
            write_batch.delete(key)
        if old:
            shard = replace(shard, trimmed=change_log_layout.change_sequence(old[-1]))
        elif keys_max and _is_over(snapshot, stream, committed_shards.get(shard.number), horizon):
            shard = replace(shard, is_over=True)
        shards.append(shard)
    if tuple(shards) == stream.shards:
        return False
    save_stream(write_batch, replace(stream, shards=tuple(shards)))
    return True


def _old_changes(
    snapshot: Snapshot,
    stream: ChangeStream,
    shard: ChangeStreamShard,
    horizon: float,
    keys_max: int,
) -> list[bytes]:
    old = []
    start, stop = change_log_layout.change_range(stream.number, shard.number, shard.trimmed + 1)
    for key, value in islice(snapshot.range(start, stop), keys_max):
        if created_at(value) >= horizon:
            break
        old.append(key)
    return old


def _is_over(
    snapshot: Snapshot, stream: ChangeStream, committed: ChangeStreamShard | None, horizon: float
) -> bool:
    if committed is None or committed.closed_at is None or committed.closed_at >= horizon:
        return False
    start, stop = change_log_layout.change_range(
        stream.number, committed.number, committed.trimmed + 1
    )
    return next(snapshot.range(start, stop), None) is None


def _remove_stream(write_batch: WriteBatch, snapshot: Snapshot, stream: ChangeStream) -> None:
    write_batch.delete(change_log_layout.stream_key(stream.table_name, stream.label))
    write_batch.delete(change_log_layout.sequence_key(stream.number))
    _remove_under(write_batch, snapshot, change_log_layout.checkpoints_prefix(stream.number))


def _remove_under(write_batch: WriteBatch, snapshot: Snapshot, prefix: bytes) -> None:
    for key, _ in snapshot.range(prefix, prefix_end(prefix)):
        write_batch.delete(key)
