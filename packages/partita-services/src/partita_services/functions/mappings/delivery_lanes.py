"""A delivery lane: records of a shard that are delivered one batch after the other.

A shard has one lane, or as many as its parallelization factor. The records of a key are all in one
lane, so they stay in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from zlib import crc32

from partita.foundation.service_limits import MB
from partita_services.functions.mappings.event_sources import SourceRecord

EVENT_BYTES_MAX = 6 * MB
RECORD_BYTES_MORE = 64
"""The size of an event without its records, at most."""


class DeliveryLane:
    def __init__(self) -> None:
        self._records: deque[SourceRecord] = deque()
        self.size = 0
        """The size of the waiting records in bytes."""
        self._changed = asyncio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: SourceRecord) -> None:
        self._records.append(record)
        self.size += len(record.body)

    def wake(self) -> None:
        """Look at the records again, some of which are new."""
        self._changed.set()

    def close(self) -> None:
        """No more records will come."""
        self._is_closed = True
        self._changed.set()

    @property
    def is_over(self) -> bool:
        return self._is_closed and not self._records

    async def batch(
        self, size: int, window_seconds: float, patience: float | None
    ) -> list[SourceRecord]:
        """The next batch: as many records as it takes, or all that arrive while the batching window
        is open.

        Returns an empty list after `patience` seconds without a record, and at the end of the
        shard.
        """
        loop = asyncio.get_running_loop()
        if not await self._wait(lambda: bool(self._records), patience):
            return []
        closes_at = loop.time() + window_seconds
        while not self._is_full(size) and not self._is_closed:
            left = closes_at - loop.time()
            if left <= 0 or not await self._wait(lambda: self._is_full(size), left):
                break
        batch: list[SourceRecord] = []
        room = EVENT_BYTES_MAX - RECORD_BYTES_MORE
        while self._records and len(batch) < size:
            room -= len(self._records[0].body) + 1
            if room < 0 and batch:
                break
            batch.append(self._records.popleft())
            self.size -= len(batch[-1].body)
        return batch

    def _is_full(self, size: int) -> bool:
        return len(self._records) >= size or self.size >= EVENT_BYTES_MAX

    async def _wait(self, is_so: Callable[[], bool], seconds: float | None) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while not is_so():
                    if self._is_closed:
                        return is_so()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return is_so()
        return True


def lane_of(record: SourceRecord, lanes: list[DeliveryLane]) -> DeliveryLane:
    return lanes[0] if len(lanes) == 1 else lanes[crc32(record.key.encode()) % len(lanes)]
