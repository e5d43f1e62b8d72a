"""The way back through Kinesis: a destination of the target's tables keeps changes for longer than
the 24 hours of their own streams, up to a year.

Amazon may deliver a record twice, or behind a later one of the same item. So a record only says
that an item has changed, and the item is read as it is now.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

from partita.client import ClientError
from partita.client.kinesis import AT_TIMESTAMP, KinesisRecord, KinesisStream
from partita.client.shards import ready_shards
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.back.markers import marker_key
from partita_migrate.moving.back.records import (
    ENABLE_SECONDS_MAX,
    FINISHED,
    PAGE_RECORDS,
    PAUSE_SECONDS,
    SHARDS_SECONDS,
    Changed,
    ChangeStream,
    Places,
    StreamTooOld,
    TableStream,
    patiently,
)
from partita_migrate.moving.positions import key_of
from partita_migrate.moving.target import Target

SERVICE = ":kinesis:"
"""In the ARN of such a stream."""
ACTIVE, ENABLING = "ACTIVE", ("ENABLING", "UPDATING")
DIVISORS = {"MILLISECOND": 1e3, "MICROSECOND": 1e6}
HOUR_SECONDS = 3600
MARGIN_SECONDS = 300
"""The clocks of this machine and of the service may differ by so much."""


def destination_of(target: Target, table: str, stream: str, *, is_made: bool) -> str:
    """The ARN of a Kinesis stream that gets the changes of a table; where it does not, it is made
    to if `is_made`, and else the answer is empty."""
    arn = stream_arn(target, stream)
    end = time.monotonic() + ENABLE_SECONDS_MAX
    while True:
        described = target.call("DescribeKinesisStreamingDestination", TableName=table)
        known = {
            one["StreamArn"]: one for one in described.get("KinesisDataStreamDestinations", [])
        }
        status = known.get(arn, {}).get("DestinationStatus", "")
        if status == ACTIVE:
            return arn
        if not is_made:
            return ""
        if time.monotonic() > end:
            why = known.get(arn, {}).get("DestinationStatusDescription", status)
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


def stream_arn(target: Target, stream: str) -> str:
    return str(_described(target, stream)["StreamARN"])


def _described(target: Target, stream: str) -> dict[str, Any]:
    name = stream.rpartition("/")[2]
    try:
        asked = partial(
            target.client.call, "kinesis", "DescribeStreamSummary", {"StreamName": name}
        )
        summary: dict[str, Any] = patiently(target, asked)["StreamDescriptionSummary"]
    except ClientError as error:
        raise PartitaError(f"There is no Kinesis stream {name}: {error.message}") from error
    return summary


def opened_stream(target: Target, table: TableDesign, places: Places) -> ChangeStream:
    """Of whichever kind the places are."""
    if SERVICE in places.arn:
        return KinesisTableStream(target, table, places)
    return TableStream(target, table.name, places)


def begun_stream(target: Target, table: TableDesign, arn: str) -> ChangeStream:
    """From now on."""
    if SERVICE in arn:
        return KinesisTableStream(target, table, Places(arn))
    stream = TableStream(target, table.name, Places(arn))
    stream.skip()
    return stream


class KinesisTableStream:
    """The changes of one table, among those of others that the stream may have."""

    def __init__(self, target: Target, table: TableDesign, places: Places) -> None:
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
        """A place that was trimmed cannot be told from another by the service's answers."""
        kept = int(_described(self._target, self.places.arn)["RetentionPeriodHours"])
        read_at = self.places.read_at or self.places.began
        if time.time() - read_at > kept * HOUR_SECONDS - MARGIN_SECONDS:
            raise StreamTooOld(
                f"{self.places.arn} keeps {kept} hours, and was last read"
                f" {(time.time() - read_at) / HOUR_SECONDS:.0f} hours ago. The way back cannot be"
                " complete."
            )

    def read(self) -> list[Changed]:
        found: list[Changed] = []
        if time.monotonic() - self._listed_at > SHARDS_SECONDS:
            self._shards = patiently(self._target, self._stream.shards)
            self._listed_at = time.monotonic()
        read_at = time.time()
        finished = [one for one, place in self.places.shards.items() if place == FINISHED]
        for shard in ready_shards(self._shards, finished):
            begin = f"{AT_TIMESTAMP} {self.places.began}"
            place = self.places.shards.get(shard.shard_id, begin)
            page = patiently(self._target, partial(self._stream.read, shard, place, PAGE_RECORDS))
            found += self._changes(page.records)
            if page.is_last:
                self.places.shards[shard.shard_id] = FINISHED
                self._listed_at = 0.0
            elif page.records:
                self.places.shards[shard.shard_id] = page.position
        self.places.read_at = read_at
        return found

    def _changes(self, records: list[KinesisRecord]) -> list[Changed]:
        told = [json.loads(record.data) for record in records]
        changed = [_changed(self.table, one) for one in told if one.get("tableName") == self.table]
        keys = {json.dumps(one.key, sort_keys=True): one.key for one in changed}
        now = self._target.get_all([(self.table, key) for key in keys.values()])
        present = dict(zip(keys, now, strict=True))
        return [
            one
            if _is_marker(one, self._design)
            else one._replace(new=present[json.dumps(one.key, sort_keys=True)])
            for one in changed
        ]


def _is_marker(one: Changed, table: TableDesign) -> bool:
    return key_of(table, one.key) == marker_key(table)


def _changed(table: str, record: dict[str, Any]) -> Changed:
    told = record["dynamodb"]
    precision = told.get("ApproximateCreationDateTimePrecision", "MILLISECOND")
    return Changed(
        table,
        told["Keys"],
        told.get("OldImage"),
        told.get("NewImage"),
        float(told.get("ApproximateCreationDateTime", 0)) / DIVISORS[precision],
    )
