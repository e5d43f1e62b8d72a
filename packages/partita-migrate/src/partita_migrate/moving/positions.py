"""The position on each item: the place in the source's log that produced it.

Nothing older overwrites it. An item whose row is gone leaves a tombstone, an item of its key and
its position, so that nothing older brings it back.
"""

from __future__ import annotations

from typing import Any

from partita.database.item.values import Item
from partita_migrate.model.design import TableDesign

POSITION = "partita_position"
DELETED = "partita_deleted"
OWN = (POSITION, DELETED)

ONLY_OVER_OLDER = "attribute_not_exists(#key) OR #position < :position"
ONLY_OVER_KNOWN = "attribute_not_exists(#key) OR #position <= :position"
"""A repair writes what belongs at the very position that is there."""


def key_of(table: TableDesign, item: Item) -> Item:
    return {key.name: item[key.name] for key in table.keys}


def stamped(item: Item, position: int) -> Item:
    return {**item, POSITION: {"N": str(position)}}


def tombstone(key: Item, position: int) -> Item:
    return {**key, POSITION: {"N": str(position)}, DELETED: {"BOOL": True}}


def position_of(item: Item) -> int | None:
    """None of an item that the move has not written."""
    value = item.get(POSITION, {}).get("N")
    return int(value) if value is not None else None


def is_tombstone(item: Item) -> bool:
    return DELETED in item


def conditional_put(
    table: TableDesign, item: Item, position: int, condition: str = ONLY_OVER_OLDER
) -> dict[str, Any]:
    """A PutItem that changes nothing newer; the answer to a refusal holds what is there."""
    return {
        "TableName": table.name,
        "Item": item,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {"#key": table.partition_key.name, "#position": POSITION},
        "ExpressionAttributeValues": {":position": {"N": str(position)}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
