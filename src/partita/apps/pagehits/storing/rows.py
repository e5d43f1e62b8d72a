"""Rows of a closed window: its counts in order of hits, down to those of the 500th asset.

Assets are ranked by all their hits, whatever sections these came through, and either all rows of an
asset are kept or none. Assets that share the lowest count are all kept, up to a limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from heapq import nlargest, nsmallest
from typing import NamedTuple

import msgspec

from partita.apps.pagehits.windows import FACET_BITS, FACET_MASK, REASON, Counts, Facet, Windows

COMPRESSION_LEVEL = 6


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One count of a closed window. A list of a day reads tens of thousands of them, which a struct
    makes twice as fast as a named tuple would."""

    asset_id: int
    section_id: int
    paid_type: str
    resource_type: str
    hits: int

    @property
    def facets(self) -> tuple[int, int, str, str]:
        """All but its hits."""
        return self.asset_id, self.section_id, self.paid_type, self.resource_type


class Closed(NamedTuple):
    """What a window held for one brand."""

    rows: list[Row]
    hits: int
    """Of all rows, including those that are not kept."""
    filtered: dict[str, int]
    """Visits that were not counted, by reason."""


def rows_by_brand(
    windows: Windows, counts: Counts, kept_assets: int, kept_rows_max: int
) -> dict[str, Closed]:
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
        brand: Closed(
            [_row(*each) for each in nsmallest(kept_rows_max, kept.get(brand, ()))],
            sum(totals.get(brand, {}).values()),
            filtered.get(brand, {}),
        )
        for brand in totals.keys() | filtered.keys()
    }


def pack(rows: Iterable[Row]) -> bytes:
    return zlib.compress(msgspec.json.encode(list(rows)), COMPRESSION_LEVEL)


def pack_most(rows: list[Row], bytes_max: int) -> bytes:
    """As many as fit, the most popular first: made-up paid types could exceed any item."""
    packed = pack(rows)
    while len(packed) > bytes_max:
        rows = rows[: len(rows) * 3 // 4]
        packed = pack(rows)
    return packed


_decode = msgspec.json.Decoder(list[Row]).decode


def unpack(data: bytes) -> list[Row]:
    return _decode(zlib.decompress(data))


def _row(negative_hits: int, asset_id: int, facet: Facet) -> Row:
    return Row(asset_id, facet.section_id, facet.paid_type, facet.resource_type, -negative_hits)
