"""Sums of closed windows: all rows of a list in one item, for each brand and period.

A list of a day is the sum of 24 windows. The sum is computed when the last of them closes, so that
the first reader of the list reads one item. A change of one of the windows withdraws the sum first,
or in the same transaction. Until there is a new sum, readers add the windows up themselves.
Withdrawals are numbered, and a sum is put only if there was no withdrawal since its windows were
read. The items are in the table of the counter's state.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from page_hit_counter.pagehits_settings import PageHitSettings, Period
from page_hit_counter.service.concurrency import run_all
from page_hit_counter.storing.closed_windows import (
    PUTS_AT_A_TIME,
    ROWS_BYTES_MAX,
    ClosedWindows,
    WindowKey,
)
from page_hit_counter.storing.page_hits_table import query_rows
from page_hit_counter.storing.window_rows import (
    ClosedRows,
    RowColumns,
    columns_of,
    pack,
    summed,
    unpack,
)
from partita.client import Client, ClientError

Group = tuple[str, Period]
"""A brand and a period, which together have one sum."""


class ListSums:
    def __init__(self, client: Client, settings: PageHitSettings) -> None:
        self._client = client
        self._settings = settings
        self._closed_windows = ClosedWindows(client, settings)

    async def read(self, newest: WindowKey) -> RowColumns:
        """Returns the rows of the list whose newest window this is."""
        item = await self._item((newest.brand, newest.period)) if is_summed(newest.period) else {}
        if "rows" in item and int(item["newest"]["N"]) == newest.start:
            return unpack(b64decode(item["rows"]["B"]))
        windows = await self._windows(newest)
        return columns_of(summed(windows)) if is_summed(newest.period) else windows[0]

    async def put_all(self, closed: Sequence[tuple[WindowKey, ClosedRows]], now: float) -> None:
        """Puts closed windows, and the sums of the lists that they complete. May be repeated."""
        newest: dict[Group, int] = {}
        for key, _ in closed:
            group = key.brand, key.period
            newest[group] = max(key.start, newest.get(group, key.start))
        summed_groups = [group for group in newest if is_summed(group[1])]
        # Withdrawn before the windows change: a reader must not find the sum of the old ones.
        await run_all(map(self._withdraw, summed_groups), PUTS_AT_A_TIME)
        await self._closed_windows.put_all(closed, now)
        await self.renew({group: newest[group] for group in summed_groups})

    async def renew(self, newest: dict[Group, int]) -> None:
        """Computes withdrawn sums again, each up to the given window or to a newer one if its sum
        had one."""
        await run_all((self._renew(*each) for each in newest.items()), PUTS_AT_A_TIME)

    async def _renew(self, group: Group, start: int) -> None:
        item = await self._item(group)
        if "rows" in item or "withdrawals" not in item:
            return
        newest = WindowKey(
            *group, max(start, int(item["newest"]["N"]) if "newest" in item else start)
        )
        packed = pack(summed(await self._windows(newest)))
        # Too large for an item: readers add the windows up.
        if len(packed) > ROWS_BYTES_MAX:
            return
        request = {
            "TableName": self._settings.state_table,
            "Key": _item_key(group),
            "UpdateExpression": "SET #rows = :rows, newest = :newest, expirationTime = :expires",
            "ConditionExpression": "withdrawals = :withdrawals",
            "ExpressionAttributeNames": {"#rows": "rows"},
            "ExpressionAttributeValues": {
                ":rows": {"B": b64encode(packed).decode()},
                ":newest": {"N": str(newest.start)},
                ":expires": {"N": str(self._settings.expiration_time(newest.period, newest.start))},
                ":withdrawals": item["withdrawals"],
            },
        }
        try:
            await self._client.call("dynamodb", "UpdateItem", request)
        except ClientError as error:
            if error.code != "ConditionalCheckFailedException":
                raise

    async def _withdraw(self, group: Group) -> None:
        await self._client.call("dynamodb", "UpdateItem", withdrawal(self._settings, group))

    async def _item(self, group: Group) -> dict[str, Any]:
        request = {
            "TableName": self._settings.state_table,
            "Key": _item_key(group),
            "ConsistentRead": True,
        }
        answer = await self._client.call("dynamodb", "GetItem", request)
        item: dict[str, Any] = answer.get("Item", {})
        return item

    async def _windows(self, newest: WindowKey) -> list[RowColumns]:
        """Returns the windows of a list, newest first."""
        brand, period, start = newest
        keys = [WindowKey(brand, period, start - n * period.seconds) for n in range(period.count)]
        closed = await self._closed_windows.between(brand, period, keys[-1].start, start)
        rows = {key: window.rows for key, window in closed.items() if window.rows is not None}
        # Windows that were adjusted have their rows only in the table of page hits.
        changed = [key for key in keys if key not in rows]
        queries = [query_rows(self._client, self._settings, key) for key in changed]
        rows |= zip(changed, await asyncio.gather(*queries), strict=True)
        return [rows[key] for key in keys]


def is_summed(period: Period) -> bool:
    return period.count > 1


def withdrawal(settings: PageHitSettings, group: Group) -> dict[str, Any]:
    """Returns the update that withdraws a sum, to go with the change of a window."""
    return {
        "TableName": settings.state_table,
        "Key": _item_key(group),
        "UpdateExpression": "REMOVE #rows ADD withdrawals :one",
        "ExpressionAttributeNames": {"#rows": "rows"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }


def _item_key(group: Group) -> dict[str, Any]:
    return {"name": {"S": f"sum#{WindowKey(*group, 0).name}"}, "number": {"N": "0"}}
