"""Item sizes by AWS's published rules, to the byte.

An item's size is the sum of its attribute names (UTF-8) and values. Strings and binaries count
their bytes, numbers about one byte for two digits, booleans and nulls one byte, lists and maps
three bytes plus one for each member. (Guide, "DynamoDB item sizes and formats".)

The same walk also measures what the values count towards a page of 1 MB, where strings, sets and
containers have headers of other lengths (`database/item/page_bytes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from partita.database.item import numbers
from partita.database.item.attribute_values import TOO_LARGE, AttributeValue, Item
from partita.errors import ValidationException
from partita.foundation.service_limits import ITEM_BYTES_MAX

CONTAINER_BYTES: Final = 3
MEMBER_BYTES: Final = 1
PAGED_HEAD_BYTES: Final = 1
"""The header that every value has on a page."""


def check_item_size(size: int, refusal: str = TOO_LARGE) -> None:
    """Refuse an item of more than 400 KB; operations differ in the text of that error."""
    if size > ITEM_BYTES_MAX:
        raise ValidationException(refusal)


def item_size(item: Item) -> int:
    """Returns the bytes that a normalized item counts towards limits and capacity."""
    return measure(item)[0]


def value_size(value: AttributeValue) -> int:
    return measure_value(value)[0]


def measure(item: Item, is_ascii: bool = False) -> tuple[int, int]:
    """Returns the bytes that a normalized item counts, and the bytes that its values count on a
    page.

    `is_ascii` says that all text in the item is ASCII: then no string has to be encoded.
    """
    size = paged = 0
    for name, value in item.items():
        value_bytes, value_paged = measure_value(value, is_ascii)
        size += value_bytes + (len(name) if is_ascii else string_size(name))
        paged += PAGED_HEAD_BYTES + value_paged
    return size, paged


def measure_value(value: AttributeValue, is_ascii: bool = False) -> tuple[int, int]:
    for kind, content in value.items():
        if kind == "S":
            text: str = content
            size = len(text) if is_ascii else string_size(text)
            return size, size + _length_bytes(size)
        if kind == "N":
            size = numbers.size(content)
            return size, 1 + size
        if kind == "M":
            return _measure_map(content, is_ascii)
        if kind == "L":
            return _measure_list(content, is_ascii)
        if kind == "BOOL":
            return 1, 1
        return _OTHERS[kind](content)
    return 0, 0


def string_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def binary_size(base64_text: str) -> int:
    return len(base64_text) * 3 // 4 - base64_text.count("=", -2)


def _length_bytes(size: int) -> int:
    return 1 if size < 1 << 7 else 2 if size < 1 << 14 else 3


def _measure_list(members: list[AttributeValue], is_ascii: bool) -> tuple[int, int]:
    size = CONTAINER_BYTES + MEMBER_BYTES * len(members)
    paged = 1 + PAGED_HEAD_BYTES * len(members)
    for member in members:
        value_bytes, value_paged = measure_value(member, is_ascii)
        size += value_bytes
        paged += value_paged
    return size, paged


def _measure_map(members: Item, is_ascii: bool) -> tuple[int, int]:
    size = CONTAINER_BYTES + MEMBER_BYTES * len(members)
    paged = 1 + PAGED_HEAD_BYTES * len(members)
    for name, value in members.items():
        value_bytes, value_paged = measure_value(value, is_ascii)
        name_bytes = len(name) if is_ascii else string_size(name)
        size += name_bytes + value_bytes
        paged += name_bytes + _length_bytes(name_bytes) + value_paged
    return size, paged


def _measure_binary(text: str) -> tuple[int, int]:
    size = binary_size(text)
    return size, 1 + size


def _measure_set(member_size: Callable[[str], int]) -> Callable[[list[str]], tuple[int, int]]:
    def measure_members(members: list[str]) -> tuple[int, int]:
        size = sum(map(member_size, members))
        return size, 1 + len(members) + size

    return measure_members


_OTHERS: Final[dict[str, Callable[[Any], tuple[int, int]]]] = {
    "B": _measure_binary,
    "NULL": lambda flag: (1, 0),
    "SS": _measure_set(string_size),
    "NS": _measure_set(numbers.size),
    "BS": _measure_set(binary_size),
}
