"""Schedules: EventBridge Scheduler's API, the settings' form, and what they call."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from botocore.exceptions import ClientError

from testkit.packaging.function_packages import ROLE, create, wait_for
from testkit.servers.processes import Server

OFF = {"Mode": "OFF"}
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/scheduler/aws4_request, "
    "SignedHeaders=host, Signature=0"
)
WRITE_DOWN = """
import json

def handler(event, context):
    with open("{path}", "a") as file:
        file.write(json.dumps(event) + "\\n")
"""


@pytest.fixture(scope="session")
def scheduler(server: Server) -> Any:
    client = server.client("scheduler")
    # The process that runs them starts with the first request; moments must not pass meanwhile.
    client.list_schedules()
    return client


def at(seconds: float) -> str:
    return f"at({datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S})"


def events(path: Path) -> list[Any]:
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.fixture
def function(functions: Any, name: str, tmp_path: Path) -> tuple[str, Path]:
    """A function that writes down its events: its ARN, and the file."""
    path = tmp_path / "events"
    return create(functions, name, WRITE_DOWN.format(path=path))["FunctionArn"], path


def test_a_schedule_is_created_read_changed_listed_and_deleted(scheduler: Any, name: str) -> None:
    target = {"Arn": "arn:aws:lambda:us-east-1:123456789012:function:f", "RoleArn": ROLE}
    created = scheduler.create_schedule(
        Name=name, ScheduleExpression="rate(5 days)", FlexibleTimeWindow=OFF, Target=target
    )
    assert created["ScheduleArn"].endswith(f":schedule/default/{name}")
    got = scheduler.get_schedule(Name=name)
    assert (got["ScheduleExpression"], got["State"]) == ("rate(5 days)", "ENABLED")
    assert got["Target"] == target
    scheduler.update_schedule(
        Name=name,
        ScheduleExpression="cron(0 12 * * ? *)",
        ScheduleExpressionTimezone="Europe/Berlin",
        FlexibleTimeWindow=OFF,
        Target=target,
        State="DISABLED",
    )
    got = scheduler.get_schedule(Name=name)
    assert (got["ScheduleExpression"], got["State"]) == ("cron(0 12 * * ? *)", "DISABLED")
    listed = scheduler.list_schedules(NamePrefix=name)["Schedules"]
    assert [(one["Name"], one["State"]) for one in listed] == [(name, "DISABLED")]
    with pytest.raises(scheduler.exceptions.ConflictException):
        scheduler.create_schedule(
            Name=name, ScheduleExpression="rate(1 day)", FlexibleTimeWindow=OFF, Target=target
        )
    scheduler.delete_schedule(Name=name)
    with pytest.raises(scheduler.exceptions.ResourceNotFoundException):
        scheduler.get_schedule(Name=name)


def test_a_rate_calls_a_function_again_and_again(
    scheduler: Any, name: str, function: tuple[str, Path]
) -> None:
    # A minute passes in a second here.
    arn, path = function
    attributes = {"due": "scheduled-time", "by": "schedule-arn"}
    text = json.dumps({key: f"<aws.scheduler.{one}>" for key, one in attributes.items()})
    scheduler.create_schedule(
        Name=name,
        ScheduleExpression="rate(1 minute)",
        FlexibleTimeWindow=OFF,
        Target={"Arn": arn, "RoleArn": ROLE, "Input": text},
    )
    seen = wait_for(lambda: events(path), lambda seen: len(seen) >= 2)
    scheduler.delete_schedule(Name=name)
    assert seen[0]["by"].endswith(f"/{name}")
    assert seen[0]["due"] < seen[1]["due"]


def test_once_at_a_moment_and_then_deleted(
    scheduler: Any, name: str, function: tuple[str, Path]
) -> None:
    arn, path = function
    scheduler.create_schedule(
        Name=name,
        ScheduleExpression=at(3),
        FlexibleTimeWindow=OFF,
        Target={"Arn": arn, "RoleArn": ROLE},
        ActionAfterCompletion="DELETE",
    )
    (event,) = wait_for(lambda: events(path))
    assert event["detail-type"] == "Scheduled Event"
    assert event["source"] == "aws.scheduler"
    wait_for(lambda: not scheduler.list_schedules(NamePrefix=name)["Schedules"])


def test_a_schedule_starts_a_machine(scheduler: Any, server: Server, name: str) -> None:
    machines = server.client("stepfunctions")
    definition = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    arn = machines.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE)[
        "stateMachineArn"
    ]
    scheduler.create_schedule(
        Name=name,
        ScheduleExpression=at(3),
        FlexibleTimeWindow=OFF,
        Target={"Arn": arn, "RoleArn": ROLE, "Input": '{"a": 1}'},
    )
    (execution,) = wait_for(lambda: machines.list_executions(stateMachineArn=arn)["executions"])
    described = machines.describe_execution(executionArn=execution["executionArn"])
    assert json.loads(described["input"]) == {"a": 1}


def test_a_schedule_calls_an_operation(scheduler: Any, server: Server, name: str) -> None:
    client = server.client()
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    item = {"TableName": name, "Item": {"pk": {"S": "scheduled"}}}
    scheduler.create_schedule(
        Name=name,
        ScheduleExpression=at(3),
        FlexibleTimeWindow=OFF,
        Target={
            "Arn": "arn:aws:scheduler:::aws-sdk:dynamodb:putItem",
            "RoleArn": ROLE,
            "Input": json.dumps(item),
        },
    )
    assert wait_for(lambda: client.scan(TableName=name)["Items"]) == [{"pk": {"S": "scheduled"}}]


def test_a_schedule_puts_an_event_on_a_bus(scheduler: Any, name: str, folder: Path) -> None:
    scheduler.create_schedule(
        Name=name,
        ScheduleExpression="rate(1 minute)",
        FlexibleTimeWindow=OFF,
        Target={
            "Arn": "arn:aws:events:us-east-1:123456789012:event-bus/default",
            "RoleArn": ROLE,
            "Input": json.dumps({"for": name}),
            "EventBridgeParameters": {"DetailType": "reminder", "Source": "clock"},
        },
    )
    bus = folder / "bus"
    first, *_ = wait_for(lambda: [one for one in events(bus) if one["detail"] == {"for": name}])
    scheduler.delete_schedule(Name=name)
    assert (first["source"], first["detail-type"]) == ("clock", "reminder")


@pytest.mark.parametrize(
    "changed",
    [
        {"Target": {"Input": "9" * 5000}},
        {"Target": {"Input": "[" * 100_000}},
        {"Target": {"Input": "[" * 3000 + "]" * 3000}},
        {"Target": {"Input": "NaN"}},
        {"StartDate": int("9" * 400)},
        {"EndDate": int("9" * 400)},
        {"StartDate": 1e300},
        {"StartDate": -1e300},
    ],
    ids=range(8),
)
def test_what_no_schedule_can_be_is_refused(
    server: Server, scheduler: Any, name: str, changed: dict[str, Any]
) -> None:
    target = {"Arn": "arn:aws:lambda:us-east-1:123456789012:function:f", "RoleArn": ROLE}
    body = {
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": OFF,
        **changed,
        "Target": {**target, **changed.get("Target", {})},
    }
    request = Request(
        f"{server.url}/schedules/{name}",
        json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": AUTHORIZATION,
        },
    )
    with pytest.raises(HTTPError) as refused:
        urlopen(request, timeout=30)
    with refused.value as answer:
        assert (answer.code, answer.headers["x-amzn-ErrorType"]) == (400, "ValidationException")


def test_groups_have_tags(scheduler: Any, name: str) -> None:
    arn = scheduler.create_schedule_group(Name=name, Tags=[{"Key": "team", "Value": "a"}])
    group = arn["ScheduleGroupArn"]
    scheduler.tag_resource(ResourceArn=group, Tags=[{"Key": "stage", "Value": "b"}])
    scheduler.untag_resource(ResourceArn=group, TagKeys=["team"])
    tags = scheduler.list_tags_for_resource(ResourceArn=group)["Tags"]
    assert tags == [{"Key": "stage", "Value": "b"}]


def test_groups_take_their_schedules_along(scheduler: Any, name: str) -> None:
    scheduler.create_schedule_group(Name=name)
    scheduler.create_schedule(
        Name="s",
        GroupName=name,
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow=OFF,
        Target={"Arn": "arn:aws:lambda:us-east-1:123456789012:function:f", "RoleArn": ROLE},
    )
    assert len(scheduler.list_schedules(GroupName=name)["Schedules"]) == 1
    scheduler.delete_schedule_group(Name=name)
    with pytest.raises(scheduler.exceptions.ResourceNotFoundException):
        scheduler.get_schedule(Name="s", GroupName=name)


@pytest.mark.parametrize(
    ("expression", "target"),
    [
        ("rate(1 minutes)", "lambda:us-east-1:123456789012:function:f"),
        ("rate(0 days)", "lambda:us-east-1:123456789012:function:f"),
        ("cron(0 12 * * * *)", "lambda:us-east-1:123456789012:function:f"),
        ("cron(61 12 * * ? *)", "lambda:us-east-1:123456789012:function:f"),
        ("whenever", "lambda:us-east-1:123456789012:function:f"),
        ("rate(1 day)", "sqs:us-east-1:123456789012:no-sink"),
        ("rate(1 day)", "ecs:us-east-1:123456789012:cluster/c"),
        ("rate(1 day)", "events:us-east-1:123456789012:event-bus/default"),
        ("rate(1 day)", "scheduler:::aws-sdk:dynamodb:noSuchOperation"),
        ("rate(1 day)", "scheduler:::aws-sdk:dynamodb:createGlobalTable"),
        ("rate(1 day)", "scheduler:::aws-sdk:dynamodb:getItem"),
        ("rate(1 day)", "scheduler:::aws-sdk:ec2:startInstances"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(
    scheduler: Any, name: str, expression: str, target: str
) -> None:
    with pytest.raises(ClientError) as caught:
        scheduler.create_schedule(
            Name=name,
            ScheduleExpression=expression,
            FlexibleTimeWindow=OFF,
            Target={"Arn": f"arn:aws:{target}", "RoleArn": ROLE},
        )
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_a_schedule_of_the_settings_runs_and_what_was_missed_runs_once(
    serve: Any, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    (tmp_path / "clockwork.py").write_text(WRITE_DOWN.format(path=seen))
    settings = tmp_path / "partita.toml"
    settings.write_text("""
[[functions]]
name = "tick"
handler = "clockwork:handler"

[[schedules]]
name = "minutely"
expression = "rate(1 minute)"
function = "tick"
input = {n = 1}
""")
    arguments = ("serve", "--port", "0", "--data", tmp_path / "data", "--config", settings)
    server = serve(*arguments, "--time-scale", "60")
    wait_for(lambda: events(seen))
    server.kill()
    before = len(events(seen))
    # From now on a minute is a minute: only what was missed can come soon.
    server = serve(*arguments)
    wait_for(lambda: len(events(seen)) > before)
    assert events(seen)[-1] == {"n": 1}
    scheduler = server.client("scheduler")
    (listed,) = scheduler.list_schedules(GroupName="settings")["Schedules"]
    assert listed["Name"] == "minutely"
    with pytest.raises(scheduler.exceptions.ConflictException):
        scheduler.delete_schedule(Name="minutely", GroupName="settings")


def test_a_wrong_expression_in_the_settings_is_told_of_at_the_start(tmp_path: Path) -> None:
    from testkit.servers.processes import run

    settings = tmp_path / "partita.toml"
    settings.write_text('[[schedules]]\nname = "s"\nexpression = "daily"\nfunction = "f"\n')
    completed = run("serve", "--port", "0", "--in-memory", "--config", settings)
    assert completed.returncode == 1
    assert "Invalid Schedule Expression daily." in completed.stderr
