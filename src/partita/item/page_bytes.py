"""What an item counts towards a page of 1 MB: its size in the service's own storage format.

dynalite found it in recorded pages, to the byte: names are not stored with values, values have a
length in front, and an item is cut into pieces of 3 KB, each with the sort key and 18 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from partita.item import numbers
from partita.item.keys import key_bytes
from partita.item.sizes import binary_size, string_size
from partita.item.values import AttributeValue, Item

PIECE_BYTES = 3072
PIECE_HEAD_BYTES = 18
ITEM_HEAD_BYTES = 2


def page_bytes(item: Item, sort: Iterable[tuple[str, str]]) -> int:
    """`sort` are the sort attributes, with their types, of the table or index it is read from."""
    sort_names = [name for name, _ in sort]
    size = sum(1 + _value_bytes(value) for name, value in item.items() if name not in sort_names)
    sort_bytes = sum(len(key_bytes(item[name])) for name in sort_names)
    pieces = 1 + (1 + size) // PIECE_BYTES
    return ITEM_HEAD_BYTES + size + pieces * (PIECE_HEAD_BYTES + sort_bytes)


def _value_bytes(value: AttributeValue) -> int:
    ((kind, content),) = value.items()
    return _SIZES[kind](content)


def _string(text: str) -> int:
    size = string_size(text)
    return size + (1 if size < 1 << 7 else 2 if size < 1 << 14 else 3)


def _set(size: Callable[[str], int]) -> Callable[[list[str]], int]:
    return lambda members: 1 + sum(1 + size(member) for member in members)


def _map(members: Item) -> int:
    return 1 + sum(1 + _string(name) + _value_bytes(value) for name, value in members.items())


_SIZES: dict[str, Callable[[Any], int]] = {
    "S": _string,
    "N": lambda text: 1 + numbers.size(text),
    "B": lambda text: 1 + binary_size(text),
    "BOOL": lambda flag: 1,
    "NULL": lambda flag: 0,
    "SS": _set(string_size),
    "NS": _set(numbers.size),
    "BS": _set(binary_size),
    "L": lambda members: 1 + sum(1 + _value_bytes(member) for member in members),
    "M": _map,
}
