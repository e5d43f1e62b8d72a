"""Reads the stream of visits: all shards in turns, from the positions that the counter keeps.

The counter does not deal with shards. It gives `read` a function that takes records, saves the
positions that `StreamReader` keeps up to date, and asks for the watermark. There is only one
counter at a time, and its positions are saved with its counts, so the reader needs no leases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from page_hit_counter.service.concurrency import run_all
from partita.client import Client
from partita.client.consumer.kinesis_source import (
    TRIM_HORIZON,
    KinesisPage,
    KinesisRecord,
    KinesisShard,
    KinesisStream,
)
from partita.client.consumer.stream_shards import ready_shards
from partita.foundation.clock import Clock

RECORDS_PER_READ_MAX = 1_000
LIST_SHARDS_SECONDS = 10.0
SETTLE_SECONDS = 0.5
"""How long after its arrival time a record becomes readable at the latest."""

Take = Callable[[KinesisRecord, float], None]
"""Called as `take(record, watermark)`, in the order of each shard."""


class ReadOutcome(NamedTuple):
    """The outcome of one read of all shards."""

    has_moved: bool
    """True when the positions have changed."""
    is_behind: bool
    """True when there is more to read right now."""


class StreamReader:
    def __init__(
        self,
        client: Client,
        stream: str,
        positions: dict[str, str],
        read_shards: list[str],
        clock: Clock,
    ) -> None:
        """`positions` holds the last sequence number that was read from each shard, `read_shards`
        the shards that are read to their end. The reader updates both; the caller saves them."""
        self._source = KinesisStream(client, stream)
        self._positions = positions
        self._read_shards = read_shards
        self._clock = clock
        self._shards: list[KinesisShard] = []
        self._read_until: dict[str, float] = {}
        """For each of these shards, the time up to which everything that arrived has been read."""
        self._listed_at = 0.0

    @property
    def watermark(self) -> float:
        """The time up to which everything that arrived has been read, over all shards."""
        return min(self._read_until.values(), default=0.0)

    async def read(self, take: Take) -> ReadOutcome:
        """Reads each shard once."""
        if not self._shards or self._clock() - self._listed_at > LIST_SHARDS_SECONDS:
            await self._list_shards()
        requested_at = self._clock()
        pages = await run_all(map(self._read, self._shards), len(self._shards) or 1)
        for shard, page in zip(self._shards, pages, strict=True):
            self._hand_out(shard.shard_id, page, requested_at, take)
        has_finished = any(page.is_last for page in pages)
        if has_finished:
            # Listed now, because the watermark must include the children of a finished shard
            # before a window closes.
            await self._list_shards()
        return ReadOutcome(
            has_moved=has_finished or any(page.records for page in pages),
            is_behind=has_finished or any(page.is_behind for page in pages),
        )

    async def _read(self, shard: KinesisShard) -> KinesisPage:
        position = self._positions.get(shard.shard_id, TRIM_HORIZON)
        return await self._source.read(shard, position, RECORDS_PER_READ_MAX)

    def _hand_out(self, shard_id: str, page: KinesisPage, requested_at: float, take: Take) -> None:
        watermark = self.watermark
        for record in page.records:
            take(record, watermark)
        if page.is_last:
            self._read_shards.append(shard_id)
            self._positions.pop(shard_id, None)
        elif page.records:
            self._positions[shard_id] = page.position
        read_until = self._read_until[shard_id]
        self._read_until[shard_id] = max(read_until, _arrived_until(page, requested_at))

    async def _list_shards(self) -> None:
        """Lists the shards to read: those that are not read to their end, while their parents
        are."""
        # Emptied first: if listing fails, the next read lists again, and no shard is read beyond
        # its end.
        self._shards = []
        self._shards = ready_shards(await self._source.shards(), set(self._read_shards))
        names = [shard.shard_id for shard in self._shards]
        self._read_until = {name: self._read_until.get(name, 0.0) for name in names}
        self._listed_at = self._clock()


def _arrived_until(page: KinesisPage, requested_at: float) -> float:
    """Returns the time before which no record arrived that is still to be read after this page."""
    if page.is_last:
        return float("inf")
    if not page.is_behind:
        return requested_at - SETTLE_SECONDS
    return page.records[-1].arrived_at if page.records else 0.0
