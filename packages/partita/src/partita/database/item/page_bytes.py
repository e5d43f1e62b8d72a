"""The size that an item counts towards a page of 1 MB: that of the service's own storage format.

It differs from the size that counts towards limits and capacity. dynalite derived it from recorded
pages, to the byte: attribute names are not stored, each value has its length in front, and an item
is cut into pieces of 3 KB, each of which repeats the sort key and has a header of 18 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.item.attribute_values import Item
from partita.database.item.item_sizes import PAGED_HEAD_BYTES, measure, measure_value
from partita.database.item.key_encoding import KeyAttribute, key_bytes

PIECE_BYTES: Final = 3072
PIECE_HEAD_BYTES: Final = 18
ITEM_HEAD_BYTES: Final = 2


def page_bytes(item: Item, sort: Sequence[KeyAttribute], paged: int | None = None) -> int:
    """Returns the bytes that an item counts towards a page.

    `sort` has the sort attributes of the table or index that the item is read from. `paged` is the
    second result of `measure`, if the caller has it already.
    """
    size = measure(item)[1] if paged is None else paged
    sort_bytes = 0
    for attribute in sort:
        value = item[attribute.name]
        size -= PAGED_HEAD_BYTES + measure_value(value)[1]
        sort_bytes += len(key_bytes(value))
    pieces = 1 + (1 + size) // PIECE_BYTES
    return ITEM_HEAD_BYTES + size + pieces * (PIECE_HEAD_BYTES + sort_bytes)
