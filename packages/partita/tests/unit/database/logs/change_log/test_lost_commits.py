"""After any lost commit, with any decisions on top of it, log, shards and items agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.logs.change_log import change_streams

from ....failing_disk import Bench

VIEW = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
KEYS = st.sampled_from("abcd")
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("delete"), KEYS, st.just(0)),
    st.tuples(st.just("switch"), KEYS, st.integers(0, 1)),
    st.tuples(st.just("turn"), KEYS, st.just(0)),
    st.tuples(st.just("settle"), KEYS, st.integers(0, 30)),
    st.tuples(st.just("break"), KEYS, st.integers(0, 1)),
)


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=30))
def test_log_and_items_agree(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, str, int]]
) -> None:
    monkeypatch.setattr(change_streams, "SHARD_CHANGES_MAX", 2)
    bench = Bench()
    bench.ask(
        "CreateTable",
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification=VIEW,
    )
    bench.turn()
    for kind, key, number in steps:
        name = {"TableName": "things"}
        if kind == "put":
            bench.ask("PutItem", **name, Item={"pk": {"S": key}, "n": {"N": str(number)}})
        elif kind == "delete":
            bench.ask("DeleteItem", **name, Key={"pk": {"S": key}})
        elif kind == "switch":
            specification = VIEW if number else {"StreamEnabled": False}
            bench.ask("UpdateTable", **name, StreamSpecification=specification)
        else:
            bench.suffer(kind, number, unit_seconds=3600)
    bench.recover()
    assert bench.findings() == []
    bench.database.close()
