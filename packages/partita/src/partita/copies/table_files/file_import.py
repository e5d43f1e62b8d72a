"""`partita import`: puts the items of a file into a table, with several BatchWriteItem at once.

If a key occurs more than once, its items are written in the order of the file, so the last one
wins. Records that are not items are reported and left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import orjson

from partita.client import Client, ClientError
from partita.copies.progress_line import ProgressLine
from partita.copies.table_files.item_file_formats import format_of, read_records
from partita.copies.table_files.table_reading import Item, TableDescription, describe, until_active
from partita.errors import PartitaError

BATCH_ITEMS: Final = 25
BATCH_BYTES: Final = 12 << 20
REQUESTS: Final = 8
"""The number of concurrent requests."""
MISSING: Final = "ResourceNotFoundException"
EXISTS: Final = "ConditionalCheckFailedException"
PAUSE_SECONDS: Final = 0.05

Tell = Callable[[str], None]


class FileImport:
    def __init__(
        self, client: Client, table: TableDescription, tell: Tell, *, only_missing: bool = False
    ) -> None:
        self._client = client
        self._table = table
        self._tell = tell
        self._only_missing = only_missing
        self._running: set[asyncio.Task[None]] = set()
        self._keys: set[bytes] = set()
        """The keys of items that are being written or wait in the batch."""
        self._batch: list[tuple[int, Item]] = []
        self._batch_bytes = 0
        self.progress = ProgressLine("imported")
        self.refused = 0
        self.left_alone = 0
        """With `--only-missing`: items that the table had already."""

    async def add(self, number: int, item: Item) -> None:
        try:
            key = orjson.dumps(self._table.key_of(item))
        except KeyError as error:
            self.refuse(number, f"it has no {error.args[0]}, which is part of the key")
            return
        if key in self._keys:
            # BatchWriteItem refuses duplicates, and parallel requests have no order.
            await self.finish()
        self._keys.add(key)
        self._batch.append((number, item))
        self._batch_bytes += len(orjson.dumps(item))
        if len(self._batch) == BATCH_ITEMS or self._batch_bytes > BATCH_BYTES:
            await self._send()

    async def finish(self) -> None:
        """Returns when all items that were added are written."""
        await self._send()
        while self._running:
            await self._wait()
        self._keys.clear()

    async def _send(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        while len(self._running) >= REQUESTS:
            await self._wait()
        # Waits for all requests once in a while, so that the set of keys stays small.
        if len(self._keys) > 100 * REQUESTS * BATCH_ITEMS:
            while self._running:
                await self._wait()
            self._keys.clear()
        self._running.add(asyncio.create_task(self._write(batch)))

    async def _wait(self) -> None:
        done, self._running = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    def refuse(self, number: int, reason: str) -> None:
        self.refused += 1
        self._tell(f"Record {number} is left out: {reason}.")

    async def _write(self, batch: list[tuple[int, Item]]) -> None:
        if self._only_missing:
            for number, item in batch:
                await self._put(number, item)
            return
        puts: list[Any] = [{"PutRequest": {"Item": item}} for _, item in batch]
        try:
            while puts:
                answer = await self._client.call(
                    "dynamodb", "BatchWriteItem", {"RequestItems": {self._table.name: puts}}
                )
                left = answer.get("UnprocessedItems", {}).get(self._table.name, [])
                self.progress.add(len(puts) - len(left))
                puts = left
                if left:
                    await asyncio.sleep(PAUSE_SECONDS)
        except ClientError as error:
            if error.is_passing or error.code == MISSING:
                raise
            # An invalid item fails the whole batch; single puts show which one it is.
            for number, item in batch:
                await self._put(number, item)

    async def _put(self, number: int, item: Item) -> None:
        request: dict[str, Any] = {"TableName": self._table.name, "Item": item}
        if self._only_missing:
            request["ConditionExpression"] = "attribute_not_exists(#key)"
            request["ExpressionAttributeNames"] = {"#key": self._table.key_names[0]}
        try:
            await self._client.call("dynamodb", "PutItem", request)
            self.progress.add(1)
        except ClientError as error:
            if error.code == EXISTS:
                self.left_alone += 1
            elif error.is_passing or error.code == MISSING:
                raise
            else:
                self.refuse(number, error.message.rstrip("."))


async def import_file(
    client: Client,
    name: str,
    path: str,
    tell: Tell,
    *,
    kind: str | None = None,
    key: str | None = None,
    is_plain: bool = False,
    only_missing: bool = False,
) -> FileImport:
    """Imports a file; a table that does not exist is created if `key` is given (pk:S,sk:N)."""
    kind = format_of(path, kind)
    table = await _table(client, name, key)
    work = FileImport(client, table, tell, only_missing=only_missing)
    for number, record in read_records(path, kind, table, is_plain=is_plain):
        if isinstance(record, str):
            work.refuse(number, record)
        else:
            await work.add(number, record)
    await work.finish()
    left_alone = f", {work.left_alone:,} existed" if only_missing else ""
    work.progress.end(f" into {name}{left_alone}, {work.refused:,} refused")
    return work


async def _table(client: Client, name: str, key: str | None) -> TableDescription:
    try:
        return await describe(client, name)
    except ClientError as error:
        if error.code != MISSING:
            raise
        if key is None:
            raise PartitaError(
                f"The table {name} does not exist; --key NAME:TYPE[,NAME:TYPE] creates it."
            ) from None
    parts = [part.partition(":")[::2] for part in key.split(",")]
    if len(parts) > 2 or any(not name or kind not in ("S", "N", "B") for name, kind in parts):
        raise PartitaError(f"--key must be NAME:TYPE or NAME:TYPE,NAME:TYPE, not {key!r}.")
    request = {
        "TableName": name,
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": kind} for attribute, kind in parts
        ],
        "KeySchema": [
            {"AttributeName": attribute, "KeyType": role}
            for (attribute, _), role in zip(parts, ("HASH", "RANGE"), strict=False)
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    await client.call("dynamodb", "CreateTable", request)
    await until_active(client, name)
    return await describe(client, name)
