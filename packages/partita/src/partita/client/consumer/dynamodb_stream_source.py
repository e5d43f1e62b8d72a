"""A stream of a DynamoDB table as a source of shards and records, over the wire.

A position is the sequence number of the last record that was read, or TRIM_HORIZON.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from partita.client.aws_client import Client
from partita.client.client_errors import ClientError
from partita.client.consumer.kinesis_source import EXPIRED, LATEST, TRIM_HORIZON
from partita.client.consumer.stream_shards import ShardPage

logger = logging.getLogger(__name__)

GONE, TRIMMED = "ResourceNotFoundException", "TrimmedDataAccessException"
RECORDS_MAX = 1000

Record = dict[str, Any]
"""A record as GetRecords returns it."""
RecordPage = ShardPage[str, Record]


class StreamShard(NamedTuple):
    shard_id: str
    parents: tuple[str, ...]
    is_closed: bool


def sequence_of(record: Record) -> str:
    sequence: str = record["dynamodb"]["SequenceNumber"]
    return sequence


class DynamoDBStream:
    def __init__(self, client: Client, arn: str) -> None:
        self._client = client
        self.arn = arn
        self._iterators: dict[str, tuple[str, str]] = {}
        """The next iterator of each shard, with the position at which it reads."""

    async def shards(self) -> list[StreamShard]:
        """Returns all shards that can still be read; an empty list when the stream is gone."""
        shards: list[StreamShard] = []
        request: dict[str, Any] = {"StreamArn": self.arn}
        while request:
            try:
                response = await self._client.call("dynamodbstreams", "DescribeStream", request)
            except ClientError as error:
                if error.code == GONE:
                    return []
                raise
            page = response["StreamDescription"]
            shards += map(_shard, page["Shards"])
            last = page.get("LastEvaluatedShardId")
            request = {"StreamArn": self.arn, "ExclusiveStartShardId": last} if last else {}
        return shards

    async def read(self, shard: StreamShard, position: str, limit: int) -> RecordPage | None:
        iterator_position, iterator = self._iterators.pop(shard.shard_id, ("", ""))
        try:
            if iterator_position != position:
                iterator = await self._iterator(shard.shard_id, position)
            response = await self._get_records(shard.shard_id, position, iterator, limit)
        except ClientError as error:
            if error.code == GONE:
                return None
            if error.code != TRIMMED:
                raise
            logger.warning("Changes in %s were removed before they were read.", self.arn)
            return ShardPage(TRIM_HORIZON, is_behind=True)
        records: list[Record] = response["Records"]
        page = ShardPage(sequence_of(records[-1]) if records else position, records)
        page.is_behind = bool(records)
        if following := response.get("NextShardIterator"):
            self._iterators[shard.shard_id] = (page.position, following)
        else:
            page.is_last = True
        return page

    async def end(self, shard: StreamShard) -> str:
        """Returns an iterator after the newest record of a shard; it expires after 15 minutes."""
        return await self._iterator(shard.shard_id, LATEST)

    def begin(self, shard_id: str, iterator: str) -> None:
        """Starts a shard at an iterator; once that has expired, at the shard's beginning."""
        self._iterators[shard_id] = (TRIM_HORIZON, iterator)

    async def _get_records(
        self, shard_id: str, position: str, iterator: str, limit: int
    ) -> dict[str, Any]:
        request = {"ShardIterator": iterator, "Limit": min(limit, RECORDS_MAX)}
        try:
            return await self._client.call("dynamodbstreams", "GetRecords", request)
        except ClientError as error:
            if error.code != EXPIRED:
                raise
        request["ShardIterator"] = await self._iterator(shard_id, position)
        return await self._client.call("dynamodbstreams", "GetRecords", request)

    async def _iterator(self, shard_id: str, position: str) -> str:
        request = {"StreamArn": self.arn, "ShardId": shard_id}
        if position in (TRIM_HORIZON, LATEST):
            request["ShardIteratorType"] = position
        else:
            request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": position}
        response = await self._client.call("dynamodbstreams", "GetShardIterator", request)
        return str(response["ShardIterator"])


def _shard(shard: dict[str, Any]) -> StreamShard:
    parents = (shard["ParentShardId"],) if "ParentShardId" in shard else ()
    is_closed = "EndingSequenceNumber" in shard["SequenceNumberRange"]
    return StreamShard(shard["ShardId"], parents, is_closed)
