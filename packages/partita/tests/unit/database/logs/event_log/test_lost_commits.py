"""After any lost commit, with any decisions on top of it, the event log is intact.

A table with a destination is written to meanwhile: each of its changes arrives once, or is lost
with the write that made it.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.logs.event_log.event_records import read_page

from ....failing_disk import Bench

ARN = "arn:aws:kinesis:us-east-1:123456789012:stream/changes"
KEYS = st.sampled_from("abcd")
STEPS = st.one_of(
    st.tuples(st.just("record"), KEYS, st.integers(1, 5)),
    st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("delete"), KEYS, st.just(0)),
    st.tuples(st.just("resize"), KEYS, st.integers(1, 6)),
    st.tuples(st.just("switch"), KEYS, st.integers(0, 1)),
    st.tuples(st.just("recreate"), KEYS, st.just(0)),
    st.tuples(st.just("turn"), KEYS, st.just(0)),
    st.tuples(st.just("settle"), KEYS, st.integers(0, 10)),
    st.tuples(st.just("break"), KEYS, st.integers(0, 1)),
)


def do(bench: Bench, kind: str, key: str, number: int) -> None:
    table, visits = {"TableName": "things"}, {"StreamName": "visits"}
    if kind == "record":
        records = [{"Data": "eA==", "PartitionKey": key}] * number
        bench.ask("Kinesis.PutRecords", **visits, Records=records)
    elif kind == "put":
        bench.ask("PutItem", **table, Item={"pk": {"S": key}, "n": {"N": str(number)}})
    elif kind == "delete":
        bench.ask("DeleteItem", **table, Key={"pk": {"S": key}})
    elif kind == "resize":
        bench.ask("Kinesis.UpdateShardCount", **visits, TargetShardCount=number)
    elif kind == "switch":
        verb = "Enable" if number else "Disable"
        bench.ask(f"{verb}KinesisStreamingDestination", **table, StreamArn=ARN)
    elif kind == "recreate":
        bench.ask("Kinesis.DeleteStream", **visits)
        bench.ask("Kinesis.CreateStream", **visits, ShardCount=2)
    else:
        bench.suffer(kind, number, unit_seconds=60)


def captured(bench: Bench) -> list[dict[str, Any]]:
    stream = bench.database.service.event_streams.find("changes")
    assert stream is not None
    [shard] = stream.shards
    page = read_page(bench.disk.snapshot(), stream, shard, 1, 1 << 20, 1 << 30)
    records = json.loads(b"[%b]" % b",".join(page.bodies))
    return [json.loads(b64decode(record["Data"])) for record in records]


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_the_event_log_stays_whole(steps: list[tuple[str, str, int]]) -> None:
    bench = Bench()
    bench.ask(
        "CreateTable",
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    bench.ask("Kinesis.CreateStream", StreamName="visits", ShardCount=2)
    bench.ask("Kinesis.CreateStream", StreamName="changes", ShardCount=1)
    bench.ask("EnableKinesisStreamingDestination", TableName="things", StreamArn=ARN)
    bench.turn()
    for step in steps:
        do(bench, *step)
    bench.recover()
    assert bench.findings() == []
    changes = captured(bench)
    assert len({change["eventID"] for change in changes}) == len(changes)
    images: dict[str, Any] = {}
    was_switched = any(kind == "switch" for kind, _, _ in steps)
    for change in changes:
        key = change["dynamodb"]["Keys"]["pk"]["S"]
        assert was_switched or change["dynamodb"].get("OldImage") == images.get(key)
        images[key] = change["dynamodb"].get("NewImage")
    bench.database.close()
