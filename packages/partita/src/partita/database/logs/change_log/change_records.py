"""Change records: written in the write batch that changes the item, and read in that order.

An image is the item's stored bytes, so only the item's key is encoded again. Images that the
stream's view type does not show are not stored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import orjson

from partita.database.item.attribute_values import Item
from partita.database.logs.change_log import change_log_layout
from partita.database.logs.change_log.change_streams import (
    HASH_BYTES,
    OpenChangeStream,
    next_sequence,
)
from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch

NEW_IMAGES = frozenset(("NEW_IMAGE", "NEW_AND_OLD_IMAGES"))
OLD_IMAGES = frozenset(("OLD_IMAGE", "NEW_AND_OLD_IMAGES"))

INSERT, MODIFY, REMOVE, EXPIRE = range(1, 5)
"""The event of a change; EXPIRE is a REMOVE by time to live."""
NO_IMAGE = b""

_HEADER = struct.Struct(">BdIII")
_unpack_header = _HEADER.unpack_from
_CREATED_AT = struct.Struct(">d")


class ItemImage(Protocol):
    """An item with its size and its bytes."""

    body: bytes
    size: int

    @property
    def item(self) -> Item: ...


class ChangeRecord(NamedTuple):
    """A stored change. Keys and images are JSON; a missing image is empty."""

    sequence: int
    event: int
    created_at: float
    image_bytes: int
    """The item sizes of both images together."""
    keys: bytes
    old_image: bytes
    new_image: bytes


def log_change(
    write_batch: WriteBatch,
    stream: OpenChangeStream,
    place: bytes,
    old: ItemImage | None,
    new: ItemImage | None,
    *,
    expired: bool,
) -> None:
    """Log that `old` became `new`; either may be None.

    `place` is the item's storage key without its table. It begins with the hash of the partition
    key, whose first byte decides the shard.
    """
    item = new or old
    assert item is not None
    content = item.item
    keys = orjson.dumps({name: content[name] for name in stream.key_names})
    old_image = new_image = NO_IMAGE
    image_bytes = 0
    if old and stream.view_type in OLD_IMAGES:
        old_image, image_bytes = old.body, old.size
    if new and stream.view_type in NEW_IMAGES:
        new_image = new.body
        image_bytes += new.size
    if new:
        event = MODIFY if old else INSERT
    else:
        event = EXPIRE if expired else REMOVE
    header = _HEADER.pack(event, write_batch.now(), image_bytes, len(keys), len(old_image))
    sequence = next_sequence(write_batch, stream.number)
    shard = stream.shards[place[0] * len(stream.shards) // HASH_BYTES]
    key = change_log_layout.change_key(stream.number, shard, sequence)
    write_batch.put(key, b"".join((header, keys, old_image, new_image)))


def logged_later(key: bytes, value: bytes, sequences: int, now: float) -> tuple[bytes, bytes]:
    """Returns the key and value of a change with a later sequence number and time.

    For a change that was decided before others were logged in the meantime.
    """
    return change_log_layout.later_change_key(key, sequences), b"".join(
        (value[:1], _CREATED_AT.pack(now), value[1 + _CREATED_AT.size :])
    )


def read_changes(snapshot: Snapshot, stream: int, shard: int, first: int) -> Iterator[ChangeRecord]:
    """Yields the changes of a shard from a sequence number on."""
    for key, value in snapshot.range(*change_log_layout.change_range(stream, shard, first)):
        yield unpack_change(change_log_layout.change_sequence(key), value)


def unpack_change(sequence: int, value: bytes) -> ChangeRecord:
    event, created_at, image_bytes, keys_end, old_end = _unpack_header(value)
    keys_end += _HEADER.size
    old_end += keys_end
    return ChangeRecord(
        sequence,
        event,
        created_at,
        image_bytes,
        value[_HEADER.size : keys_end],
        value[keys_end:old_end],
        value[old_end:],
    )


def created_at(value: bytes) -> float:
    """Returns the time of a stored change without unpacking the rest."""
    moment: float = _CREATED_AT.unpack_from(value, 1)[0]
    return moment
