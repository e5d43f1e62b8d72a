"""The way back begins behind the records that a table's stream already has."""

from __future__ import annotations

import time

import boto3
import msgspec

from partita_migrate.moving.target_access.target_client import TargetClient
from partita_migrate.moving.way_back.table_streams import (
    ItemChange,
    StreamCheckpoint,
    TableStream,
    ensure_stream,
)

READ_SECONDS_MAX = 30.0


def read_until(stream: TableStream, count: int) -> list[ItemChange]:
    found: list[ItemChange] = []
    end = time.monotonic() + READ_SECONDS_MAX
    while len(found) < count and time.monotonic() < end:
        found += stream.read()
    return found


def names(found: list[ItemChange]) -> list[str]:
    """Names of different items, which may be in different shards."""
    return sorted(one.key["id"]["S"] for one in found)


def test_what_a_stream_holds_already_is_not_read(target: str) -> None:
    client = boto3.client("dynamodb", endpoint_url=target, region_name="us-east-1",
                          aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip
    client.create_table(
        TableName="begun", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )  # fmt: skip
    client.get_waiter("table_exists").wait(TableName="begun", WaiterConfig={"Delay": 1})

    def put(name: str) -> None:
        client.put_item(TableName="begun", Item={"id": {"S": name}})

    ours = TargetClient(target, "us-east-1")
    try:
        put("before")
        stream = TableStream(
            ours, "begun", StreamCheckpoint(ensure_stream(ours, "begun", is_made=False))
        )
        stream.skip()
        kept = msgspec.json.encode(stream.places)
        put("after")
        assert names(read_until(stream, 1)) == ["after"]
        put("later")
        # Another process goes on from the stored position, at once or after reading some records.
        again = TableStream(ours, "begun", msgspec.json.decode(kept, type=StreamCheckpoint))
        assert names(read_until(again, 2)) == ["after", "later"]
        noted = msgspec.json.encode(stream.places)
        again = TableStream(ours, "begun", msgspec.json.decode(noted, type=StreamCheckpoint))
        assert names(read_until(again, 1)) == ["later"]
    finally:
        ours.close()
        client.close()
