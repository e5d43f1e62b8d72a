"""Time to live (TTL): when an item expires. (Guide, "Using time to live".)

`upkeep/ttl_expiry.py` deletes expired items.
"""

from __future__ import annotations

from typing import Final

from partita.database.item import numbers
from partita.database.item.attribute_values import Item

_EPOCH_SECONDS_MAX: Final = 1 << 63


def expires_at(ttl_attribute: str, item: Item) -> int | None:
    """Returns the second at which an item expires, or None if it never does.

    An item without the attribute, or with a value that is not a positive number, never expires.
    """
    value = item.get(ttl_attribute)
    if value is None or "N" not in value:
        return None
    seconds = numbers.parse(value["N"])
    return int(seconds) if 0 < seconds < _EPOCH_SECONDS_MAX else None
