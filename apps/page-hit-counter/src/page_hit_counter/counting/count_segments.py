"""Encodes segments: counts of one window, or ids of records, in pieces that fit an item."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator

import msgspec

from page_hit_counter.counting.tumbling_windows import FACET_BITS, Counts, Facet, Facets

SEGMENT_BYTES_MAX = 360_000
"""The limit before compression, so that a segment fits the 400 KB of an item even if its content
does not compress."""
SEGMENT_IDS_MAX = 2_500
"""An id has up to 128 characters."""
COUNT_BYTES = 12
FACET_BYTES = 64
"""The encoded size of a facet without its names."""
CHARACTER_BYTES_MAX = 4
COMPRESSION_LEVEL = 1


def encode_counts(counts: Counts, facets: Facets) -> Iterator[bytes]:
    """Yields counts in pieces that fit an item: for each facet, its assets and their hits as
    machine integers."""
    by_facet: dict[Facet, tuple[array[int], array[int]]] = {}
    size_bytes = 0
    # Sorted, because neighbours are then similar, which compresses well.
    for key in sorted(counts):
        asset_id, facet = facets.spell_out(key)
        columns = by_facet.get(facet)
        if columns is None:
            columns = by_facet[facet] = (array("q"), array("i"))
            size_bytes += _facet_bytes_max(facet)
        columns[0].append(asset_id)
        columns[1].append(counts[key])
        size_bytes += COUNT_BYTES
        if size_bytes >= SEGMENT_BYTES_MAX:
            yield _encode_columns(by_facet)
            by_facet, size_bytes = {}, 0
    if by_facet:
        yield _encode_columns(by_facet)


def decode_counts(data: bytes, facets: Facets) -> Counts:
    columns = msgspec.msgpack.decode(
        zlib.decompress(data), type=list[tuple[str, int, str, str, bytes, bytes]]
    )
    counts: Counts = {}
    for brand, section_id, paid_type, resource_type, assets, hits in columns:
        number = facets.number(brand, section_id, paid_type, resource_type)
        for asset_id, n in zip(array("q", assets), array("i", hits), strict=True):
            counts[asset_id << FACET_BITS | number] = n
    return counts


def encode_ids(ids: list[str]) -> Iterator[bytes]:
    for first in range(0, len(ids), SEGMENT_IDS_MAX):
        batch = ids[first : first + SEGMENT_IDS_MAX]
        yield zlib.compress(msgspec.msgpack.encode(batch), COMPRESSION_LEVEL)


def decode_ids(data: bytes) -> list[str]:
    return msgspec.msgpack.decode(zlib.decompress(data), type=list[str])


def _facet_bytes_max(facet: Facet) -> int:
    characters = len(facet.brand) + len(facet.paid_type) + len(facet.resource_type)
    return FACET_BYTES + CHARACTER_BYTES_MAX * characters


def _encode_columns(by_facet: dict[Facet, tuple[array[int], array[int]]]) -> bytes:
    columns = [
        (*facet, assets.tobytes(), hits.tobytes()) for facet, (assets, hits) in by_facet.items()
    ]
    return zlib.compress(msgspec.msgpack.encode(columns), COMPRESSION_LEVEL)
