"""Ordered key bytes: comparing them is comparing keys as DynamoDB does.

Strings sort by UTF-8, binaries by unsigned byte, numbers by value. A partition is placed by the
MD5 of its key, as in the service (dynalite found the prefix in the service's scan orders), so
that a Scan returns partitions in the order in which Amazon DynamoDB returns them.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from partita.database.item import numbers
from partita.database.item.values import AttributeValue

PARTITION_HASH_BYTES: Final = 8
KEYED_PARTITION_BYTES: Final = 24


class KeyAttribute(NamedTuple):
    """An attribute of a key schema, and its type: S, N or B."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class KeyRange:
    """One partition, of whose items the sort keys begin with `equal` and satisfy one comparison."""

    partition: tuple[AttributeValue, ...]
    equal: tuple[AttributeValue, ...] = ()
    comparison: str | None = None
    operands: tuple[AttributeValue, ...] = ()


try:
    # Python's own: for a few bytes three times as fast as OpenSSL's behind hashlib.
    from _md5 import md5  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from hashlib import md5

HASH_PREFIX: Final = b"Outliers"

_ENCODERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "N": numbers.encode,
    "B": b64decode,
}


def key_bytes(value: AttributeValue) -> bytes:
    """The ordered bytes of a normalised scalar; for S and B their length is the key's size."""
    for kind, content in value.items():
        if kind == "S":
            text: str = content
            return text.encode()
        return _ENCODERS[kind](content)
    raise AssertionError("a value without a type")


def partition_hash(key: bytes) -> bytes:
    """Where a partition lies among its table's: 64 bits, uniformly spread. `key` is all parts."""
    digest: bytes = md5(HASH_PREFIX + key, usedforsecurity=False).digest()
    return digest[:PARTITION_HASH_BYTES]


def keyed_partition(secret: bytes, parts: Sequence[bytes]) -> bytes:
    """What stands for a partition key in an encrypted folder; its first bytes are its hash."""
    key = terminated(parts[0]) if len(parts) == 1 else b"".join(map(terminated, parts))
    return blake2b(key, key=secret, digest_size=KEYED_PARTITION_BYTES).digest()


def terminated(part: bytes) -> bytes:
    """A part that more parts may follow: zero bytes escaped, so that "a" sorts before "ab"."""
    return part.replace(b"\x00", b"\x00\xff") + b"\x00\x00"
