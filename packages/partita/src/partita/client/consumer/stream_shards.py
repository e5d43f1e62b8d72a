"""Streams of shards, whoever keeps them: what is read of one, and which may be read now. No I/O.

A shard that was split or merged goes on in its children. A reader that finishes parents before
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
        """The ids of the shards that come before it, whether they are still there or not."""


AnyShard = TypeVar("AnyShard", bound=SourceShard)
AnyPosition = TypeVar("AnyPosition")
AnyRecord = TypeVar("AnyRecord")


@dataclass(slots=True)
class ShardPage(Generic[AnyPosition, AnyRecord]):
    """What was read of a shard, and where to go on."""

    position: AnyPosition
    records: list[AnyRecord] = field(default_factory=list)
    is_last: bool = False
    """Whether nothing will ever follow."""
    is_behind: bool = False
    """Whether there is more to read right now."""


class ShardSource(Protocol[AnyShard, AnyPosition, AnyRecord]):
    """Where shards and their records come from."""

    async def shards(self) -> list[AnyShard]:
        """All that can still be read."""

    async def read(
        self, shard: AnyShard, position: AnyPosition, limit: int
    ) -> ShardPage[AnyPosition, AnyRecord] | None:
        """What comes from a position on, so many records at most; None when the shard is gone."""


def ready_shards(shards: Iterable[AnyShard], finished: Collection[str]) -> list[AnyShard]:
    """Those that are not finished, and whose parents are finished, or gone for their age."""
    unfinished = {shard.shard_id: shard for shard in shards if shard.shard_id not in finished}
    return [shard for shard in unfinished.values() if unfinished.keys().isdisjoint(shard.parents)]


async def consume_shard(
    position: AnyPosition,
    read: Callable[[AnyPosition], Awaitable[ShardPage[AnyPosition, AnyRecord] | None]],
    process: Callable[[ShardPage[AnyPosition, AnyRecord]], Awaitable[None]],
) -> None:
    """Page after page from a position to the end of a shard, each when the one before is done."""
    while (page := await read(position)) is not None:
        await process(page)
        if page.is_last:
            return
        position = page.position
