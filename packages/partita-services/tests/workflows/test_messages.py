"""Tasks that send messages, call HTTP endpoints, and read and write objects."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from testkit.servers.processes import Server

from .conftest import ROLE, finished, one_task, states_client, write_functions

Run = Callable[..., Any]
STATES = "arn:aws:states:::"
ACCOUNT = "us-east-1:123456789012"
SECONDS_MAX = 60
ORDER = {"QueueUrl": "https://x/123456789012/orders", "MessageBody": "hello"}
NEWS = {"TopicArn": f"arn:aws:sns:{ACCOUNT}:news", "Message": "hello"}


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + SECONDS_MAX
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text()


@pytest.mark.parametrize("resource", ["sns:publish", "aws-sdk:sns:publish"])
def test_a_message_for_a_topic_goes_to_its_sink(output: Run, folder: Path, resource: str) -> None:
    parameters = {
        "TopicArn": f"arn:aws:sns:{ACCOUNT}:news",
        "Message": {"order": resource},
        "Subject": "An order",
    }
    answer = output(one_task(STATES + resource, Parameters=parameters))
    (sent,) = [one for one in lines(folder / "news") if one["MessageId"] == answer["MessageId"]]
    assert json.loads(sent["Message"]) == {"order": resource}
    assert (sent["Subject"], sent["Type"]) == ("An order", "Notification")
    assert ("SdkHttpMetadata" in answer) == (resource == "sns:publish")


def test_a_message_for_a_queue_goes_to_its_sink(output: Run, folder: Path) -> None:
    parameters = {
        "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/orders",
        "MessageBody.$": "$",
        "MessageAttributes": {"kind": {"DataType": "String", "StringValue": "new"}},
    }
    answer = output(one_task(f"{STATES}sqs:sendMessage", Parameters=parameters), {"id": 17})
    (sent,) = [one for one in lines(folder / "orders") if one["messageId"] == answer["MessageId"]]
    assert json.loads(sent["body"]) == {"id": 17}
    assert sent["md5OfBody"] == answer["MD5OfMessageBody"]
    assert sent["messageAttributes"]["kind"]["stringValue"] == "new"


def test_attributes_of_a_message_arrive_with_it(output: Run, folder: Path) -> None:
    parameters = {
        "QueueUrl": "https://x/123456789012/orders.fifo",
        "MessageBody": "hello",
        "MessageGroupId": "group",
        "MessageDeduplicationId": "once",
        "MessageAttributes": {
            "kind": {"DataType": "String", "StringValue": "new"},
            "packed": {"DataType": "Binary", "BinaryValue": "aGVsbG8="},
        },
        "MessageSystemAttributes": {
            "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}
        },
    }
    answer = output(one_task(f"{STATES}sqs:sendMessage", Parameters=parameters))
    (sent,) = [one for one in lines(folder / "orders") if one["messageId"] == answer["MessageId"]]
    assert sent["messageAttributes"]["packed"] == {"dataType": "Binary", "binaryValue": "aGVsbG8="}
    attributes = sent["attributes"]
    assert attributes["MessageDeduplicationId"] == "once"
    assert attributes["AWSTraceHeader"] == "Root=1"
    assert attributes["SequenceNumber"] == answer["SequenceNumber"]
    assert answer["MD5OfMessageAttributes"] == "cf2fee04cec77b9470160840d1be9663"


def test_a_topic_takes_a_message_for_each_protocol(output: Run, folder: Path) -> None:
    parameters = {
        "TopicArn": f"arn:aws:sns:{ACCOUNT}:news",
        "Message": {"default": "for all", "lambda": "for functions"},
        "MessageStructure": "json",
    }
    answer = output(one_task(f"{STATES}sns:publish", Parameters=parameters))
    (sent,) = [one for one in lines(folder / "news") if one["MessageId"] == answer["MessageId"]]
    assert sent["Message"] == "for all"


def test_a_queue_holds_a_message_back_also_while_its_server_is_down(
    serve: Any, tmp_path: Path
) -> None:
    settings = write_functions(tmp_path)
    options = ("serve", "--port", "0", "--data", tmp_path / "data", "--config", settings)
    server = serve(*options, stderr=None)
    states = states_client(server.url)
    body = {"QueueUrl": "https://x/123456789012/orders", "MessageBody": "later", "DelaySeconds": 4}
    definition = json.dumps(one_task(f"{STATES}sqs:sendMessage", Parameters=body))
    machine = states.create_state_machine(name="m", definition=definition, roleArn=ROLE)
    began = time.time()
    started = states.start_execution(stateMachineArn=machine["stateMachineArn"])
    answer = json.loads(finished(states, started["executionArn"])["output"])
    server.kill()
    assert not lines(tmp_path / "orders") or time.time() - began >= 4
    serve(*options, stderr=None)
    wait_for(tmp_path / "orders")
    assert time.time() - began >= 4
    assert {one["messageId"] for one in lines(tmp_path / "orders")} == {answer["MessageId"]}


def test_a_sink_can_be_a_function(output: Run, folder: Path) -> None:
    parameters = {"QueueUrl": "https://x/123456789012/called", "MessageBody": "hello"}
    output(one_task(f"{STATES}sqs:sendMessage", Parameters=parameters))
    event = json.loads(wait_for(folder / "written"))
    assert event["Records"][0]["body"] == "hello"
    assert event["Records"][0]["eventSource"] == "aws:sqs"


def test_a_sink_can_be_a_stream(output: Run, server: Server) -> None:
    kinesis = server.client("kinesis")
    kinesis.create_stream(StreamName="messages", ShardCount=1)
    parameters = {
        "QueueUrl": "https://x/123456789012/streamed",
        "MessageBody": "hello",
        "MessageGroupId": "group",
    }
    output(one_task(f"{STATES}sqs:sendMessage", Parameters=parameters))
    shard = kinesis.list_shards(StreamName="messages")["Shards"][0]["ShardId"]
    iterator = kinesis.get_shard_iterator(
        StreamName="messages", ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    (record,) = kinesis.get_records(ShardIterator=iterator)["Records"]
    assert record["PartitionKey"] == "group"
    assert json.loads(record["Data"])["body"] == "hello"


def test_events_go_to_the_sink_of_their_bus(output: Run, folder: Path) -> None:
    entries = [
        {"Source": "shop", "DetailType": "order", "Detail": {"id": 1}},
        {"Source": "shop", "DetailType": "order", "Detail": '{"id": 2}', "EventBusName": "default"},
    ]
    answer = output(one_task(f"{STATES}events:putEvents", Parameters={"Entries": entries}))
    assert answer["FailedEntryCount"] == 0
    sent = {one["id"]: one for one in lines(folder / "bus")}
    details = [sent[entry["EventId"]]["detail"] for entry in answer["Entries"]]
    assert details == [{"id": 1}, {"id": 2}]


def test_an_answer_says_which_entries_were_not_taken(output: Run) -> None:
    whole = {"Source": "shop", "DetailType": "order", "Detail": "{}"}
    entries = [whole, {**whole, "Detail": "{"}, {**whole, "Source": ""}]
    answer = output(
        one_task(f"{STATES}aws-sdk:eventbridge:putEvents", Parameters={"Entries": entries})
    )
    assert answer["FailedEntryCount"] == 2
    codes = [entry.get("ErrorCode") for entry in answer["Entries"]]
    assert codes == [None, "MalformedDetail", "InvalidArgument"]


@pytest.mark.parametrize(
    ("resource", "parameters", "error"),
    [
        ("sns:publish", {"TopicArn": f"arn:aws:sns:{ACCOUNT}:none"}, "SNS.NotFoundException"),
        ("sqs:sendMessage", {"QueueUrl": "https://x/none"}, "SQS.QueueDoesNotExistException"),
        (
            "events:putEvents",
            {"Entries": [{"EventBusName": "none"}]},
            "EventBridge.ResourceNotFoundException",
        ),
        ("events:putEvents", {"Entries": [{"Detail": {"a": 1}}]}, "EventBridge.FailedEntry"),
        ("sqs:sendMessage", {**ORDER, "DelaySeconds": 901}, "SQS.SqsException"),
        ("sqs:sendMessage", {**ORDER, "MessageDeduplicationId": "1"}, "SQS.SqsException"),
        ("sqs:sendMessage", {**ORDER, "MessageAttributes": {"a": {}}}, "SQS.SqsException"),
        ("sqs:sendMessage", {**ORDER, "Priority": 1}, "States.Runtime"),
        (
            "sns:publish",
            {**NEWS, "MessageStructure": "json"},
            "SNS.InvalidParameterException",
        ),
        ("sns:publish", {**NEWS, "PhoneNumber": "+1"}, "States.Runtime"),
        ("events:putEvents", {"Entries": [], "EndpointId": "a.b"}, "States.Runtime"),
        ("aws-sdk:s3:getObject", {"Bucket": "none", "Key": "k"}, "S3.NoSuchBucketException"),
        ("aws-sdk:s3:getObject", {"Bucket": "reports", "Key": "no"}, "S3.NoSuchKeyException"),
        ("aws-sdk:s3:getObject", {"Bucket": "reports", "Key": "../partita.toml"}, "S3.S3Exception"),
        ("aws-sdk:s3:getObject", {}, "S3.S3Exception"),
        ("aws-sdk:s3:getObject", {"Bucket": "none", "Key": "k", "IfMatch": "x"}, "S3.S3Exception"),
        ("aws-sdk:s3:listObjectsV2", {"Bucket": "reports", "Delimiter": "/"}, "S3.S3Exception"),
    ],
)
def test_what_is_not_there_fails_as_in_the_service(
    run: Run, resource: str, parameters: Any, error: str
) -> None:
    execution = run(one_task(STATES + resource, Parameters=parameters))
    assert (execution["status"], execution["error"]) == ("FAILED", error)


def test_a_token_in_a_message_lets_the_machine_go_on(
    states: Any, create: Run, folder: Path
) -> None:
    parameters = {
        "QueueUrl": "https://x/123456789012/orders",
        "MessageBody": {"token.$": "$$.Task.Token", "for": "approval"},
    }
    machine = create(one_task(f"{STATES}sqs:sendMessage.waitForTaskToken", Parameters=parameters))
    started = states.start_execution(stateMachineArn=machine)["executionArn"]
    deadline = time.monotonic() + SECONDS_MAX
    while not (tokens := [one for one in lines(folder / "orders") if "approval" in one["body"]]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    token = json.loads(tokens[-1]["body"])["token"]
    states.send_task_success(taskToken=token, output='"approved"')
    while states.describe_execution(executionArn=started)["status"] == "RUNNING":
        time.sleep(0.05)
    assert states.describe_execution(executionArn=started)["output"] == '"approved"'


def test_objects_are_written_listed_read_copied_and_deleted(output: Run) -> None:
    def s3(operation: str, **parameters: Any) -> Any:
        return output(one_task(f"{STATES}aws-sdk:s3:{operation}", Parameters=parameters))

    s3("putObject", Bucket="reports", Key="2026/november.json", Body={"total": 42})
    got = s3("getObject", Bucket="reports", Key="2026/november.json")
    assert json.loads(got["Body"]) == {"total": 42}
    part = s3("getObject", Bucket="reports", Key="2026/november.json", Range="bytes=2-6")
    assert (part["Body"], part["ContentRange"]) == ("total", "bytes 2-6/12")
    s3("copyObject", Bucket="reports", Key="copy", CopySource="reports/2026/november.json")
    listed = s3("listObjectsV2", Bucket="reports", Prefix="2026/")
    assert [one["Key"] for one in listed["Contents"]] == ["2026/november.json"]
    s3("deleteObject", Bucket="reports", Key="2026/november.json")
    assert s3("listObjectsV2", Bucket="reports", Prefix="2026/")["KeyCount"] == 0


@pytest.fixture
def endpoint() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps({"path": self.path, "got": json.loads(body)}).encode()
            self.send_response(404 if "missing" in self.path else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_http_tasks_call_an_endpoint(output: Run, run: Run, endpoint: str) -> None:
    parameters = {
        "ApiEndpoint": f"{endpoint}/orders",
        "Method": "POST",
        "QueryParameters": {"dry": "yes"},
        "RequestBody": {"id": 1},
        "InvocationConfig": {
            "ConnectionArn": f"arn:aws:events:{ACCOUNT}:connection/c/1",
        },
    }
    answer = output(one_task(f"{STATES}http:invoke", Parameters=parameters))
    assert answer["StatusCode"] == 200
    assert answer["ResponseBody"] == {"path": "/orders?dry=yes", "got": {"id": 1}}
    missing = {**parameters, "ApiEndpoint": f"{endpoint}/missing"}
    execution = run(one_task(f"{STATES}http:invoke", Parameters=missing))
    assert execution["error"] == "States.Http.StatusCode.404"


def test_api_gateway_tasks_call_an_endpoint(output: Run, endpoint: str) -> None:
    parameters = {
        "ApiEndpoint": endpoint,
        "Stage": "prod",
        "Path": "orders/1",
        "Method": "POST",
        "RequestBody": {"id": 1},
    }
    answer = output(one_task(f"{STATES}apigateway:invoke", Parameters=parameters))
    assert answer["ResponseBody"]["path"] == "/prod/orders/1"


def test_a_function_stands_in_for_a_service_that_is_not_built(output: Run) -> None:
    machine = one_task(f"{STATES}athena:startQueryExecution.sync", Parameters={"QueryString": "q"})
    assert output(machine) == {"QueryString": "q"}


def test_a_function_stands_in_for_all_operations_of_a_service(output: Run) -> None:
    image = {"Image": {"Name": "cat.jpg"}}
    labels = one_task(f"{STATES}aws-sdk:rekognition:detectLabels", Parameters=image)
    assert output(labels) == {"Labels": [{"Name": "cat.jpg"}]}
    text = one_task(f"{STATES}aws-sdk:rekognition:detectText", Parameters=image)
    assert output(text) == image, "one with a stand-in of its own"


def test_tasks_call_operations_of_lambda_and_the_scheduler(output: Run, run: Run) -> None:
    got = output(
        one_task(f"{STATES}aws-sdk:lambda:getFunction", Parameters={"FunctionName": "echo"})
    )
    assert got["Configuration"]["FunctionName"] == "echo"
    schedule = {
        "Name": "from-a-machine",
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": got["Configuration"]["FunctionArn"],
            "RoleArn": "arn:aws:iam::123456789012:role/r",
        },
    }
    created = output(one_task(f"{STATES}aws-sdk:scheduler:createSchedule", Parameters=schedule))
    assert created["ScheduleArn"].endswith("/default/from-a-machine")
    listed = output(
        one_task(f"{STATES}aws-sdk:scheduler:listSchedules", Parameters={"NamePrefix": "from-a"})
    )
    assert [one["Name"] for one in listed["Schedules"]] == ["from-a-machine"]
    missing = {"FunctionName": "nobody"}
    failed = run(one_task(f"{STATES}aws-sdk:lambda:getFunction", Parameters=missing))
    assert failed["error"] == "Lambda.ResourceNotFoundException"
