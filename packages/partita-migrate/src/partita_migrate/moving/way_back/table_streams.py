"""Reads the target's streams: shards in order, each behind its last record that was read."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field

from partita.client import ClientError
from partita.client.consumer.dynamodb_stream_source import DynamoDBStream, Record
from partita.client.consumer.kinesis_source import TRIM_HORIZON
from partita.client.consumer.stream_shards import ready_shards
from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.moving.target_access.target_client import (
    AWAY_SECONDS_MAX,
    PAUSE_SECONDS_MAX,
    TargetClient,
)

FINISHED = "FINISHED"
PAGE_RECORDS = 1000
SHARDS_SECONDS = 2.0
IMAGES = "NEW_AND_OLD_IMAGES"
ENABLE_SECONDS_MAX = 300
PAUSE_SECONDS = 0.2

Result = TypeVar("Result")


class StreamCheckpoint(Struct):
    """The position up to which the changes of one table have been read."""

    arn: str
    shards: dict[str, str] = field(default_factory=dict)
    iterators: dict[str, str] = field(default_factory=dict)
    """Iterators of shards without a record so far, at the place where the move began to read."""
    began: float = 0.0
    read_at: float = 0.0
    """When a Kinesis stream was first and last read, by this machine's clock."""


class ItemChange(NamedTuple):
    """One change of one item."""

    table: str
    key: Item
    old: Item | None
    new: Item | None
    at: float
    """The time of the change in seconds since 1970, by the target's clock."""


class ItemChangeStream(Protocol):
    """The changes of one table, from DynamoDB Streams or Kinesis."""

    table: str
    places: StreamCheckpoint

    def read(self) -> list[ItemChange]:
        """Returns the next changes; empty when there are none yet."""


class StreamTrimmed(PartitaError):
    """Raised when a stream has dropped changes before they were read, which makes a rollback
    incomplete."""


def ensure_stream(target: TargetClient, table: str, *, is_made: bool) -> str:
    """Returns the ARN of a table's stream; switches it on when `is_made`, otherwise "" without
    one."""
    end = time.monotonic() + ENABLE_SECONDS_MAX
    while True:
        described = target.call("DescribeTable", TableName=table)["Table"]
        view = described.get("StreamSpecification", {})
        is_on = view.get("StreamEnabled", False)
        if is_on and view.get("StreamViewType") != IMAGES:
            raise PartitaError(
                f"The stream of {table} has {view.get('StreamViewType')}, but the way back needs"
                f" {IMAGES}; switch the stream off and let `cutover` switch it on again."
            )
        if is_on and described.get("LatestStreamArn") and described["TableStatus"] == "ACTIVE":
            return str(described["LatestStreamArn"])
        if not is_made:
            return ""
        if time.monotonic() > end:
            raise PartitaError(f"The stream of {table} does not become active; try again later.")
        if not is_on and described["TableStatus"] == "ACTIVE":
            target.call(
                "UpdateTable",
                TableName=table,
                StreamSpecification={"StreamEnabled": True, "StreamViewType": IMAGES},
            )
        else:
            time.sleep(PAUSE_SECONDS)


class TableStream:
    """Reads a table's stream behind `places`, and moves `places` on."""

    def __init__(self, target: TargetClient, table: str, places: StreamCheckpoint) -> None:
        self.table = table
        self.places = places
        self._target = target
        self._stream = DynamoDBStream(target.client, places.arn)
        for shard_id, iterator in places.iterators.items():
            self._stream.begin(shard_id, iterator)
        self._shards: list[Any] = []
        self._listed_at = 0.0

    def skip(self) -> None:
        """Moves to the end of the stream; what is in it by now are writes of the move itself."""
        self._list()
        for shard in self._shards:
            if shard.is_closed:
                self.places.shards[shard.shard_id] = FINISHED
                continue
            iterator = retry_while_away(self._target, partial(self._stream.end, shard))
            self.places.iterators[shard.shard_id] = iterator
            self._stream.begin(shard.shard_id, iterator)

    def read(self) -> list[ItemChange]:
        """Returns the next changes of all shards whose parents have been read."""
        changes: list[ItemChange] = []
        if time.monotonic() - self._listed_at > SHARDS_SECONDS:
            self._list()
        finished = [shard_id for shard_id, place in self.places.shards.items() if place == FINISHED]
        for shard in ready_shards(self._shards, finished):
            place = self.places.shards.get(shard.shard_id, TRIM_HORIZON)
            read = partial(self._stream.read, shard, place, PAGE_RECORDS)
            page = retry_while_away(self._target, read)
            # The service starts over at the oldest record when the one at our place has been
            # trimmed.
            if page is None or (place != TRIM_HORIZON and page.position == TRIM_HORIZON):
                raise self._too_old()
            changes += [_changed(self.table, record) for record in page.records]
            if page.is_last:
                self.places.shards[shard.shard_id] = FINISHED
                self._listed_at = 0.0
            elif page.position != TRIM_HORIZON:
                self.places.shards[shard.shard_id] = page.position
            if shard.shard_id in self.places.shards:
                self.places.iterators.pop(shard.shard_id, None)
        return changes

    def _list(self) -> None:
        self._shards = retry_while_away(self._target, self._stream.shards)
        self._listed_at = time.monotonic()
        listed = {shard.shard_id for shard in self._shards}
        lost = [
            shard_id
            for shard_id, place in self.places.shards.items()
            if place != FINISHED and shard_id not in listed
        ]
        if lost or not self._shards:
            raise self._too_old()
        for shard_id in [shard_id for shard_id in self.places.shards if shard_id not in listed]:
            del self.places.shards[shard_id]

    def _too_old(self) -> StreamTrimmed:
        return StreamTrimmed(
            f"The stream of {self.table} no longer has all changes since it was last read: a stream"
            " keeps them for 24 hours. The way back would be incomplete."
        )


def retry_while_away(
    target: TargetClient, call: Callable[[], Coroutine[Any, Any, Result]]
) -> Result:
    """Calls the target again while it restarts or throttles."""
    pause, away_since = PAUSE_SECONDS, time.monotonic()
    while True:
        try:
            return target.wait_for(call())
        except ClientError as error:
            if not error.is_passing or time.monotonic() - away_since > AWAY_SECONDS_MAX:
                raise
        time.sleep(pause)
        pause = min(pause * 2, PAUSE_SECONDS_MAX)


def _changed(table: str, record: Record) -> ItemChange:
    content = record["dynamodb"]
    return ItemChange(
        table,
        content["Keys"],
        content.get("OldImage"),
        content.get("NewImage"),
        float(content.get("ApproximateCreationDateTime", 0)),
    )
