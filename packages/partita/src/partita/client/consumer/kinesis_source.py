"""A Kinesis stream as a source of shards and records, over the wire.

A position is the sequence number of the last record that was read, or TRIM_HORIZON, LATEST, or
"AT_TIMESTAMP 1700000000.000". An iterator that has expired is replaced by one for its position.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, NamedTuple

from partita.client.aws_client import Client
from partita.client.client_errors import ClientError
from partita.client.consumer.stream_shards import ShardPage

TRIM_HORIZON, LATEST, AT_TIMESTAMP = "TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"
EXPIRED, INVALID = "ExpiredIteratorException", "InvalidArgumentException"


class KinesisRecord(NamedTuple):
    sequence_number: str
    partition_key: str
    data: bytes
    arrived_at: float


class KinesisShard(NamedTuple):
    shard_id: str
    parents: tuple[str, ...] = ()


KinesisPage = ShardPage[str, KinesisRecord]


class KinesisStream:
    def __init__(self, client: Client, stream: str) -> None:
        self._client = client
        self._stream = stream
        self._iterators: dict[str, tuple[str, str]] = {}
        """The next iterator of each shard, with the position at which it reads."""

    async def shards(self) -> list[KinesisShard]:
        shards: list[KinesisShard] = []
        request: dict[str, Any] = {"StreamName": self._stream}
        while request:
            page = await self._client.call("kinesis", "ListShards", request)
            shards += map(_shard, page["Shards"])
            request = {"NextToken": page["NextToken"]} if page.get("NextToken") else {}
        return shards

    async def read(self, shard: KinesisShard, position: str, limit: int) -> KinesisPage:
        shard_id = shard.shard_id
        iterator_position, iterator = self._iterators.pop(shard_id, ("", ""))
        if iterator_position != position:
            iterator = await self._iterator(shard_id, position)
        try:
            response = await self._get_records(iterator, limit)
        except ClientError as error:
            if error.code != EXPIRED:
                raise
            response = await self._get_records(await self._iterator(shard_id, position), limit)
        records = list(map(_record, response["Records"]))
        page = ShardPage(records[-1].sequence_number if records else position, records)
        page.is_behind = bool(response.get("MillisBehindLatest", 0))
        if following := response.get("NextShardIterator"):
            self._iterators[shard_id] = (page.position, following)
        else:
            page.is_last = True
        return page

    async def _get_records(self, iterator: str, limit: int) -> dict[str, Any]:
        request = {"ShardIterator": iterator, "Limit": limit}
        return await self._client.call("kinesis", "GetRecords", request)

    async def _iterator(self, shard_id: str, position: str) -> str:
        request = {"StreamName": self._stream, "ShardId": shard_id}
        try:
            response = await self._client.call(
                "kinesis", "GetShardIterator", request | _start(position)
            )
        except ClientError as error:
            if error.code != INVALID or not position.startswith(AT_TIMESTAMP):
                raise
            # The timestamp is in the future by the service's clock, so no record is newer than it.
            response = await self._client.call(
                "kinesis", "GetShardIterator", request | _start(LATEST)
            )
        return str(response["ShardIterator"])


def _start(position: str) -> dict[str, Any]:
    kind, _, moment = position.partition(" ")
    if kind == AT_TIMESTAMP:
        return {"ShardIteratorType": kind, "Timestamp": float(moment)}
    if kind in (TRIM_HORIZON, LATEST):
        return {"ShardIteratorType": kind}
    return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": position}


def _shard(shard: dict[str, Any]) -> KinesisShard:
    names = ("ParentShardId", "AdjacentParentShardId")
    return KinesisShard(shard["ShardId"], tuple(shard[name] for name in names if name in shard))


def _record(record: dict[str, Any]) -> KinesisRecord:
    return KinesisRecord(
        record["SequenceNumber"],
        record["PartitionKey"],
        b64decode(record["Data"]),
        float(record["ApproximateArrivalTimestamp"]),
    )
