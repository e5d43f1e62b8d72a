"""The table of page hits, whose items are as in table 6.1 of the thesis behind this service.

    hashKey                  rangeKey             sectionId  resourceType  paidType  expirationTime
    abc#F#2020-05-06T11:05   00000258#132141398         563  article       free          1588764000

A range key begins with the hits, padded so that text sorts as numbers do. When an asset has the
same number of hits in two sections, the key of the second row ends with section, resource type and
paid type as well. With compression, a window is one item whose range key is `compressed`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.table_requests import query_all
from page_hit_counter.storing.closed_windows import WindowKey
from page_hit_counter.storing.window_rows import (
    RowColumns,
    WindowRow,
    columns_of,
    in_order,
    pack,
    unpack,
)
from partita.client import Client, ClientError

HITS_DIGITS = 8
COMPRESSED = "compressed"

Item = dict[str, dict[str, Any]]


def range_key(row: WindowRow) -> str:
    return f"{row.hits:0{HITS_DIGITS}}#{row.asset_id}"


def longer_range_key(row: WindowRow) -> str:
    return f"{range_key(row)}#{row.section_id}#{row.resource_type}#{row.paid_type}"


def item_of(settings: PageHitSettings, key: WindowKey, row: WindowRow) -> Item:
    return {
        "hashKey": {"S": key.period.hash_key(key.brand, key.start)},
        "rangeKey": {"S": range_key(row)},
        "sectionId": {"N": str(row.section_id)},
        "resourceType": {"S": row.resource_type},
        "paidType": {"S": row.paid_type},
        "expirationTime": {"N": str(settings.expiration_time(key.period, key.start))},
    }


def compressed_item(settings: PageHitSettings, key: WindowKey, rows: list[WindowRow]) -> Item:
    return {
        "hashKey": {"S": key.period.hash_key(key.brand, key.start)},
        "rangeKey": {"S": COMPRESSED},
        "rows": {"B": b64encode(pack(rows)).decode()},
        "expirationTime": {"N": str(settings.expiration_time(key.period, key.start))},
    }


async def put_row(
    client: Client, settings: PageHitSettings, key: WindowKey, row: WindowRow
) -> float:
    """Puts a row; may be repeated. Another row of the asset with the same hits is not overwritten.
    Returns the write units that it consumed."""
    item = item_of(settings, key, row)
    request = {
        "TableName": settings.table,
        "Item": item,
        "ReturnConsumedCapacity": "TOTAL",
        "ConditionExpression": "attribute_not_exists(hashKey) OR "
        "(sectionId = :section AND resourceType = :resource AND paidType = :paid)",
        "ExpressionAttributeValues": {
            ":section": item["sectionId"],
            ":resource": item["resourceType"],
            ":paid": item["paidType"],
        },
    }
    try:
        return _units(await client.call("dynamodb", "PutItem", request))
    except ClientError as error:
        if error.code != "ConditionalCheckFailedException":
            raise
    other = {
        "TableName": settings.table,
        "Item": {**item, "rangeKey": {"S": longer_range_key(row)}},
        "ReturnConsumedCapacity": "TOTAL",
    }
    # The first write, whose condition failed, has consumed a unit too.
    return 1.0 + _units(await client.call("dynamodb", "PutItem", other))


def _units(answer: dict[str, Any]) -> float:
    return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0))


async def put_compressed(
    client: Client, settings: PageHitSettings, key: WindowKey, rows: list[WindowRow]
) -> None:
    item = compressed_item(settings, key, rows)
    await client.call("dynamodb", "PutItem", {"TableName": settings.table, "Item": item})


async def query_items(client: Client, settings: PageHitSettings, key: WindowKey) -> list[Item]:
    """Returns all items of a window, most hits first."""
    request: dict[str, Any] = {
        "TableName": settings.table,
        "KeyConditionExpression": "hashKey = :window",
        "ExpressionAttributeValues": {":window": {"S": key.period.hash_key(key.brand, key.start)}},
        "ScanIndexForward": False,
    }
    return [item async for item in query_all(client, request)]


async def query_rows(client: Client, settings: PageHitSettings, key: WindowKey) -> RowColumns:
    rows: list[WindowRow] = []
    for item in await query_items(client, settings, key):
        rows += rows_of(item)
    # Keys sort as numbers only up to eight digits.
    return columns_of(in_order(rows))


def rows_of(item: Item) -> list[WindowRow]:
    if item["rangeKey"]["S"] == COMPRESSED:
        return unpack(b64decode(item["rows"]["B"])).rows()
    hits, asset_id = item["rangeKey"]["S"].split("#")[:2]
    return [
        WindowRow(
            int(asset_id),
            int(item["sectionId"]["N"]),
            item["paidType"]["S"],
            item["resourceType"]["S"],
            int(hits),
        )
    ]
