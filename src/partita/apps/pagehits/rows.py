"""What is kept of a closed window: rows in order of hits, down to those of the 500th asset.

An asset counts by all its hits, whatever sections they came through; all of its rows are kept or
none. Assets that share the lowest count are all kept, up to a bound.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from heapq import nlargest
from typing import NamedTuple

import msgspec

from partita.apps.pagehits.windows import REASON, Counts, Facet, Windows

COMPRESSION_LEVEL = 6


class Row(NamedTuple):
    """One count of a closed window."""

    asset_id: int
    section_id: int
    paid_type: str
    resource_type: str
    hits: int


class Closed(NamedTuple):
    """What a window held for one brand."""

    rows: list[Row]
    hits: int
    """Of all rows, kept or not."""
    filtered: dict[str, int]
    """What was not counted, by reason."""


def rows_by_brand(
    windows: Windows, counts: Counts, kept_assets: int, kept_rows_max: int
) -> dict[str, Closed]:
    totals: dict[str, dict[int, int]] = {}
    filtered: dict[str, dict[str, int]] = {}
    spell_out = windows.facets.spell_out
    for key, hits in counts.items():
        asset_id, facet = spell_out(key)
        if facet.resource_type == REASON:
            filtered.setdefault(facet.brand, {})[facet.paid_type] = hits
        elif hits > 0:
            assets = totals.setdefault(facet.brand, {})
            assets[asset_id] = assets.get(asset_id, 0) + hits
    lowest = {brand: _lowest(assets.values(), kept_assets) for brand, assets in totals.items()}
    rows: dict[str, list[Row]] = {brand: [] for brand in totals}
    for key, hits in counts.items():
        asset_id, facet = spell_out(key)
        if facet.resource_type == REASON or hits <= 0:
            continue
        if totals[facet.brand][asset_id] >= lowest[facet.brand]:
            rows[facet.brand].append(_row(asset_id, facet, hits))
    return {
        brand: Closed(
            sorted(rows.get(brand, ()), key=_order)[:kept_rows_max],
            sum(totals.get(brand, {}).values()),
            filtered.get(brand, {}),
        )
        for brand in totals.keys() | filtered.keys()
    }


def pack(rows: Iterable[Row]) -> bytes:
    return zlib.compress(msgspec.json.encode(list(rows)), COMPRESSION_LEVEL)


def unpack(data: bytes) -> list[Row]:
    return msgspec.json.decode(zlib.decompress(data), type=list[Row])


def _lowest(totals: Iterable[int], kept_assets: int) -> int:
    return min(nlargest(kept_assets, totals))


def _row(asset_id: int, facet: Facet, hits: int) -> Row:
    return Row(asset_id, facet.section_id, facet.paid_type, facet.resource_type, hits)


def _order(row: Row) -> tuple[int, int, int, str, str]:
    return (-row.hits, row.asset_id, row.section_id, row.paid_type, row.resource_type)
