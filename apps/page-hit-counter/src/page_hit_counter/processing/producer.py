"""The producer of the stream: batches records into few calls of PutRecords.

While one call is running, records gather for the next. They keep their order, and `put` returns
when its record is on the stream.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple
from uuid import uuid4

from page_hit_counter.processing.page_visits import (
    RECORD_BYTES_MAX,
    VISITS_PER_RECORD_MAX,
    PageVisit,
    VisitRecord,
    encode,
)
from page_hit_counter.service.concurrency import run_all
from partita.client import Client, ClientError

RECORDS_PER_CALL_MAX = 500
BYTES_PER_CALL_MAX = 4_000_000
PAUSE_SECONDS = 0.1


class PendingRecord(NamedTuple):
    partition_key: str
    data: bytes
    done: asyncio.Future[None]


class Producer:
    def __init__(self, client: Client, stream: str) -> None:
        self._client = client
        self._stream = stream
        self._entries: deque[PendingRecord] = deque()
        self._loose: list[PageVisit] = []
        self._loose_done: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def put(self, partition_key: str, data: bytes) -> None:
        done = asyncio.get_running_loop().create_future()
        self._entries.append(PendingRecord(partition_key, data, done))
        self._begin()
        await done

    async def put_all(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Puts several records, each with its partition key."""
        await run_all((self.put(key, data) for key, data in records), RECORDS_PER_CALL_MAX)

    async def put_visits(self, visits: list[PageVisit]) -> None:
        """Puts visits in as few records as possible, which concurrent callers share."""
        if self._loose_done is None:
            self._loose_done = asyncio.get_running_loop().create_future()
        done = self._loose_done
        self._loose += visits
        self._begin()
        # Shielded, because callers share the future: one that is cancelled must not cancel it.
        await asyncio.shield(done)

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._put_all())

    async def _put_all(self) -> None:
        try:
            while self._entries or self._loose:
                self._pack_loose()
                await self._put_some()
        finally:
            self._task = None

    def _pack_loose(self) -> None:
        """Packs the waiting visits into records. The last record completes the future that all
        callers wait for."""
        visits, done = self._loose, self._loose_done
        if done is None:
            return
        self._loose, self._loose_done = [], None
        records = pack(visits)
        for record_id, data in records[:-1]:
            quiet = asyncio.get_running_loop().create_future()
            self._entries.append(PendingRecord(record_id, data, quiet))
        record_id, data = records[-1]
        self._entries.append(PendingRecord(record_id, data, done))

    async def _put_some(self) -> None:
        """Makes one call. Records that the stream refuses for now are sent again before later
        ones."""
        entries: list[PendingRecord] = []
        size = 0
        while self._entries and len(entries) < RECORDS_PER_CALL_MAX and size < BYTES_PER_CALL_MAX:
            entry = self._entries.popleft()
            entries.append(entry)
            size += len(entry.data)
        records = [
            {"Data": b64encode(entry.data).decode(), "PartitionKey": entry.partition_key}
            for entry in entries
        ]
        try:
            answer = await self._client.call(
                "kinesis", "PutRecords", {"StreamName": self._stream, "Records": records}
            )
        except ClientError as error:
            for entry in entries:
                _fail(entry.done, error)
            return
        refused = []
        for entry, result in zip(entries, answer["Records"], strict=True):
            if "ErrorCode" in result:
                refused.append(entry)
            elif not entry.done.done():
                entry.done.set_result(None)
        if refused:
            self._entries.extendleft(reversed(refused))
            await asyncio.sleep(PAUSE_SECONDS)


def pack(visits: list[PageVisit]) -> list[tuple[str, bytes]]:
    """Packs visits into records of limited size. Returns (id, data) for each record."""
    records = []
    for first in range(0, len(visits), VISITS_PER_RECORD_MAX):
        records += _pack(visits[first : first + VISITS_PER_RECORD_MAX])
    return records


def _pack(visits: list[PageVisit]) -> list[tuple[str, bytes]]:
    record_id = uuid4().hex
    data = encode(VisitRecord(record_id, visits))
    if len(data) <= RECORD_BYTES_MAX:
        return [(record_id, data)]
    middle = len(visits) // 2
    return _pack(visits[:middle]) + _pack(visits[middle:])


def _fail(done: asyncio.Future[None], error: ClientError) -> None:
    if not done.done():
        done.set_exception(error)
        # Marks the exception as retrieved, because the caller may have been cancelled.
        done.exception()
