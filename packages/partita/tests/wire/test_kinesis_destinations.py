"""Kinesis destinations: every change of a table becomes one record of a stream, in order."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from .event_reading import ACCOUNT, records_of
from .refusals import refusal

Create = Callable[..., str]
VALIDATION = "ValidationException"
SECONDS_MAX = 60
KEY = {"pk": {"S": "a"}}
STATE = "Table is not in a valid state to enable Kinesis Streaming Destination: "


def arn_of(name: str) -> str:
    return f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/{name}"


def name_of(arn: str) -> str:
    return arn.rpartition("/")[2]


def put(client: Any, table: str, number: int, key: str = "a") -> None:
    client.put_item(TableName=table, Item={"pk": {"S": key}, "n": {"N": str(number)}})


def arrived(kinesis: Any, stream: str, count: int) -> list[dict[str, Any]]:
    """Waits until a stream has this many records, and returns them."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        records = records_of(kinesis, stream)
        if len(records) >= count:
            assert len(records) == count
            return [json.loads(record["Data"]) for record in records]
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records arrived"
        time.sleep(0.05)


def status_of(client: Any, table: str) -> str:
    described = client.describe_kinesis_streaming_destination(TableName=table)
    [destination] = described["KinesisDataStreamDestinations"]
    return str(destination["DestinationStatus"])


def wait_until_disabled(client: Any, table: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while status_of(client, table) != "DISABLED":
        assert time.monotonic() < deadline, "it is still not disabled"
        time.sleep(0.05)


@pytest.fixture
def linked(client: Any, table: Create, event_stream: Create) -> tuple[str, str]:
    """A table, and the stream that gets its changes."""
    name, stream = table(), event_stream(2)
    client.enable_kinesis_streaming_destination(TableName=name, StreamArn=arn_of(stream))
    return name, stream


def test_a_destination_is_enabled_and_described(
    client: Any, table: Create, event_stream: Create
) -> None:
    name, arn = table(), arn_of(event_stream())
    empty = client.describe_kinesis_streaming_destination(TableName=name)
    assert (empty["TableName"], empty["KinesisDataStreamDestinations"]) == (name, [])
    answer = client.enable_kinesis_streaming_destination(TableName=name, StreamArn=arn)
    del answer["ResponseMetadata"]
    assert answer == {
        "TableName": name,
        "StreamArn": arn,
        "DestinationStatus": "ENABLING",
        "EnableKinesisStreamingConfiguration": {},
    }
    described = client.describe_kinesis_streaming_destination(TableName=name)
    assert described["KinesisDataStreamDestinations"] == [
        {"StreamArn": arn, "DestinationStatus": "ACTIVE"}
    ]


def test_a_precision_is_described_when_it_was_given(
    client: Any, table: Create, event_stream: Create
) -> None:
    name, arn = table(), arn_of(event_stream())
    configuration = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    answer = client.enable_kinesis_streaming_destination(
        TableName=name, StreamArn=arn, EnableKinesisStreamingConfiguration=configuration
    )
    assert answer["EnableKinesisStreamingConfiguration"] == configuration
    described = client.describe_kinesis_streaming_destination(TableName=name)
    assert described["KinesisDataStreamDestinations"] == [
        {"StreamArn": arn, "DestinationStatus": "ACTIVE", **configuration}
    ]


def test_a_record_whole(client: Any, kinesis: Any, linked: tuple[str, str]) -> None:
    name, stream = linked
    before = int(time.time() * 1000)
    put(client, name, 1)
    put(client, name, 2)
    client.delete_item(TableName=name, Key=KEY)
    first, second, third = arrived(kinesis, stream, 3)
    change = second.pop("dynamodb")
    assert uuid.UUID(second.pop("eventID"))
    assert second == {
        "awsRegion": "us-east-1",
        "eventName": "MODIFY",
        "userIdentity": None,
        "recordFormat": "application/json",
        "tableName": name,
        "eventSource": "aws:dynamodb",
    }
    assert before <= change.pop("ApproximateCreationDateTime") <= time.time() * 1000
    assert change == {
        "Keys": KEY,
        "NewImage": {**KEY, "n": {"N": "2"}},
        "OldImage": {**KEY, "n": {"N": "1"}},
        "SizeBytes": 15,
    }
    assert (first["eventName"], third["eventName"]) == ("INSERT", "REMOVE")
    assert "OldImage" not in first["dynamodb"]
    assert "NewImage" not in third["dynamodb"]


def test_only_changes_since_then_arrive_once_in_order(
    client: Any, kinesis: Any, table: Create, event_stream: Create
) -> None:
    name, stream = table(), event_stream(3)
    put(client, name, -1)
    client.enable_kinesis_streaming_destination(TableName=name, StreamArn=arn_of(stream))
    for number in range(300):
        put(client, name, number, key=f"k{number % 10}")
    by_key: dict[str, list[int]] = {}
    for record in arrived(kinesis, stream, 300):
        image = record["dynamodb"]["NewImage"]
        by_key.setdefault(image["pk"]["S"], []).append(int(image["n"]["N"]))
    assert by_key == {f"k{key}": list(range(key, 300, 10)) for key in range(10)}


def test_what_changes_nothing_or_is_refused_leaves_no_record(
    client: Any, kinesis: Any, linked: tuple[str, str]
) -> None:
    name, stream = linked
    put(client, name, 1)
    put(client, name, 1)
    absent = "attribute_not_exists(pk)"
    refusal(client.put_item, TableName=name, Item=KEY, ConditionExpression=absent)
    put(client, name, 2)
    assert len(arrived(kinesis, stream, 2)) == 2


def test_a_destination_beside_a_stream_of_another_view(
    client: Any, kinesis: Any, streams: Any, table: Create, event_stream: Create
) -> None:
    view = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    name, stream = table(StreamSpecification=view), event_stream()
    client.enable_kinesis_streaming_destination(TableName=name, StreamArn=arn_of(stream))
    put(client, name, 1)
    [record] = arrived(kinesis, stream, 1)
    assert record["dynamodb"]["NewImage"]["n"] == {"N": "1"}
    assert len(streams.list_streams(TableName=name)["Streams"]) == 1


def test_the_time_in_microseconds(client: Any, kinesis: Any, linked: tuple[str, str]) -> None:
    name, stream = linked
    configuration = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    update = {"TableName": name, "StreamArn": arn_of(stream)}
    answer = client.update_kinesis_streaming_destination(
        **update, UpdateKinesisStreamingConfiguration=configuration
    )
    assert answer["DestinationStatus"] == "UPDATING"
    assert answer["UpdateKinesisStreamingConfiguration"] == configuration
    before = int(time.time() * 1_000_000)
    put(client, name, 1)
    [record] = arrived(kinesis, stream, 1)
    change = record["dynamodb"]
    assert change["ApproximateCreationDateTimePrecision"] == "MICROSECOND"
    assert before <= change["ApproximateCreationDateTime"] <= time.time() * 1_000_000
    refused = refusal(
        client.update_kinesis_streaming_destination,
        **update,
        UpdateKinesisStreamingConfiguration=configuration,
    )
    assert refused[0] == VALIDATION
    assert "Precision is already set to the desired value of MICROSECOND" in refused[1]


def test_what_was_changed_before_it_was_disabled_arrives(
    client: Any, kinesis: Any, linked: tuple[str, str]
) -> None:
    name, stream = linked
    for number in range(100):
        put(client, name, number)
    where = {"TableName": name, "StreamArn": arn_of(stream)}
    answer = client.disable_kinesis_streaming_destination(**where)
    assert answer["DestinationStatus"] == "DISABLING"
    put(client, name, -1)
    assert len(arrived(kinesis, stream, 100)) == 100
    wait_until_disabled(client, name)
    assert refusal(client.disable_kinesis_streaming_destination, **where)[0] == VALIDATION
    client.enable_kinesis_streaming_destination(**where)
    put(client, name, -2)
    last = arrived(kinesis, stream, 101)[-1]
    assert last["dynamodb"]["NewImage"]["n"] == {"N": "-2"}


def test_a_table_has_one_destination_at_a_time(
    client: Any, kinesis: Any, linked: tuple[str, str], event_stream: Create
) -> None:
    name, first = linked
    second = {"TableName": name, "StreamArn": arn_of(event_stream())}
    for stream_arn in (arn_of(first), second["StreamArn"], arn_of("no-such-stream")):
        refused = refusal(
            client.enable_kinesis_streaming_destination, TableName=name, StreamArn=stream_arn
        )
        assert refused == (
            VALIDATION,
            f"{STATE}EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to "
            "perform ENABLE operation.",
        )
    put(client, name, 1)
    client.disable_kinesis_streaming_destination(TableName=name, StreamArn=arn_of(first))
    wait_until_disabled(client, name)
    client.enable_kinesis_streaming_destination(**second)
    put(client, name, 2)
    [record] = arrived(kinesis, name_of(second["StreamArn"]), 1)
    assert record["dynamodb"]["NewImage"]["n"] == {"N": "2"}
    assert len(records_of(kinesis, first)) == 1
    described = client.describe_kinesis_streaming_destination(TableName=name)
    statuses = [one["DestinationStatus"] for one in described["KinesisDataStreamDestinations"]]
    assert statuses == ["DISABLED", "ACTIVE"]


def test_a_stream_that_there_is_not_is_found_out_afterwards(
    client: Any, table: Create, event_stream: Create
) -> None:
    name = table()
    absent = {"TableName": name, "StreamArn": arn_of("no-such-stream")}
    answer = client.enable_kinesis_streaming_destination(**absent)
    assert answer["DestinationStatus"] == "ENABLING"
    client.enable_kinesis_streaming_destination(**absent)
    described = client.describe_kinesis_streaming_destination(TableName=name)
    assert described["KinesisDataStreamDestinations"] == [
        {
            "StreamArn": absent["StreamArn"],
            "DestinationStatus": "ENABLE_FAILED",
            "DestinationStatusDescription": (
                "User does not have a permission to use kinesis stream"
            ),
        }
    ]
    assert refusal(client.disable_kinesis_streaming_destination, **absent) == (
        VALIDATION,
        f"{STATE}KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.",
    )
    code, text = refusal(client.update_kinesis_streaming_destination, **absent)
    assert code == VALIDATION
    assert text.startswith(f"{STATE}Kinesis streaming is not in ACTIVE state. Updates are only")
    put(client, name, 1)
    client.enable_kinesis_streaming_destination(TableName=name, StreamArn=arn_of(event_stream()))


def test_changes_wait_for_a_stream_that_comes_back(
    client: Any, kinesis: Any, linked: tuple[str, str]
) -> None:
    name, stream = linked
    kinesis.delete_stream(StreamName=stream)
    put(client, name, 1)
    time.sleep(1.1)
    kinesis.create_stream(StreamName=stream, ShardCount=1)
    assert len(arrived(kinesis, stream, 1)) == 1


def test_tables_that_there_are_not(client: Any) -> None:
    absent = {"TableName": "no_such_table", "StreamArn": arn_of("changes")}
    for operation in ("enable", "disable", "update"):
        call = getattr(client, f"{operation}_kinesis_streaming_destination")
        assert refusal(call, **absent)[0] == "ResourceNotFoundException"
    describe = client.describe_kinesis_streaming_destination
    assert refusal(describe, TableName="no_such_table")[0] == "ResourceNotFoundException"


def test_a_deleted_table_leaves_its_records(
    client: Any, kinesis: Any, linked: tuple[str, str]
) -> None:
    name, stream = linked
    put(client, name, 1)
    arrived(kinesis, stream, 1)
    client.delete_table(TableName=name)
    assert len(records_of(kinesis, stream)) == 1
