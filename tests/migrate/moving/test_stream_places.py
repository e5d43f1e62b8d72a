"""Where the way back begins to read: behind what the move has written, however much that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from partita.migrate.moving.back.records import IMAGES, Places, TableStream
from partita.migrate.moving.target import Target

KEY = [{"AttributeName": "id", "AttributeType": "S"}]
WRITTEN = 40


@pytest.fixture
def written(target: str) -> Iterator[Target]:
    with closing(Target(target, "us-east-1")) as at:
        at.call(
            "CreateTable",
            TableName="streamed",
            AttributeDefinitions=KEY,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": IMAGES},
        )
        for number in range(WRITTEN):
            put(at, number)
        yield at
        at.call("DeleteTable", TableName="streamed")


def put(at: Target, number: int) -> None:
    at.call("PutItem", TableName="streamed", Item={"id": {"S": f"i{number}"}})


def places(at: Target) -> Places:
    return Places(at.call("DescribeTable", TableName="streamed")["Table"]["LatestStreamArn"])


def read_all(stream: TableStream) -> list[Any]:
    found: list[Any] = []
    while page := stream.read():
        found += [one.key["id"]["S"] for one in page]
    return found


def test_what_is_in_a_stream_already_is_skipped_and_nothing_after_it(written: Target) -> None:
    assert len(read_all(TableStream(written, "streamed", places(written)))) == WRITTEN
    stream = TableStream(written, "streamed", places(written))
    stream.skip()
    assert read_all(stream) == []
    put(written, WRITTEN)
    assert read_all(stream) == [f"i{WRITTEN}"]
    put(written, WRITTEN + 1)
    goes_on = TableStream(written, "streamed", stream.places)
    # A shard without a place is read whole: more than was asked for, never less.
    assert read_all(goes_on)[-1] == f"i{WRITTEN + 1}"


def test_a_place_that_was_read_is_kept_and_one_that_is_gone_is_forgotten(written: Target) -> None:
    known = places(written)
    read_all(TableStream(written, "streamed", known))
    read = set(known.shards)
    put(written, WRITTEN)
    known.shards["shardId-00000000000000000001-00000001"] = "1"
    stream = TableStream(written, "streamed", known)
    stream.skip()
    assert stream.places.shards.keys() == read
