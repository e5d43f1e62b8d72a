"""Applies adjustments that arrive after their window has closed, to the rows that are stored.

The spam filter sends adjustments when it takes hits back, and the quarantine when a person releases
what was withheld. The transaction that changes the rows also notes the adjustment's id on the
closed window, so each adjustment is applied once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from page_hit_counter.counting.tumbling_windows import Facet, TumblingWindow
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.storing.closed_windows import ClosedWindows, WindowKey
from page_hit_counter.storing.list_sums import is_summed, withdrawal
from page_hit_counter.storing.page_hits_table import (
    Item,
    compressed_item,
    item_of,
    longer_range_key,
    query_items,
    rows_of,
)
from page_hit_counter.storing.window_rows import WindowRow, in_order
from partita.client import Client, ClientError


class LateAdjustment(msgspec.Struct, array_like=True):
    """Hits to add to one count of a closed window; negative hits lower it."""

    id: str
    window: TumblingWindow
    asset_id: int
    facet: Facet
    hits: int


async def apply_all(
    client: Client, settings: PageHitSettings, adjustments: list[LateAdjustment]
) -> list[LateAdjustment]:
    """Applies adjustments in order. Returns those that must wait until their window is stored."""
    closed_windows = ClosedWindows(client, settings)
    waiting = []
    for adjustment in adjustments:
        period = settings.periods[adjustment.window.level]
        key = WindowKey(adjustment.facet.brand, period, adjustment.window.start)
        window = await closed_windows.get(key)
        if window is None:
            # The window has expired, so no list shows it any more.
            continue
        if not window.is_stored:
            waiting.append(adjustment)
            continue
        await _apply(client, settings, key, adjustment)
    return waiting


async def _apply(
    client: Client, settings: PageHitSettings, key: WindowKey, adjustment: LateAdjustment
) -> None:
    items = await query_items(client, settings, key)
    writes = [_mark(settings, key, adjustment), *_changes(settings, key, adjustment, items)]
    if is_summed(key.period):
        writes.append({"Update": withdrawal(settings, (key.brand, key.period))})
    try:
        await client.call("dynamodb", "TransactWriteItems", {"TransactItems": writes})
    except ClientError as error:
        reasons = error.body.get("CancellationReasons", [{}])
        # The first write is the mark: its condition fails when the adjustment was applied before.
        if reasons[0].get("Code") != "ConditionalCheckFailed":
            raise


def _mark(settings: PageHitSettings, key: WindowKey, adjustment: LateAdjustment) -> dict[str, Any]:
    update = {
        "TableName": settings.windows_table,
        "Key": key.item_key,
        "UpdateExpression": "REMOVE #rows ADD amended :marks, hits :hits",
        "ConditionExpression": "attribute_exists(#name) AND NOT contains(amended, :mark)",
        "ExpressionAttributeNames": {"#name": "name", "#rows": "rows"},
        "ExpressionAttributeValues": {
            ":marks": {"SS": [adjustment.id]},
            ":mark": {"S": adjustment.id},
            ":hits": {"N": str(adjustment.hits)},
        },
    }
    return {"Update": update}


def _changes(
    settings: PageHitSettings, key: WindowKey, adjustment: LateAdjustment, items: list[Item]
) -> list[dict[str, Any]]:
    """Returns the writes that change a row. The hits are part of the key, so the item is deleted
    and one with the new hits is put."""
    if settings.compression:
        rows = [row for item in items for row in rows_of(item)]
        changed = _changed(rows, adjustment)
        item = compressed_item(settings, key, changed)
        return [{"Put": {"TableName": settings.table, "Item": item}}]
    changes: list[dict[str, Any]] = []
    row = WindowRow(adjustment.asset_id, *adjustment.facet[1:], hits=0)
    taken = {item["rangeKey"]["S"] for item in items}
    for item in items:
        stored = rows_of(item)[0]
        if stored.facets == row.facets:
            row = stored
            old = {name: item[name] for name in ("hashKey", "rangeKey")}
            changes.append({"Delete": {"TableName": settings.table, "Key": old}})
    row = msgspec.structs.replace(row, hits=row.hits + adjustment.hits)
    if row.hits > 0:
        new = item_of(settings, key, row)
        if new["rangeKey"]["S"] in taken:
            new["rangeKey"] = {"S": longer_range_key(row)}
        changes.append({"Put": {"TableName": settings.table, "Item": new}})
    return changes


def _changed(rows: list[WindowRow], adjustment: LateAdjustment) -> list[WindowRow]:
    row = WindowRow(adjustment.asset_id, *adjustment.facet[1:], hits=0)
    hits = sum(old.hits for old in rows if old.facets == row.facets) + adjustment.hits
    changed = [old for old in rows if old.facets != row.facets]
    if hits > 0:
        changed.append(msgspec.structs.replace(row, hits=hits))
    return in_order(changed)
