"""The delivery stream gathers records, and delivers them as one file when there are enough.

Its records come from a stream, so a visit that was accepted is not lost with a process. A file is
written when the buffer has reached its size or its age. Then the functions that wait for it are
called, and then the position in the stream is saved. After a kill the same records are delivered
again in another file, and the counter recognises them by their ids.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from pathlib import Path

import orjson

from page_hit_counter.delivery import arrival_events, delivered_files
from page_hit_counter.monitoring.service_figures import ServiceFigures
from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.concurrency import pause
from partita.client import Client, ClientError
from partita.client.consumer.kinesis_consumer import Checkpoint, Consumer, Record
from partita.client.lambda_invoke import invoke
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock

logger = logging.getLogger(__name__)

MEGABYTE = 1_000_000
TICK_SECONDS = 0.1
REST_SECONDS = 1.0
DIRECT_BYTES_MAX = 4_000_000
"""A function takes an event of 6 MB, and base64 makes records a third larger."""


class FunctionCallFailed(PartitaError):
    """Raised when a function was called and failed."""


class RecordBuffer:
    """Records that wait for their file, and the checkpoints that save the position after them."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.size = 0
        self.oldest = 0.0
        self.checkpoints: dict[str, Checkpoint] = {}

    def add(self, shard_id: str, records: list[Record], checkpoint: Checkpoint, now: float) -> None:
        if records and not self.records:
            self.oldest = now
        self.records += (record.data for record in records)
        self.size += sum(len(record.data) for record in records)
        self.checkpoints[shard_id] = checkpoint


class DeliveryStream:
    def __init__(
        self,
        client: Client,
        settings: PageHitSettings,
        clock: Clock = system_clock,
        figures: ServiceFigures | None = None,
    ) -> None:
        self._client = client
        self._settings = settings.delivery
        self._figures = figures
        self._folder = Path(settings.delivery.folder)
        self._clock = clock
        self._buffer = RecordBuffer()
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def run(self, stop: asyncio.Event) -> None:
        consumer = Consumer(
            self._client,
            self._settings.stream,
            self._settings.name,
            self._take,
            worker=self._settings.name,
            clock=self._clock,
        )
        reading = asyncio.create_task(consumer.run())
        try:
            while not stop.is_set():
                if reading.done():
                    await reading
                    return
                if self._is_due():
                    await self._deliver_until_taken(stop)
                await pause(TICK_SECONDS, stop)
        finally:
            self._has_room.set()
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def _take(self, shard_id: str, records: list[Record], checkpoint: Checkpoint) -> None:
        """Takes records from the stream. Returns when the buffer has room for more."""
        self._buffer.add(shard_id, records, checkpoint, self._clock())
        if self._is_full():
            self._has_room.clear()
        await self._has_room.wait()

    def _is_full(self) -> bool:
        return self._buffer.size >= self._settings.buffer_mb * MEGABYTE

    def _is_due(self) -> bool:
        if not self._buffer.records:
            # At the end of a shard there may be no records, but the position must still be saved.
            return bool(self._buffer.checkpoints)
        age = self._clock() - self._buffer.oldest
        return self._is_full() or age >= self._settings.buffer_seconds

    async def _deliver_until_taken(self, stop: asyncio.Event) -> None:
        buffer, self._buffer = self._buffer, RecordBuffer()
        self._has_room.set()
        key = ""
        while not stop.is_set():
            try:
                # The file is written once; only the calls are repeated.
                key = key or await self._write(buffer)
                await self._notify(buffer, key)
                # Positions are saved last: a kill before this repeats a delivery, and loses
                # nothing.
                for checkpoint in buffer.checkpoints.values():
                    await checkpoint()
                self._note("deliveries" if buffer.records else None)
                return
            except (ClientError, FunctionCallFailed, OSError) as error:
                self._note("deliveryFailures")
                logger.warning("A delivery is tried again in %s s: %s", REST_SECONDS, error)
                await pause(REST_SECONDS, stop)

    def _note(self, name: str | None) -> None:
        if self._figures is not None and name is not None:
            self._figures.add(name)

    async def _write(self, buffer: RecordBuffer) -> str:
        """Writes the file, and returns its key. Returns "" when no file is written: on the route
        `direct`, and for an empty buffer."""
        if self._settings.route == "direct" or not buffer.records:
            return ""
        key = delivered_files.object_key(self._settings.prefix, self._settings.name, buffer.oldest)
        write = partial(delivered_files.write, self._folder, key, buffer.records)
        await asyncio.to_thread(write)
        return key

    async def _notify(self, buffer: RecordBuffer, key: str) -> None:
        route, name = self._settings.route, self._settings.function
        if not buffer.records or route == "schedule":
            return
        if route == "direct":
            for records in _pieces(buffer.records):
                sent = arrival_events.of_records(self._settings.name, records, self._clock())
                await self._call(name, sent)
            return
        size = (self._folder / key).stat().st_size
        created = arrival_events.of_object(self._settings.bucket, key, size, self._clock())
        if route == "bucket":
            await self._call(name, created)
            return
        message = arrival_events.of_topic(self._settings.topic, created, self._clock())
        for subscriber in (name, *self._settings.subscribers):
            await self._call(subscriber, message)

    async def _call(self, function: str, event: arrival_events.Event) -> None:
        invoked = await invoke(self._client, function, orjson.dumps(event))
        if invoked.is_error:
            text = invoked.payload[:300].decode("utf-8", "replace")
            raise FunctionCallFailed(f"The function {function} failed: {text}")


def _pieces(records: list[bytes]) -> list[list[bytes]]:
    """Splits records into lists that fit one call each."""
    pieces: list[list[bytes]] = [[]]
    size = 0
    for record in records:
        size += len(record)
        if size > DIRECT_BYTES_MAX and pieces[-1]:
            pieces.append([])
            size = len(record)
        pieces[-1].append(record)
    return pieces
