"""Time to live (TTL): when an item expires. (Guide, "Using time to live".)

`upkeep/jobs.py` deletes it then.
"""

from __future__ import annotations

from typing import Final

from partita.database.item import numbers
from partita.database.item.values import Item

_EPOCH_SECONDS_MAX: Final = 1 << 63


def expires_at(ttl_attribute: str, item: Item) -> int | None:
    """The second at which an item expires; None if the attribute is missing or not a number."""
    value = item.get(ttl_attribute)
    if value is None or "N" not in value:
        return None
    seconds = numbers.parse(value["N"])
    return int(seconds) if 0 < seconds < _EPOCH_SECONDS_MAX else None
