"""Reading: one item, or a page of a range, in the bytes that storage has.

A page ends when its limit of items is evaluated, or when the sizes of the evaluated items reach
1 MB; the item that crosses that line still belongs to it (recorded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from partita.limits import PAGE_BYTES_MAX
from partita.storage.engine import Reader
from partita.tables.stored import HEADER_BYTES, unpack_sizes

Keep = Callable[[bytes], bytes | None]
"""What a page shows of an evaluated item's bytes; None when the item is filtered out."""


@dataclass(slots=True)
class Page:
    """Items as JSON bytes, what was evaluated for them, and where to go on."""

    items: list[bytes] = field(default_factory=list)
    scanned_count: int = 0
    scanned_bytes: int = 0
    last_evaluated: bytes | None = None


def read_value(reader: Reader, key: bytes) -> tuple[bytes, int] | None:
    """An item's JSON bytes and its size."""
    value = reader.get(key)
    return None if value is None else (value[HEADER_BYTES:], unpack_sizes(value)[0])


def read_page(pairs: Iterable[tuple[bytes, bytes]], limit: int | None, keep: Keep | None) -> Page:
    page = Page()
    items, size, page_bytes, count = page.items, 0, 0, 0
    for _, value in pairs:
        count += 1
        item_size, item_page_bytes = unpack_sizes(value)
        size += item_size
        page_bytes += item_page_bytes
        body = value[HEADER_BYTES:]
        if keep is None:
            items.append(body)
        elif (kept := keep(body)) is not None:
            items.append(kept)
        if count == limit or page_bytes >= PAGE_BYTES_MAX:
            page.last_evaluated = body
            break
    page.scanned_count, page.scanned_bytes = count, size
    return page
