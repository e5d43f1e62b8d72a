"""Reads that many requests make at about the same time, batched into calls of BatchGetItem.

A read joins the next batch, never one that is under way. So it sees every write that was answered
before it began, as it would with a GetItem of its own.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import Any

from partita.apps.metrics.dynamodb.items import LATEST, Item
from partita.client import Client
from partita.limits import BATCH_GET_KEYS_MAX

BATCHES_MAX = 4
"""Concurrent calls."""


Waiting = dict[str, list[asyncio.Future[Item | None]]]
"""By name, one for each caller: cancelling one does not affect the others."""


class BatchedReads:
    """Reads of the latest versions of metrics."""

    def __init__(self, client: Client, table: str) -> None:
        self._client = client
        self._table = table
        self._wanted: Waiting = {}
        self._underway: set[asyncio.Task[None]] = set()
        self._is_scheduled = False

    async def get(self, name: str) -> Item | None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Item | None] = loop.create_future()
        self._wanted.setdefault(name, []).append(future)
        if not self._is_scheduled and len(self._underway) < BATCHES_MAX:
            self._is_scheduled = True
            # After the other requests of this turn of the event loop.
            loop.call_soon(self._send)
        return await future

    def _send(self) -> None:
        self._is_scheduled = False
        while self._wanted and len(self._underway) < BATCHES_MAX:
            names = list(islice(self._wanted, BATCH_GET_KEYS_MAX))
            batch = {name: self._wanted.pop(name) for name in names}
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
        for name, futures in batch.items():
            for future in futures:
                if not future.done():
                    future.set_result(items.get(name))

    async def _items(self, names: list[str]) -> dict[str, Item]:
        """Unprocessed keys are requested again."""
        found: dict[str, Item] = {}
        keys: dict[str, Any] = {
            self._table: {
                "Keys": [{"name": {"S": name}, "version": {"S": LATEST}} for name in names],
                "ConsistentRead": True,
            }
        }
        while keys:
            answer = await self._client.call("dynamodb", "BatchGetItem", {"RequestItems": keys})
            for item in answer["Responses"].get(self._table, ()):
                found[item["name"]["S"]] = item
            keys = answer.get("UnprocessedKeys") or {}
            if keys:
                await asyncio.sleep(0.05)
        return found
