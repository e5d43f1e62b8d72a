"""Reads the ids of the visits that were put on a stream since a time, so that a processor that
restarts recognises visits that are sent twice."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator

import msgspec

from partita.client import Client


class StreamedVisit(msgspec.Struct, rename="camel"):
    visit_id: str = ""


class StreamedRecord(msgspec.Struct):
    id: str
    visits: list[StreamedVisit] = []


_decode = msgspec.json.Decoder(StreamedRecord).decode


async def read_since(client: Client, stream: str, time: float) -> AsyncIterator[StreamedRecord]:
    listed = await client.call("kinesis", "ListShards", {"StreamName": stream})
    for shard in listed["Shards"]:
        start = {
            "StreamName": stream,
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "AT_TIMESTAMP",
            "Timestamp": time,
        }
        answer = await client.call("kinesis", "GetShardIterator", start)
        iterator = answer["ShardIterator"]
        while iterator:
            page = await client.call("kinesis", "GetRecords", {"ShardIterator": iterator})
            for record in page["Records"]:
                try:
                    yield _decode(b64decode(record["Data"]))
                except msgspec.DecodeError:
                    # Not written by a processor: an adjustment, or a record of another program.
                    continue
            is_behind = page["Records"] or page["MillisBehindLatest"]
            iterator = page.get("NextShardIterator") if is_behind else None
