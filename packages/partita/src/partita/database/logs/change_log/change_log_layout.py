"""The storage keys of the change log: the only module that builds them.

    08 table name, label                             a stream and its shards
    09 stream                                        its last sequence number
    0a stream, shard, trigger                        positions that earlier releases stored
    12 stream, shard, sequence number                a change

The other spaces belong to `tables/table_layout.py` and `logs/event_log/event_log_layout.py`.
Streams and tables are numbered from one counter, so that no number is used twice.
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
    """Returns the prefix of all streams of tables with this name, past and present."""
    return STREAMS + table_name.encode() + b"\x00"


def stream_key(table_name: str, label: str) -> bytes:
    return streams_prefix(table_name) + label.encode()


def sequence_key(stream: int) -> bytes:
    return SEQUENCES + _STREAM.pack(stream)


def changes_prefix(stream: int, shard: int | None = None) -> bytes:
    """Returns the prefix of the changes of one shard, or of all shards."""
    return CHANGES + (_STREAM.pack(stream) if shard is None else _SHARD.pack(stream, shard))


def change_key(stream: int, shard: int, sequence: int) -> bytes:
    return _CHANGE.pack(CHANGES, stream, shard, sequence)


def later_change_key(change_storage_key: bytes, sequences: int) -> bytes:
    space, stream, shard, sequence = _CHANGE.unpack(change_storage_key)
    return _CHANGE.pack(space, stream, shard, sequence + sequences)


def shard_prefix_of(change_storage_key: bytes) -> bytes:
    """Returns the prefix of all changes in the same shard."""
    return change_storage_key[: -_SEQUENCE.size]


def stream_of(storage_key: bytes) -> bytes:
    """Returns the stream's number in a key of the log, as bytes."""
    return storage_key[1 : 1 + _STREAM.size]


def change_range(stream: int, shard: int, first: int) -> tuple[bytes, bytes]:
    """Returns the keys between which a shard's changes from a sequence number on lie."""
    return change_key(stream, shard, first), change_key(stream, shard + 1, 0)


def change_sequence(change_storage_key: bytes) -> int:
    return int.from_bytes(change_storage_key[-_SEQUENCE.size :], "big")


def checkpoints_prefix(stream: int, shard: int | None = None) -> bytes:
    """Returns the prefix of the positions in one shard, or in all shards.

    Earlier releases stored the positions of triggers there; they are removed with their shards.
    """
    number = _STREAM.pack(stream) if shard is None else _SHARD.pack(stream, shard)
    return CHECKPOINTS + number
