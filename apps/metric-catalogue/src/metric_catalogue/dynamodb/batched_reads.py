"""Reads that many requests make at about the same time, batched into calls of BatchGetItem, over
all tables.

A read joins the next batch, never one that is under way. So it sees every write that was answered
before it began, as it would with a GetItem of its own.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import Any, NamedTuple

from metric_catalogue.dynamodb.items import Item
from partita.client import Client
from partita.limits import BATCH_GET_KEYS_MAX

BATCHES_MAX = 2
"""Concurrent calls. A call costs several times what a key in it does: fewer take more along."""

UNPROCESSED_SECONDS = 0.05


class KeyedTable(NamedTuple):
    """A table, and the names of its two key attributes, which are strings."""

    name: str
    partition: str
    sort: str


Key = tuple[KeyedTable, str, str]
Waiting = dict[Key, list[asyncio.Future[Item | None]]]
"""By key, one for each caller: cancelling one does not affect the others."""


class BatchedReads:
    def __init__(self, client: Client) -> None:
        self.client = client
        self._wanted: Waiting = {}
        self._underway: set[asyncio.Task[None]] = set()
        self._is_scheduled = False

    def ask(self, table: KeyedTable, partition: str, sort: str) -> asyncio.Future[Item | None]:
        """An item, or None. Whoever reads many asks for all, and then awaits them."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Item | None] = loop.create_future()
        self._wanted.setdefault((table, partition, sort), []).append(future)
        if not self._is_scheduled and len(self._underway) < BATCHES_MAX:
            self._is_scheduled = True
            # After the other requests of this turn of the event loop.
            loop.call_soon(self._send)
        return future

    def _send(self) -> None:
        self._is_scheduled = False
        while self._wanted and len(self._underway) < BATCHES_MAX:
            keys = list(islice(self._wanted, BATCH_GET_KEYS_MAX))
            batch = {key: self._wanted.pop(key) for key in keys}
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
        """Unprocessed keys are requested again."""
        found: dict[Key, Item] = {}
        tables = {table.name: table for table, _, _ in keys}
        wanted: dict[str, Any] = {name: {"Keys": [], "ConsistentRead": True} for name in tables}
        for table, partition, sort in keys:
            key = {table.partition: {"S": partition}, table.sort: {"S": sort}}
            wanted[table.name]["Keys"].append(key)
        while wanted:
            answer = await self.client.call("dynamodb", "BatchGetItem", {"RequestItems": wanted})
            for name, items in answer["Responses"].items():
                table = tables[name]
                for item in items:
                    found[table, item[table.partition]["S"], item[table.sort]["S"]] = item
            wanted = answer.get("UnprocessedKeys") or {}
            if wanted:
                await asyncio.sleep(UNPROCESSED_SECONDS)
        return found
