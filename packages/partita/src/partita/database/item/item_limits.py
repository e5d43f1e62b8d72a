"""Checks an item's size and nesting depth, and stops as soon as either limit is exceeded.

An update can build an item out of a thousand copies of another value. Measuring all of it first
would cost seconds, so the walk ends at the first byte that is too many.
"""

from __future__ import annotations

from typing import Any

from partita.database.item.attribute_values import AttributeValue, Item
from partita.database.item.item_sizes import CONTAINER_BYTES, MEMBER_BYTES, string_size, value_size
from partita.errors import ValidationException
from partita.foundation.service_limits import (
    ITEM_BYTES_MAX,
    NESTING_LEVELS_MAX,
    NEWER_NESTING_LEVELS_MAX,
)


def check_bounds(item: Item, too_large: str) -> None:
    """Refuse an item over 400 KB, with the text `too_large`, or one that nests too deep."""
    size = sum(map(string_size, item))
    waiting: list[tuple[AttributeValue, int]] = [(value, 1) for value in item.values()]
    while waiting:
        value, level = waiting.pop()
        if level > NESTING_LEVELS_MAX:
            # A value that is too deep when it is sent gets a longer text than an item that an
            # update made too deep (observed on DynamoDB Local).
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
    """True when any value of a request nests deeper than `levels_max`.

    The default is the depth at which the service's newer validation gives up.
    """
    containers: list[Any] = [request]
    # One level of an attribute value is two levels of JSON, as in {"L": [...]}. The members of the
    # request above the value account for up to three more.
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
