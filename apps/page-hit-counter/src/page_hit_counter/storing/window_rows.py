"""Rows of a closed window: its counts in order of hits, down to those of the 500th asset.

Assets are ranked by their hits over all sections, and either all rows of an asset are kept or none
of them. Assets that share the lowest count are all kept, up to a limit.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import NamedTuple

import msgspec

from page_hit_counter.counting.tumbling_windows import (
    FACET_BITS,
    FACET_MASK,
    REASON,
    Counts,
    Facet,
    TumblingWindows,
)

COMPRESSION_LEVEL = 6

Kind = tuple[int, str, str]
"""Section, paid type and resource type."""


class WindowRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One count of a closed window. A list of a day reads tens of thousands of rows, and structs
    are twice as fast as named tuples."""

    asset_id: int
    section_id: int
    paid_type: str
    resource_type: str
    hits: int

    @property
    def facets(self) -> tuple[int, int, str, str]:
        """All attributes except the hits."""
        return self.asset_id, self.section_id, self.paid_type, self.resource_type


class ClosedRows(NamedTuple):
    """The counts of a window for one brand."""

    rows: list[WindowRow]
    hits: int
    """The hits of all rows, including those that are not kept."""
    filtered: dict[str, int]
    """Visits that were not counted, by reason."""


def rows_by_brand(
    windows: TumblingWindows, counts: Counts, kept_assets: int, kept_rows_max: int
) -> dict[str, ClosedRows]:
    facets = windows.facets
    totals: dict[str, dict[int, int]] = {}
    filtered: dict[str, dict[str, int]] = {}
    for key, hits in counts.items():
        facet = facets[key & FACET_MASK]
        if facet.resource_type == REASON:
            reasons = filtered.setdefault(facet.brand, {})
            reasons[facet.paid_type] = reasons.get(facet.paid_type, 0) + hits
        elif hits > 0:
            assets = totals.get(facet.brand)
            if assets is None:
                assets = totals[facet.brand] = {}
            asset_id = key >> FACET_BITS
            assets[asset_id] = assets.get(asset_id, 0) + hits
    lowest = {brand: min(nlargest(kept_assets, of.values())) for brand, of in totals.items()}
    kept: dict[str, list[tuple[int, int, Facet]]] = {brand: [] for brand in totals}
    for key, hits in counts.items():
        facet = facets[key & FACET_MASK]
        if hits > 0 and facet.resource_type != REASON:
            asset_id = key >> FACET_BITS
            if totals[facet.brand][asset_id] >= lowest[facet.brand]:
                kept[facet.brand].append((-hits, asset_id, facet))
    return {
        brand: ClosedRows(
            [_row(*each) for each in nsmallest(kept_rows_max, kept.get(brand, ()))],
            sum(totals.get(brand, {}).values()),
            filtered.get(brand, {}),
        )
        for brand in totals.keys() | filtered.keys()
    }


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The rows of a window, column by column. A list of a day sums up tens of thousands of rows but
    needs the facets of few of them."""

    assets: array[int]
    hits: array[int]
    facets: array[int]
    """For each row, the index of its kind."""
    kinds: list[msgspec.Raw]
    """The kinds as JSON; they are decoded on demand, because a list needs few of them."""
    rows_per_asset: int
    """The most rows that an asset has, which may be visited through several sections."""

    def __len__(self) -> int:
        return len(self.assets)

    def row(self, place: int) -> WindowRow:
        return WindowRow(self.assets[place], *self.kind(self.facets[place]), self.hits[place])

    def kind(self, place: int) -> Kind:
        return _decode_kind(self.kinds[place])

    def rows(self) -> list[WindowRow]:
        return list(map(self.row, range(len(self))))


class ColumnsHeader(msgspec.Struct, array_like=True):
    """The first line of a packed window, before the columns."""

    count: int
    types: str
    """The type codes of the three arrays."""
    kinds: list[msgspec.Raw]
    rows_per_asset: int


def columns_of(rows: Sequence[WindowRow]) -> RowColumns:
    kinds: dict[Kind, int] = {}
    facets = [
        kinds.setdefault((row.section_id, row.paid_type, row.resource_type), len(kinds))
        for row in rows
    ]
    numbers = ([row.asset_id for row in rows], [row.hits for row in rows], facets)
    assets, hits, places = (_array(column) for column in numbers)
    repeated = max(Counter(assets).values(), default=0)
    encoded = [msgspec.Raw(msgspec.json.encode(kind)) for kind in kinds]
    return RowColumns(assets, hits, places, encoded, repeated)


def summed(windows: Sequence[RowColumns]) -> list[WindowRow]:
    """Returns the hits of each asset and kind, summed over windows, in order of hits."""
    totals: dict[tuple[int, Kind], int] = {}
    get = totals.get
    for rows in windows:
        kinds = list(map(rows.kind, range(len(rows.kinds))))
        for asset_id, facet, hits in zip(rows.assets, rows.facets, rows.hits, strict=True):
            key = asset_id, kinds[facet]
            totals[key] = get(key, 0) + hits
    ordered = sorted((-hits, key) for key, hits in totals.items())
    return [WindowRow(asset_id, *kind, -hits) for hits, (asset_id, kind) in ordered]


def in_order(rows: Iterable[WindowRow]) -> list[WindowRow]:
    """Sorts rows by hits, most first, so that the first row of an asset is its most popular."""
    return sorted(rows, key=lambda row: (-row.hits, row.facets))


def _array(numbers: Sequence[int]) -> array[int]:
    return array("I" if max(numbers, default=0) < 2**32 else "Q", numbers)


def pack(rows: Sequence[WindowRow]) -> bytes:
    columns = columns_of(rows)
    arrays = (columns.assets, columns.hits, columns.facets)
    types = "".join(numbers.typecode for numbers in arrays)
    header = msgspec.json.encode(
        ColumnsHeader(len(rows), types, columns.kinds, columns.rows_per_asset)
    )
    content = b"".join(_little_endian(numbers).tobytes() for numbers in arrays)
    return zlib.compress(header + b"\n" + content, COMPRESSION_LEVEL)


def _little_endian(numbers: array[int]) -> array[int]:
    """Returns an array in the byte order of the database, whatever the machine's is."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


def pack_most(rows: list[WindowRow], bytes_max: int) -> bytes:
    """Packs as many rows as fit, the most popular first. Clients can make up paid types, and with
    them more rows than fit into an item."""
    packed = pack(rows)
    while len(packed) > bytes_max:
        rows = rows[: len(rows) * 3 // 4]
        packed = pack(rows)
    return packed


_decode_kind: Callable[[msgspec.Raw], Kind] = msgspec.json.Decoder(Kind).decode
_decode_header = msgspec.json.Decoder(ColumnsHeader).decode
_decode_rows = msgspec.json.Decoder(list[WindowRow]).decode


def unpack(data: bytes) -> RowColumns:
    header, line, content = zlib.decompress(data).partition(b"\n")
    if not line:
        # Older versions of this service wrote windows row by row.
        return columns_of(_decode_rows(header))
    count, types, kinds, repeated = msgspec.structs.astuple(_decode_header(header))
    arrays, start = [], 0
    for type in types:
        numbers = array(type)
        end = start + count * numbers.itemsize
        numbers.frombytes(content[start:end])
        arrays.append(_little_endian(numbers))
        start = end
    assets, hits, facets = arrays
    return RowColumns(assets, hits, facets, kinds, repeated)


def _row(negative_hits: int, asset_id: int, facet: Facet) -> WindowRow:
    return WindowRow(
        asset_id, facet.section_id, facet.paid_type, facet.resource_type, -negative_hits
    )
