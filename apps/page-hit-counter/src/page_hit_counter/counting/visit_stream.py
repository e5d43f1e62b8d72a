"""Reading the stream: all shards that may be read, in turns, from positions that the counter keeps.

The counter knows nothing of shards: it gives `read` a function that takes records, saves the
positions that `StreamReader` keeps up to date, and asks for the watermark. There is one counter at
a time, and its positions are saved with its counts: it needs no leases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from page_hit_counter.service.concurrent_calls import run_all
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
"""A record may have been stamped this long before it can be read."""

Take = Callable[[KinesisRecord, float], None]
"""`take(record, watermark)`, in the order of each shard."""


class ReadOutcome(NamedTuple):
    """Of one read of all shards."""

    has_moved: bool
    """Whether the positions have changed."""
    is_behind: bool
    """Whether there is more to read right now."""


class StreamReader:
    def __init__(
        self,
        client: Client,
        stream: str,
        positions: dict[str, str],
        read_shards: list[str],
        clock: Clock,
    ) -> None:
        """`positions` has the last sequence number that was read of each shard, `read_shards` the
        shards of which nothing is left. Both are kept up to date, for the caller to save."""
        self._source = KinesisStream(client, stream)
        self._positions = positions
        self._read_shards = read_shards
        self._clock = clock
        self._shards: list[KinesisShard] = []
        self._read_until: dict[str, float] = {}
        """For each of these shards: nothing will come of it that arrived before this moment."""
        self._listed_at = 0.0

    @property
    def watermark(self) -> float:
        """Everything that arrived before this moment has been read."""
        return min(self._read_until.values(), default=0.0)

    async def read(self, take: Take) -> ReadOutcome:
        """Read each shard once."""
        if not self._shards or self._clock() - self._listed_at > LIST_SHARDS_SECONDS:
            await self._list_shards()
        asked = self._clock()
        pages = await run_all(map(self._read, self._shards), len(self._shards) or 1)
        for shard, page in zip(self._shards, pages, strict=True):
            self._hand_out(shard.shard_id, page, asked, take)
        has_finished = any(page.is_last for page in pages)
        if has_finished:
            # Before any window closes: the children of a finished shard are not read yet.
            await self._list_shards()
        return ReadOutcome(
            has_moved=has_finished or any(page.records for page in pages),
            is_behind=has_finished or any(page.is_behind for page in pages),
        )

    async def _read(self, shard: KinesisShard) -> KinesisPage:
        position = self._positions.get(shard.shard_id, TRIM_HORIZON)
        return await self._source.read(shard, position, RECORDS_PER_READ_MAX)

    def _hand_out(self, shard_id: str, page: KinesisPage, asked: float, take: Take) -> None:
        watermark = self.watermark
        for record in page.records:
            take(record, watermark)
        if page.is_last:
            self._read_shards.append(shard_id)
            self._positions.pop(shard_id, None)
        elif page.records:
            self._positions[shard_id] = page.position
        read_until = self._read_until[shard_id]
        self._read_until[shard_id] = max(read_until, _arrived_until(page, asked))

    async def _list_shards(self) -> None:
        """Those whose parents are read to their end, and that are not so themselves."""
        # Should this fail, the next read lists them again, and none is read beyond its end.
        self._shards = []
        self._shards = ready_shards(await self._source.shards(), set(self._read_shards))
        names = [shard.shard_id for shard in self._shards]
        self._read_until = {name: self._read_until.get(name, 0.0) for name in names}
        self._listed_at = self._clock()


def _arrived_until(page: KinesisPage, asked: float) -> float:
    """Nothing will come after a page, asked for at a moment, that arrived before this one."""
    if page.is_last:
        return float("inf")
    if not page.is_behind:
        return asked - SETTLE_SECONDS
    return page.records[-1].arrived_at if page.records else 0.0
