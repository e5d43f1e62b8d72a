"""An aggregate that a consumer of the target's stream keeps up to date stays right while rows are
moved."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import boto3
import pytest

from partita_migrate.designing.proposals.techniques.stream_aggregates import StreamAggregate
from partita_migrate.model.design import type_attribute
from partita_migrate.model.model_files import read_design
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from testkit.data.moves import PATTERNS, script

from .conftest import MakeSource
from .test_life import rows_of


def records_of(streams: Any, arn: str) -> list[dict[str, Any]]:
    """Returns all records of a stream, shard by shard."""
    found: list[dict[str, Any]] = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        place = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while place:
            answer = streams.get_records(ShardIterator=place)
            found += answer["Records"]
            place = answer.get("NextShardIterator") if answer["Records"] else None
    return found


def test_a_kept_aggregate_counts_what_sql_counts_through_tombstones_and_repeats(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", target)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    source = make_source("sqlite", script())
    folder = source.folder(PATTERNS, target)
    (table,) = read_design(folder).tables
    entity = next(one for one in table.entities if one.source == "book")
    pattern = AccessPattern(
        name="prices",
        category="range of items",
        operation="aggregate",
        table="book",
        calls_per_second=1.0,
    )
    kept = StreamAggregate(
        pattern=pattern,
        table=table.name,
        entity=entity,
        type_name=type_attribute(table) or "",
        group=["author_id"],
        columns=["author_id"],
        sums=["price"],
    )
    dynamodb, streams = boto3.client("dynamodb"), boto3.client("dynamodbstreams")
    aggregates = f"{table.name}_aggregates"
    dynamodb.create_table(
        TableName=aggregates,
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    function: dict[str, Any] = {}
    exec(kept.function(), function)

    load(folder, target, is_followed=True)
    source.run(
        "UPDATE book SET price = price + 1 WHERE author_id = 3; UPDATE author SET name = 'x'"
    )
    source.run("DELETE FROM book WHERE id IN (4, 14); UPDATE book SET author_id = 2 WHERE id = 5")
    source.run("INSERT INTO book VALUES (300, 4, 'New', 7); UPDATE book SET id = 301 WHERE id = 6")
    follow(folder, target, is_once=True)
    arn = dynamodb.describe_table(TableName=table.name)["Table"]["LatestStreamArn"]
    records = records_of(streams, arn)
    assert len(records) > 50
    # A stream may deliver a record twice.
    for event in (records, records[-20:], records[:20]):
        function["handler"]({"Records": event}, None)
    counted = rows_of(source, "SELECT author_id, count(*), sum(price) FROM book GROUP BY author_id")
    wanted = {f"{entity.name}#{author}": (rows, Decimal(str(total)))
              for author, rows, total in counted}  # fmt: skip
    items = dynamodb.scan(TableName=aggregates, ConsistentRead=True)["Items"]
    found = {item["key"]["S"]: (int(item["rows"]["N"]), Decimal(item["sum_price"]["N"]))
             for item in items if item.get("rows", {}).get("N", "0") != "0"}  # fmt: skip
    assert found == wanted
