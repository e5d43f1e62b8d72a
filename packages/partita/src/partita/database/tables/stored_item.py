"""Items as they are stored: two sizes, then the JSON of the wire protocol.

The first size counts towards limits and capacity. The second counts towards a page of 1 MB, which
the service measures in its own storage format (`item/page_bytes.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypedDict

import msgspec
import orjson

from partita.database.item.attribute_values import Item
from partita.database.item.item_sizes import measure
from partita.database.item.key_encoding import KeyAttribute
from partita.database.item.page_bytes import page_bytes
from partita.foundation.service_limits import KB

_HEADER: Final = struct.Struct(">II")
HEADER_BYTES: Final = _HEADER.size

unpack_sizes: Final = _HEADER.unpack_from
"""Returns the two sizes in front of a stored value."""
_decode_item: Final = msgspec.json.Decoder(dict[str, dict[str, object]]).decode


DECODERS_MAX: Final = 1024
LARGE_BODY_BYTES: Final = 32 * KB
"""Decoding smaller items is fast, so the decoding budget does not count them."""


class TooMuchToDecode(Exception):
    """Raised when an operation would decode so much that all others wait.

    It is then carried out in the process for large requests.
    """


class DecodingBudget:
    """The bytes of large items that the current operation may still decode."""

    def __init__(self) -> None:
        self.bytes_left = NO_LIMIT

    def spend(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise TooMuchToDecode


NO_LIMIT: Final = 1 << 60
decoding_budget: Final = DecodingBudget()


class StoredItem:
    """An item with its size and its bytes, decoded only when its attributes are needed."""

    __slots__ = ("_item", "_paged", "_ready", "_ready_sort", "body", "size")

    def __init__(
        self, body: bytes, size: int, item: Item | None = None, paged: int | None = None
    ) -> None:
        self.body = body
        self.size = size
        self._item = item
        self._paged = paged
        self._ready: bytes | None = None
        """The stored value for the sort attributes `_ready_sort`, if it was computed before."""
        self._ready_sort: Sequence[KeyAttribute] = ()

    @property
    def item(self) -> Item:
        if self._item is None:
            if len(self.body) > LARGE_BODY_BYTES:
                decoding_budget.spend(len(self.body))
            self._item = decode(self.body)
        return self._item

    def value(self, sort: Sequence[KeyAttribute]) -> bytes:
        """Returns the value to store in a table or index with these sort attributes.

        They matter because they change the item's size on a page.
        """
        if self._ready is not None and self._ready_sort == sort:
            return self._ready
        return _HEADER.pack(self.size, page_bytes(self.item, sort, self._paged)) + self.body


def pack(item: Item) -> StoredItem:
    """Returns a normalized item in the form in which it is stored."""
    body = orjson.dumps(item)
    size, paged = measure(item, body.isascii())
    return StoredItem(body, size, item, paged)


def unpack(value: bytes) -> StoredItem:
    """Returns the item in a stored value, without decoding it."""
    return StoredItem(value[HEADER_BYTES:], unpack_sizes(value)[0])


def prepared(value: bytes, sort: Sequence[KeyAttribute]) -> StoredItem:
    """Returns an item whose stored value another process has computed for these sort attributes."""
    stored = unpack(value)
    stored._ready, stored._ready_sort = value, sort
    return stored


def decode(body: bytes) -> Item:
    return _decode_item(body)


@lru_cache(DECODERS_MAX)
def attributes_decoder(names: frozenset[str]) -> Callable[[bytes], Item]:
    """Returns a decoder of these attributes, which skips all others and is faster for it."""
    # Called as Any, because mypy does not support TypedDicts that are made at run time.
    typed_dict: Any = TypedDict
    members = dict.fromkeys(names, dict[str, object])
    decoder: Any = msgspec.json.Decoder(typed_dict("Attributes", members, total=False))
    decode_attributes: Callable[[bytes], Item] = decoder.decode
    return decode_attributes
