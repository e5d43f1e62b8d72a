"""The table of closed windows: one item for each window, with all its rows in one attribute.

Lists read a window from here as soon as it closes. Its rows are written to the table of page hits
later, one by one. The item stays, because it is read faster than hundreds of rows. It also has the
total of hits, and what was not counted and why. A late adjustment changes the rows in the table of
page hits and removes them from the item.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from page_hit_counter.pagehits_settings import PageHitSettings, Period
from page_hit_counter.service.concurrency import run_all
from page_hit_counter.service.table_requests import query_all
from page_hit_counter.storing.window_rows import ClosedRows, RowColumns, pack_most, unpack
from partita.client import Client

UNSTORED = "unstored"
"""The attribute of windows whose rows are not written yet, and the name of its sparse index."""
PUTS_AT_A_TIME = 16
ROWS_BYTES_MAX = 350_000
"""How many bytes the rows may take of the 400 KB of an item."""
TRAFFIC_SECONDS = 86_400
"""The totals of a window are kept for at least a day, for the chart of the past day's traffic."""


class WindowKey(NamedTuple):
    brand: str
    period: Period
    start: int

    @property
    def name(self) -> str:
        return f"{self.brand}#{self.period.code}"

    @property
    def item_key(self) -> dict[str, Any]:
        return {"name": {"S": self.name}, "start": {"N": str(self.start)}}


class ClosedWindow(NamedTuple):
    key: WindowKey
    hits: int
    filtered: dict[str, int]
    rows: RowColumns | None
    """None when an adjustment has changed the rows in the table of page hits since."""
    is_stored: bool
    """True when all rows are in the table of page hits."""


class ClosedWindows:
    def __init__(self, client: Client, settings: PageHitSettings) -> None:
        self._client = client
        self._settings = settings
        self._table = settings.windows_table
        self._periods = {period.code: period for period in settings.periods}

    async def put_all(self, closed: Sequence[tuple[WindowKey, ClosedRows]], now: float) -> None:
        await run_all((self._put(key, each, now) for key, each in closed), PUTS_AT_A_TIME)

    async def _put(self, key: WindowKey, closed: ClosedRows, now: float) -> None:
        """Puts a window. May be repeated as long as its rows are not stored yet."""
        expires = self._settings.expiration_time(key.period, key.start)
        item = {
            **key.item_key,
            "hits": {"N": str(closed.hits)},
            "filtered": {"M": {r: {"N": str(n)} for r, n in closed.filtered.items()}},
            "closedAt": {"N": f"{now:.3f}"},
            "expirationTime": {"N": str(max(expires, int(now) + TRAFFIC_SECONDS))},
            UNSTORED: {"S": "yes"},
            "rows": {"B": b64encode(pack_most(closed.rows, ROWS_BYTES_MAX)).decode()},
        }
        await self._client.call("dynamodb", "PutItem", {"TableName": self._table, "Item": item})

    async def get(self, key: WindowKey) -> ClosedWindow | None:
        request = {"TableName": self._table, "Key": key.item_key, "ConsistentRead": True}
        answer = await self._client.call("dynamodb", "GetItem", request)
        item = answer.get("Item")
        return None if item is None else _window(key, item)

    async def between(
        self, brand: str, period: Period, first: int, last: int
    ) -> dict[WindowKey, ClosedWindow]:
        """Returns the windows that start from `first` to `last`."""
        name = WindowKey(brand, period, first).name
        request: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "#name = :name AND #start BETWEEN :first AND :last",
            "ExpressionAttributeNames": {"#name": "name", "#start": "start"},
            "ExpressionAttributeValues": {
                ":name": {"S": name},
                ":first": {"N": str(first)},
                ":last": {"N": str(last)},
            },
        }
        windows: dict[WindowKey, ClosedWindow] = {}
        async for item in query_all(self._client, request):
            key = WindowKey(brand, period, int(item["start"]["N"]))
            windows[key] = _window(key, item)
        return windows

    async def unstored(self) -> list[WindowKey]:
        """Returns the windows whose rows are not written yet, in the order in which they closed."""
        request = {
            "TableName": self._table,
            "IndexName": UNSTORED,
            "KeyConditionExpression": "unstored = :yes",
            "ExpressionAttributeValues": {":yes": {"S": "yes"}},
        }
        answer = await self._client.call("dynamodb", "Query", request)
        return [self._key(item) for item in answer["Items"]]

    async def mark_stored(self, key: WindowKey) -> None:
        request = {
            "TableName": self._table,
            "Key": key.item_key,
            "UpdateExpression": "REMOVE unstored",
            "ConditionExpression": "attribute_exists(#name)",
            "ExpressionAttributeNames": {"#name": "name"},
        }
        await self._client.call("dynamodb", "UpdateItem", request)

    async def traffic(self, brand: str, period: Period, since: int) -> list[ClosedWindow]:
        """Returns windows with their hits and what was not counted, without rows."""
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#name = :name AND #start >= :since",
            "ProjectionExpression": "#name, #start, hits, filtered",
            "ExpressionAttributeNames": {"#name": "name", "#start": "start"},
            "ExpressionAttributeValues": {
                ":name": {"S": f"{brand}#{period.code}"},
                ":since": {"N": str(since)},
            },
        }
        items = query_all(self._client, request)
        return [_window(self._key(item), item) async for item in items]

    def _key(self, item: dict[str, Any]) -> WindowKey:
        brand, _, code = item["name"]["S"].rpartition("#")
        return WindowKey(brand, self._periods[code], int(item["start"]["N"]))


def _window(key: WindowKey, item: dict[str, Any]) -> ClosedWindow:
    rows = item.get("rows")
    return ClosedWindow(
        key,
        int(item["hits"]["N"]),
        {reason: int(n["N"]) for reason, n in item["filtered"]["M"].items()},
        None if rows is None else unpack(b64decode(rows["B"])),
        UNSTORED not in item,
    )
