"""The AWS CLI works with functions, mappings and schedules unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testkit.packaging.function_packages import ROLE, zipped
from testkit.servers.processes import Server

STREAMS = "arn:aws:kinesis:us-east-1:123456789012:stream"


def aws(server: Server, *arguments: str) -> Any:
    """Runs the AWS CLI and returns the JSON that it prints."""
    done = subprocess.run(
        [Path(sys.executable).parent / "aws", *arguments, "--endpoint-url", server.url],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": "us-east-1",
        },
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


def test_a_function_is_created_invoked_and_mapped(
    server: Server, name: str, tmp_path: Path
) -> None:
    package, answer = tmp_path / "package.zip", tmp_path / "answer"
    package.write_bytes(zipped(app="def handler(event, context): return event['n'] + 1"))
    created = aws(
        server, "lambda", "create-function", "--function-name", name, "--runtime", "python3.12",
        "--handler", "app.handler", "--role", ROLE, "--zip-file", f"fileb://{package}",
    )  # fmt: skip
    invoked = aws(
        server, "lambda", "invoke", "--function-name", name, "--payload", '{"n": 41}',
        str(answer),
    )  # fmt: skip
    assert (invoked["StatusCode"], answer.read_text()) == (200, "42")
    server.client("kinesis").create_stream(StreamName=name, ShardCount=1)
    mapping = aws(
        server, "lambda", "create-event-source-mapping", "--function-name", name,
        "--event-source-arn", f"arn:aws:kinesis:us-east-1:123456789012:stream/{name}",
        "--starting-position", "LATEST",
    )  # fmt: skip
    assert (mapping["State"], mapping["FunctionArn"]) == ("Creating", created["FunctionArn"])
    target = json.dumps({"Arn": created["FunctionArn"], "RoleArn": ROLE})
    schedule = aws(
        server, "scheduler", "create-schedule", "--name", name, "--target", target,
        "--schedule-expression", "rate(1 day)", "--flexible-time-window", "Mode=OFF",
    )  # fmt: skip
    assert schedule["ScheduleArn"].endswith(f"/default/{name}")


@pytest.mark.soak
def test_every_part_is_reached_by_the_command_line(
    server: Server, name: str, tmp_path: Path
) -> None:
    """Functions with versions and aliases, both kinds of streams, schedules, machines, map runs."""
    package, answer = tmp_path / "package.zip", tmp_path / "answer"
    package.write_bytes(zipped(app="def handler(event, context): return event"))
    function = ("--function-name", name)
    aws(
        server, "lambda", "create-function", *function, "--runtime", "python3.12",
        "--handler", "app.handler", "--role", ROLE, "--zip-file", f"fileb://{package}",
    )  # fmt: skip
    assert aws(server, "lambda", "publish-version", *function)["Version"] == "1"
    alias = ("--name", "live", "--function-version", "1")
    aws(server, "lambda", "create-alias", *function, *alias)
    payload = ("--payload", '{"n": 1}', str(answer))
    qualified = aws(server, "lambda", "invoke", *function, "--qualifier", "live", *payload)
    assert qualified["ExecutedVersion"] == "1"
    retries = ("--maximum-retry-attempts", "0")
    aws(server, "lambda", "put-function-event-invoke-config", *function, *retries)
    event = aws(server, "lambda", "invoke", *function, "--invocation-type", "Event", *payload)
    assert event["StatusCode"] == 202

    stream = ("--stream-name", name)
    aws(server, "kinesis", "create-stream", *stream, "--shard-count", "1")
    aws(server, "kinesis", "put-record", *stream, "--partition-key", "k", "--data", "ZGF0YQ==")
    scaling = ("--target-shard-count", "2", "--scaling-type", "UNIFORM_SCALING")
    assert aws(server, "kinesis", "update-shard-count", *stream, *scaling)["TargetShardCount"] == 2
    keys = ("--attribute-definitions", "AttributeName=id,AttributeType=S", "--key-schema")
    table = aws(
        server, "dynamodb", "create-table", "--table-name", name, *keys,
        "AttributeName=id,KeyType=HASH", "--billing-mode", "PAY_PER_REQUEST",
        "--stream-specification", "StreamEnabled=true,StreamViewType=NEW_IMAGE",
    )["TableDescription"]  # fmt: skip
    for source in (table["LatestStreamArn"], f"{STREAMS}/{name}"):
        mapping = aws(
            server, "lambda", "create-event-source-mapping", *function, "--event-source-arn",
            source, "--starting-position", "TRIM_HORIZON", "--bisect-batch-on-function-error",
            "--maximum-retry-attempts", "2", "--parallelization-factor", "2",
        )  # fmt: skip
        one = ("--uuid", mapping["UUID"])
        updated = aws(server, "lambda", "update-event-source-mapping", *one, "--batch-size", "7")
        assert updated["BatchSize"] == 7
        assert aws(server, "lambda", "get-event-source-mapping", *one)["UUID"] == mapping["UUID"]
    listed = aws(server, "lambda", "list-event-source-mappings", *function)
    assert len(listed["EventSourceMappings"]) == 2
    aws(server, "lambda", "delete-event-source-mapping", *one)

    arn = f"arn:aws:lambda:us-east-1:123456789012:function:{name}"
    target = json.dumps({"Arn": arn, "RoleArn": ROLE})
    schedule = (
        "--name", name, "--target", target, "--flexible-time-window", "Mode=OFF",
        "--schedule-expression",
    )  # fmt: skip
    aws(server, "scheduler", "create-schedule", *schedule, "rate(1 day)")
    aws(server, "scheduler", "update-schedule", *schedule, "cron(0 10 ? * MON-FRI *)")
    kept = aws(server, "scheduler", "get-schedule", "--name", name)
    assert kept["ScheduleExpression"] == "cron(0 10 ? * MON-FRI *)"
    aws(server, "scheduler", "delete-schedule", "--name", name)

    definition = json.dumps(
        {
            "StartAt": "Each",
            "States": {
                "Each": {
                    "Type": "Map",
                    "Label": "All",
                    "MaxConcurrency": 1,
                    "ItemProcessor": {
                        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                        "StartAt": "Wait",
                        "States": {
                            "Wait": {"Type": "Wait", "Seconds": 600, "Next": "Call"},
                            "Call": {"Type": "Task", "Resource": arn, "End": True},
                        },
                    },
                    "End": True,
                }
            },
        }
    )
    states = ("stepfunctions",)
    given = ("--definition", definition)
    checked = aws(server, *states, "validate-state-machine-definition", *given)
    assert checked["result"] == "OK"
    machine = aws(
        server, *states, "create-state-machine", "--name", name, *given, "--role-arn", ROLE
    )["stateMachineArn"]  # fmt: skip
    started = aws(
        server, *states, "start-execution", "--state-machine-arn", machine, "--input", "[1, 2]"
    )["executionArn"]  # fmt: skip
    execution = ("--execution-arn", started)
    (run,) = aws(server, *states, "list-map-runs", *execution)["mapRuns"]
    of_run = ("--map-run-arn", run["mapRunArn"])
    aws(server, *states, "update-map-run", *of_run, "--max-concurrency", "9")
    assert aws(server, *states, "describe-map-run", *of_run)["maxConcurrency"] == 9
    aws(server, *states, "stop-execution", *execution)
    assert aws(server, *states, "describe-execution", *execution)["status"] == "ABORTED"
    history = aws(server, *states, "get-execution-history", *execution)["events"]
    assert history[-1]["type"] == "ExecutionAborted"
