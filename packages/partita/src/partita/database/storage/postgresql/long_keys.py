"""Keys that are too long for PostgreSQL's index, stored as in LMDB's tree (docs/adr/0001).

A long key is stored as its first bytes and a digest, with the whole key in front of the value. Long
keys with the same first bytes are neighbors; reading a range sorts them by their whole keys. Only
sort keys with many zero bytes get this long, because zero bytes are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby
from struct import Struct
from typing import Final

Pair = tuple[bytes, bytes]


STORED_KEY_BYTES_MAX: Final = 2600
"""PostgreSQL's limit for an index entry is 2,704 bytes; ours contain a bucket besides the key."""
DIGEST_BYTES: Final = 16
HEAD_BYTES: Final = STORED_KEY_BYTES_MAX - DIGEST_BYTES
"""Longer keys are long keys."""
_LENGTH: Final = Struct(">I")


def stored_key(key: bytes) -> bytes:
    if len(key) <= HEAD_BYTES:
        return key
    return key[:HEAD_BYTES] + blake2b(key, digest_size=DIGEST_BYTES).digest()


def stored_value(key: bytes, value: bytes) -> bytes:
    return value if len(key) <= HEAD_BYTES else _LENGTH.pack(len(key)) + key + value


def whole_pair(stored: bytes, value: bytes) -> Pair:
    """The whole key and the value of a row."""
    if len(stored) < STORED_KEY_BYTES_MAX:
        return stored, value
    (length,) = _LENGTH.unpack_from(value)
    start = _LENGTH.size
    return value[start : start + length], value[start + length :]


def stored_range(start: bytes, stop: bytes) -> Pair:
    """A range of stored keys that covers a range of whole keys, and possibly a few more."""
    if len(stop) > HEAD_BYTES:
        stop = stop[:HEAD_BYTES] + b"\xff" * (DIGEST_BYTES + 1)
    return start[:HEAD_BYTES], stop


def is_long(stored: bytes) -> bool:
    return len(stored) == STORED_KEY_BYTES_MAX


def head(stored: bytes) -> bytes:
    """The part that the long keys of a group share; for other keys the key itself."""
    return stored[:HEAD_BYTES] if is_long(stored) else stored


def in_order(
    rows: Iterator[Pair], start: bytes, stop: bytes, *, reverse: bool = False
) -> Iterator[Pair]:
    """Yields the pairs of a range in order, from rows in the order of their stored keys."""
    for _, group in groupby(rows, lambda row: head(row[0])):
        pairs = sorted((whole_pair(*row) for row in group), reverse=reverse)
        yield from (pair for pair in pairs if start <= pair[0] < stop)
