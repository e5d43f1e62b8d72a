"""The stream of a table that three servers write to."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from itertools import cycle
from typing import Any

from testkit.data.item_tables import create, item
from testkit.servers import processes

SPEC = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}


def test_a_reader_misses_nothing_and_sees_each_item_in_order(
    servers: list[processes.Server], clients: list[Any]
) -> None:
    table = create(clients[0], StreamSpecification=SPEC)
    writers = [threading.Thread(target=_write, args=[client, table]) for client in clients]
    all_streams = [server.client("dynamodbstreams") for server in servers]
    streams = all_streams[1]
    arn = clients[1].describe_table(TableName=table)["Table"]["LatestStreamArn"]
    iterators = [_iterator(streams, arn, shard) for shard in _shards(streams, arn)]
    for writer in writers:
        writer.start()
    seen: dict[str, list[int]] = defaultdict(list)
    deadline = time.monotonic() + 30
    turns = cycle(all_streams)
    while sum(map(len, seen.values())) < 3 * 80 and time.monotonic() < deadline:
        for place, iterator in enumerate(iterators):
            # Each page is read from another server.
            page = next(turns).get_records(ShardIterator=iterator)
            iterators[place] = page["NextShardIterator"]
            for record in page["Records"]:
                image = record["dynamodb"]["NewImage"]
                seen[image["pk"]["S"]].append(int(image["n"]["N"]))
    for writer in writers:
        writer.join()
    assert sum(map(len, seen.values())) == 3 * 80
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in seen.values())


def _write(client: Any, table: str) -> None:
    """Increment four items that the other servers increment too."""
    for turn in range(80):
        client.update_item(
            TableName=table,
            Key=item(f"k{turn % 4}"),
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )


def _shards(streams: Any, arn: str) -> list[str]:
    shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    return [shard["ShardId"] for shard in shards]


def _iterator(streams: Any, arn: str, shard: str) -> str:
    found = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )
    return str(found["ShardIterator"])
