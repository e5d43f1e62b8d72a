"""The asset catalogue: the brand and resource type of each asset, read from a table.

A site writes an item for everything that it publishes: `assetId`, `brand`, `resourceType`. Items
with a brand or type that keys cannot hold are ignored (`asset_of`). Assets are cached, and the
least recently used are forgotten first. That an asset is missing is cached for a few seconds only.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from page_hit_counter.counting.tumbling_windows import REASON
from page_hit_counter.pagehits_settings import BRAND
from page_hit_counter.processing.page_visits import RESOURCE_TYPE_CHARACTERS_MAX
from partita.client import Client
from partita.foundation.clock import Clock, system_clock

KEYS_PER_READ_MAX = 100
BATCH_WRITES_MAX = 25
MISSING_SECONDS = 10.0
"""How long to wait before an asset that was not in the catalogue is looked up again."""
KNOWN_SECONDS = 600.0
"""How long a change in the catalogue may go unnoticed."""
PAUSE_SECONDS = 0.05
_is_brand = re.compile(BRAND).fullmatch


class Asset(NamedTuple):
    brand: str
    resource_type: str


def asset_of(brand: str | None, resource_type: str | None) -> Asset | None:
    """Returns an asset, or None when its keys or rows cannot hold the brand or type."""
    if not brand or not resource_type or not _is_brand(brand):
        return None
    if len(resource_type) > RESOURCE_TYPE_CHARACTERS_MAX or resource_type == REASON:
        return None
    return Asset(brand, resource_type)


class AssetCatalogue:
    def __init__(
        self, client: Client, table: str, entries_max: int, clock: Clock = system_clock
    ) -> None:
        self._client = client
        self._table = table
        self._entries_max = entries_max
        self._clock = clock
        # Two generations approximate "least recently used" cheaply: an asset that is used moves to
        # the young one; the old one is dropped when the young one is full or old.
        self._young: dict[int, Asset] = {}
        self._old: dict[int, Asset] = {}
        self._since = clock()
        self._missing: dict[int, float] = {}
        self._assets: dict[Asset, Asset] = {}

    def known(self, asset_id: int) -> Asset | None:
        asset = self._young.get(asset_id)
        if asset is None:
            asset = self._old.pop(asset_id, None)
            if asset is not None:
                self._remember(asset_id, asset)
        return asset

    async def look_up(self, asset_ids: Iterable[int]) -> None:
        """Reads the assets that are not cached. Afterwards `known` returns each one that is in the
        catalogue."""
        now = self._clock()
        if now - self._since > KNOWN_SECONDS:
            self._turn(now)
        unknown = [
            asset_id
            for asset_id in set(asset_ids)
            if self.known(asset_id) is None and self._missing.get(asset_id, 0.0) <= now
        ]
        pieces = (
            unknown[first : first + KEYS_PER_READ_MAX]
            for first in range(0, len(unknown), KEYS_PER_READ_MAX)
        )
        await asyncio.gather(*map(self._read, pieces))

    async def put(self, assets: dict[int, Asset]) -> None:
        requests = [{"PutRequest": {"Item": _item(*entry)}} for entry in assets.items()]
        while requests:
            batch, requests = requests[:BATCH_WRITES_MAX], requests[BATCH_WRITES_MAX:]
            answer = await self._client.call(
                "dynamodb", "BatchWriteItem", {"RequestItems": {self._table: batch}}
            )
            left = answer.get("UnprocessedItems", {}).get(self._table, [])
            if left:
                requests += left
                await asyncio.sleep(PAUSE_SECONDS)
        for asset_id, asset in assets.items():
            self._missing.pop(asset_id, None)
            self._remember(asset_id, asset)

    async def _read(self, asset_ids: list[int]) -> None:
        keys = [{"assetId": {"N": str(asset_id)}} for asset_id in asset_ids]
        read = set()
        while keys:
            # No projection: it would cost the same capacity and more work on the server.
            request = {"Keys": keys}
            answer = await self._client.call(
                "dynamodb", "BatchGetItem", {"RequestItems": {self._table: request}}
            )
            for item in answer["Responses"].get(self._table, []):
                asset_id, asset = _read_item(item)
                if asset is not None:
                    self._remember(asset_id, asset)
                    read.add(asset_id)
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if keys:
                await asyncio.sleep(PAUSE_SECONDS)
        self._miss(set(asset_ids) - read)

    def _remember(self, asset_id: int, asset: Asset) -> None:
        if len(self._young) >= self._entries_max // 2:
            self._turn(self._clock())
        # Assets of the same brand and type share one object.
        self._young[asset_id] = self._assets.setdefault(asset, asset)

    def _turn(self, now: float) -> None:
        self._old, self._young = self._young, {}
        if now - self._since > KNOWN_SECONDS:
            self._old = {}
            self._since = now

    def _miss(self, asset_ids: Iterable[int]) -> None:
        if len(self._missing) > self._entries_max:
            self._missing.clear()
        until = self._clock() + MISSING_SECONDS
        self._missing.update(dict.fromkeys(asset_ids, until))


def _item(asset_id: int, asset: Asset) -> dict[str, Any]:
    return {
        "assetId": {"N": str(asset_id)},
        "brand": {"S": asset.brand},
        "resourceType": {"S": asset.resource_type},
    }


def _read_item(item: dict[str, Any]) -> tuple[int, Asset | None]:
    """Reads an item. Sites write the catalogue, so attributes may be missing or have other
    types."""
    brand = item.get("brand", {}).get("S")
    resource_type = item.get("resourceType", {}).get("S")
    return int(item["assetId"]["N"]), asset_of(brand, resource_type)
