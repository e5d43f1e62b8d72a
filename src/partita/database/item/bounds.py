"""Whether an item keeps to its size and its depth, told without looking at more than it may have.

An update can make an item of a thousand copies of another; this stops at the first byte too many.
"""

from __future__ import annotations

from partita.database.item.sizes import CONTAINER_BYTES, MEMBER_BYTES, string_size, value_size
from partita.database.item.values import AttributeValue, Item
from partita.errors import ValidationException
from partita.limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX


def check_bounds(item: Item, too_large: str) -> None:
    size = sum(map(string_size, item))
    waiting: list[tuple[AttributeValue, int]] = [(value, 1) for value in item.values()]
    while waiting:
        value, level = waiting.pop()
        if level > NESTING_LEVELS_MAX:
            # Shorter than what is said of a value that is too deep itself (DynamoDB Local).
            raise ValidationException("Nesting Levels have exceeded supported limits")
        members: list[AttributeValue] = []
        if "L" in value:
            members = value["L"]
            size += CONTAINER_BYTES + MEMBER_BYTES * len(members)
        elif "M" in value:
            members = list(value["M"].values())
            names = sum(map(string_size, value["M"]))
            size += CONTAINER_BYTES + MEMBER_BYTES * len(members) + names
        else:
            size += value_size(value)
        if size > ITEM_BYTES_MAX:
            raise ValidationException(too_large)
        waiting += [(member, level + 1) for member in members]
