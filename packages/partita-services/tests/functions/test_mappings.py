"""Event source mappings: streams of tables and Kinesis streams that call functions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.packaging.function_packages import create, wait_for
from testkit.servers.processes import Server

QUEUES = "arn:aws:sqs:us-east-1:123456789012"
WRITE_DOWN = """
import base64, json

def handler(event, context):
    with open("{path}", "a") as file:
        file.write(json.dumps(event) + "\\n")
    {then}
"""


class Events:
    """The events that a function was called with."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[dict[str, Any]]:
        text = self.path.read_text() if self.path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def records(self) -> list[dict[str, Any]]:
        return [record for event in self.all() for record in event["Records"]]

    def item_keys(self) -> list[str]:
        return [record["dynamodb"]["Keys"]["pk"]["S"] for record in self.records()]

    def partition_keys(self) -> list[str]:
        return [record["kinesis"]["partitionKey"] for record in self.records()]


@pytest.fixture
def table(server: Server, name: str) -> Iterator[tuple[str, str]]:
    """A table with a stream, and the ARN of the stream."""
    client = server.client()
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    yield name, client.describe_table(TableName=name)["Table"]["LatestStreamArn"]
    client.delete_table(TableName=name)


@pytest.fixture
def stream(server: Server, name: str) -> tuple[str, str]:
    """A Kinesis stream of one shard, and its ARN."""
    client = server.client("kinesis")
    client.create_stream(StreamName=name, ShardCount=1)
    described = client.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]
    return name, described["StreamARN"]


@pytest.fixture
def function(functions: Any, name: str, tmp_path: Path) -> Callable[..., Events]:
    """Creates a function that writes down its events, and then does something else."""

    def make(then: str = "return None") -> Events:
        path = tmp_path / "events"
        create(functions, name, WRITE_DOWN.replace("{path}", str(path)).replace("{then}", then))
        return Events(path)

    return make


@pytest.fixture
def mapped(functions: Any, name: str) -> Iterator[Callable[..., Any]]:
    """Creates a mapping that is deleted after the test."""
    made: list[str] = []

    def make(arn: str, position: str = "TRIM_HORIZON", **more: Any) -> Any:
        created = functions.create_event_source_mapping(
            EventSourceArn=arn, FunctionName=name, StartingPosition=position, **more
        )
        made.append(created["UUID"])
        return created

    yield make
    for uuid in made:
        state = wait_for(partial(state_of, functions, uuid), is_settled)
        if state in ("Enabled", "Disabled"):
            functions.delete_event_source_mapping(UUID=uuid)


def state_of(functions: Any, uuid: str) -> str:
    try:
        return str(functions.get_event_source_mapping(UUID=uuid)["State"])
    except functions.exceptions.ResourceNotFoundException:
        return "gone"


def is_settled(state: str) -> bool:
    return state in ("Enabled", "Disabled", "gone")


def put_items(server: Server, table: str, *keys: str) -> None:
    client = server.client()
    for key in keys:
        client.put_item(TableName=table, Item={"pk": {"S": key}})


def put_records(server: Server, stream: str, *keys: str) -> None:
    records = [{"Data": json.dumps({"k": key}).encode(), "PartitionKey": key} for key in keys]
    answer = server.client("kinesis").put_records(StreamName=stream, Records=records)
    assert answer["FailedRecordCount"] == 0


def test_changes_of_a_table_call_a_function(
    server: Server, table: Any, function: Any, mapped: Any
) -> None:
    events = function()
    mapping = mapped(table[1])
    assert (mapping["State"], mapping["BatchSize"]) == ("Creating", 100)
    put_items(server, table[0], "a")
    (record,) = wait_for(events.records)
    assert record["eventSourceARN"] == table[1]
    assert (record["eventName"], record["eventSource"]) == ("INSERT", "aws:dynamodb")
    assert record["dynamodb"]["NewImage"] == {"pk": {"S": "a"}}


def test_records_of_a_kinesis_stream_call_a_function(
    server: Server, stream: Any, function: Any, mapped: Any
) -> None:
    events = function()
    mapped(stream[1])
    put_records(server, stream[0], "a")
    (record,) = wait_for(events.records)
    kinesis = record.pop("kinesis")
    assert record == {
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": f"shardId-000000000000:{kinesis['sequenceNumber']}",
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": "arn:aws:iam::123456789012:role/partita",
        "awsRegion": "us-east-1",
        "eventSourceARN": stream[1],
    }
    assert (kinesis["partitionKey"], kinesis["data"]) == ("a", "eyJrIjogImEifQ==")
    assert abs(kinesis["approximateArrivalTimestamp"] - time.time()) < 60


@pytest.mark.parametrize("position", ["LATEST", "TRIM_HORIZON"])
def test_where_a_mapping_of_a_table_begins(
    server: Server, table: Any, function: Any, mapped: Any, position: str
) -> None:
    events = function()
    put_items(server, table[0], "before", "before")
    mapped(table[1], position)
    put_items(server, table[0], "after")
    wait_for(events.item_keys, lambda keys: "after" in keys)
    assert ("before" in events.item_keys()) == (position == "TRIM_HORIZON")


@pytest.mark.parametrize("position", ["LATEST", "TRIM_HORIZON", "AT_TIMESTAMP"])
def test_where_a_mapping_of_a_stream_begins(
    server: Server, stream: Any, function: Any, mapped: Any, position: str
) -> None:
    events = function()
    put_records(server, stream[0], "before")
    time.sleep(0.05)
    since = {"StartingPositionTimestamp": time.time()} if position == "AT_TIMESTAMP" else {}
    mapped(stream[1], position, **since)
    put_records(server, stream[0], "after")
    wait_for(events.partition_keys, lambda keys: "after" in keys)
    assert ("before" in events.partition_keys()) == (position == "TRIM_HORIZON")


def test_a_mapping_goes_through_its_states(
    functions: Any, server: Server, stream: Any, function: Any, mapped: Any
) -> None:
    events = function()
    uuid = mapped(stream[1], Enabled=False)["UUID"]
    wait_for(lambda: state_of(functions, uuid), lambda state: state == "Disabled")
    put_records(server, stream[0], "a")
    assert functions.update_event_source_mapping(UUID=uuid, Enabled=True)["State"] == "Enabling"
    wait_for(lambda: state_of(functions, uuid), lambda state: state == "Enabled")
    wait_for(events.partition_keys, lambda keys: keys == ["a"])
    got = functions.get_event_source_mapping(UUID=uuid)
    assert got["StateTransitionReason"] == "User action"
    wait_for(
        lambda: functions.get_event_source_mapping(UUID=uuid)["LastProcessingResult"],
        lambda result: result == "OK",
    )
    assert functions.update_event_source_mapping(UUID=uuid, Enabled=False)["State"] == "Disabling"
    wait_for(lambda: state_of(functions, uuid), lambda state: state == "Disabled")
    put_records(server, stream[0], "b")
    assert functions.update_event_source_mapping(UUID=uuid, BatchSize=7)["State"] == "Updating"
    wait_for(lambda: state_of(functions, uuid), lambda state: state == "Disabled")
    functions.update_event_source_mapping(UUID=uuid, Enabled=True)
    # It goes on where it was.
    wait_for(events.partition_keys, lambda keys: keys == ["a", "b"])
    listed = functions.list_event_source_mappings(EventSourceArn=stream[1])["EventSourceMappings"]
    assert [(one["UUID"], one["BatchSize"]) for one in listed] == [(uuid, 7)]
    wait_for(lambda: state_of(functions, uuid), lambda state: state == "Enabled")
    assert functions.delete_event_source_mapping(UUID=uuid)["State"] == "Deleting"
    wait_for(lambda: state_of(functions, uuid), lambda state: state == "gone")


def test_filters_see_the_data_of_a_record(
    server: Server, stream: Any, function: Any, mapped: Any
) -> None:
    events = function()
    pattern = json.dumps({"data": {"k": ["wanted"]}})
    mapped(stream[1], FilterCriteria={"Filters": [{"Pattern": pattern}]})
    put_records(server, stream[0], "other", "wanted", "other")
    wait_for(events.partition_keys)
    assert events.partition_keys() == ["wanted"]


def reports(folder: Path, stream: str) -> list[Any]:
    """The report of a batch that was given up."""
    path = folder / "dead-letters"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return [one for one in found if one.get("KinesisBatchInfo", {}).get("streamArn") == stream]


def test_what_fails_is_found_by_bisecting_and_goes_to_its_destination(
    server: Server, stream: Any, function: Any, mapped: Any, folder: Path
) -> None:
    then = "assert all(r['kinesis']['partitionKey'] != 'bad' for r in event['Records'])"
    events = function(then)
    mapped(
        stream[1],
        MaximumRetryAttempts=0,
        BisectBatchOnFunctionError=True,
        DestinationConfig={"OnFailure": {"Destination": f"{QUEUES}:dead-letters"}},
    )
    put_records(server, stream[0], "a", "b", "bad", "c", "d")
    (report,) = wait_for(partial(reports, folder, stream[1]))
    assert report["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert report["KinesisBatchInfo"]["batchSize"] == 1
    assert report["KinesisBatchInfo"]["shardId"] == "shardId-000000000000"
    context = {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"}
    assert report["responseContext"] == context
    assert "AssertionError" in report["reason"]
    wait_for(events.all, lambda seen: seen[-1]["Records"][-1]["kinesis"]["partitionKey"] == "d")


@pytest.mark.soak
def test_records_are_given_up_at_their_age(
    server: Server, stream: Any, function: Any, mapped: Any, folder: Path
) -> None:
    """A minute is the shortest that Lambda allows."""
    function("raise ValueError('never')")
    put_records(server, stream[0], "a")
    mapped(
        stream[1],
        MaximumRecordAgeInSeconds=60,
        MaximumRetryAttempts=-1,
        DestinationConfig={"OnFailure": {"Destination": f"{QUEUES}:dead-letters"}},
    )
    (report,) = wait_for(partial(reports, folder, stream[1]), seconds=150)
    assert report["requestContext"]["condition"] == "RecordAgeExceeded"
    assert report["requestContext"]["approximateInvokeCount"] > 1


def test_reported_failures_come_again(
    server: Server, stream: Any, function: Any, mapped: Any
) -> None:
    then = """
    if len(event["Records"]) == 4:
        third = event["Records"][2]["kinesis"]["sequenceNumber"]
        return {"batchItemFailures": [{"itemIdentifier": third}]}
"""
    events = function(then.strip())
    put_records(server, stream[0], "a", "b", "c", "d")
    mapped(stream[1], FunctionResponseTypes=["ReportBatchItemFailures"])
    wait_for(events.partition_keys, lambda keys: len(keys) >= 6)
    assert events.partition_keys() == ["a", "b", "c", "d", "c", "d"]


def test_tumbling_windows_sum_up(server: Server, stream: Any, function: Any, mapped: Any) -> None:
    then = "return {'state': {'sum': event['state'].get('sum', 0) + len(event['Records'])}}"
    events = function(then)
    put_records(server, stream[0], *"abcdef")
    mapped(stream[1], BatchSize=2, TumblingWindowInSeconds=1)
    last = wait_for(events.all, lambda seen: any(one["isFinalInvokeForWindow"] for one in seen))
    final = [one for one in last if one["isFinalInvokeForWindow"]][-1]
    assert final["state"] == {"sum": 6}
    assert final["Records"] == []


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"FunctionName": "nobody"}, "ResourceNotFoundException", "Function not found"),
        ({"EventSourceArn": "arn:aws:sqs:us-east-1:123456789012:q"},
         "InvalidParameterValueException", "Unrecognized event source"),
        ({"EventSourceArn": "arn:aws:kinesis:us-east-1:123456789012:stream/none"},
         "InvalidParameterValueException", "Stream not found"),
        ({"StartingPosition": "AT_TIMESTAMP"}, "InvalidParameterValueException", "required"),
        ({"FilterCriteria": {"Filters": [{"Pattern": "{"}]}},
         "InvalidParameterValueException", "filter"),
        ({"BatchSize": 10_001}, "ValidationException", "batchSize"),
        ({"ParallelizationFactor": 11}, "ValidationException", "parallelizationFactor"),
        ({"ParallelizationFactor": 2, "TumblingWindowInSeconds": 10},
         "InvalidParameterValueException", "ParallelizationFactor"),
        ({"LoggingConfig": {"SystemLogLevel": "INFO"}},
         "InvalidParameterValueException", "LoggingConfig"),
        ({"MaximumRecordAgeInSeconds": 59}, "InvalidParameterValueException", "MaximumRecordAge"),
        ({"DestinationConfig": {"OnFailure": {"Destination": f"{QUEUES}:none"}}},
         "InvalidParameterValueException", f"{QUEUES}:none"),
    ],
)  # fmt: skip
def test_what_cannot_be_mapped_is_refused(
    functions: Any, stream: Any, change: Any, code: str, words: str
) -> None:
    asked = {
        "FunctionName": "of-settings",
        "EventSourceArn": stream[1],
        "StartingPosition": "LATEST",
        **change,
    }
    with pytest.raises(ClientError) as caught:
        functions.create_event_source_mapping(**asked)
    assert caught.value.response["Error"]["Code"] == code
    assert words in caught.value.response["Error"]["Message"]


def test_mappings_have_tags(functions: Any, stream: Any, function: Any, mapped: Any) -> None:
    function()
    arn = mapped(stream[1], Tags={"team": "a"})["EventSourceMappingArn"]
    functions.tag_resource(Resource=arn, Tags={"stage": "b"})
    functions.untag_resource(Resource=arn, TagKeys=["team"])
    assert functions.list_tags(Resource=arn)["Tags"] == {"stage": "b"}


def test_a_stream_and_a_function_are_mapped_once(
    functions: Any, stream: Any, function: Any, mapped: Any
) -> None:
    function()
    first = mapped(stream[1])
    with pytest.raises(functions.exceptions.ResourceConflictException, match=first["UUID"]):
        mapped(stream[1])
