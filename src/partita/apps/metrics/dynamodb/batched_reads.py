"""Reads that many requests make at about the same time, batched into calls of BatchGetItem.

A read joins the next batch, never one that is under way. So it sees every write that was answered
before it began, as it would with a GetItem of its own.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import Any

from partita.apps.metrics.dynamodb.items import Item
from partita.client import Client
from partita.limits import BATCH_GET_KEYS_MAX

BATCHES_MAX = 4
"""Concurrent calls."""


Key = tuple[str, str]
Waiting = dict[Key, list[asyncio.Future[Item | None]]]
"""By key, one for each caller: cancelling one does not affect the others."""


class BatchedReads:
    """Reads of items by their partition key and sort key, both strings."""

    def __init__(self, client: Client, table: str, key_attributes: Key) -> None:
        self._client = client
        self._table = table
        self._key_attributes = key_attributes
        self._wanted: Waiting = {}
        self._underway: set[asyncio.Task[None]] = set()
        self._is_scheduled = False

    async def get(self, key: Key) -> Item | None:
        return await self.ask(key)

    def ask(self, key: Key) -> asyncio.Future[Item | None]:
        """The same without a task: whoever reads many asks for all, and then awaits them."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Item | None] = loop.create_future()
        self._wanted.setdefault(key, []).append(future)
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
        partition, sort = self._key_attributes
        wanted: dict[str, Any] = {
            self._table: {
                "Keys": [{partition: {"S": one}, sort: {"S": other}} for one, other in keys],
                "ConsistentRead": True,
            }
        }
        while wanted:
            answer = await self._client.call("dynamodb", "BatchGetItem", {"RequestItems": wanted})
            for item in answer["Responses"].get(self._table, ()):
                found[item[partition]["S"], item[sort]["S"]] = item
            wanted = answer.get("UnprocessedKeys") or {}
            if wanted:
                await asyncio.sleep(0.05)
        return found
