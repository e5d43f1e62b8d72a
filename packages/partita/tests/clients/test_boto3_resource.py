"""boto3's resource: tables as objects, Python values, conditions, batches, paginators, waiters."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.exceptions import ClientError

POLL = {"Delay": 0.02, "MaxAttempts": 500}


@pytest.fixture(scope="module")
def dynamodb(environment: dict[str, str]) -> Iterator[Any]:
    """A resource that finds the server through the environment, like that of a user."""
    patch = pytest.MonkeyPatch()
    for name, value in environment.items():
        patch.setenv(name, value)
    yield boto3.resource("dynamodb")
    patch.undo()


@pytest.fixture
def music(dynamodb: Any, names: Iterator[str]) -> Iterator[Any]:
    """A table of songs with a local and a global index."""
    table = dynamodb.create_table(
        TableName=next(names),
        KeySchema=[
            {"AttributeName": "artist", "KeyType": "HASH"},
            {"AttributeName": "song", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "artist", "AttributeType": "S"},
            {"AttributeName": "song", "AttributeType": "S"},
            {"AttributeName": "genre", "AttributeType": "S"},
            {"AttributeName": "year", "AttributeType": "N"},
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by_year",
                "KeySchema": [
                    {"AttributeName": "artist", "KeyType": "HASH"},
                    {"AttributeName": "year", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_genre",
                "KeySchema": [{"AttributeName": "genre", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    table.meta.client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig=POLL)
    yield table
    table.delete()


def song(artist: str, title: str, **more: Any) -> dict[str, Any]:
    return {"artist": artist, "song": title, **more}


def test_a_table_knows_itself(dynamodb: Any, music: Any) -> None:
    table = dynamodb.Table(music.name)
    assert table.table_status == "ACTIVE"
    assert table.item_count == 0
    assert table.key_schema == [
        {"AttributeName": "artist", "KeyType": "HASH"},
        {"AttributeName": "song", "KeyType": "RANGE"},
    ]
    assert music.name in [each.name for each in dynamodb.tables.all()]


def test_python_values_come_back_as_they_were_put(music: Any) -> None:
    item = song(
        "a",
        "types",
        text="é\U0001f600",
        empty="",
        integer=42,
        decimal=Decimal("3.14159265358979323846264338327950288"),
        negative=Decimal("-1E-100"),
        binary=Binary(b"\x00\xff"),
        yes=True,
        nothing=None,
        strings={"a", "b"},
        numbers={Decimal("1"), Decimal("2.5")},
        binaries={b"\x00", b"\xff"},
        mixed=[1, "two", {"three": [None, False]}],
        mapped={"nested": {"deep": Decimal("1")}},
    )
    music.put_item(Item=item)
    found = music.get_item(Key=song("a", "types"), ConsistentRead=True)["Item"]
    assert found["binary"].value == b"\x00\xff"
    assert {each.value for each in found.pop("binaries")} == item.pop("binaries")
    assert found == item


def test_a_missing_item_is_no_item(music: Any) -> None:
    assert "Item" not in music.get_item(Key=song("nobody", "nothing"))


def test_update_and_return_values(music: Any) -> None:
    key = song("a", "counter")
    music.put_item(Item={**key, "plays": 1, "tags": {"x"}, "log": ["first"]})
    answer = music.update_item(
        Key=key,
        UpdateExpression="SET #l = list_append(#l, :more), rating = if_not_exists(rating, :r) "
        "ADD plays :one DELETE tags :x",
        ExpressionAttributeNames={"#l": "log"},
        ExpressionAttributeValues={":more": ["second"], ":r": 5, ":one": 1, ":x": {"x"}},
        ReturnValues="ALL_NEW",
    )
    assert answer["Attributes"] == {**key, "plays": 2, "log": ["first", "second"], "rating": 5}


def test_a_condition_object_refuses(music: Any) -> None:
    key = song("a", "b")
    music.put_item(Item={**key, "n": 1}, ConditionExpression=Attr("artist").not_exists())
    with pytest.raises(ClientError) as refused:
        music.put_item(Item=key, ConditionExpression=Attr("n").gt(1) & Attr("artist").exists())
    assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
    music.delete_item(Key=key, ConditionExpression=Attr("n").between(0, 1) | Attr("x").eq(2))
    assert "Item" not in music.get_item(Key=key)


@pytest.fixture
def library(music: Any) -> Any:
    """100 songs of two artists."""
    with music.batch_writer() as batch:
        for number in range(100):
            batch.put_item(
                Item=song(
                    f"artist{number % 2}",
                    f"song{number:03}",
                    year=1900 + number,
                    genre=["rock", "jazz", "folk"][number % 3],
                    info={"tags": [f"t{number % 5}"], "length": number},
                )
            )
    return music


def test_the_batch_writer_writes_everything(library: Any) -> None:
    library.reload()
    assert library.item_count == 100


def test_the_batch_writer_removes_duplicates_and_deletes(music: Any) -> None:
    with music.batch_writer(overwrite_by_pkeys=["artist", "song"]) as batch:
        for number in range(60):
            batch.put_item(Item=song("a", f"s{number % 40}", n=number))
        for number in range(30):
            batch.delete_item(Key=song("a", f"s{number}"))
    found = music.scan()["Items"]
    assert sorted(item["song"] for item in found) == [f"s{number}" for number in range(30, 40)]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (Key("song").eq("song010"), 1),
        (Key("song").lt("song010"), 5),
        (Key("song").lte("song010"), 6),
        (Key("song").gt("song090"), 4),
        (Key("song").gte("song090"), 5),
        (Key("song").between("song010", "song020"), 6),
        (Key("song").begins_with("song00"), 5),
    ],
    ids=["=", "<", "<=", ">", ">=", "between", "begins_with"],
)
def test_key_conditions(library: Any, condition: Any, count: int) -> None:
    answer = library.query(KeyConditionExpression=Key("artist").eq("artist0") & condition)
    assert answer["Count"] == count


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (Attr("genre").eq("rock"), 34),
        (Attr("genre").ne("rock"), 66),
        (Attr("genre").is_in(["jazz", "folk"]), 66),
        (Attr("info.length").lt(10), 10),
        (Attr("info.tags[0]").eq("t3"), 20),
        (Attr("info.tags").contains("t1"), 20),
        (Attr("info.tags").size().eq(1), 100),
        (Attr("info").attribute_type("M"), 100),
        (Attr("missing").exists(), 0),
        (Attr("missing").not_exists() & ~Attr("genre").begins_with("r"), 66),
        (Attr("year").between(1950, 1959), 10),
    ],
    ids=[
        "=",
        "<>",
        "in",
        "<",
        "element",
        "contains",
        "size",
        "type",
        "exists",
        "and not",
        "between",
    ],
)
def test_filter_conditions(library: Any, condition: Any, count: int) -> None:
    answer = library.scan(FilterExpression=condition)
    assert (answer["Count"], answer["ScannedCount"]) == (count, 100)


def test_projection(library: Any) -> None:
    answer = library.query(
        KeyConditionExpression=Key("artist").eq("artist1") & Key("song").eq("song001"),
        ProjectionExpression="song, #i.tags[0]",
        ExpressionAttributeNames={"#i": "info"},
    )
    assert answer["Items"] == [{"song": "song001", "info": {"tags": ["t1"]}}]


def test_queries_of_indexes(library: Any) -> None:
    answer = library.query(
        IndexName="by_year",
        KeyConditionExpression=Key("artist").eq("artist0") & Key("year").gte(1990),
        ScanIndexForward=False,
    )
    assert [int(item["year"]) for item in answer["Items"]] == [1998, 1996, 1994, 1992, 1990]
    answer = library.query(
        IndexName="by_genre", KeyConditionExpression=Key("genre").eq("jazz"), Select="COUNT"
    )
    assert answer["Count"] == 33


def test_pages_by_hand(library: Any) -> None:
    found: list[str] = []
    request: dict[str, Any] = {"Limit": 7}
    while True:
        answer = library.scan(**request)
        found += [item["song"] for item in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            break
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    assert sorted(found) == [f"song{number:03}" for number in range(100)]


@pytest.mark.parametrize("operation", ["query", "scan"])
def test_paginators(library: Any, operation: str) -> None:
    client = library.meta.client
    request: dict[str, Any] = {"TableName": library.name}
    if operation == "query":
        request["KeyConditionExpression"] = Key("artist").eq("artist0")
    pages = client.get_paginator(operation).paginate(
        **request, PaginationConfig={"PageSize": 9, "MaxItems": 45}
    )
    assert sum(len(page["Items"]) for page in pages) == 45


def test_batch_get(dynamodb: Any, library: Any) -> None:
    keys = [song(f"artist{number % 2}", f"song{number:03}") for number in range(50)]
    answer = dynamodb.batch_get_item(
        RequestItems={library.name: {"Keys": keys, "ConsistentRead": True}}
    )
    assert len(answer["Responses"][library.name]) == 50
    assert answer["UnprocessedKeys"] == {}


def test_transactions_with_python_values(dynamodb: Any, music: Any) -> None:
    client = dynamodb.meta.client
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": music.name, "Item": song("a", "1", n=1)}},
            {"Put": {"TableName": music.name, "Item": song("a", "2", n=2)}},
        ]
    )
    answer = client.transact_get_items(
        TransactItems=[
            {"Get": {"TableName": music.name, "Key": song("a", title)}} for title in "123"
        ]
    )
    assert [each.get("Item", {}).get("n") for each in answer["Responses"]] == [1, 2, None]
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": music.name, "Item": song("a", "3")}},
                {
                    "Put": {
                        "TableName": music.name,
                        "Item": song("a", "1"),
                        "ConditionExpression": "attribute_not_exists(artist)",
                    }
                },
            ]
        )
    reasons = cancelled.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]


def test_waiters(dynamodb: Any, names: Iterator[str]) -> None:
    client = dynamodb.meta.client
    table = dynamodb.create_table(
        TableName=next(names),
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "B"}],
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )
    client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig=POLL)
    table.put_item(Item={"pk": b"\x00"})
    table.delete()
    client.get_waiter("table_not_exists").wait(TableName=table.name, WaiterConfig=POLL)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        table.load()


def test_errors_are_the_exceptions_of_the_sdk(dynamodb: Any) -> None:
    client = dynamodb.meta.client
    with pytest.raises(client.exceptions.ResourceNotFoundException) as missing:
        dynamodb.Table("no_such_table").get_item(Key={"pk": "a"})
    answer = missing.value.response
    assert answer["Error"]["Message"] == "Requested resource not found"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert len(answer["ResponseMetadata"]["RequestId"]) == 52


def test_any_region_and_any_credentials_see_the_same_tables(endpoint: str, music: Any) -> None:
    for region, key in (("eu-west-1", "somebody"), ("us-gov-west-1", "else")):
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id=key,
            aws_secret_access_key="secret",
            aws_session_token="token",
        )
        assert music.name in client.list_tables()["TableNames"]
