"""The storage keys of the event log: the only module that builds them.

    0b name                                          a stream and its shards
    0c stream, shard                                 the last sequence number, and its time
    0d stream                                        a deleted stream, until its data is removed
    13 stream, shard, sequence number                a batch of records, with the first's number

The other spaces belong to `tables/table_layout.py` and `logs/change_log/change_log_layout.py`.
Streams and tables are numbered from one counter, so that no number is used twice.
"""

from __future__ import annotations

import struct
from typing import Final

STREAMS: Final = b"\x0b"
TAILS: Final = b"\x0c"
DELETED: Final = b"\x0d"
RECORDS: Final = b"\x13"

_STREAM: Final = struct.Struct(">cI")
_SHARD: Final = struct.Struct(">cII")
_BATCH: Final = struct.Struct(">cIIQ")


def stream_key(name: str) -> bytes:
    return STREAMS + name.encode()


def stream_name(stream_storage_key: bytes) -> str:
    return stream_storage_key.removeprefix(STREAMS).decode(errors="replace")


def tail_key(stream: int, shard: int) -> bytes:
    return _SHARD.pack(TAILS, stream, shard)


def deleted_key(stream: int) -> bytes:
    return _STREAM.pack(DELETED, stream)


def deleted_stream(deleted_storage_key: bytes) -> int:
    number: int = _STREAM.unpack(deleted_storage_key)[1]
    return number


def data_prefixes(stream: int) -> list[bytes]:
    """Returns the prefixes of all data of a stream; the stream's own entry is not included."""
    return [_STREAM.pack(space, stream) for space in (TAILS, RECORDS)]


def batches_prefix(stream: int, shard: int) -> bytes:
    return _SHARD.pack(RECORDS, stream, shard)


def batch_key(stream: int, shard: int, first: int) -> bytes:
    return _BATCH.pack(RECORDS, stream, shard, first)


def batch_range(stream: int, shard: int, first: int = 0) -> tuple[bytes, bytes]:
    """Returns the keys between which the batches of a shard lie, from a first record on."""
    return batch_key(stream, shard, first), batch_key(stream, shard + 1, 0)


def batch_first(batch_storage_key: bytes) -> int:
    first: int = _BATCH.unpack(batch_storage_key)[3]
    return first
