"""What the tests of event streams share: reading shards and iterators to their end."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
ACCOUNT = "123456789012"
HASH_KEYS = 1 << 128


def shards_of(kinesis: Any, name: str) -> list[Record]:
    shards: list[Record] = kinesis.list_shards(StreamName=name)["Shards"]
    return shards


def open_shards(kinesis: Any, name: str) -> list[Record]:
    """Returns the open shards in the order of their hash keys."""
    found = [
        shard
        for shard in shards_of(kinesis, name)
        if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
    ]
    return sorted(found, key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))


def iterator_of(
    kinesis: Any, name: str, shard: str, kind: str = "TRIM_HORIZON", **more: Any
) -> str:
    answer = kinesis.get_shard_iterator(
        StreamName=name, ShardId=shard, ShardIteratorType=kind, **more
    )
    return str(answer["ShardIterator"])


def records_from(kinesis: Any, iterator: str | None, **more: Any) -> list[Record]:
    """Returns all present records from an iterator on."""
    found: list[Record] = []
    while iterator is not None:
        page = kinesis.get_records(ShardIterator=iterator, **more)
        found += page["Records"]
        if not page["Records"]:
            break
        iterator = page.get("NextShardIterator")
    return found


def records_in(kinesis: Any, name: str, shard: str) -> list[Record]:
    return records_from(kinesis, iterator_of(kinesis, name, shard))


def records_of(kinesis: Any, name: str) -> list[Record]:
    """Returns all records of a stream, shard by shard, parents before children."""
    return [
        record
        for shard in shards_of(kinesis, name)
        for record in records_in(kinesis, name, shard["ShardId"])
    ]


def put(kinesis: Any, name: str, *data: bytes, key: str = "key") -> list[Record]:
    answer = kinesis.put_records(
        StreamName=name, Records=[{"Data": one, "PartitionKey": key} for one in data]
    )
    assert answer["FailedRecordCount"] == 0
    records: list[Record] = answer["Records"]
    return records
