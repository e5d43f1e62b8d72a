"""kill -9 under load: a change and its record are there together or not at all.

After every kill the folder passes `partita check`, which replays the log against the table; then
the same is done over the wire, by a reader that knows which writes were acknowledged.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from .killing import kill_under

WRITERS = 6
KEYS_PER_WRITER = 12
LOAD_SECONDS_MAX = 1.0
STREAMED, SWITCHED = "streamed", "switched"
VIEW = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}

Item = dict[str, Any]


def create_table(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification=VIEW,
    )


@dataclass
class Writer:
    """Gives every write a number of its own, and remembers which were acknowledged."""

    name: str
    chance: random.Random
    acknowledged: list[str] = field(default_factory=list)
    given: int = 0

    def write(self, client: Any) -> None:
        """Until the server is gone."""
        while True:
            numbers = [self.number() for _ in range(self.chance.choice((1, 1, 1, 3)))]
            keys = self.chance.sample(range(KEYS_PER_WRITER), len(numbers))
            items = [
                {"pk": {"S": f"{self.name}-{key}"}, "by": {"S": number}}
                for key, number in zip(keys, numbers, strict=True)
            ]
            try:
                self.ask(client, items)
            except BotoCoreError:
                return
            self.acknowledged += numbers

    def number(self) -> str:
        self.given += 1
        return f"{self.name}.{self.given}"

    def ask(self, client: Any, items: list[Item]) -> None:
        if len(items) > 1:
            puts = [{"Put": {"TableName": STREAMED, "Item": item}} for item in items]
            client.transact_write_items(TransactItems=puts)
            return
        item = items[0]
        key = {"pk": item["pk"]}
        if self.chance.random() < 0.2:
            client.delete_item(TableName=STREAMED, Key=key)
        client.update_item(
            TableName=STREAMED,
            Key=key,
            UpdateExpression="SET #by = :by",
            ExpressionAttributeNames={"#by": "by"},
            ExpressionAttributeValues={":by": item["by"]},
        )


def switch_stream(client: Any, chance: random.Random) -> None:
    """A table that is written to while its stream goes off and on, until the server is gone."""
    is_on = True
    while True:
        try:
            for number in range(5):
                client.put_item(
                    TableName=SWITCHED,
                    Item={"pk": {"S": str(number)}, "n": {"N": str(chance.randrange(1000))}},
                )
            specification = {"StreamEnabled": False} if is_on else VIEW
            client.update_table(TableName=SWITCHED, StreamSpecification=specification)
            is_on = not is_on
        except BotoCoreError:
            return
        except ClientError as error:
            # After a kill, it is as it was left.
            assert "stream" in str(error), error
            is_on = not is_on
        time.sleep(chance.random() * 0.02)


def streams_client(url: str) -> Any:
    return boto3.client(
        "dynamodbstreams",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


def all_records(url: str, arn: str) -> list[Item]:
    streams = streams_client(url)
    found: list[Item] = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        answer = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )
        iterator = answer["ShardIterator"]
        while page := streams.get_records(ShardIterator=iterator):
            found += page["Records"]
            if not page["Records"]:
                break
            iterator = page["NextShardIterator"]
    return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


def compare(server: Any, arn: str, writers: list[Writer]) -> None:
    """The records are the whole history of the items, and have every acknowledged write once."""
    client = server.client()
    records = all_records(server.url, arn)
    items: dict[str, Item] = {}
    times: dict[str, int] = {}
    for record in records:
        change = record["dynamodb"]
        key = change["Keys"]["pk"]["S"]
        assert change.get("OldImage") == items.get(key), "a change is missing or out of order"
        if "NewImage" in change:
            items[key] = change["NewImage"]
            number = change["NewImage"]["by"]["S"]
            times[number] = times.get(number, 0) + 1
        else:
            del items[key]
    pages = client.get_paginator("scan").paginate(TableName=STREAMED)
    found = {item["pk"]["S"]: item for page in pages for item in page["Items"]}
    assert items == found
    assert set(times.values()) <= {1}
    lost = [number for one in writers for number in one.acknowledged if number not in times]
    assert lost == []


def run_rounds(
    rounds: int, serve: Any, assert_clean: Callable[[Path], None], folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    writers = [Writer(f"w{number}", random.Random(chance.random())) for number in range(WRITERS)]
    server = serve(folder)
    for name in (STREAMED, SWITCHED):
        create_table(server.client(), name)
    arn = server.client().describe_table(TableName=STREAMED)["Table"]["LatestStreamArn"]
    for _ in range(rounds):
        client = server.client()
        loads = [partial(writer.write, client) for writer in writers]
        loads.append(partial(switch_stream, client, random.Random(chance.random())))
        said = kill_under(
            loads,
            server,
            chance.uniform(0.02, LOAD_SECONDS_MAX),
            lambda: all(writer.acknowledged for writer in writers),
        )
        assert said == "", "the server had something to complain of"
        assert_clean(folder)
        server = serve(folder)
        compare(server, arn, writers)
    assert all(writer.acknowledged for writer in writers)
    assert server.terminate() == (0, "")
    assert_clean(folder)


def test_two_kills_tear_no_record_from_its_change(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(2, serve, assert_clean, tmp_path, seed)


@pytest.mark.soak
def test_twenty_kills_tear_no_record_from_its_change(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(20, serve, assert_clean, tmp_path, seed)
