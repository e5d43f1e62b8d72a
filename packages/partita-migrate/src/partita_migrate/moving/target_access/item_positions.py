"""The position that each item carries: the place in the source's log that produced it.

Nothing older overwrites an item. When its row is gone, a tombstone with its key and position stays,
so that nothing older brings the item back. For example `{"PK": ..., "partita_position": {"N":
"81604"}}`.
"""

from __future__ import annotations

from typing import Any

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import TableDesign

POSITION = "partita_position"
DELETED = "partita_deleted"
OWN = (POSITION, DELETED)

ONLY_OVER_OLDER = "attribute_not_exists(#key) OR #position < :position"
ONLY_OVER_KNOWN = "attribute_not_exists(#key) OR #position <= :position"
"""For repairs, which write again at the very position that the item has."""


def key_of(table: TableDesign, item: Item) -> Item:
    return {key.name: item[key.name] for key in table.keys}


def stamp(item: Item, position: int) -> Item:
    """Returns an item with its position."""
    return {**item, POSITION: {"N": str(position)}}


def tombstone(key: Item, position: int) -> Item:
    """Returns what stays of an item whose row is gone."""
    return {**key, POSITION: {"N": str(position)}, DELETED: {"BOOL": True}}


def position_of(item: Item) -> int | None:
    """Returns the position of an item; None when the move has not written it."""
    value = item.get(POSITION, {}).get("N")
    return int(value) if value is not None else None


def is_tombstone(item: Item) -> bool:
    return DELETED in item


def conditional_put(
    table: TableDesign, item: Item, position: int, condition: str = ONLY_OVER_OLDER
) -> dict[str, Any]:
    """Returns a PutItem request that overwrites nothing newer; its refusal returns the existing
    item."""
    return {
        "TableName": table.name,
        "Item": item,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {"#key": table.partition_key.name, "#position": POSITION},
        "ExpressionAttributeValues": {":position": {"N": str(position)}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
