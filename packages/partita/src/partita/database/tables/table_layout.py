"""The storage keys of tables: the only module that builds them.

    00 format, 00 numbers                            format of the folder, last table number
    00 secret                                        the key that seals the tokens of clients
    00 access, 00 audit                              state of the access and audit files
    01 name                                          a table of the catalog
    02 table, index                                  number of items and bytes (index 0: the table)
    03 token                                         a client request token
    04 table, partition key                          size of an item collection
    05 table, TTL period, expiry, item               items in the order in which they expire
    06 prefix                                        keys to be removed in the background
    07 time, token                                   tokens in the order of their use
    10 table, hash, partition key, sort key          an item
    11 table, index, hash, partition key parts, sort key parts, tie, item  an index entry

The first byte is called a space. Spaces 08, 09, 0a and 12 belong to the change log
(`logs/change_log/change_log_layout.py`), 0b, 0c, 0d and 13 to the event log
(`logs/event_log/event_log_layout.py`).

Numbers are big-endian and key parts are terminated, so that byte order is DynamoDB's order. The
end of an index entry's key is the item's own key without its table ("place" in this package),
because several items can have the same index key. In a global index those items come in the order
of a hash of their key ("tie"), as in the service (dynalite derived it from recorded orders).

In an encrypted folder, a keyed hash replaces each partition key and its hash. Sort keys are not
hashed, because their order is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from partita.database.item.attribute_values import AttributeValue, Item
from partita.database.item.key_encoding import (
    PARTITION_HASH_BYTES,
    KeyRange,
    key_bytes,
    keyed_partition,
    partition_hash,
    terminated,
)
from partita.database.storage.engine import prefix_end
from partita.database.tables.definition.table_schema import Index, Table
from partita.foundation.service_limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX

FORMAT_KEY: Final = b"\x00format"
NUMBERS_KEY: Final = b"\x00numbers"
SECRET_KEY: Final = b"\x00secret"
ACCESS_KEY, AUDIT_KEY = b"\x00access", b"\x00audit"
NOTES: Final = (ACCESS_KEY, AUDIT_KEY)
"""Keys that belong to this folder only, and are not part of a copy."""
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
"""Longer partition keys are replaced by a digest: LMDB's keys would have no room for sort keys."""
DIGEST_MARK: Final = b"\xff"
"""Begins every digest. Keys that begin with it are digested too, so they cannot be confused."""
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
    """Returns the prefixes of all data of a table; its catalog entry is not included."""
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
    """Returns the number of the table or stream whose data is to be removed."""
    return int.from_bytes(leftover_storage_key[2 : 2 + _TABLE.size], "big")


def items_prefix(table_number: int) -> bytes:
    return ITEMS + _TABLE.pack(table_number)


def entries_prefix(table_number: int, index_number: int) -> bytes:
    return ENTRIES + _TABLE_INDEX.pack(table_number, index_number)


def collections_prefix(table_number: int) -> bytes:
    return COLLECTIONS + _TABLE.pack(table_number)


def expiries_prefix(table: Table) -> bytes:
    """Returns the prefix of a table's expiries.

    It changes each time TTL is switched on or off, so that old expiries are never read again.
    """
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
    """Returns an item's storage key without its table: hash, partition key and sort key."""
    return item_storage_key[1 + _TABLE.size :]


def partition_of(storage_key: bytes) -> bytes | None:
    """Returns the prefix that all items of one partition key hash share, in a table or index.

    None for storage keys of other data.
    """
    space = storage_key[:1]
    if space == ITEMS:
        return storage_key[:ITEM_PARTITION_BYTES]
    return storage_key[:ENTRY_PARTITION_BYTES] if space == ENTRIES else None


def expiry_place(expiry_storage_key: bytes) -> bytes:
    return expiry_storage_key[1 + 2 * _TABLE.size + _SECONDS.size :]


def entry_key(table: Table, index: Index, item: Item, place: bytes) -> bytes | None:
    """Returns the storage key of an item's index entry, or None if the item is not in the index.

    Besides items that lack an index key attribute, those are items older than the index whose
    values do not fit: a wrong type, an empty string, or too many bytes.
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
    """Returns the bounds of one segment of a parallel scan.

    As in the service, segments are made of 4096 equal slots of the hash space.
    """
    return _slot(prefix, segment, total_segments), _slot(prefix, segment + 1, total_segments)


def hash_part(prefix: bytes, storage_key: bytes) -> bytes:
    """Returns the partition hash in a storage key; for the bare prefix, the lowest hash."""
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
    """Returns a partition key, or a digest if it is long.

    Only the hash in front of it orders partitions, so a digest does not change their order.
    """
    if len(key) > PLAIN_PARTITION_KEY_BYTES_MAX or key[:1] == DIGEST_MARK:
        return DIGEST_MARK + blake2b(key).digest()
    return key


def _range(table: Table, prefix: bytes, keys: KeyRange) -> tuple[bytes, bytes]:
    """Returns the storage keys between which all items of a key condition lie."""
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
    """Returns a key part without its terminator: the prefix of all parts that begin with it."""
    return terminated(key_bytes(value))[:-2]
