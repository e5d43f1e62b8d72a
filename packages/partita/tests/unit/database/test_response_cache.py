"""A response is cached until something in its partition changes, and never too many of them."""

from __future__ import annotations

import pytest

from partita.database.execution.response_cache import (
    ENTRY_BYTES,
    MISSED_KEYS_MAX,
    RESPONSE_BYTES_MAX,
    ResponseCache,
    response_caches,
)
from partita.database.tables import table_layout
from partita.foundation.service_limits import MB

ITEM = table_layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-abc" + b"key"
SAME_PARTITION = table_layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-abc" + b"other"
OTHER_PARTITION = table_layout.ITEMS + b"\x00\x00\x00\x01" + b"hash-xyz" + b"key"
OTHER_TABLE = table_layout.ITEMS + b"\x00\x00\x00\x02" + b"hash-abc" + b"key"
ENTRY = table_layout.ENTRIES + b"\x00\x00\x00\x01\x00\x01" + b"hash-abc" + b"key"

KEY, BODY = b"request", b"response"
SIZE = ENTRY_BYTES + len(KEY) + len(BODY)


def holding(storage_key: bytes) -> ResponseCache:
    cache = ResponseCache(MB)
    partition = table_layout.partition_of(storage_key)
    assert partition is not None
    admit(cache, KEY, BODY, partition)
    return cache


def admit(cache: ResponseCache, key: bytes, body: bytes = BODY, partition: bytes = b"p") -> None:
    """Put a response, which is admitted on the second miss."""
    for _ in range(2):
        assert cache.get(key) is None
        cache.put(key, body, partition)


def keys_of(cache: ResponseCache, keys: list[bytes]) -> list[bytes]:
    """The keys of the cached responses."""
    return [key for key in keys if cache.get(key) is not None]


@pytest.mark.parametrize("changed", [ITEM, SAME_PARTITION])
def test_a_change_in_its_partition_invalidates_a_response(changed: bytes) -> None:
    cache = holding(ITEM)
    cache.invalidate([changed])
    assert cache.get(KEY) is None
    assert (len(cache), cache.size_bytes) == (0, 0)


@pytest.mark.parametrize("changed", [OTHER_PARTITION, OTHER_TABLE, ENTRY, b"\x02stat", b"\x00"])
def test_other_changes_do_not(changed: bytes) -> None:
    cache = holding(ITEM)
    cache.invalidate([changed])
    assert cache.get(KEY) is not None


def test_a_response_from_an_index_is_invalidated_by_a_change_of_the_index() -> None:
    cache = holding(ENTRY)
    cache.invalidate([ITEM])
    assert cache.get(KEY) is not None
    cache.invalidate([ENTRY + b"more"])
    assert cache.get(KEY) is None


def test_the_least_recently_used_is_evicted_first() -> None:
    keys = [b"key-%03d" % number for number in range(5)]
    cache = ResponseCache(3 * SIZE)
    for key in keys[:3]:
        admit(cache, key)
    assert cache.get(keys[0]) is not None
    admit(cache, keys[3])
    assert keys_of(cache, keys) == [keys[0], keys[2], keys[3]]
    assert cache.get(keys[0]) is not None
    admit(cache, keys[4])
    assert keys_of(cache, keys) == [keys[0], keys[3], keys[4]]
    assert (len(cache), cache.size_bytes, cache.evictions) == (3, 3 * SIZE, 2)


def test_what_is_evicted_is_not_invalidated_again() -> None:
    cache = ResponseCache(SIZE)
    partition = table_layout.partition_of(ITEM)
    assert partition is not None
    admit(cache, b"key-001", partition=partition)
    admit(cache, b"key-002", partition=partition)
    cache.invalidate([ITEM])
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_a_cleared_cache_is_empty() -> None:
    cache = holding(ITEM)
    cache.clear()
    assert cache.get(KEY) is None
    assert (len(cache), cache.size_bytes) == (0, 0)
    cache.invalidate([ITEM])


def test_a_long_response_is_not_cached() -> None:
    cache = ResponseCache(MB)
    admit(cache, KEY, b"x" * RESPONSE_BYTES_MAX)
    assert cache.get(KEY) is None


def test_a_response_is_admitted_on_the_second_miss_of_its_key() -> None:
    cache = ResponseCache(MB)
    cache.put(KEY, BODY, b"p")
    assert cache.get(KEY) is None
    cache.put(KEY, BODY, b"p")
    assert cache.get(KEY) is not None


def test_a_miss_of_long_ago_does_not_count() -> None:
    cache = ResponseCache(MB)
    cache.put(KEY, BODY, b"p")
    for number in range(MISSED_KEYS_MAX):
        cache.put(b"%d" % number, BODY, b"p")
    cache.put(KEY, BODY, b"p")
    assert cache.get(KEY) is None


def test_hits_and_misses_are_counted() -> None:
    cache = ResponseCache(MB)
    admit(cache, KEY)
    for _ in range(3):
        cache.get(KEY)
    assert (cache.hits, cache.misses, cache.evictions) == (3, 2, 0)


def test_the_operations_share_the_memory() -> None:
    caches = response_caches(2 * SIZE)
    assert list(caches) == ["GetItem", "Query"]
    for cache in caches.values():
        for number in range(3):
            admit(cache, b"key-%03d" % number)
        assert len(cache) == 1


def test_without_memory_there_is_no_cache() -> None:
    assert response_caches(0) == {}
