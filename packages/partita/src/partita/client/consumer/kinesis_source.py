"""A Kinesis stream as a source of shards and records, over the wire.

A position is a sequence number that was read, or the name of a place: TRIM_HORIZON, LATEST, or
AT_TIMESTAMP and a moment. Iterators are kept here: one that expired is replaced by position.
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
        """The next one of each shard, with the position that it is for."""

    async def shards(self) -> list[KinesisShard]:
        found: list[KinesisShard] = []
        asked: dict[str, Any] = {"StreamName": self._stream}
        while asked:
            page = await self._client.call("kinesis", "ListShards", asked)
            found += map(_shard, page["Shards"])
            asked = {"NextToken": page["NextToken"]} if page.get("NextToken") else {}
        return found

    async def read(self, shard: KinesisShard, position: str, limit: int) -> KinesisPage:
        shard_id = shard.shard_id
        known, iterator = self._iterators.pop(shard_id, ("", ""))
        if known != position:
            iterator = await self._iterator(shard_id, position)
        try:
            answer = await self._get_records(iterator, limit)
        except ClientError as error:
            if error.code != EXPIRED:
                raise
            answer = await self._get_records(await self._iterator(shard_id, position), limit)
        records = list(map(_record, answer["Records"]))
        page = ShardPage(records[-1].sequence_number if records else position, records)
        page.is_behind = bool(answer.get("MillisBehindLatest", 0))
        if following := answer.get("NextShardIterator"):
            self._iterators[shard_id] = (page.position, following)
        else:
            page.is_last = True
        return page

    async def _get_records(self, iterator: str, limit: int) -> dict[str, Any]:
        asked = {"ShardIterator": iterator, "Limit": limit}
        return await self._client.call("kinesis", "GetRecords", asked)

    async def _iterator(self, shard_id: str, position: str) -> str:
        asked = {"StreamName": self._stream, "ShardId": shard_id}
        try:
            answer = await self._client.call(
                "kinesis", "GetShardIterator", asked | _start(position)
            )
        except ClientError as error:
            if error.code != INVALID or not position.startswith(AT_TIMESTAMP):
                raise
            # The service's clock has yet to come there: nothing is in the shard since then.
            answer = await self._client.call("kinesis", "GetShardIterator", asked | _start(LATEST))
        return str(answer["ShardIterator"])


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
