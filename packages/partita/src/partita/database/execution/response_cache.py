"""The response cache: responses of GetItem and Query, until something in their partition changes.

Applications send the same read again and again, in the same bytes. Both operations read one
partition of a table or of an index, so a response stays correct until a commit changes a key of
that partition, or the catalog changes. A response is admitted on the second miss of its key,
because most requests are never repeated. The cache is bounded, and evicts the least recently used
entry.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from partita.database.tables import table_layout
from partita.foundation.checksum import crc32
from partita.foundation.service_limits import KB, MB

CACHED_OPERATIONS: Final = ("GetItem", "Query")
RESPONSE_CACHE_BYTES: Final = 32 * MB
"""The size of all caches together; each operation has an equal share."""
RESPONSE_BYTES_MAX: Final = 64 * KB
"""Larger responses are not cached."""
MISSED_KEYS_MAX: Final = 20_000
ENTRY_BYTES: Final = 500
"""An estimate of the memory of an entry besides its key and its body."""


class CachedResponse:
    __slots__ = ("body", "checksum", "partition")

    def __init__(self, body: bytes, partition: bytes) -> None:
        self.body = body
        self.checksum = crc32(body)
        self.partition = partition


class ResponseCache:
    """The cached responses of one operation; a key is the body of a request."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # A plain dict is slower: to find its first entry, it skips all that were removed before it.
        self._entries: OrderedDict[bytes, CachedResponse] = OrderedDict()
        """Entries by key, the least recently used first."""
        self._keys: dict[bytes, set[bytes]] = {}
        """Keys by the partition that their responses were read from."""
        self._missed: set[int] = set()
        """Hashes of keys that were missed once. A collision only admits a response too early."""
        self.size_bytes = 0
        self.hits = 0
        self.misses = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> CachedResponse | None:
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return entry

    def put(self, key: bytes, body: bytes, partition: bytes) -> None:
        """Offer the response to a key that was just missed; it was read from `partition`."""
        if len(key) + len(body) > RESPONSE_BYTES_MAX or key in self._entries:
            return
        if not self._is_second_miss(key):
            return
        self._entries[key] = CachedResponse(body, partition)
        keys = self._keys.get(partition)
        if keys is None:
            self._keys[partition] = {key}
        else:
            keys.add(key)
        self.size_bytes += ENTRY_BYTES + len(key) + len(body)
        while self.size_bytes > self._max_bytes:
            self._evict()

    def invalidate(self, changed_keys: Iterable[bytes]) -> None:
        """Drop the responses that a commit of these storage keys may have changed."""
        if not self._entries:
            return
        for changed_key in changed_keys:
            partition = table_layout.partition_of(changed_key)
            keys = self._keys.pop(partition, None) if partition is not None else None
            if keys is not None:
                for key in keys:
                    self._remove(key)

    def clear(self) -> None:
        self._entries.clear()
        self._keys.clear()
        self.size_bytes = 0

    def _is_second_miss(self, key: bytes) -> bool:
        hashed = hash(key)
        if hashed in self._missed:
            return True
        if len(self._missed) >= MISSED_KEYS_MAX:
            self._missed.clear()
        self._missed.add(hashed)
        return False

    def _evict(self) -> None:
        key = next(iter(self._entries))
        partition = self._entries[key].partition
        keys = self._keys[partition]
        keys.remove(key)
        if not keys:
            del self._keys[partition]
        self._remove(key)
        self.evictions += 1

    def _remove(self, key: bytes) -> None:
        entry = self._entries.pop(key)
        self.size_bytes -= ENTRY_BYTES + len(key) + len(entry.body)


def response_caches(max_bytes: int) -> dict[str, ResponseCache]:
    """A cache for each cached operation, by its name; no caches if `max_bytes` is 0."""
    if max_bytes <= 0:
        return {}
    return {name: ResponseCache(max_bytes // len(CACHED_OPERATIONS)) for name in CACHED_OPERATIONS}
