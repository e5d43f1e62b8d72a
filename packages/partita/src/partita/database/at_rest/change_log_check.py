"""Checks the change log: in order, without gaps, and consistent with its table.

A log is replayed: an item is inserted before it is modified or removed, every old image equals the
new image before it, and the last images are the items of the table. If nothing has been trimmed
since the table was created, the table has no other items.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter

import msgspec

from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding, at
from partita.database.item.attribute_values import Item
from partita.database.item.key_encoding import key_bytes, keyed_partition, partition_hash
from partita.database.logs.change_log import change_log_layout as log_layout
from partita.database.logs.change_log.change_records import (
    EXPIRE,
    INSERT,
    MODIFY,
    NEW_IMAGES,
    OLD_IMAGES,
    REMOVE,
    ChangeRecord,
    read_changes,
)
from partita.database.logs.change_log.change_streams import (
    HASH_BYTES,
    ChangeStream,
    ChangeStreamShard,
    decode_stream,
    last_sequence,
)
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.stored_item import HEADER_BYTES
from partita.database.tables.table_statistics import read_statistics
from partita.errors import StorageError

REPLAYED_AT_ONCE = 200_000
"""A longer log is read several times, and each time some of its items are replayed."""
_NO_IMAGE = b""

_decode_keys = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


def streams_are_readable(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Every stream can be read, is stored under its own name and has a unique number."""
    last = int.from_bytes(folder.snapshot.get(table_layout.NUMBERS_KEY) or b"", "big")
    taken = {table.number for table in folder.tables}
    for key, value in folder.under(log_layout.STREAMS):
        try:
            stream = decode_stream(key, value)
        except StorageError as error:
            folder.has_unreadable_entries = True
            yield CheckFinding("change log", "a stream cannot be read", found=str(error))
            continue
        folder.streams.append(stream)
        expected = log_layout.stream_key(stream.table_name, stream.label)
        if expected != key:
            where = _of(stream)
            yield CheckFinding(where, "it is stored under another name", expected.hex(), key.hex())
        if stream.number in taken or not 0 < stream.number <= last:
            limit = f"a unique number up to {last}"
            yield CheckFinding(_of(stream), "its number is wrong", limit, f"{stream.number}")
        taken.add(stream.number)


def stream_prefixes(stream: ChangeStream) -> list[bytes]:
    """All prefixes that the keys of a stream may have."""
    shards = [log_layout.changes_prefix(stream.number, shard.number) for shard in stream.shards]
    checkpoints = log_layout.checkpoints_prefix(stream.number)
    key = log_layout.stream_key(stream.table_name, stream.label)
    return [key, log_layout.sequence_key(stream.number), checkpoints, *shards]


def open_streams_belong_to_tables(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Every table agrees with its stream, and no other stream is open."""
    streams = {stream.number: stream for stream in folder.streams}
    opened = set()
    for table in folder.tables:
        if (table.stream is None) != (table.stream_view_type is None):
            yield CheckFinding(at(table), "it has a stream without a view type, or the reverse")
        if table.stream is None:
            continue
        opened.add(table.stream.number)
        stream = streams.get(table.stream.number)
        if stream is None:
            yield CheckFinding(at(table), "its stream is missing", table.stream.label)
        elif (expected := _expected_stream(table)) != (actual := _actual_stream(stream)):
            yield CheckFinding(at(table), "its stream does not match", expected, actual)
    for stream in folder.streams:
        if stream.closed_at is None and stream.number not in opened:
            yield CheckFinding(_of(stream), "it is open, but no table writes to it")


def _expected_stream(table: Table) -> str:
    stream = table.stream
    assert stream is not None
    parts = (table.name, stream.label, stream.view_type, table.key_names, stream.shards)
    return str((*parts, stream.first))


def _actual_stream(stream: ChangeStream) -> str:
    shards = stream.open_shards
    first = shards[0].first if shards else 0
    numbers = tuple(shard.number for shard in shards)
    parts = (stream.table_name, stream.label, stream.view_type, stream.key_names, numbers)
    return str((*parts, first))


def changes_are_in_order(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Every change is in its shard, and no sequence number is missing or above the last."""
    for stream in folder.streams:
        try:
            yield from _order_of(folder, stream)
        except (struct.error, msgspec.MsgspecError, KeyError, ValueError) as error:
            yield CheckFinding(_of(stream), "a change cannot be read", found=str(error))


def _order_of(folder: CheckedFolder, stream: ChangeStream) -> Iterator[CheckFinding]:
    closing = {shard.last for shard in stream.shards}
    complete_from = _complete_from(stream)
    highest = max(
        [0, *(shard.last or shard.first - 1 for shard in stream.shards)]
        + [shard.trimmed for shard in stream.shards]
    )
    expected = complete_from
    secret = _key_secret(folder, stream)
    for shard, change in _in_order(folder, stream):
        folder.changes += 1
        while expected in closing:
            expected += 1
        if expected < change.sequence and change.sequence > complete_from:
            where = _of(stream)
            yield CheckFinding(where, "changes are missing", f"{expected}", f"{change.sequence}")
        expected = max(expected, change.sequence + 1)
        highest = max(highest, change.sequence)
        yield from _change_is_right(stream, shard, change, secret)
    last = last_sequence(folder.snapshot, stream.number)
    if stream.shards and last != highest:
        yield CheckFinding(
            _of(stream), "its last sequence number is wrong", f"{highest}", f"{last}"
        )


def _complete_from(stream: ChangeStream) -> int:
    """The sequence number from which on no change may be missing."""
    start = max([1, *(shard.trimmed + 1 for shard in stream.shards)])
    if stream.shards:
        # Older shards have expired.
        start = max(start, stream.shards[0].first)
    for _, siblings in groupby(stream.shards, attrgetter("first")):
        shards = list(siblings)
        if sum(shard.hashes[1] - shard.hashes[0] for shard in shards) < HASH_BYTES:
            start = max(start, shards[0].last or 0)
    return start


def _key_secret(folder: CheckedFolder, stream: ChangeStream) -> bytes | None:
    """The secret of the hash that assigns changes to shards.

    None if it is unknown, because the stream's table was deleted from an encrypted database.
    """
    for table in folder.tables:
        if table.stream is not None and table.stream.number == stream.number:
            return table.key_secret
    return None if folder.is_encrypted else b""


def _change_is_right(
    stream: ChangeStream, shard: ChangeStreamShard, change: ChangeRecord, secret: bytes | None
) -> Iterator[CheckFinding]:
    where = f"{_of(stream)}, change {change.sequence}"
    last = change.sequence if shard.last is None else shard.last - 1
    if not shard.first <= change.sequence <= last:
        yield CheckFinding(where, "it is in a shard that was not open", found=shard.shard_id)
    partition = _decode_keys(change.keys)[stream.key_names[0]]
    part = key_bytes(partition)
    hashed = keyed_partition(secret, (part,)) if secret else partition_hash(part)
    first_byte = hashed[0] if secret is not None else shard.hashes[0]
    if not shard.hashes[0] <= first_byte < shard.hashes[1]:
        yield CheckFinding(where, "it is in another item's shard", found=shard.shard_id)
    has_old, has_new = change.event != INSERT, change.event in (INSERT, MODIFY)
    images = (
        has_old and stream.view_type in OLD_IMAGES,
        has_new and stream.view_type in NEW_IMAGES,
    )
    if change.event not in (INSERT, MODIFY, REMOVE, EXPIRE):
        yield CheckFinding(where, "its event is unknown", found=f"{change.event}")
    elif images != (bool(change.old_image), bool(change.new_image)):
        yield CheckFinding(where, "its images do not match the view type", stream.view_type)


@dataclass(slots=True)
class _Replay:
    """The state of the items after the changes replayed so far; images are kept as digests."""

    stream: ChangeStream
    table: Table | None
    images: dict[bytes, bytes | None] = field(default_factory=dict)
    """Digests by the JSON of an item's key; None when the item was removed."""


def changes_lead_to_the_items(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Replaying the log of a stream gives the items of its table."""
    tables = {table.stream.number: table for table in folder.tables if table.stream}
    for stream in folder.streams:
        table = tables.get(stream.number)
        try:
            yield from _replayed(folder, stream, table)
        except (struct.error, msgspec.MsgspecError, KeyError, ValueError):
            # The invariant `changes_are_in_order` reports it.
            continue


def _replayed(
    folder: CheckedFolder, stream: ChangeStream, table: Table | None
) -> Iterator[CheckFinding]:
    count = sum(1 for _ in _in_order(folder, stream))
    rounds = 1 + count // REPLAYED_AT_ONCE
    alive = 0
    for number in range(rounds):
        replay = _Replay(stream, table)
        for _, change in _in_order(folder, stream):
            if rounds == 1 or _digest(change.keys)[0] % rounds == number:
                yield from _replay(replay, change)
        alive += sum(1 for image in replay.images.values() if image is not None)
        if table is not None:
            yield from _compare_with_table(folder, replay, table)
    is_untrimmed = all(shard.trimmed == 0 for shard in stream.shards) and any(
        shard.number == 1 for shard in stream.shards
    )
    if table is not None and is_untrimmed and stream.is_from_the_start:
        items = read_statistics(folder.snapshot, table.number).item_count
        if items != alive:
            where = _of(stream)
            yield CheckFinding(where, "a replay yields other items", f"{items} items", f"{alive}")


def _replay(replay: _Replay, change: ChangeRecord) -> Iterator[CheckFinding]:
    before = replay.images.get(change.keys, _NO_IMAGE)
    where = f"{_of(replay.stream)}, change {change.sequence}"
    if before is None and change.event != INSERT:
        yield CheckFinding(where, "there was no item before it")
    if before is not None and before != _NO_IMAGE and change.event == INSERT:
        yield CheckFinding(where, "there was an item before it")
    if replay.stream.view_type == "NEW_AND_OLD_IMAGES" and before not in (
        _NO_IMAGE,
        _digest(change.old_image) if change.old_image else None,
    ):
        yield CheckFinding(where, "its old image is not the new image before it")
    is_there = change.event in (INSERT, MODIFY)
    replay.images[change.keys] = _digest(change.new_image) if is_there else None


def _compare_with_table(
    folder: CheckedFolder, replay: _Replay, table: Table
) -> Iterator[CheckFinding]:
    for keys, image in replay.images.items():
        item: Item = dict(_decode_keys(keys))
        value = folder.snapshot.get(table_layout.item_key(table, item))
        where = at(table, item)
        if (value is None) != (image is None):
            state = "exists" if image is None else "is missing"
            yield CheckFinding(where, f"it {state}, but not according to the change log")
        elif value is not None and replay.stream.view_type in NEW_IMAGES:
            if _digest(value[HEADER_BYTES:]) != image:
                yield CheckFinding(where, "it differs from the change log")


def _digest(image: bytes) -> bytes:
    return blake2b(image, digest_size=16).digest()


def _in_order(
    folder: CheckedFolder, stream: ChangeStream
) -> Iterator[tuple[ChangeStreamShard, ChangeRecord]]:
    """Yields all changes of a stream in the order of their sequence numbers."""

    def of(shard: ChangeStreamShard) -> Iterator[tuple[int, ChangeStreamShard, ChangeRecord]]:
        for change in read_changes(folder.snapshot, stream.number, shard.number, 0):
            yield change.sequence, shard, change

    merged = heapq.merge(*map(of, stream.shards), key=lambda entry: entry[0])
    return ((shard, change) for _, shard, change in merged)


def _of(stream: ChangeStream) -> str:
    return f"change log of table {stream.table_name}, stream {stream.label}"
