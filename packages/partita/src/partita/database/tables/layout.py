"""Where tables lie in the ordered map: the only module that builds their storage keys.

    00 format, 00 numbers                            format of the folder, last table number
    00 secret                                        what tokens for clients are sealed with
    00 access, 00 audit                              what is known of files beside the database
    01 name                                          a table of the catalog
    02 table, index                                  number of items and bytes (index 0: the table)
    03 token                                         a client request token
    04 table, partition key                          size of an item collection
    05 table, TTL period, expiry, item               items in the order in which they expire
    06 prefix                                        keys to be removed in the background
    07 time, token                                   tokens in the order of their use
    10 table, hash, partition key, sort key          an item
    11 table, index, hash, partition key parts, sort key parts, tie, item  an index entry

Spaces 08, 09, 0a and 12 are those of the change log (`changes/layout.py`), 0b, 0c, 0d and 13 those
of the event log (`events/layout.py`).

Numbers are big-endian, key parts are terminated, so byte order is the order of DynamoDB. The tail
of an index entry is the item's own place, which keeps entries apart that share one index key. In
a global index such entries come in the order of a hash of the item's key, as in the service
(dynalite found it in recorded orders).

In an encrypted folder a keyed hash stands in the place of each partition key and its hash; sort
keys stay as they are, or there would be no order.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from partita.database.item.keys import (
    PARTITION_HASH_BYTES,
    KeyRange,
    key_bytes,
    keyed_partition,
    partition_hash,
    terminated,
)
from partita.database.item.values import AttributeValue, Item
from partita.database.storage.engine import prefix_end
from partita.database.tables.schema import Index, Table
from partita.limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX

FORMAT_KEY: Final = b"\x00format"
NUMBERS_KEY: Final = b"\x00numbers"
SECRET_KEY: Final = b"\x00secret"
ACCESS_KEY, AUDIT_KEY = b"\x00access", b"\x00audit"
NOTES: Final = (ACCESS_KEY, AUDIT_KEY)
"""What belongs to this folder alone, and to no copy of it."""
CATALOG: Final = b"\x01"
STATISTICS: Final = b"\x02"
TOKENS: Final = b"\x03"
COLLECTIONS: Final = b"\x04"
EXPIRIES: Final = b"\x05"
LEFTOVERS: Final = b"\x06"
TOKEN_TIMES: Final = b"\x07"
ITEMS: Final = b"\x10"
ENTRIES: Final = b"\x11"

SCAN_SLOT_BITS: Final = 12
PLAIN_PARTITION_KEY_BYTES_MAX: Final = 200
"""Longer partition keys would fill up the engine's keys, and leave no room for sort keys."""
DIGEST_MARK: Final = b"\xff"
"""No key that begins with it is kept plain, so that no key can pass for a digest."""
SCAN_SLOTS: Final = 1 << SCAN_SLOT_BITS

_TABLE: Final = struct.Struct(">I")
_TABLE_INDEX: Final = struct.Struct(">IH")
_SECONDS: Final = struct.Struct(">Q")

ITEM_PARTITION_BYTES: Final = 1 + _TABLE.size + PARTITION_HASH_BYTES
ENTRY_PARTITION_BYTES: Final = 1 + _TABLE_INDEX.size + PARTITION_HASH_BYTES


def catalog_key(name: str) -> bytes:
    return CATALOG + name.encode()


def token_key(token: str) -> bytes:
    return TOKENS + token.encode()


def token_time_key(used_at: float, token: str = "") -> bytes:
    return TOKEN_TIMES + _SECONDS.pack(int(used_at)) + token.encode()


def statistics_key(table_number: int, index_number: int = 0) -> bytes:
    return STATISTICS + _TABLE_INDEX.pack(table_number, index_number)


def table_prefixes(table_number: int) -> list[bytes]:
    """Everything that belongs to a table, outside of the catalog."""
    number = _TABLE.pack(table_number)
    return [space + number for space in (STATISTICS, COLLECTIONS, EXPIRIES, ITEMS, ENTRIES)]


def index_prefixes(table_number: int, index_number: int) -> list[bytes]:
    number = _TABLE_INDEX.pack(table_number, index_number)
    return [STATISTICS + number, ENTRIES + number]


def leftover_key(prefix: bytes) -> bytes:
    return LEFTOVERS + prefix


def leftover_prefix(leftover_storage_key: bytes) -> bytes:
    return leftover_storage_key[1:]


def leftover_owner(leftover_storage_key: bytes) -> int:
    """The number of the table or stream that it was left by."""
    return int.from_bytes(leftover_storage_key[2 : 2 + _TABLE.size], "big")


def items_prefix(table_number: int) -> bytes:
    return ITEMS + _TABLE.pack(table_number)


def entries_prefix(table_number: int, index_number: int) -> bytes:
    return ENTRIES + _TABLE_INDEX.pack(table_number, index_number)


def collections_prefix(table_number: int) -> bytes:
    return COLLECTIONS + _TABLE.pack(table_number)


def expiries_prefix(table: Table) -> bytes:
    """Each time that TTL is switched on, expiries get a new prefix, apart from those before."""
    return EXPIRIES + _TABLE.pack(table.number) + _TABLE.pack(table.ttl_changes)


def collection_key(table: Table, item: Item) -> bytes:
    part = key_bytes(item[table.partition.name])
    if table.key_secret:
        part = keyed_partition(table.key_secret, (part,))
    return collections_prefix(table.number) + part


def item_key(table: Table, key: Item) -> bytes:
    return items_prefix(table.number) + _place(table, key)


def expiry_key(table: Table, expires_at: int, place: bytes) -> bytes:
    return expiries_prefix(table) + _SECONDS.pack(expires_at) + place


def item_key_at(table: Table, place: bytes) -> bytes:
    return items_prefix(table.number) + place


def place_of(item_storage_key: bytes) -> bytes:
    """The part of an item's key behind its table."""
    return item_storage_key[1 + _TABLE.size :]


def partition_of(storage_key: bytes) -> bytes | None:
    """What all keys of one partition, of a table or of an index, begin with."""
    space = storage_key[:1]
    if space == ITEMS:
        return storage_key[:ITEM_PARTITION_BYTES]
    return storage_key[:ENTRY_PARTITION_BYTES] if space == ENTRIES else None


def expiry_place(expiry_storage_key: bytes) -> bytes:
    return expiry_storage_key[1 + 2 * _TABLE.size + _SECONDS.size :]


def entry_key(table: Table, index: Index, item: Item, place: bytes) -> bytes | None:
    """Where an item stands in an index, or None when it does not have all of the index's keys.

    An item that was there before the index may have values that cannot be its keys.
    """
    partition: list[bytes] = []
    sort: list[bytes] = []
    for attributes, parts in ((index.partition, partition), (index.sort, sort)):
        for attribute in attributes:
            value = item.get(attribute.name)
            if value is None or not value.get(attribute.type):
                return None
            parts.append(key_bytes(value))
    if _are_too_long(partition, PARTITION_KEY_BYTES_MAX) or _are_too_long(sort, SORT_KEY_BYTES_MAX):
        return None
    return (
        entries_prefix(table.number, index.number)
        + _partition_part(table, partition)
        + b"".join(map(terminated, sort))
        + (b"" if index.is_local else _tie(table, item))
        + place
    )


def _are_too_long(parts: Sequence[bytes], limit: int) -> bool:
    return sum(map(len, parts)) > limit


def table_range(table: Table, keys: KeyRange) -> tuple[bytes, bytes]:
    return _range(table, items_prefix(table.number), keys)


def index_range(table: Table, index: Index, keys: KeyRange) -> tuple[bytes, bytes]:
    return _range(table, entries_prefix(table.number, index.number), keys)


def segment_range(prefix: bytes, segment: int, total_segments: int) -> tuple[bytes, bytes]:
    """A parallel scan's share of the hash space, which the service cuts into 4096 slots."""
    return _slot(prefix, segment, total_segments), _slot(prefix, segment + 1, total_segments)


def hash_part(prefix: bytes, storage_key: bytes) -> bytes:
    """The hash behind a table's or an index's prefix; the first one for the prefix itself."""
    hashed = storage_key[len(prefix) : len(prefix) + PARTITION_HASH_BYTES]
    return hashed.ljust(PARTITION_HASH_BYTES, b"\x00")


def _slot(prefix: bytes, segment: int, total_segments: int) -> bytes:
    first = -(-SCAN_SLOTS * segment // total_segments)
    if first == SCAN_SLOTS:
        return prefix_end(prefix)
    hashed = first << 8 * PARTITION_HASH_BYTES - SCAN_SLOT_BITS
    return prefix + hashed.to_bytes(PARTITION_HASH_BYTES, "big")


def _tie(table: Table, item: Item) -> bytes:
    parts = [key_bytes(item[name]) for name in table.key_names]
    if table.key_secret:
        return keyed_partition(table.key_secret, parts)[:PARTITION_HASH_BYTES]
    return partition_hash(b"".join(parts))


def _place(table: Table, key: Item) -> bytes:
    part = key_bytes(key[table.partition.name])
    place = keyed_partition(table.key_secret, (part,)) if table.key_secret else _one_part(part)
    sort = table.sort
    return place if sort is None else place + terminated(key_bytes(key[sort.name]))


def _partition_part(table: Table, parts: Sequence[bytes]) -> bytes:
    if table.key_secret:
        return keyed_partition(table.key_secret, parts)
    if len(parts) == 1:
        return _one_part(parts[0])
    return partition_hash(b"".join(parts)) + _plain_or_digest(b"".join(map(terminated, parts)))


def _one_part(part: bytes) -> bytes:
    return partition_hash(part) + _plain_or_digest(terminated(part))


def _plain_or_digest(key: bytes) -> bytes:
    """Partitions are ordered by hash alone, so a long key may stand as a digest of itself."""
    if len(key) > PLAIN_PARTITION_KEY_BYTES_MAX or key[:1] == DIGEST_MARK:
        return DIGEST_MARK + blake2b(key).digest()
    return key


def _range(table: Table, prefix: bytes, keys: KeyRange) -> tuple[bytes, bytes]:
    """The bytes between which all items of a key condition lie."""
    prefix += _partition_part(table, [key_bytes(value) for value in keys.partition])
    prefix += b"".join(terminated(key_bytes(value)) for value in keys.equal)
    first, last = prefix, prefix_end(prefix)
    bounds = [prefix + terminated(key_bytes(value)) for value in keys.operands]
    match keys.comparison:
        case "<":
            return first, bounds[0]
        case "<=":
            return first, prefix_end(bounds[0])
        case ">":
            return prefix_end(bounds[0]), last
        case ">=":
            return bounds[0], last
        case "BETWEEN":
            return bounds[0], prefix_end(bounds[1])
        case "begins_with":
            beginning = prefix + _beginning(keys.operands[0])
            return beginning, prefix_end(beginning)
    return first, last


def _beginning(value: AttributeValue) -> bytes:
    """A terminated part without its terminator: all parts that begin with it begin so."""
    return terminated(key_bytes(value))[:-2]
