"""Where the change log lies in the ordered map: the only module that builds its keys.

    08 table name, label                             a stream and its shards
    09 stream                                        its last sequence number
    0a stream, shard, trigger                        positions of triggers of earlier releases
    12 stream, shard, sequence number                a change

Spaces that are not here belong to `tables/layout.py` and `events/layout.py`. Streams take their
numbers from the same counter as tables, so that none is used twice.
"""

from __future__ import annotations

import struct
from typing import Final

STREAMS: Final = b"\x08"
SEQUENCES: Final = b"\x09"
CHECKPOINTS: Final = b"\x0a"
CHANGES: Final = b"\x12"

_STREAM: Final = struct.Struct(">I")
_SHARD: Final = struct.Struct(">II")
_CHANGE: Final = struct.Struct(">cIIQ")
_SEQUENCE: Final = struct.Struct(">Q")

pack_sequence = _SEQUENCE.pack


def streams_prefix(table_name: str) -> bytes:
    """Of all streams that tables of a name have had."""
    return STREAMS + table_name.encode() + b"\x00"


def stream_key(table_name: str, label: str) -> bytes:
    return streams_prefix(table_name) + label.encode()


def sequence_key(stream: int) -> bytes:
    return SEQUENCES + _STREAM.pack(stream)


def changes_prefix(stream: int, shard: int | None = None) -> bytes:
    """Of one shard, or of all of them: triggers of earlier releases noted their positions there,
    which go with their shards."""
    return CHANGES + (_STREAM.pack(stream) if shard is None else _SHARD.pack(stream, shard))


def change_key(stream: int, shard: int, sequence: int) -> bytes:
    return _CHANGE.pack(CHANGES, stream, shard, sequence)


def later_change_key(change_storage_key: bytes, sequences: int) -> bytes:
    space, stream, shard, sequence = _CHANGE.unpack(change_storage_key)
    return _CHANGE.pack(space, stream, shard, sequence + sequences)


def shard_prefix_of(change_storage_key: bytes) -> bytes:
    """What the keys of all changes of its shard begin with."""
    return change_storage_key[: -_SEQUENCE.size]


def stream_of(storage_key: bytes) -> bytes:
    """The part of a key of the log that names its stream."""
    return storage_key[1 : 1 + _STREAM.size]


def change_range(stream: int, shard: int, first: int) -> tuple[bytes, bytes]:
    """The bytes between which the changes of a shard lie, from a sequence number on."""
    return change_key(stream, shard, first), change_key(stream, shard + 1, 0)


def change_sequence(change_storage_key: bytes) -> int:
    return int.from_bytes(change_storage_key[-_SEQUENCE.size :], "big")


def checkpoints_prefix(stream: int, shard: int | None = None) -> bytes:
    """Of one shard, or of all of them: triggers of earlier releases noted their positions there,
    which go with their shards."""
    number = _STREAM.pack(stream) if shard is None else _SHARD.pack(stream, shard)
    return CHECKPOINTS + number
