"""Shards of any stream, without I/O: pages of records, and which shards are ready to be read.

A shard that was split or merged continues in its children. A reader that finishes parents before
their children sees the records of every key in order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class SourceShard(Protocol):
    @property
    def shard_id(self) -> str: ...

    @property
    def parents(self) -> Collection[str]:
        """The IDs of the shards that it continues, which may have expired."""


AnyShard = TypeVar("AnyShard", bound=SourceShard)
AnyPosition = TypeVar("AnyPosition")
AnyRecord = TypeVar("AnyRecord")


@dataclass(slots=True)
class ShardPage(Generic[AnyPosition, AnyRecord]):
    """Records of a shard, and the position after them."""

    position: AnyPosition
    records: list[AnyRecord] = field(default_factory=list)
    is_last: bool = False
    """True when the shard is closed and this is its end."""
    is_behind: bool = False
    """True when there are more records to read right now."""


class ShardSource(Protocol[AnyShard, AnyPosition, AnyRecord]):
    """A stream from which shards and their records are read."""

    async def shards(self) -> list[AnyShard]:
        """Returns all shards that can still be read."""

    async def read(
        self, shard: AnyShard, position: AnyPosition, limit: int
    ) -> ShardPage[AnyPosition, AnyRecord] | None:
        """Returns at most `limit` records from a position on; None when the shard is gone."""


def ready_shards(shards: Iterable[AnyShard], finished: Collection[str]) -> list[AnyShard]:
    """Returns the unfinished shards whose parents are all finished or have expired."""
    unfinished = {shard.shard_id: shard for shard in shards if shard.shard_id not in finished}
    return [shard for shard in unfinished.values() if unfinished.keys().isdisjoint(shard.parents)]


async def consume_shard(
    position: AnyPosition,
    read: Callable[[AnyPosition], Awaitable[ShardPage[AnyPosition, AnyRecord] | None]],
    process: Callable[[ShardPage[AnyPosition, AnyRecord]], Awaitable[None]],
) -> None:
    """Reads and processes a shard page by page, from a position to its end."""
    while (page := await read(position)) is not None:
        await process(page)
        if page.is_last:
            return
        position = page.position
