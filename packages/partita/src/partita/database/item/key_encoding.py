"""Keys as bytes whose order is DynamoDB's order: strings by UTF-8, binaries by unsigned byte,
numbers by value.

Partitions are ordered by the MD5 of their key, as in the service, so that a Scan returns them in
the same order as Amazon DynamoDB. (dynalite derived the hash's prefix from recorded scans.)
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from partita.database.item import numbers
from partita.database.item.attribute_values import AttributeValue

PARTITION_HASH_BYTES: Final = 8
KEYED_PARTITION_BYTES: Final = 24


class KeyAttribute(NamedTuple):
    """An attribute of a key schema, and its type: S, N or B."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The items of one partition key whose sort key satisfies a key condition.

    With a sort key of several attributes, the leading ones must equal `equal`; the next one is
    compared with `operands`, which are two values for BETWEEN.
    """

    partition: tuple[AttributeValue, ...]
    equal: tuple[AttributeValue, ...] = ()
    comparison: str | None = None
    operands: tuple[AttributeValue, ...] = ()


try:
    # For a few bytes, Python's own MD5 is three times as fast as OpenSSL's, which hashlib prefers.
    from _md5 import md5  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from hashlib import md5

HASH_PREFIX: Final = b"Outliers"

_ENCODERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "N": numbers.encode,
    "B": b64decode,
}


def key_bytes(value: AttributeValue) -> bytes:
    """Returns the ordered bytes of a normalized scalar.

    For strings and binaries, their length is what the value counts towards the key's size limit.
    """
    for kind, content in value.items():
        if kind == "S":
            text: str = content
            return text.encode()
        return _ENCODERS[kind](content)
    raise AssertionError("a value without a type")


def partition_hash(key: bytes) -> bytes:
    """Returns the 64 uniformly spread bits that order the partitions of a table.

    `key` is the key bytes of all partition key attributes, joined.
    """
    digest: bytes = md5(HASH_PREFIX + key, usedforsecurity=False).digest()
    return digest[:PARTITION_HASH_BYTES]


def keyed_partition(secret: bytes, parts: Sequence[bytes]) -> bytes:
    """Returns the keyed hash that replaces a partition key in the storage keys of an encrypted
    folder. Its first bytes also serve as the partition's hash."""
    key = terminated(parts[0]) if len(parts) == 1 else b"".join(map(terminated, parts))
    return blake2b(key, key=secret, digest_size=KEYED_PARTITION_BYTES).digest()


def terminated(part: bytes) -> bytes:
    """Returns a key part to which further parts can be appended.

    Zero bytes are escaped and the part ends with two of them. So "a" sorts before "ab", even when
    more parts follow.
    """
    return part.replace(b"\x00", b"\x00\xff") + b"\x00\x00"
