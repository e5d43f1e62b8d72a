"""What changed in a table between two moments.

Both are read side by side. Items of the same place come at about the same time, so that few of
them wait for their twins, whatever the size of the table.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import orjson

from partita.client import Client
from partita.exchange.tables import Described, Item, scan
from partita.exchange.values import plain

ADDED, CHANGED, DELETED = "added", "changed", "deleted"
SIGNS = {ADDED: "+", CHANGED: "~", DELETED: "-"}


class Difference(NamedTuple):
    key: Item
    before: Item | None
    after: Item | None

    @property
    def kind(self) -> str:
        return ADDED if self.before is None else DELETED if self.after is None else CHANGED

    def lines(self) -> list[str]:
        """For people."""
        key = " ".join(f"{name}={_shown(value)}" for name, value in self.key.items())
        before, after = self.before or {}, self.after or {}
        if self.kind != CHANGED:
            rest = plain(before or after)
            text = orjson.dumps(rest).decode()
            return [f"{SIGNS[self.kind]} {key}  {text}"]
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        return [
            f"{SIGNS[CHANGED]} {key}",
            *(
                f"    {name}: {_shown(before.get(name))} -> {_shown(after.get(name))}"
                for name in names
            ),
        ]

    def record(self) -> dict[str, Any]:
        images = {"Before": self.before, "After": self.after}
        return {
            "Change": self.kind,
            "Key": self.key,
            **{name: image for name, image in images.items() if image is not None},
        }


def _shown(value: dict[str, Any] | None) -> str:
    return "nothing" if value is None else orjson.dumps(plain({"": value})[""]).decode()


async def differences(
    client: Client, table: Described, before: str, after: str
) -> AsyncIterator[Difference]:
    """Of two tables with the same key."""
    waiting: tuple[dict[bytes, Item], dict[bytes, Item]] = {}, {}
    sides = [scan(client, name, segments=1) for name in (before, after)]
    is_open = [True, True]
    while any(is_open):
        # The one that is behind, so that both stay together.
        side = int(is_open[1] and (not is_open[0] or len(waiting[0]) > len(waiting[1])))
        try:
            page = await anext(sides[side])
        except StopAsyncIteration:
            is_open[side] = False
            continue
        for item in page:
            found = table.key_of(item)
            key = orjson.dumps(found)
            twin = waiting[1 - side].pop(key, None)
            if twin is None:
                waiting[side][key] = item
            elif twin != item:
                pair = (item, twin) if side == 0 else (twin, item)
                yield Difference(found, *pair)
    for item in waiting[0].values():
        yield Difference(table.key_of(item), item, None)
    for item in waiting[1].values():
        yield Difference(table.key_of(item), None, item)
