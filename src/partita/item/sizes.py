"""Item sizes by AWS's published rules, to the byte.

An item is the sum of its attribute names (UTF-8) and values. Strings and binaries count their
bytes, numbers about one byte for two digits, booleans and nulls one byte, lists and maps three
bytes plus one for each member. (Guide, "DynamoDB item sizes and formats".)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.item import numbers
from partita.item.values import AttributeValue, Item

CONTAINER_BYTES = 3
MEMBER_BYTES = 1


def item_size(item: Item) -> int:
    """Bytes that a normalised item counts."""
    return sum(string_size(name) + value_size(value) for name, value in item.items())


def value_size(value: AttributeValue) -> int:
    ((kind, content),) = value.items()
    return _SIZES[kind](content)


def string_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def binary_size(base64_text: str) -> int:
    return len(base64_text) * 3 // 4 - base64_text.count("=", -2)


def _list_size(members: list[AttributeValue]) -> int:
    return CONTAINER_BYTES + sum(MEMBER_BYTES + value_size(member) for member in members)


def _map_size(members: Item) -> int:
    return CONTAINER_BYTES + len(members) * MEMBER_BYTES + item_size(members)


_SIZES: dict[str, Callable[[Any], int]] = {
    "S": string_size,
    "N": numbers.size,
    "B": binary_size,
    "BOOL": lambda flag: 1,
    "NULL": lambda flag: 1,
    "SS": lambda members: sum(map(string_size, members)),
    "NS": lambda members: sum(map(numbers.size, members)),
    "BS": lambda members: sum(map(binary_size, members)),
    "L": _list_size,
    "M": _map_size,
}
