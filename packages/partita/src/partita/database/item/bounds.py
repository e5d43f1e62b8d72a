"""Whether an item keeps to its size and its depth, without looking at more than it may have.

An update can make an item of a thousand copies of another; this stops at the first byte too many.
"""

from __future__ import annotations

from typing import Any

from partita.database.item.sizes import CONTAINER_BYTES, MEMBER_BYTES, string_size, value_size
from partita.database.item.values import AttributeValue, Item
from partita.errors import ValidationException
from partita.limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX, NEWER_NESTING_LEVELS_MAX


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


def nests_too_deep(request: dict[str, Any], levels_max: int = NEWER_NESTING_LEVELS_MAX) -> bool:
    """Whether a value nests deeper than the service's newer checks read, or than another bound."""
    containers: list[Any] = [request]
    # Two levels of JSON make one of a value; the members above it count a few more.
    for _ in range(2 * levels_max + 3):
        containers = [
            content
            for container in containers
            for content in (container.values() if type(container) is dict else container)
            if type(content) is dict or type(content) is list
        ]
        if not containers:
            return False
    return True
