"""One shard and one function: batches in order, each until it succeeds or is given up.

A position is noted after the records before it were delivered, so a record may be delivered twice
after a crash, and never not at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from partita.clock import Clock
from partita.limits import MB, STREAM_RECORDS_BYTES_MAX
from partita.settings import FOR_EVER, Trigger
from partita.streams.triggers.destinations import EXHAUSTED, TOO_OLD, failure_of, send_failure
from partita.streams.triggers.functions import CallFailed, Function
from partita.streams.triggers.records import Page, Record, event_of

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.1
EVENT_BYTES = 6 * MB
"""How large an event may become; a page is added while there is room for it."""
BACKOFF_SECONDS = 0.2
BACKOFF_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class ShardReader:
    """What a consumer needs of the database."""

    shard_id: str
    stream_arn: str
    read: Callable[[int, int], Page | None]
    """The page from a position on, with so many records at most."""
    save: Callable[[int], Awaitable[None]]
    """Returns when a position is on disk."""


class Consumer:
    def __init__(
        self, trigger: Trigger, reader: ShardReader, function: Function, folder: Path, clock: Clock
    ) -> None:
        self._trigger = trigger
        self._reader = reader
        self._function = function
        self._folder = folder
        self._clock = clock

    async def consume(self, position: int) -> None:
        """From a position to the end of the shard."""
        try:
            while True:
                batch = await self._gather(position)
                if batch is None:
                    return
                await self._deliver(batch.records)
                if batch.position != position:
                    await self._reader.save(batch.position)
                    position = batch.position
                if batch.is_last:
                    return
        finally:
            await self._function.close()

    async def _gather(self, position: int) -> Page | None:
        """Records for one batch: as many as it takes, or all that come while the window is open."""
        gathered = Page(position)
        size, closes_at = 0, None
        loop = asyncio.get_running_loop()
        while True:
            wanted = self._trigger.batch_size - len(gathered.records)
            page = self._reader.read(gathered.position, wanted)
            if page is None:
                return None
            has_moved = page.position != gathered.position
            gathered.records += page.records
            gathered.position, gathered.is_last = page.position, page.is_last
            size += sum(len(record.body) for record in page.records)
            is_full = len(gathered.records) == self._trigger.batch_size
            if is_full or size > EVENT_BYTES - STREAM_RECORDS_BYTES_MAX or gathered.is_last:
                return gathered
            if has_moved:
                # There may be more at once; but others want to have their turn.
                await asyncio.sleep(0)
                continue
            if gathered.records:
                closes_at = closes_at or loop.time() + self._trigger.batching_window_seconds
                if loop.time() >= closes_at:
                    return gathered
            elif gathered.position != position:
                return gathered
            await asyncio.sleep(POLL_SECONDS)

    async def _deliver(self, records: list[Record]) -> None:
        """Call the function with these records until all of them are done with."""
        attempts, reason = 0, ""
        while records := await self._without_old(records, attempts, reason):
            failed_at, reason = await self._call(records)
            if failed_at == len(records):
                return
            if failed_at > 0:
                # All before the first that failed are done with (guide, "partial batch responses").
                await self._reader.save(records[failed_at].sequence)
                records, attempts = records[failed_at:], 0
                if self._trigger.bisect_on_error:
                    # It is bisected just there (the same page).
                    continue
            logger.warning("The trigger %s failed: %s.", self._trigger.name, reason)
            if self._trigger.bisect_on_error and len(records) > 1:
                middle = len(records) // 2
                await self._deliver(records[:middle])
                await self._reader.save(records[middle].sequence)
                await self._deliver(records[middle:])
                return
            attempts += 1
            if FOR_EVER < self._trigger.maximum_retries < attempts:
                await self._give_up(records, EXHAUSTED, attempts, reason)
                return
            await asyncio.sleep(_backoff_seconds(attempts))

    async def _without_old(self, records: list[Record], attempts: int, reason: str) -> list[Record]:
        age = self._trigger.maximum_record_age_seconds
        if age == FOR_EVER:
            return records
        oldest = self._clock() - age
        old = list(takewhile(lambda record: record.created_at < oldest, records))
        if old:
            await self._give_up(old, TOO_OLD, attempts, reason)
        return records[len(old) :]

    async def _call(self, records: list[Record]) -> tuple[int, str]:
        """How many records were done with before the first that was not, and why it was not."""
        try:
            result = await self._function.call(event_of(records))
        except CallFailed as error:
            return 0, str(error)
        if not self._trigger.report_batch_item_failures:
            return len(records), ""
        return _first_failure(records, result)

    async def _give_up(
        self, records: list[Record], condition: str, attempts: int, reason: str
    ) -> None:
        destination = self._trigger.on_failure
        if destination is None:
            logger.error("The trigger %s gave up %d records.", self._trigger.name, len(records))
            return
        failure = failure_of(
            self._function.arn,
            self._reader.stream_arn,
            self._reader.shard_id,
            records,
            condition,
            attempts,
            reason,
            self._clock(),
        )
        refusals = 0
        while True:
            try:
                await send_failure(destination, self._folder, failure)
            except CallFailed as error:
                # Going on would lose the records.
                refusals += 1
                logger.error("The trigger %s cannot go on: %s.", self._trigger.name, error)
                await asyncio.sleep(_backoff_seconds(refusals))
            else:
                return


def _first_failure(records: list[Record], result: Any) -> tuple[int, str]:
    """What a function reports; what makes no sense fails the whole batch (guide)."""
    if not result or not isinstance(result, dict) or not result.get("batchItemFailures"):
        return len(records), ""
    places = {record.sequence_number: place for place, record in enumerate(records)}
    try:
        failed = [places[failure["itemIdentifier"]] for failure in result["batchItemFailures"]]
    except (KeyError, TypeError):
        return 0, "it reported failures that are none of its records"
    return min(failed), "it reported failures"


def _backoff_seconds(attempts: int) -> float:
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS * 2.0 ** min(attempts - 1, 20))
