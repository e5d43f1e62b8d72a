"""kill -9 under load: no acknowledged record is lost, none comes twice, the order stays.

Servers are killed while records are put and tables with a destination are written, consumers while
they read. After every kill the folder passes `partita check`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError

from testkit.servers import processes

from .killing import kill_under

WRITERS = 4
LOAD_SECONDS_MAX = 1.0
ARRIVAL_SECONDS_MAX = 180
STREAM, CAPTURED, TABLE = "visits", "changes", "orders"
ARN = f"arn:aws:kinesis:us-east-1:123456789012:stream/{CAPTURED}"

Record = dict[str, Any]


@dataclass
class Producer:
    """Numbers its records; remembers up to which the server has acknowledged them."""

    name: str
    chance: random.Random
    next_number: int = 0
    doubtful: set[int] = field(default_factory=set)
    """Sent when the server was killed: they may be there or not."""

    def produce(self, kinesis: Any) -> None:
        while True:
            count = self.chance.choice((1, 5, 50))
            numbers = range(self.next_number, self.next_number + count)
            self.next_number += count
            records = [
                {"Data": b"%d" % number, "PartitionKey": f"{self.name}"} for number in numbers
            ]
            try:
                answer = kinesis.put_records(StreamName=STREAM, Records=records)
            except BotoCoreError:
                self.doubtful.update(numbers)
                return
            assert answer["FailedRecordCount"] == 0


def reshard(kinesis: Any, chance: random.Random) -> None:
    """Split and merge until the server is gone."""
    while True:
        try:
            shards = [
                shard
                for shard in kinesis.list_shards(StreamName=STREAM)["Shards"]
                if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
            ]
            count = chance.choice((len(shards) * 2, (len(shards) + 1) // 2))
            if count <= 8:
                kinesis.update_shard_count(
                    StreamName=STREAM, TargetShardCount=count, ScalingType="UNIFORM_SCALING"
                )
        except BotoCoreError:
            return
        time.sleep(chance.uniform(0.1, 0.5))


def change_items(client: Any, chance: random.Random) -> None:
    """Write and delete until the server is gone."""
    number = 0
    while True:
        number += 1
        key = {"pk": {"S": str(chance.randrange(10))}}
        try:
            if chance.random() < 0.2:
                client.delete_item(TableName=TABLE, Key=key)
            else:
                client.put_item(TableName=TABLE, Item={**key, "n": {"N": str(number)}})
        except BotoCoreError:
            return


def all_records(kinesis: Any, stream: str) -> list[Record]:
    """Shard by shard, parents before children."""
    found: list[Record] = []
    for page in kinesis.get_paginator("list_shards").paginate(StreamName=stream):
        for shard in page["Shards"]:
            iterator = kinesis.get_shard_iterator(
                StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while iterator is not None:
                answer = kinesis.get_records(ShardIterator=iterator)
                found += answer["Records"]
                iterator = answer.get("NextShardIterator") if answer["Records"] else None
    return found


def assert_nothing_is_lost(kinesis: Any, producers: list[Producer]) -> None:
    by_key: dict[str, list[int]] = {}
    for record in all_records(kinesis, STREAM):
        by_key.setdefault(record["PartitionKey"], []).append(int(record["Data"]))
    for producer in producers:
        numbers = by_key.get(producer.name, [])
        assert numbers == sorted(set(numbers)), "records are there twice, or out of order"
        assert set(range(producer.next_number)) - set(numbers) <= producer.doubtful


def assert_changes_lead_to_the_items(server: Any) -> None:
    client, kinesis = server.client(), server.client("kinesis")
    pages = client.get_paginator("scan").paginate(TableName=TABLE)
    items = {item["pk"]["S"]: item for page in pages for item in page["Items"]}
    deadline = time.monotonic() + ARRIVAL_SECONDS_MAX
    while True:
        replayed: dict[str, Record] = {}
        for record in all_records(kinesis, CAPTURED):
            change = json.loads(record["Data"])["dynamodb"]
            key = change["Keys"]["pk"]["S"]
            assert change.get("OldImage") == replayed.get(key), "a change is missing or twice"
            if "NewImage" in change:
                replayed[key] = change["NewImage"]
            else:
                del replayed[key]
        if replayed == items:
            return
        assert time.monotonic() < deadline, "changes have not arrived"
        time.sleep(0.1)


def run_rounds(
    rounds: int, serve: Any, assert_clean: Callable[[Path], None], folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    producers = [
        Producer(f"p{number}", random.Random(chance.random())) for number in range(WRITERS)
    ]
    server = serve(folder)
    set_up(server)
    for _ in range(rounds):
        client, kinesis = server.client(), server.client("kinesis")
        loads = [partial(producer.produce, kinesis) for producer in producers]
        loads.append(partial(reshard, kinesis, random.Random(chance.random())))
        loads.append(partial(change_items, client, random.Random(chance.random())))
        said = kill_under(loads, server, chance.uniform(0.1, LOAD_SECONDS_MAX))
        assert said == "", "the server had something to complain of"
        assert_clean(folder)
        server = serve(folder)
        assert_nothing_is_lost(server.client("kinesis"), producers)
        assert_changes_lead_to_the_items(server)
    assert server.terminate() == (0, "")
    assert_clean(folder)


def set_up(server: processes.Server) -> None:
    client, kinesis = server.client(), server.client("kinesis")
    for stream in (STREAM, CAPTURED):
        kinesis.create_stream(StreamName=stream, ShardCount=2)
    client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.enable_kinesis_streaming_destination(TableName=TABLE, StreamArn=ARN)


@pytest.mark.soak
def test_three_kills_lose_no_record(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(3, serve, assert_clean, tmp_path, seed)


@pytest.mark.soak
def test_twenty_kills_lose_no_record(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(20, serve, assert_clean, tmp_path, seed)


CONSUMER = """
import asyncio, sys
from partita.client import Client
from partita.client.consumer import Consumer

url, stream, path = sys.argv[1:]

async def handle(shard_id, records, checkpoint):
    with open(path, "a") as file:
        for record in records:
            file.write(f"{record.partition_key} {record.data.decode()}\\n")
    await checkpoint()

asyncio.run(
    Consumer(
        Client(url), stream, "readers", handle, worker="reader", records_max=40, look_seconds=0.1
    ).run()
)
"""


def first_times(path: Path) -> dict[str, list[int]]:
    """What was read of each key, without what came again after a kill."""
    by_key: dict[str, list[int]] = {}
    for line in path.read_text().splitlines():
        key, number = line.split()
        numbers = by_key.setdefault(key, [])
        if not numbers or int(number) > numbers[-1]:
            numbers.append(int(number))
    return by_key


def test_a_consumer_that_is_killed_misses_nothing(serve: Any, tmp_path: Path, seed: int) -> None:
    """Consumer and server are killed in turn; every record is read, in the order of its key."""
    chance = random.Random(seed)
    folder, path = tmp_path / "data", tmp_path / "read.txt"
    path.touch()
    acknowledged: dict[str, int] = {}

    def put(kinesis: Any, count: int) -> None:
        for _ in range(count):
            key = f"k{chance.randrange(6)}"
            number = acknowledged.get(key, -1) + 1
            kinesis.put_record(StreamName=STREAM, Data=b"%d" % number, PartitionKey=key)
            acknowledged[key] = number

    def start_reader(url: str) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-c", CONSUMER, url, STREAM, str(path)]
        return subprocess.Popen(arguments, env=processes.ENVIRONMENT, stderr=subprocess.DEVNULL)

    server = serve(folder)
    server.client("kinesis").create_stream(StreamName=STREAM, ShardCount=2)
    reader = start_reader(server.url)
    try:
        for turn in range(4):
            put(server.client("kinesis"), 80)
            time.sleep(chance.uniform(0.2, 0.8))
            if turn % 2:
                server.kill()
                server = serve(folder, "--port", str(server.port))
            else:
                reader.kill()
                reader.wait()
                reader = start_reader(server.url)
        expected = {key: list(range(last + 1)) for key, last in acknowledged.items()}
        deadline = time.monotonic() + ARRIVAL_SECONDS_MAX
        while first_times(path) != expected:
            assert time.monotonic() < deadline, "records were not read"
            time.sleep(0.1)
    finally:
        reader.kill()
        reader.wait()
