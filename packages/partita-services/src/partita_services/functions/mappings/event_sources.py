"""The streams that a mapping reads: their shards, and their records in the shape that Lambda passes
on."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import floor
from typing import Any, Protocol

import orjson

from partita.client import Client
from partita.client.consumer import dynamodb_stream_source as streams
from partita.client.consumer.dynamodb_stream_source import DynamoDBStream, StreamShard
from partita.client.consumer.kinesis_source import (
    AT_TIMESTAMP,
    TRIM_HORIZON,
    KinesisRecord,
    KinesisShard,
    KinesisStream,
)
from partita.client.consumer.stream_shards import ShardPage
from partita.foundation.clock import Clock
from partita_services.functions import function_arns
from partita_services.functions.mappings.event_filters import Matches, compile_filters
from partita_services.functions.mappings.event_source_mapping import (
    DYNAMODB,
    EventSourceMapping,
    service_of,
    stream_name,
)

logger = logging.getLogger(__name__)

SHARD_END = "SHARD_END"
"""The position of a shard whose records are all done."""
ROLE = function_arns.role_arn(function_arns.OWN_ROLE)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record of a stream, as an entry of an event's `Records`."""

    sequence_number: str
    key: str
    """Records with the same key stay in order."""
    created_at: float
    body: bytes


RecordPage = ShardPage[str, SourceRecord]


@dataclass(frozen=True, slots=True)
class SourceShard:
    """A shard of one of several streams, which are read one after the other."""

    stream_arn: str
    shard_id: str
    name: str
    parents: tuple[str, ...]
    is_closed: bool
    """True when nothing more will be added to it."""


class EventSource(Protocol):
    batch_info: str
    """The member with which reports of failures describe a batch."""

    async def shards(self) -> list[SourceShard]: ...

    async def read(self, shard: SourceShard, position: str, limit: int) -> RecordPage | None:
        """The matching records from a position on; None when the shard is gone."""

    async def latest(self, shard: SourceShard) -> str:
        """The position after everything that is in the shard now."""


def source_of(mapping: EventSourceMapping, client: Client, clock: Clock) -> EventSource:
    """The source of a mapping. Raises PartitaError for malformed filter patterns."""
    matches = compile_filters(mapping.filter_patterns)
    if mapping.is_of_kinesis:
        return KinesisSource(mapping, client, matches, clock)
    return TableSource(mapping, client, matches)


class KinesisSource:
    """A Kinesis stream."""

    batch_info = "KinesisBatchInfo"

    def __init__(
        self, mapping: EventSourceMapping, client: Client, matches: Matches | None, clock: Clock
    ) -> None:
        self._arn = mapping.source
        self._since = mapping.since
        self._stream = KinesisStream(client, stream_name(mapping.source))
        self._matches = matches
        self._clock = clock

    async def shards(self) -> list[SourceShard]:
        shards = await self._stream.shards()
        parents = {parent for shard in shards for parent in shard.parents}
        return [
            SourceShard(
                self._arn, shard.shard_id, shard.shard_id, shard.parents, shard.shard_id in parents
            )
            for shard in shards
        ]

    async def read(self, shard: SourceShard, position: str, limit: int) -> RecordPage | None:
        page = await self._stream.read(KinesisShard(shard.shard_id), position, limit)
        read = RecordPage(page.position, [], page.is_last, page.is_behind)
        for record in page.records:
            if self._matches is None or self._matches(_filtered(record)):
                read.records.append(self._record(shard, record))
        return read

    async def latest(self, shard: SourceShard) -> str:
        # A closed shard has nothing that comes later than now.
        if self._since is None and shard.is_closed:
            return SHARD_END
        since = self._clock() if self._since is None else self._since
        return f"{AT_TIMESTAMP} {floor(since * 1000) / 1000:.3f}"

    def _record(self, shard: SourceShard, record: KinesisRecord) -> SourceRecord:
        body = {
            "kinesis": {
                "kinesisSchemaVersion": "1.0",
                "partitionKey": record.partition_key,
                "sequenceNumber": record.sequence_number,
                "data": base64.b64encode(record.data).decode(),
                "approximateArrivalTimestamp": record.arrived_at,
            },
            "eventSource": "aws:kinesis",
            "eventVersion": "1.0",
            "eventID": f"{shard.name}:{record.sequence_number}",
            "eventName": "aws:kinesis:record",
            "invokeIdentityArn": ROLE,
            "awsRegion": function_arns.REGION,
            "eventSourceARN": self._arn,
        }
        return SourceRecord(
            record.sequence_number, record.partition_key, record.arrived_at, orjson.dumps(body)
        )


def _filtered(record: KinesisRecord) -> dict[str, Any]:
    """The record that filters see: its data as JSON if it is JSON. (Lambda guide, "Using event
    filtering with a Kinesis event source")"""
    try:
        data = orjson.loads(record.data)
    except ValueError:
        data = record.data.decode("utf-8", "replace")
    return {
        "partitionKey": record.partition_key,
        "sequenceNumber": record.sequence_number,
        "approximateArrivalTimestamp": record.arrived_at,
        "data": data,
    }


class TableSource:
    """One stream of a table. A trigger names the table instead, and then reads all streams that the
    table has had lately, as if they were one."""

    batch_info = "DDBStreamBatchInfo"

    def __init__(
        self, mapping: EventSourceMapping, client: Client, matches: Matches | None
    ) -> None:
        self._mapping = mapping
        self._client = client
        self._matches = matches
        self._streams: dict[str, DynamoDBStream] = {}
        self._is_warned = False

    async def shards(self) -> list[SourceShard]:
        streams_with_shards = [
            (stream.arn, await stream.shards()) for stream in map(self._stream, await self._arns())
        ]
        return list(shards_of(streams_with_shards))

    async def _arns(self) -> list[str]:
        source = self._mapping.source
        if service_of(source) == DYNAMODB:
            return [source]
        stream_arns: list[str] = []
        request: dict[str, Any] = {"TableName": source}
        while request:
            page = await self._client.call("dynamodbstreams", "ListStreams", request)
            stream_arns += [stream["StreamArn"] for stream in page["Streams"]]
            last = page.get("LastEvaluatedStreamArn")
            request = {"TableName": source, "ExclusiveStartStreamArn": last} if last else {}
        if not stream_arns and not self._is_warned:
            self._is_warned = True
            logger.warning("The %s waits for a stream of table %s.", self._mapping.name, source)
        # The label of a stream is the time of its creation: the oldest stream comes first.
        return sorted(stream_arns, key=lambda arn: arn.rpartition("/")[2])

    def _stream(self, arn: str) -> DynamoDBStream:
        if arn not in self._streams:
            self._streams[arn] = DynamoDBStream(self._client, arn)
        return self._streams[arn]

    async def read(self, shard: SourceShard, position: str, limit: int) -> RecordPage | None:
        page = await self._read(shard, position, limit)
        if page is None:
            return None
        read = RecordPage(page.position, [], page.is_last, page.is_behind)
        for record in page.records:
            record["eventSourceARN"] = shard.stream_arn
            if identity := record.get("userIdentity"):
                # Lambda spells these members with a small letter, DynamoDB Streams with a capital.
                record["userIdentity"] = {
                    name[:1].lower() + name[1:]: value for name, value in identity.items()
                }
            if self._matches is None or self._matches(record):
                read.records.append(_table_record(record))
        return read

    async def _read(
        self, shard: SourceShard, position: str, limit: int
    ) -> streams.RecordPage | None:
        place = StreamShard(shard.name, (), shard.is_closed)
        return await self._stream(shard.stream_arn).read(place, position, limit)

    async def latest(self, shard: SourceShard) -> str:
        """DynamoDB Streams does not tell the last sequence number: so the stream is read, to its
        end or to what its end was at `since`."""
        last_sequences = self._mapping.last_sequences
        if last_sequences is None and shard.is_closed:
            return SHARD_END
        last = None if last_sequences is None else int(last_sequences.get(shard.stream_arn, 0))
        position = TRIM_HORIZON
        while True:
            page = await self._read(shard, position, streams.RECORDS_MAX)
            if page is None:
                return SHARD_END
            for sequence in map(streams.sequence_of, page.records):
                if last is not None and int(sequence) > last:
                    return position
                position = sequence
            if page.is_last:
                return SHARD_END
            if not page.is_behind:
                return position


def _table_record(record: dict[str, Any]) -> SourceRecord:
    change = record["dynamodb"]
    return SourceRecord(
        change["SequenceNumber"],
        repr(change["Keys"]),
        float(change["ApproximateCreationDateTime"]),
        orjson.dumps(record),
    )


def shards_of(streams: Iterable[tuple[str, list[StreamShard]]]) -> Iterator[SourceShard]:
    """The shards of several streams as one tree: the first shards of a stream are children of the
    last ones of the stream before.

    So the changes of an item stay in order when the stream of its table is closed and another one
    is opened.
    """
    last_ids: tuple[str, ...] = ()
    for arn, shards in streams:
        names = {shard.shard_id for shard in shards}
        for shard in shards:
            parents = (
                tuple(_id_in(arn, name) for name in shard.parents if name in names) or last_ids
            )
            shard_id = _id_in(arn, shard.shard_id)
            yield SourceShard(arn, shard_id, shard.shard_id, parents, shard.is_closed)
        with_children = {parent for shard in shards for parent in shard.parents}
        last_ids = tuple(_id_in(arn, name) for name in names - with_children) or last_ids


def _id_in(arn: str, name: str) -> str:
    return f"{arn.rpartition('/')[2]}/{name}"


def event_of(records: Iterable[SourceRecord]) -> bytes:
    return b'{"Records":[%b]}' % b",".join(record.body for record in records)
