"""Hits that are added to windows that are closed and stored, or taken from them.

The quarantine does so when somebody releases or confirms what was held back. Each amendment leaves
its mark on the closed window in the transaction that changes the rows, so it is made once.
"""

from __future__ import annotations

from typing import Any

from partita.apps.pagehits.closed_windows import ClosedWindows, Key
from partita.apps.pagehits.rows import Row
from partita.apps.pagehits.segments import Amendment
from partita.apps.pagehits.settings import Settings
from partita.apps.pagehits.storage import (
    Item,
    compressed_item,
    item_of,
    longer_range_key,
    query_items,
    rows_of,
)
from partita.client import Client, ClientError


async def amend(client: Client, settings: Settings, amendments: list[Amendment]) -> list[Amendment]:
    """Make them in order; returns those that must wait until their window is stored."""
    closed_windows = ClosedWindows(client, settings)
    waiting = []
    for amendment in amendments:
        period = settings.periods[amendment.window.level]
        key = Key(amendment.facet.brand, period, amendment.window.start)
        window = await closed_windows.get(key)
        if window is None:
            # Nobody can ask for it any more.
            continue
        if window.rows is not None:
            waiting.append(amendment)
            continue
        await _amend(client, settings, key, amendment)
    return waiting


async def _amend(client: Client, settings: Settings, key: Key, amendment: Amendment) -> None:
    items = await query_items(client, settings, key)
    writes = [_mark(settings, key, amendment), *_changes(settings, key, amendment, items)]
    try:
        await client.call("dynamodb", "TransactWriteItems", {"TransactItems": writes})
    except ClientError as error:
        reasons = error.body.get("CancellationReasons", [{}])
        if reasons[0].get("Code") != "ConditionalCheckFailed":
            raise


def _mark(settings: Settings, key: Key, amendment: Amendment) -> dict[str, Any]:
    update = {
        "TableName": settings.windows_table,
        "Key": key.item_key,
        "UpdateExpression": "ADD amended :marks, hits :hits",
        "ConditionExpression": "attribute_exists(#name) AND NOT contains(amended, :mark)",
        "ExpressionAttributeNames": {"#name": "name"},
        "ExpressionAttributeValues": {
            ":marks": {"SS": [amendment.id]},
            ":mark": {"S": amendment.id},
            ":hits": {"N": str(amendment.hits)},
        },
    }
    return {"Update": update}


def _changes(
    settings: Settings, key: Key, amendment: Amendment, items: list[Item]
) -> list[dict[str, Any]]:
    """The row's item goes, and one with the new hits comes."""
    if settings.compression:
        rows = [row for item in items for row in rows_of(item)]
        changed = _changed(rows, amendment)
        item = compressed_item(settings, key, changed)
        return [{"Put": {"TableName": settings.table, "Item": item}}]
    changes: list[dict[str, Any]] = []
    row = Row(amendment.asset_id, *amendment.facet[1:], hits=0)
    taken = {item["rangeKey"]["S"] for item in items}
    for item in items:
        found = rows_of(item)[0]
        if found[:-1] == row[:-1]:
            row = found
            old = {name: item[name] for name in ("hashKey", "rangeKey")}
            changes.append({"Delete": {"TableName": settings.table, "Key": old}})
    row = row._replace(hits=row.hits + amendment.hits)
    if row.hits > 0:
        new = item_of(settings, key, row)
        if new["rangeKey"]["S"] in taken:
            new["rangeKey"] = {"S": longer_range_key(row)}
        changes.append({"Put": {"TableName": settings.table, "Item": new}})
    return changes


def _changed(rows: list[Row], amendment: Amendment) -> list[Row]:
    row = Row(amendment.asset_id, *amendment.facet[1:], hits=0)
    hits = sum(found.hits for found in rows if found[:-1] == row[:-1]) + amendment.hits
    others = [found for found in rows if found[:-1] != row[:-1]]
    changed = [*others, row._replace(hits=hits)] if hits > 0 else others
    return sorted(changed, key=lambda found: (-found.hits, found))
