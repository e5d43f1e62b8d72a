"""`partita diff`: compares a table at two moments.

Both tables are scanned side by side. Scans return items in hash order, so an item and its
counterpart arrive at about the same time: memory holds only the items in between, whatever the size
of the tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import orjson

from partita.client import Client
from partita.copies.table_files.plain_values import plain
from partita.copies.table_files.table_reading import Item, TableDescription, scan

ADDED, CHANGED, DELETED = "added", "changed", "deleted"
SIGNS = {ADDED: "+", CHANGED: "~", DELETED: "-"}


class ItemDifference(NamedTuple):
    key: Item
    before: Item | None
    after: Item | None

    @property
    def kind(self) -> str:
        return ADDED if self.before is None else DELETED if self.after is None else CHANGED

    def lines(self) -> list[str]:
        """Text lines such as `~ id="7"` and `    price: 3 -> 4`."""
        key = " ".join(f"{name}={_format(value)}" for name, value in self.key.items())
        before, after = self.before or {}, self.after or {}
        if self.kind != CHANGED:
            rest = plain(before or after)
            text = orjson.dumps(rest).decode()
            return [f"{SIGNS[self.kind]} {key}  {text}"]
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        return [
            f"{SIGNS[CHANGED]} {key}",
            *(
                f"    {name}: {_format(before.get(name))} -> {_format(after.get(name))}"
                for name in names
            ),
        ]

    def record(self) -> dict[str, Any]:
        """The object that `--json` prints: Change, Key, and Before or After or both."""
        images = {"Before": self.before, "After": self.after}
        return {
            "Change": self.kind,
            "Key": self.key,
            **{name: image for name, image in images.items() if image is not None},
        }


def _format(value: dict[str, Any] | None) -> str:
    return "nothing" if value is None else orjson.dumps(plain({"": value})[""]).decode()


async def differences(
    client: Client, table: TableDescription, before: str, after: str
) -> AsyncIterator[ItemDifference]:
    """Yields the differences between two tables that have the same key."""
    unmatched: tuple[dict[bytes, Item], dict[bytes, Item]] = {}, {}
    sides = [scan(client, name, segments=1) for name in (before, after)]
    is_open = [True, True]
    while any(is_open):
        # Reads the scan that is behind, so that few items wait for their counterparts.
        side = int(is_open[1] and (not is_open[0] or len(unmatched[0]) > len(unmatched[1])))
        try:
            page = await anext(sides[side])
        except StopAsyncIteration:
            is_open[side] = False
            continue
        for item in page:
            key = table.key_of(item)
            key_bytes = orjson.dumps(key)
            counterpart = unmatched[1 - side].pop(key_bytes, None)
            if counterpart is None:
                unmatched[side][key_bytes] = item
            elif counterpart != item:
                pair = (item, counterpart) if side == 0 else (counterpart, item)
                yield ItemDifference(key, *pair)
    for item in unmatched[0].values():
        yield ItemDifference(table.key_of(item), item, None)
    for item in unmatched[1].values():
        yield ItemDifference(table.key_of(item), None, item)
