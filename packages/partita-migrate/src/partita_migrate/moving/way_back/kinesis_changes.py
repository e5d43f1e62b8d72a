"""The way back through Kinesis, which keeps changes for up to a year instead of 24 hours.

Amazon may deliver a record twice, or after a later record of the same item. So a record only says
that an item has changed, and the item is read as it is now.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

from partita.client import ClientError
from partita.client.consumer.kinesis_source import AT_TIMESTAMP, KinesisRecord, KinesisStream
from partita.client.consumer.stream_shards import ready_shards
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.target_access.item_positions import key_of
from partita_migrate.moving.target_access.target_client import TargetClient
from partita_migrate.moving.way_back.stream_markers import marker_key
from partita_migrate.moving.way_back.table_streams import (
    ENABLE_SECONDS_MAX,
    FINISHED,
    PAGE_RECORDS,
    PAUSE_SECONDS,
    SHARDS_SECONDS,
    ItemChange,
    ItemChangeStream,
    StreamCheckpoint,
    StreamTrimmed,
    TableStream,
    retry_while_away,
)

SERVICE = ":kinesis:"
"""Part of the ARN of every Kinesis stream."""
ACTIVE, ENABLING = "ACTIVE", ("ENABLING", "UPDATING")
DIVISORS = {"MILLISECOND": 1e3, "MICROSECOND": 1e6}
HOUR_SECONDS = 3600
MARGIN_SECONDS = 300
"""How much the clocks of this machine and of the service may differ."""


def destination_of(target: TargetClient, table: str, stream: str, *, is_made: bool) -> str:
    """Returns the ARN of a Kinesis stream that receives the changes of a table.

    A table that does not send them is made to when `is_made`; otherwise the result is empty.
    """
    arn = stream_arn(target, stream)
    end = time.monotonic() + ENABLE_SECONDS_MAX
    while True:
        described = target.call("DescribeKinesisStreamingDestination", TableName=table)
        destinations = {
            destination["StreamArn"]: destination
            for destination in described.get("KinesisDataStreamDestinations", [])
        }
        status = destinations.get(arn, {}).get("DestinationStatus", "")
        if status == ACTIVE:
            return arn
        if not is_made:
            return ""
        if time.monotonic() > end:
            why = destinations.get(arn, {}).get("DestinationStatusDescription", status)
            raise PartitaError(f"The changes of {table} do not reach {stream}: {why}.")
        if status in ENABLING:
            time.sleep(PAUSE_SECONDS)
            continue
        try:
            target.call("EnableKinesisStreamingDestination", TableName=table, StreamArn=arn)
        except ClientError as error:
            raise PartitaError(
                f"The changes of {table} cannot be sent to {stream}: {error.message}"
            ) from error


def stream_arn(target: TargetClient, stream: str) -> str:
    return str(_described(target, stream)["StreamARN"])


def _described(target: TargetClient, stream: str) -> dict[str, Any]:
    name = stream.rpartition("/")[2]
    try:
        describe = partial(
            target.client.call, "kinesis", "DescribeStreamSummary", {"StreamName": name}
        )
        summary: dict[str, Any] = retry_while_away(target, describe)["StreamDescriptionSummary"]
    except ClientError as error:
        raise PartitaError(f"There is no Kinesis stream {name}: {error.message}") from error
    return summary


def open_stream(
    target: TargetClient, table: TableDesign, places: StreamCheckpoint
) -> ItemChangeStream:
    """Opens a table's changes at a stored position, in its own stream or in Kinesis."""
    if SERVICE in places.arn:
        return KinesisTableStream(target, table, places)
    return TableStream(target, table.name, places)


def open_stream_from_now(target: TargetClient, table: TableDesign, arn: str) -> ItemChangeStream:
    """Opens a table's changes from now on."""
    if SERVICE in arn:
        return KinesisTableStream(target, table, StreamCheckpoint(arn))
    stream = TableStream(target, table.name, StreamCheckpoint(arn))
    stream.skip()
    return stream


class KinesisTableStream:
    """The changes of one table in a Kinesis stream that may carry other tables too."""

    def __init__(self, target: TargetClient, table: TableDesign, places: StreamCheckpoint) -> None:
        self.table = table.name
        self.places = places
        self._design = table
        self._target = target
        self._stream = KinesisStream(target.client, places.arn.rpartition("/")[2])
        self._shards: list[Any] = []
        self._listed_at = 0.0
        if not places.began:
            places.began = time.time() - MARGIN_SECONDS
        self._check_age()

    def _check_age(self) -> None:
        """Raises StreamTrimmed when the stream may have dropped unread records.

        Kinesis silently continues behind a trimmed position, so its answers do not tell.
        """
        retention_hours = int(_described(self._target, self.places.arn)["RetentionPeriodHours"])
        read_at = self.places.read_at or self.places.began
        if time.time() - read_at > retention_hours * HOUR_SECONDS - MARGIN_SECONDS:
            raise StreamTrimmed(
                f"{self.places.arn} keeps records for {retention_hours} hours and was last read"
                f" {(time.time() - read_at) / HOUR_SECONDS:.0f} hours ago. The way back cannot be"
                " complete."
            )

    def read(self) -> list[ItemChange]:
        changes: list[ItemChange] = []
        if time.monotonic() - self._listed_at > SHARDS_SECONDS:
            self._shards = retry_while_away(self._target, self._stream.shards)
            self._listed_at = time.monotonic()
        read_at = time.time()
        finished = [shard_id for shard_id, place in self.places.shards.items() if place == FINISHED]
        for shard in ready_shards(self._shards, finished):
            begin = f"{AT_TIMESTAMP} {self.places.began}"
            place = self.places.shards.get(shard.shard_id, begin)
            page = retry_while_away(
                self._target, partial(self._stream.read, shard, place, PAGE_RECORDS)
            )
            changes += self._changes(page.records)
            if page.is_last:
                self.places.shards[shard.shard_id] = FINISHED
                self._listed_at = 0.0
            elif page.records:
                self.places.shards[shard.shard_id] = page.position
        self.places.read_at = read_at
        return changes

    def _changes(self, records: list[KinesisRecord]) -> list[ItemChange]:
        contents = [json.loads(record.data) for record in records]
        changes = [
            _changed(self.table, change)
            for change in contents
            if change.get("tableName") == self.table
        ]
        keys = {json.dumps(change.key, sort_keys=True): change.key for change in changes}
        current = self._target.get_all([(self.table, key) for key in keys.values()])
        present = dict(zip(keys, current, strict=True))
        return [
            change
            if _is_marker(change, self._design)
            else change._replace(new=present[json.dumps(change.key, sort_keys=True)])
            for change in changes
        ]


def _is_marker(change: ItemChange, table: TableDesign) -> bool:
    return key_of(table, change.key) == marker_key(table)


def _changed(table: str, record: dict[str, Any]) -> ItemChange:
    content = record["dynamodb"]
    precision = content.get("ApproximateCreationDateTimePrecision", "MILLISECOND")
    return ItemChange(
        table,
        content["Keys"],
        content.get("OldImage"),
        content.get("NewImage"),
        float(content.get("ApproximateCreationDateTime", 0)) / DIVISORS[precision],
    )
