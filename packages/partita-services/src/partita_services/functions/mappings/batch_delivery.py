"""The delivery of one shard of a mapping: batches in order, each repeated until it succeeds or is
given up.

A position is saved after the records before it were delivered. So a record may be delivered twice
after a crash, but is never lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import msgspec

from partita.foundation.clock import Clock
from partita.foundation.server_settings import FOR_EVER
from partita_services.functions.destinations import Destinations
from partita_services.functions.mappings.delivery_lanes import (
    EVENT_BYTES_MAX,
    DeliveryLane,
    lane_of,
)
from partita_services.functions.mappings.event_source_mapping import EventSourceMapping
from partita_services.functions.mappings.event_sources import (
    SHARD_END,
    EventSource,
    SourceRecord,
    SourceShard,
    event_of,
)
from partita_services.functions.mappings.failure_reports import (
    EXHAUSTED,
    TOO_OLD,
    DeliveryFailure,
    report_of,
)
from partita_services.functions.mappings.mapping_targets import (
    CallFailed,
    CallRefused,
    MappingTarget,
)
from partita_services.functions.mappings.tumbling_windows import (
    TumblingWindow,
    by_window,
    event_of_window,
    state_in,
)
from partita_services.functions.mappings.watermark import Watermark
from partita_services.functions.message_sinks import SendFailed

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
READ_RECORDS_MAX = 1000
BACKOFF_SECONDS = 0.2
BACKOFF_SECONDS_MAX = 30.0
OK, FAILED = "OK", "PROBLEM: Function call failed"

Save = Callable[[str, dict[str, Any] | None], Awaitable[None]]
"""Saves a position and the open window; returns when they are on disk."""


@dataclass(frozen=True, slots=True)
class DeliveryDependencies:
    """The mapping, its stream and its target, which all deliveries of the mapping share."""

    mapping: EventSourceMapping
    source: EventSource
    target: MappingTarget
    destinations: Destinations
    clock: Clock
    note_result: Callable[[str], None]
    """Called with the result of each call, for LastProcessingResult."""


class BatchDelivery:
    def __init__(self, dependencies: DeliveryDependencies, shard: SourceShard, save: Save) -> None:
        self._dependencies = dependencies
        self._mapping = dependencies.mapping
        self._shard = shard
        self._save = save
        self._lanes = [DeliveryLane() for _ in range(self._mapping.parallelization_factor)]
        self._room = asyncio.Event()
        self._saving = asyncio.Lock()
        self._saved: tuple[str, Any] = ("", None)
        self._done = Watermark("")
        self._window: TumblingWindow | None = None
        self._empty_at = 0.0
        """The time at which the end of the shard was reached last."""

    async def consume(self, position: str, window: dict[str, Any] | None = None) -> None:
        """Deliver a shard from a position to its end."""
        self._done = Watermark(position)
        self._saved = (position, window)
        self._window = None if window is None else msgspec.convert(window, TumblingWindow)
        reading = asyncio.create_task(self._read(position))
        tasks = [reading, *(asyncio.create_task(self._work(lane)) for lane in self._lanes)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if reading.result():
            await self._save(SHARD_END, None)

    async def _read(self, position: str) -> bool:
        """Hand records to the lanes. Returns True when the shard has come to its end, False when it
        is gone."""
        while True:
            while self._is_full():
                self._room.clear()
                await self._room.wait()
            page = await self._dependencies.source.read(self._shard, position, READ_RECORDS_MAX)
            if page is None:
                break
            for record in page.records:
                self._done.add(record.sequence_number)
                lane_of(record, self._lanes).put(record)
            if page.position != position:
                # Records that no filter matches still move the checkpoint.
                self._done.pass_over(page.position)
            position = page.position
            if page.is_last:
                break
            if not page.is_behind:
                self._empty_at = self._dependencies.clock()
            for lane in self._lanes:
                lane.wake()
            # Otherwise the checkpoint is saved when the waiting records are done.
            if not page.records and not self._done.is_waiting:
                await self._note()
            if not page.is_behind:
                await asyncio.sleep(POLL_SECONDS)
        for lane in self._lanes:
            lane.close()
        return page is not None

    def _is_full(self) -> bool:
        """True when enough records for the next two batches of each lane were read."""
        lanes = self._lanes
        return sum(map(len, lanes)) >= 2 * self._mapping.batch_size * len(lanes) or sum(
            lane.size for lane in lanes
        ) >= 2 * EVENT_BYTES_MAX * len(lanes)

    async def _work(self, lane: DeliveryLane) -> None:
        mapping = self._mapping
        patience = POLL_SECONDS if mapping.tumbling_seconds else None
        while not lane.is_over:
            batch = await lane.batch(mapping.batch_size, mapping.window_seconds, patience)
            self._room.set()
            if mapping.tumbling_seconds:
                await self._deliver_in_windows(batch)
            elif batch:
                await self._deliver(batch)
        if self._window is not None:
            await self._close_window()

    # Tumbling windows

    async def _deliver_in_windows(self, batch: list[SourceRecord]) -> None:
        for window, records in by_window(batch, self._mapping.tumbling_seconds):
            if self._window is not None and window.start > self._window.start:
                await self._close_window()
            if self._window is None:
                self._window = window
            await self._deliver(records)
            if self._window is not None and self._window.is_too_large:
                await self._close_window(is_early=True)
        if not batch and self._window is not None and self._empty_at >= self._window.end:
            await self._close_window()

    async def _close_window(self, *, is_early: bool = False) -> None:
        """Make the final call for a window. It is retried like a batch."""
        assert self._window is not None
        event = event_of_window(self._window, self._shard, (), is_final=True, is_early=is_early)
        attempts = 0
        while True:
            _, reason = await self._call_with(event)
            if not reason:
                break
            attempts += 1
            logger.warning("The %s failed at the end of a window: %s.", self._mapping.name, reason)
            if FOR_EVER < self._mapping.maximum_retries < attempts:
                logger.error("The %s gave up a window.", self._mapping.name)
                break
            await asyncio.sleep(_backoff_seconds(attempts))
        self._window = None
        await self._note()

    # Batches

    async def _deliver(self, records: list[SourceRecord]) -> None:
        """Call the function with these records until each of them has succeeded or was given up."""
        attempts, reason = 0, ""
        while records := await self._without_old(records, attempts, reason):
            failed_at, reason = await self._call(records)
            await self._finish(records[:failed_at])
            if failed_at == len(records):
                return
            if failed_at > 0:
                # The records before the first failed one are done. (Lambda guide, "Partial batch
                # responses")
                # A function that makes progress has all its retries again.
                records, attempts = records[failed_at:], 0
                if self._mapping.bisects:
                    # The batch is bisected just there (same page), so the rest is called again at
                    # once.
                    continue
            logger.warning("The %s failed: %s.", self._mapping.name, reason)
            if self._mapping.bisects and len(records) > 1:
                middle = len(records) // 2
                await self._deliver(records[:middle])
                await self._deliver(records[middle:])
                return
            attempts += 1
            if FOR_EVER < self._mapping.maximum_retries < attempts:
                await self._give_up(records, DeliveryFailure(EXHAUSTED, attempts, reason))
                return
            await asyncio.sleep(_backoff_seconds(attempts))

    async def _without_old(
        self, records: list[SourceRecord], attempts: int, reason: str
    ) -> list[SourceRecord]:
        age = self._mapping.maximum_age_seconds
        if age == FOR_EVER:
            return records
        oldest = self._dependencies.clock() - age
        old = list(takewhile(lambda record: record.created_at < oldest, records))
        if old:
            await self._give_up(old, DeliveryFailure(TOO_OLD, attempts, reason))
        return records[len(old) :]

    async def _call(self, records: list[SourceRecord]) -> tuple[int, str]:
        """Returns how many records precede the first failed one, and why that failed."""
        if self._window is None:
            event = event_of(records)
        else:
            event = event_of_window(
                self._window, self._shard, records, is_final=False, is_early=False
            )
        result, reason = await self._call_with(event)
        if reason:
            return 0, reason
        if self._window is not None:
            self._window.state = state_in(result)
        if not self._mapping.reports_failures:
            return len(records), ""
        return _first_failure(records, result)

    async def _call_with(self, event: bytes) -> tuple[Any, str]:
        """Returns the result of the function, or the reason why it failed."""
        refusals = 0
        while True:
            try:
                content = await self._dependencies.target.call(event)
            except CallFailed as error:
                self._dependencies.note_result(FAILED)
                return None, str(error)
            except CallRefused as error:
                self._dependencies.note_result(f"PROBLEM: {error}")
                refusals += 1
                logger.warning(
                    "The %s could not call its target, and tries again: %s",
                    self._mapping.name,
                    error,
                )
                await asyncio.sleep(_backoff_seconds(refusals))
            else:
                self._dependencies.note_result(OK)
                if not self._mapping.reports_failures and self._window is None:
                    return None, ""
                return _decoded(content), ""

    async def _give_up(self, records: list[SourceRecord], failure: DeliveryFailure) -> None:
        destination = self._mapping.on_failure
        if destination is None:
            logger.error("The %s gave up %d records.", self._mapping.name, len(records))
        else:
            dependencies = self._dependencies
            report = report_of(
                dependencies.target.arn,
                dependencies.target.version,
                dependencies.source.batch_info,
                self._shard,
                records,
                failure,
                dependencies.clock(),
            )
            await self._send(destination, report)
        await self._finish(records)

    async def _send(self, destination: str, report: bytes) -> None:
        refusals = 0
        while True:
            try:
                await self._dependencies.destinations.send(destination, report, self._shard.name)
            except SendFailed as error:
                # Without a report, the records would be lost: so the shard waits.
                refusals += 1
                logger.error(
                    "The %s cannot send its report of failed records, and tries again: %s.",
                    self._mapping.name,
                    error,
                )
                await asyncio.sleep(_backoff_seconds(refusals))
            else:
                return

    async def _finish(self, records: list[SourceRecord]) -> None:
        for record in records:
            self._done.finish(record.sequence_number)
        await self._note()

    async def _note(self) -> None:
        """Save the position up to which all records are done, if it has changed."""
        # Lanes finish at any time: without the lock, an older position could be saved after a newer
        # one.
        async with self._saving:
            window = None if self._window is None else msgspec.to_builtins(self._window)
            reached = (self._done.position, window)
            if reached != self._saved:
                await self._save(*reached)
                self._saved = reached


def _decoded(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content) if content.strip() else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # An HTTP endpoint answers with its status; the body need not be JSON.
        return None


def _first_failure(records: list[SourceRecord], result: Any) -> tuple[int, str]:
    """Reads batchItemFailures. A report that makes no sense fails the whole batch. (Lambda guide,
    "Partial batch responses")"""
    if not result or not isinstance(result, dict) or not result.get("batchItemFailures"):
        return len(records), ""
    places = {record.sequence_number: place for place, record in enumerate(records)}
    try:
        failed = [places[failure["itemIdentifier"]] for failure in result["batchItemFailures"]]
    except (KeyError, TypeError):
        return 0, "it reported failures of records that were not in its batch"
    return min(failed), "it reported failures"


def _backoff_seconds(attempts: int) -> float:
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS * 2.0 ** min(attempts - 1, 20))
