"""Replaying the change log gives the table, for random writes, every view type and many shards."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partita import testing
from partita.database.at_rest.check_findings import CheckedFolder
from partita.database.at_rest.invariants import check

TABLE = "things"
KEYS = st.sampled_from("abcdef")
NUMBERS = st.integers(0, 3)
WRITES = st.one_of(
    st.tuples(st.just("put"), KEYS, NUMBERS),
    st.tuples(st.just("update"), KEYS, NUMBERS),
    st.tuples(st.just("delete"), KEYS, NUMBERS),
    st.tuples(st.just("batch"), KEYS, NUMBERS),
    st.tuples(st.just("transact"), KEYS, NUMBERS),
    st.tuples(st.just("wait"), KEYS, NUMBERS),
)


def item(key: str, number: int) -> dict[str, Any]:
    return {"pk": {"S": key}, "n": {"N": str(number)}}


def write(database: Any, client: Any, kind: str, key: str, number: int) -> None:
    name: dict[str, Any] = {"TableName": TABLE}
    if kind == "put":
        client.put_item(**name, Item=item(key, number))
    elif kind == "update":
        client.update_item(
            **name,
            Key={"pk": {"S": key}},
            UpdateExpression="SET n = :n",
            ExpressionAttributeValues={":n": {"N": str(number)}},
        )
    elif kind == "delete":
        client.delete_item(**name, Key={"pk": {"S": key}})
    elif kind == "batch":
        others = [other for other in "abcdef" if other != key][: number + 1]
        puts = [{"PutRequest": {"Item": item(other, number)}} for other in others]
        delete = {"DeleteRequest": {"Key": {"pk": {"S": key}}}}
        client.batch_write_item(RequestItems={TABLE: [*puts, delete]})
    elif kind == "transact":
        put = {"Put": {**name, "Item": item(key, number)}}
        delete = {"Delete": {**name, "Key": {"pk": {"S": "a" if key != "a" else "b"}}}}
        client.transact_write_items(TransactItems=[put, delete])
    else:
        database.clock.advance(hours=number)
        database.settle()


def all_records(streams: Any, arn: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found += streams.get_records(ShardIterator=iterator)["Records"]
    return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


@settings(max_examples=30)
@given(
    st.sampled_from(("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")),
    st.lists(WRITES, max_size=25),
)
def test_a_replay_gives_the_table(view_type: str, writes: list[tuple[str, str, int]]) -> None:
    with testing.database() as database:
        session = database.session()
        client, streams = session.client("dynamodb"), session.client("dynamodbstreams")
        created = client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": view_type},
        )
        for kind, key, number in writes:
            write(database, client, kind, key, number)
        found = {one["pk"]["S"]: one for one in client.scan(TableName=TABLE)["Items"]}
        assert list(check(CheckedFolder(database._engine.snapshot()))) == []
        hours = sum(number for kind, _, number in writes if kind == "wait")
        if hours < 24:
            replayed: dict[str, Any] = {}
            for record in all_records(streams, created["TableDescription"]["LatestStreamArn"]):
                change = record["dynamodb"]
                replayed.pop(change["Keys"]["pk"]["S"], None)
                if record["eventName"] != "REMOVE":
                    replayed[change["Keys"]["pk"]["S"]] = change.get("NewImage")
            assert replayed.keys() == found.keys()
            if view_type in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"):
                assert replayed == found
