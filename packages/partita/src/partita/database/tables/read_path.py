"""The read path: one item, or a page of a range, as the bytes in storage.

A page ends when `limit` items have been evaluated, or when the evaluated items reach 1 MB; the
item that crosses that line still belongs to the page (recorded). A page with a slow filter ends
earlier, as the API allows, so that one request cannot keep all others waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from partita.database.storage.engine import Reader
from partita.database.tables.stored_item import HEADER_BYTES, StoredItem, unpack, unpack_sizes
from partita.foundation.clock import Stopwatch
from partita.foundation.service_limits import KB, PAGE_BYTES_MAX

Keep = Callable[[bytes], bytes | None]
"""Turns an evaluated item's bytes into those in the response; None if the item is filtered out."""

FILTER_SECONDS_MAX: Final = 0.05
ITEMS_PER_LOOK: Final = 64
LARGE_ITEM_BYTES: Final = 4 * KB
"""A page with a filter checks its time every `ITEMS_PER_LOOK` items and after large items."""


class ItemPage:
    """Items as JSON bytes, what was evaluated to find them, and the last item evaluated."""

    __slots__ = ("items", "last_evaluated", "scanned_bytes", "scanned_count", "visits")

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.scanned_count = 0
        self.scanned_bytes = 0
        self.last_evaluated: bytes | None = None
        self.visits: list[tuple[bytes, int]] = []
        """The storage key at which reading began, and the bytes read, for each partition.

        Empty unless capacity is measured or limited.
        """


def load(reader: Reader, key: bytes) -> StoredItem | None:
    """Returns the item with a storage key, or None."""
    value = reader.get(key)
    return None if value is None else unpack(value)


def read_page(
    pairs: Iterable[tuple[bytes, bytes]],
    limit: int | None,
    keep: Keep | None,
    stopwatch: Stopwatch,
) -> ItemPage:
    """Read items until the page is full; without `keep`, all items are returned undecoded."""
    page = ItemPage()
    items, size, page_bytes, count = page.items, 0, 0, 0
    deadline = stopwatch() + FILTER_SECONDS_MAX
    for _, value in pairs:
        count += 1
        item_size, item_page_bytes = unpack_sizes(value)
        size += item_size
        page_bytes += item_page_bytes
        body = value[HEADER_BYTES:]
        if keep is None:
            items.append(body)
            is_late = False
        else:
            kept = keep(body)
            if kept is not None:
                items.append(kept)
            is_look = not count % ITEMS_PER_LOOK or item_size > LARGE_ITEM_BYTES
            is_late = is_look and stopwatch() > deadline
        if count == limit or page_bytes >= PAGE_BYTES_MAX or is_late:
            page.last_evaluated = body
            break
    page.scanned_count, page.scanned_bytes = count, size
    return page
