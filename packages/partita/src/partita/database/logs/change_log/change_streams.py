"""DynamoDB streams and their shards: how they open, roll over, split and close.

A stream opens with one shard for each partition of its table. A shard has the changes of a range
of partition hashes for a few hours. Then all open shards of the stream are closed, and each
continues in one child, or in several if many changes were written or the table has more partitions
now. A reader that finishes parents before their children sees the changes of every item in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from partita.database.logs.change_log import change_log_layout
from partita.database.storage.engine import Reader, Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.errors import StorageError
from partita.foundation.service_limits import (
    SHARD_CHANGES_MAX,
    SHARD_SECONDS_MAX,
    SHARDS_BY_LOAD_MAX,
)

HASH_BYTES = 256
"""Shards divide the first byte of the partition hash, so there are at most 256 of them."""


class ChangeStreamShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard: the changes of a range of partition hashes, during a few hours."""

    number: int
    opened_at: float
    hashes: tuple[int, int]
    """The first bytes of the hashes in this shard: from, and up to but not including."""
    first: int
    last: int | None = None
    """The sequence numbers in this shard are in this range; `last` is set when it is closed."""
    parent_id: str | None = None
    closed_at: float | None = None
    trimmed: int = 0
    """The highest sequence number that was removed because of its age."""
    is_over: bool = False
    """True when nothing is left in the shard; it is removed once this is committed."""

    @property
    def shard_id(self) -> str:
        return f"shardId-{int(self.opened_at * 1000):020d}-{self.number:08x}"


class ChangeStream(msgspec.Struct, frozen=True, kw_only=True):
    """A stored stream; it is kept for a day after it was closed."""

    number: int
    table_name: str
    label: str
    view_type: str
    key_names: tuple[str, ...]
    created_at: float
    is_from_the_start: bool
    """True when the stream is as old as its table, so that its changes include every item."""
    shards: tuple[ChangeStreamShard, ...] = ()
    next_shard_number: int = 1
    closed_at: float | None = None

    @property
    def open_shards(self) -> list[ChangeStreamShard]:
        return [shard for shard in self.shards if shard.last is None]

    @property
    def readable_shards(self) -> list[ChangeStreamShard]:
        return [shard for shard in self.shards if not shard.is_over]

    def shard(self, shard_id: str) -> ChangeStreamShard | None:
        return next((shard for shard in self.readable_shards if shard.shard_id == shard_id), None)


class OpenChangeStream(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a stream that the write path needs; it is stored in the table."""

    number: int
    label: str
    view_type: str
    key_names: tuple[str, ...]
    shards: tuple[int, ...]
    """The numbers of the open shards, in the order of their hashes."""
    first: int
    opened_at: float
    """The sequence number and the time at which the shards were opened."""


_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(ChangeStream)


def open_stream(
    write_batch: WriteBatch,
    number: int,
    table_name: str,
    view_type: str,
    key_names: tuple[str, ...],
    now: float,
    *,
    is_from_the_start: bool,
    partitions: int,
) -> OpenChangeStream:
    stream = ChangeStream(
        number=number,
        table_name=table_name,
        label=_free_label(write_batch, table_name, now),
        view_type=view_type,
        key_names=key_names,
        created_at=now,
        is_from_the_start=is_from_the_start,
    )
    return _with_children(write_batch, stream, [None] * min(partitions, HASH_BYTES), first=1)


def close_stream(write_batch: WriteBatch, table_name: str, opened: OpenChangeStream) -> None:
    """Close all shards of a stream; it can still be read for a day."""
    stream = read_stream(write_batch, table_name, opened.label)
    assert stream is not None
    save_stream(
        write_batch, replace(_with_shards_closed(write_batch, stream), closed_at=write_batch.now())
    )


def roll_over(
    write_batch: WriteBatch, table_name: str, opened: OpenChangeStream, partitions: int
) -> OpenChangeStream | None:
    """Replace the open shards if they are too old, too full or too few; None if they are not.

    All shards get the same number of children, so that no child has two parents.
    """
    count = len(opened.shards)
    is_full = last_sequence(write_batch, opened.number) - opened.first >= SHARD_CHANGES_MAX * count
    children = 2 if is_full and 2 * count <= SHARDS_BY_LOAD_MAX else 1
    children = max(children, min(-(-partitions // count), HASH_BYTES // count))
    is_old = write_batch.now() >= opened.opened_at + SHARD_SECONDS_MAX
    if children == 1 and not is_full and not is_old:
        return None
    stream = read_stream(write_batch, table_name, opened.label)
    assert stream is not None
    parents = stream.open_shards
    stream = _with_shards_closed(write_batch, stream)
    first = last_sequence(write_batch, opened.number) + 1
    parent_ids = [parent.shard_id for parent in parents for _ in range(children)]
    return _with_children(write_batch, stream, parent_ids, first)


def _with_children(
    write_batch: WriteBatch, stream: ChangeStream, parent_ids: Sequence[str | None], first: int
) -> OpenChangeStream:
    """Open one shard for each parent; together they cover all hashes."""
    now, count = write_batch.now(), len(parent_ids)
    children = tuple(
        ChangeStreamShard(
            number=stream.next_shard_number + position,
            opened_at=now,
            hashes=(position * HASH_BYTES // count, (position + 1) * HASH_BYTES // count),
            first=first,
            parent_id=parent_id,
        )
        for position, parent_id in enumerate(parent_ids)
    )
    numbers = tuple(shard.number for shard in children)
    save_stream(
        write_batch,
        replace(
            stream,
            shards=stream.shards + children,
            next_shard_number=stream.next_shard_number + count,
        ),
    )
    return OpenChangeStream(
        number=stream.number,
        label=stream.label,
        view_type=stream.view_type,
        key_names=stream.key_names,
        shards=numbers,
        first=first,
        opened_at=now,
    )


def _with_shards_closed(write_batch: WriteBatch, stream: ChangeStream) -> ChangeStream:
    last, now = next_sequence(write_batch, stream.number), write_batch.now()
    shards = tuple(
        replace(shard, last=last, closed_at=now) if shard.last is None else shard
        for shard in stream.shards
    )
    return replace(stream, shards=shards)


def _free_label(write_batch: WriteBatch, table_name: str, now: float) -> str:
    """Returns a label that the table has not used: the time, or a few milliseconds later."""
    moment = datetime.fromtimestamp(now, UTC)
    while (
        write_batch.get(change_log_layout.stream_key(table_name, label := _label(moment)))
        is not None
    ):
        moment += timedelta(milliseconds=1)
    return label


def _label(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]


# Storage


def save_stream(write_batch: WriteBatch, stream: ChangeStream) -> None:
    write_batch.put(change_log_layout.stream_key(stream.table_name, stream.label), _encode(stream))


def read_stream(reader: Reader, table_name: str, label: str) -> ChangeStream | None:
    key = change_log_layout.stream_key(table_name, label)
    value = reader.get(key)
    return None if value is None else decode_stream(key, value)


def streams_of(snapshot: Snapshot, table_name: str) -> Iterator[ChangeStream]:
    """Yields the streams of a table, past and present, the oldest first."""
    return _streams_under(snapshot, change_log_layout.streams_prefix(table_name))


def all_streams(snapshot: Snapshot) -> Iterator[ChangeStream]:
    return _streams_under(snapshot, change_log_layout.STREAMS)


def _streams_under(snapshot: Snapshot, prefix: bytes) -> Iterator[ChangeStream]:
    for key, value in snapshot.range(prefix, prefix_end(prefix)):
        yield decode_stream(key, value)


def decode_stream(key: bytes, value: bytes) -> ChangeStream:
    try:
        return _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        name, _, label = (
            key.removeprefix(change_log_layout.STREAMS).decode(errors="replace").partition("\0")
        )
        raise StorageError(
            f"The data folder is damaged: its entry for stream {label} of table {name} cannot be "
            f"read ({error})."
        ) from error


def last_sequence(reader: Reader, stream_number: int) -> int:
    return int.from_bytes(reader.get(change_log_layout.sequence_key(stream_number)) or b"", "big")


def next_sequence(write_batch: WriteBatch, stream_number: int) -> int:
    """Take the next sequence number, which is unique in the stream."""
    key = change_log_layout.sequence_key(stream_number)
    sequence = int.from_bytes(write_batch.get(key) or b"", "big") + 1
    write_batch.put(key, change_log_layout.pack_sequence(sequence))
    return sequence
