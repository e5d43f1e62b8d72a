"""Batches the reads that concurrent requests make into calls of BatchGetItem, over all tables.

A read joins the next batch, never one that has been sent. It therefore sees every write that was
answered before the read began, as a GetItem of its own would.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import Any, NamedTuple

from metric_catalogue.stores.dynamodb.metric_items import Item
from partita.client import Client
from partita.foundation.service_limits import BATCH_GET_KEYS_MAX

BATCHES_MAX = 2
"""How many calls run at a time. A call costs several times as much as one more key in it, so fewer
calls, each with more keys, answer more reads."""

UNPROCESSED_SECONDS = 0.05


class KeyedTable(NamedTuple):
    """A table, and the names of its two key attributes, both of which are strings."""

    name: str
    partition: str
    sort: str


Key = tuple[KeyedTable, str, str]
Waiting = dict[Key, list[asyncio.Future[Item | None]]]
"""The futures of callers, by key. Each caller has its own, so that cancelling it does not affect
the others."""


class BatchedReads:
    """Reads items in batches that all callers share."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._waiting: Waiting = {}
        self._underway: set[asyncio.Task[None]] = set()
        self._is_scheduled = False

    def ask(self, table: KeyedTable, partition: str, sort: str) -> asyncio.Future[Item | None]:
        """Returns a future for an item, or for None. To read many items, ask for all of them before
        awaiting the first."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Item | None] = loop.create_future()
        self._waiting.setdefault((table, partition, sort), []).append(future)
        if not self._is_scheduled and len(self._underway) < BATCHES_MAX:
            self._is_scheduled = True
            # Sends after the other requests of this turn of the event loop have asked too.
            loop.call_soon(self._send)
        return future

    def _send(self) -> None:
        self._is_scheduled = False
        while self._waiting and len(self._underway) < BATCHES_MAX:
            keys = list(islice(self._waiting, BATCH_GET_KEYS_MAX))
            batch = {key: self._waiting.pop(key) for key in keys}
            task = asyncio.get_running_loop().create_task(self._read(batch))
            self._underway.add(task)
            task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._underway.discard(task)
        self._send()

    async def _read(self, batch: Waiting) -> None:
        try:
            items = await self._items(list(batch))
        except Exception as error:
            for future in chain.from_iterable(batch.values()):
                if not future.done():
                    future.set_exception(error)
            return
        for key, futures in batch.items():
            for future in futures:
                if not future.done():
                    future.set_result(items.get(key))

    async def _items(self, keys: list[Key]) -> dict[Key, Item]:
        """Reads one batch, and asks again for unprocessed keys."""
        read: dict[Key, Item] = {}
        tables = {table.name: table for table, _, _ in keys}
        requested: dict[str, Any] = {name: {"Keys": [], "ConsistentRead": True} for name in tables}
        for table, partition, sort in keys:
            key = {table.partition: {"S": partition}, table.sort: {"S": sort}}
            requested[table.name]["Keys"].append(key)
        while requested:
            request = {"RequestItems": requested}
            answer = await self.client.call("dynamodb", "BatchGetItem", request)
            for name, items in answer["Responses"].items():
                table = tables[name]
                for item in items:
                    read[table, item[table.partition]["S"], item[table.sort]["S"]] = item
            requested = answer.get("UnprocessedKeys") or {}
            if requested:
                await asyncio.sleep(UNPROCESSED_SECONDS)
        return read
