"""Item sizes by AWS's published rules, to the byte.

An item is the sum of its attribute names (UTF-8) and values. Strings and binaries count their
bytes, numbers about one byte for two digits, booleans and nulls one byte, lists and maps three
bytes plus one for each member. (Guide, "DynamoDB item sizes and formats".)

What a value takes on a page of 1 MB comes from the same walk: there, strings, sets and containers
have other heads (`database/item/page_bytes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from partita.database.item import numbers
from partita.database.item.values import TOO_LARGE, AttributeValue, Item
from partita.errors import ValidationException
from partita.limits import ITEM_BYTES_MAX

CONTAINER_BYTES: Final = 3
MEMBER_BYTES: Final = 1
PAGED_HEAD_BYTES: Final = 1
"""Of every value on a page."""


def check_item_size(size: int, refusal: str = TOO_LARGE) -> None:
    """An item has at most 400 KB; each operation has its own words for one that is larger."""
    if size > ITEM_BYTES_MAX:
        raise ValidationException(refusal)


def item_size(item: Item) -> int:
    """Bytes that a normalised item counts."""
    return measure(item)[0]


def value_size(value: AttributeValue) -> int:
    return measure_value(value)[0]


def measure(item: Item, is_ascii: bool = False) -> tuple[int, int]:
    """Bytes that a normalised item counts, and bytes that its values take on a page.

    Where it is known that all of it `is_ascii`, no text has to be looked at.
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
