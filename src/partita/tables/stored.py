"""Items as they lie in storage: the size, then the bytes of the wire."""

from __future__ import annotations

import struct

import msgspec
import orjson

from partita.item.sizes import item_size
from partita.item.values import Item

SIZE_BYTES = 4

_SIZE = struct.Struct(">I")
_decode_item = msgspec.json.Decoder(dict[str, dict[str, object]]).decode


class Stored:
    """An item with the value that storage has for it; decoded when somebody looks inside."""

    __slots__ = ("_item", "size", "value")

    def __init__(self, value: bytes, size: int, item: Item | None = None) -> None:
        self.value = value
        self.size = size
        self._item = item

    @property
    def item(self) -> Item:
        if self._item is None:
            self._item = decode(self.body)
        return self._item

    @property
    def body(self) -> bytes:
        return self.value[SIZE_BYTES:]


def pack(item: Item) -> Stored:
    size = item_size(item)
    return Stored(_SIZE.pack(size) + orjson.dumps(item), size, item)


def unpack(value: bytes) -> Stored:
    return Stored(value, size_of(value))


def size_of(value: bytes) -> int:
    size: int = _SIZE.unpack_from(value)[0]
    return size


def decode(body: bytes) -> Item:
    return _decode_item(body)
