"""GetRecords: one record for every change, in order, with the images that the view shows."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .refusals import VALIDATION
from .stream_reading import (
    VIEW_TYPES,
    arn_of,
    iterator_of,
    records_from,
    records_of,
    refusal,
    shards_of,
    with_stream,
)

EXPIRY_SECONDS_MAX = 60
KEY = {"pk": {"S": "a"}}


def put(client: Any, name: str, key: str = "a", **attributes: Any) -> None:
    client.put_item(TableName=name, Item={"pk": {"S": key}, **attributes})


def events(streams: Any, arn: str) -> list[tuple[str, Any, Any]]:
    return [
        (
            record["eventName"],
            record["dynamodb"].get("OldImage"),
            record["dynamodb"].get("NewImage"),
        )
        for record in records_of(streams, arn)
    ]


def test_a_record_whole(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    arn = arn_of(client, name)
    before = int(time.time())
    put(client, name, n={"N": "1"})
    put(client, name, n={"N": "2"})
    first, second = records_of(streams, arn)
    assert first["eventID"] != second["eventID"]
    assert len(second.pop("eventID")) == 32
    created_at = second["dynamodb"].pop("ApproximateCreationDateTime").timestamp()
    assert before <= created_at <= time.time()
    assert created_at == int(created_at)
    assert second == {
        "eventName": "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "Keys": KEY,
            "NewImage": {**KEY, "n": {"N": "2"}},
            "OldImage": {**KEY, "n": {"N": "1"}},
            "SequenceNumber": second["dynamodb"]["SequenceNumber"],
            # The key and both images (DynamoDB Local).
            "SizeBytes": 15,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


@pytest.mark.parametrize("view_type", VIEW_TYPES)
def test_every_view(client: Any, streams: Any, table: Any, view_type: str) -> None:
    name = table(**with_stream(view_type))
    one, two = {**KEY, "n": {"N": "1"}}, {**KEY, "n": {"N": "2"}}
    put(client, name, n={"N": "1"})
    put(client, name, n={"N": "2"})
    client.delete_item(TableName=name, Key=KEY)
    records = records_of(streams, arn_of(client, name))
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]
    assert all(record["dynamodb"]["Keys"] == KEY for record in records)
    assert all(record["dynamodb"]["StreamViewType"] == view_type for record in records)
    shows_old = view_type in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")
    shows_new = view_type in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")
    old = [record["dynamodb"].get("OldImage") for record in records]
    new = [record["dynamodb"].get("NewImage") for record in records]
    assert old == ([None, one, two] if shows_old else [None] * 3)
    assert new == ([one, two, None] if shows_new else [None] * 3)
    images = [size * 6 for size in ((0 + shows_new), (shows_old + shows_new), (shows_old + 0))]
    assert [record["dynamodb"]["SizeBytes"] for record in records] == [3 + size for size in images]


def test_what_changes_nothing_leaves_no_record(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    put(client, name, n={"N": "1"}, s={"SS": ["a", "b"]})
    put(client, name, s={"SS": ["b", "a"]}, n={"N": "1.0"})
    update = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
    client.update_item(TableName=name, Key=KEY, **update)
    client.update_item(TableName=name, Key=KEY)
    client.delete_item(TableName=name, Key={"pk": {"S": "absent"}})
    client.transact_write_items(
        TransactItems=[
            {
                "ConditionCheck": {
                    "TableName": name,
                    "Key": KEY,
                    "ConditionExpression": "attribute_exists(pk)",
                }
            }
        ]
    )
    assert [event for event, _, _ in events(streams, arn_of(client, name))] == ["INSERT"]


def test_what_is_refused_leaves_no_record(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    put(client, name)
    absent = "attribute_not_exists(pk)"
    with pytest.raises(ClientError):
        client.put_item(TableName=name, Item={**KEY, "x": KEY["pk"]}, ConditionExpression=absent)
    with pytest.raises(ClientError):
        client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": name, "Item": {"pk": {"S": "b"}}}},
                {"Put": {"TableName": name, "Item": KEY, "ConditionExpression": absent}},
            ]
        )
    assert [event for event, _, _ in events(streams, arn_of(client, name))] == ["INSERT"]


def test_every_way_to_write_leaves_records(client: Any, streams: Any, table: Any) -> None:
    name = table(sk="N", **with_stream())

    def item(number: int, **more: Any) -> dict[str, Any]:
        return {"pk": {"S": "a"}, "sk": {"N": str(number)}, **more}

    client.put_item(TableName=name, Item=item(1))
    update = {"UpdateExpression": "SET x = :x", "ExpressionAttributeValues": {":x": {"S": "y"}}}
    client.update_item(TableName=name, Key=item(1), **update)
    client.update_item(TableName=name, Key=item(2), **update)
    batch = [{"PutRequest": {"Item": item(3)}}, {"DeleteRequest": {"Key": item(2)}}]
    client.batch_write_item(RequestItems={name: batch})
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": name, "Item": item(4)}},
            {"Update": {"TableName": name, "Key": item(3), **update}},
            {"Delete": {"TableName": name, "Key": item(1)}},
        ]
    )
    x = {"x": {"S": "y"}}
    assert events(streams, arn_of(client, name)) == [
        ("INSERT", None, item(1)),
        ("MODIFY", item(1), item(1, **x)),
        ("INSERT", None, item(2, **x)),
        ("INSERT", None, item(3)),
        ("REMOVE", item(2, **x), None),
        ("INSERT", None, item(4)),
        ("MODIFY", item(3), item(3, **x)),
        ("REMOVE", item(1, **x), None),
    ]


def test_many_writers_leave_one_record_each_in_the_order_of_their_item(
    client: Any, streams: Any, table: Any
) -> None:
    name = table(**with_stream("NEW_AND_OLD_IMAGES"))
    writers, rounds = 8, 20

    def write(writer: int) -> None:
        for number in range(rounds):
            put(client, name, f"key {number % 5}", n={"N": str(number)}, w={"N": str(writer)})

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    items: dict[str, Any] = {}
    for record in records_of(streams, arn_of(client, name)):
        change = record["dynamodb"]
        key = change["Keys"]["pk"]["S"]
        assert change.get("OldImage") == items.get(key)
        items[key] = change["NewImage"]
    found = {item["pk"]["S"]: item for item in client.scan(TableName=name)["Items"]}
    assert items == found


def test_an_item_is_always_in_the_same_shard(client: Any, streams: Any, table: Any) -> None:
    name = table(sk="N", **with_stream("KEYS_ONLY"))
    for number in range(60):
        key = {"pk": {"S": f"p{number % 12}"}, "sk": {"N": str(number)}}
        client.put_item(TableName=name, Item=key)
    arn = arn_of(client, name)
    partitions = [
        {record["dynamodb"]["Keys"]["pk"]["S"] for record in records}
        for shard in shards_of(streams, arn)
        if (records := records_from(streams, iterator_of(streams, arn, shard["ShardId"])))
    ]
    assert len(partitions) > 1
    assert sum(map(len, partitions)) == len(set().union(*partitions)) == 12


def test_a_page_has_as_many_records_as_asked_for(client: Any, streams: Any, table: Any) -> None:
    name = table(sk="N", **with_stream("KEYS_ONLY"))
    for number in range(7):
        client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"N": str(number)}})
    arn = arn_of(client, name)
    for shard in shards_of(streams, arn):
        pages, iterator = [], iterator_of(streams, arn, shard["ShardId"])
        while True:
            page = streams.get_records(ShardIterator=iterator, Limit=3)
            iterator = page["NextShardIterator"]
            pages.append(len(page["Records"]))
            if not page["Records"]:
                break
        assert pages in ([0], [3, 3, 1, 0])


def test_a_page_has_at_most_1000_records(client: Any, streams: Any, table: Any) -> None:
    name = table(sk="N", **with_stream("KEYS_ONLY"))
    for start in range(0, 1100, 25):
        puts = [
            {"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": str(start + number)}}}}
            for number in range(25)
        ]
        client.batch_write_item(RequestItems={name: puts})
    arn = arn_of(client, name)
    iterators = [iterator_of(streams, arn, shard["ShardId"]) for shard in shards_of(streams, arn)]
    pages = [streams.get_records(ShardIterator=iterator) for iterator in iterators]
    assert sorted(len(page["Records"]) for page in pages) == [0] * (len(pages) - 1) + [1000]
    assert sum(len(records_from(streams, iterator)) for iterator in iterators) == 1100


def test_a_page_has_at_most_1_mb(client: Any, streams: Any, table: Any) -> None:
    name = table(sk="N", **with_stream("NEW_IMAGE"))
    for number in range(5):
        item = {"pk": {"S": "a"}, "sk": {"N": str(number)}, "x": {"S": "x" * 390_000}}
        client.put_item(TableName=name, Item=item)
    arn = arn_of(client, name)
    for shard in shards_of(streams, arn):
        iterator, pages = iterator_of(streams, arn, shard["ShardId"]), []
        while True:
            page = streams.get_records(ShardIterator=iterator)
            if not page["Records"]:
                break
            pages.append(len(page["Records"]))
            iterator = page["NextShardIterator"]
        assert pages in ([], [2, 2, 1])


def test_a_record_of_two_large_images_is_there_alone(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    for letter in "ab":
        put(client, name, x={"S": letter * 400_000})
    first, second = records_of(streams, arn_of(client, name))
    assert second["dynamodb"]["SizeBytes"] > 800_000
    assert second["dynamodb"]["OldImage"] == first["dynamodb"]["NewImage"]


def test_an_empty_page_leads_on(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    arn = arn_of(client, name)
    iterators = [iterator_of(streams, arn, shard["ShardId"]) for shard in shards_of(streams, arn)]
    for _ in range(3):
        pages = [streams.get_records(ShardIterator=iterator) for iterator in iterators]
        assert all(page["Records"] == [] for page in pages)
        iterators = [page["NextShardIterator"] for page in pages]
    put(client, name)
    pages = [streams.get_records(ShardIterator=iterator) for iterator in iterators]
    assert sum(len(page["Records"]) for page in pages) == 1


def test_the_end_of_a_closed_shard_leads_nowhere(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    arn = arn_of(client, name)
    put(client, name)
    held = [iterator_of(streams, arn, shard["ShardId"]) for shard in shards_of(streams, arn)]
    client.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
    put(client, name, x={"S": "not recorded"})
    renewed = [iterator_of(streams, arn, shard["ShardId"]) for shard in shards_of(streams, arn)]
    for iterators in (held, renewed):
        pages = [streams.get_records(ShardIterator=iterator) for iterator in iterators]
        assert sum(len(page["Records"]) for page in pages) == 1
        assert not any("NextShardIterator" in page for page in pages)


def test_a_deleted_table_leaves_its_records(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream())
    arn = arn_of(client, name)
    put(client, name, n={"N": "1"})
    client.delete_table(TableName=name)
    # The items of a deleted table are not removed one by one.
    assert events(streams, arn) == [("INSERT", None, {**KEY, "n": {"N": "1"}})]


def test_a_stream_begins_when_it_is_switched_on(client: Any, streams: Any, table: Any) -> None:
    name = table()
    put(client, name, n={"N": "1"})
    client.update_table(TableName=name, **with_stream())
    first = arn_of(client, name)
    put(client, name, n={"N": "2"})
    client.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
    put(client, name, n={"N": "3"})
    client.update_table(TableName=name, **with_stream("KEYS_ONLY"))
    second = arn_of(client, name)
    put(client, name, n={"N": "4"})
    one, two = {**KEY, "n": {"N": "1"}}, {**KEY, "n": {"N": "2"}}
    assert events(streams, first) == [("MODIFY", one, two)]
    assert events(streams, second) == [("MODIFY", None, None)]


def test_time_to_live_signs_what_it_removes(client: Any, streams: Any, table: Any) -> None:
    name = table(**with_stream("OLD_IMAGE"))
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    past = {"N": str(int(time.time()) - 60)}
    put(client, name, "kept")
    client.delete_item(TableName=name, Key={"pk": {"S": "kept"}})
    put(client, name, "expired", ttl=past)
    arn = arn_of(client, name)
    deadline = time.monotonic() + EXPIRY_SECONDS_MAX
    while len(records := records_of(streams, arn)) < 4:
        assert time.monotonic() < deadline, "nothing has expired"
        time.sleep(0.05)
    assert [record.get("userIdentity") for record in records] == [
        None,
        None,
        None,
        {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"},
    ]
    removed = records[-1]
    assert removed["eventName"] == "REMOVE"
    assert removed["dynamodb"]["OldImage"] == {"pk": {"S": "expired"}, "ttl": past}


@pytest.mark.parametrize("iterator", ["x", "a|b|c", "x" * 2048, "arn:aws:dynamodb|1|AAAA"])
def test_what_is_no_iterator(streams: Any, iterator: str) -> None:
    assert refusal(streams.get_records, ShardIterator=iterator) == (
        VALIDATION,
        "Invalid ShardIterator",
    )


def test_an_iterator_of_a_stream_that_there_is_not(client: Any, streams: Any, table: Any) -> None:
    arn = arn_of(client, table(**with_stream()))
    iterator = iterator_of(streams, arn, shards_of(streams, arn)[0]["ShardId"])
    elsewhere = iterator.replace(":table/", ":table/x")
    assert refusal(streams.get_records, ShardIterator=elsewhere)[0] == "ResourceNotFoundException"


@pytest.mark.parametrize("limit", [0, 1001])
def test_the_limit_is_between_1_and_1000(client: Any, streams: Any, table: Any, limit: int) -> None:
    arn = arn_of(client, table(**with_stream()))
    iterator = iterator_of(streams, arn, shards_of(streams, arn)[0]["ShardId"])
    code, text = refusal(streams.get_records, ShardIterator=iterator, Limit=limit)
    assert code == VALIDATION
    assert "imit" in text


def test_the_operations_of_streams_have_a_target_of_their_own(raw: Any) -> None:
    status, _, body = raw("ListStreams", {})
    assert status == 400
    assert body["__type"].endswith("UnknownOperationException")
    target = {"X-Amz-Target": "DynamoDBStreams_20120810.ListStreams"}
    assert raw("", {}, headers=target).status == 200
    table_target = {"X-Amz-Target": "DynamoDBStreams_20120810.ListTables"}
    assert raw("", {}, headers=table_target).status == 400
