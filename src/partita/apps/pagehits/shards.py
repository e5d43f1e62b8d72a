"""Reading a stream: its shards, parents before children, each record with when it arrived."""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

from partita.client import Client, ClientError

RECORDS_PER_READ_MAX = 1_000
SETTLE_SECONDS = 0.5
"""A record may have been stamped this long before it can be read."""


class Record(NamedTuple):
    sequence_number: str
    arrived: float
    data: bytes


class Read(NamedTuple):
    """What one look at a shard brought."""

    records: list[Record]
    arrived_until: float
    """Nothing will come that arrived before this moment."""
    is_behind: bool
    is_over: bool
    """The shard is closed, and all of it is read."""


class Shard:
    """One shard, from a position on."""

    def __init__(self, client: Client, stream: str, name: str, position: str | None) -> None:
        self.name = name
        self._client = client
        self._stream = stream
        self._position = position
        self._iterator: str | None = None

    async def read(self) -> Read:
        if self._iterator is None:
            self._iterator = await self._new_iterator()
        asked = time.time()
        try:
            answer = await self._client.call(
                "kinesis",
                "GetRecords",
                {"ShardIterator": self._iterator, "Limit": RECORDS_PER_READ_MAX},
            )
        except ClientError as error:
            if error.code != "ExpiredIteratorException":
                raise
            self._iterator = await self._new_iterator()
            return await self.read()
        records = [_record(record) for record in answer["Records"]]
        if records:
            self._position = records[-1].sequence_number
        self._iterator = answer.get("NextShardIterator")
        is_behind = bool(answer.get("MillisBehindLatest", 0))
        if self._iterator is None:
            until = float("inf")
        elif not is_behind:
            until = asked - SETTLE_SECONDS
        else:
            until = records[-1].arrived if records else 0.0
        return Read(records, until, is_behind, self._iterator is None)

    async def _new_iterator(self) -> str:
        request = {"StreamName": self._stream, "ShardId": self.name}
        if self._position is None:
            request["ShardIteratorType"] = "TRIM_HORIZON"
        else:
            request["ShardIteratorType"] = "AFTER_SEQUENCE_NUMBER"
            request["StartingSequenceNumber"] = self._position
        answer = await self._client.call("kinesis", "GetShardIterator", request)
        return str(answer["ShardIterator"])


async def readable(
    client: Client, stream: str, positions: Mapping[str, str], read: set[str]
) -> list[Shard]:
    """The shards whose parents are read to their end, and that are not so themselves."""
    listed = await _list(client, stream)
    names = {shard["ShardId"] for shard in listed}
    shards = []
    for shard in listed:
        parents = {shard.get("ParentShardId"), shard.get("AdjacentParentShardId")}
        if shard["ShardId"] not in read and not (parents & names) - read:
            name = shard["ShardId"]
            shards.append(Shard(client, stream, name, positions.get(name)))
    return shards


async def _list(client: Client, stream: str) -> list[dict[str, Any]]:
    shards: list[dict[str, Any]] = []
    request = {"StreamName": stream}
    while True:
        answer = await client.call("kinesis", "ListShards", request)
        shards += answer["Shards"]
        if not answer.get("NextToken"):
            return shards
        request = {"NextToken": answer["NextToken"]}


def _record(record: dict[str, Any]) -> Record:
    return Record(
        record["SequenceNumber"],
        float(record["ApproximateArrivalTimestamp"]),
        b64decode(record["Data"]),
    )
