"""Tasks that others answer: by a task token, or as workers of an activity."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Json, events, finished, one_task, types
from .test_state_machines import refused

Create = Callable[..., str]


def waiting(file: Path, **fields: Any) -> Json:
    """A machine that hands a token over in a file, and waits."""
    payload = {"file": str(file), "token.$": "$$.Task.Token"}
    return one_task(
        "arn:aws:states:::lambda:invoke.waitForTaskToken",
        Parameters={"FunctionName": "hand_over", "Payload": payload},
        **fields,
    )


@pytest.fixture
def token(states: Any, create: Create, tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """`token()`: the ARN of an execution that waits, and the token that it waits for."""

    def start(**fields: Any) -> tuple[str, str]:
        path = tmp_path / "token"
        machine = create(waiting(path, **fields))
        arn = states.start_execution(stateMachineArn=machine)["executionArn"]
        while "TaskSubmitted" not in types(events(states, arn)):
            time.sleep(0.02)
        return arn, path.read_text()

    return start


def test_a_task_waits_until_its_token_is_answered(states: Any, token: Any) -> None:
    arn, given = token()
    assert states.describe_execution(executionArn=arn)["status"] == "RUNNING"
    states.send_task_success(taskToken=given, output='{"a": 1}')
    assert json.loads(finished(states, arn)["output"]) == {"a": 1}
    assert types(events(states, arn))[2:6] == [
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
    ]
    for call in (states.send_task_success, states.send_task_failure, states.send_task_heartbeat):
        more = {"output": "{}"} if call == states.send_task_success else {}
        refused(states, call, "TaskTimedOut", taskToken=given, **more)


def test_a_token_may_be_answered_with_a_failure(states: Any, token: Any) -> None:
    arn, given = token()
    states.send_task_failure(taskToken=given, error="Refused", cause="not today")
    execution = finished(states, arn)
    assert (execution["error"], execution["cause"]) == ("Refused", "not today")


def test_an_output_that_is_not_json_is_refused_and_changes_nothing(states: Any, token: Any) -> None:
    arn, given = token()
    text = refused(
        states, states.send_task_success, "InvalidOutput", taskToken=given, output="nonsense"
    )
    assert text.startswith("Invalid Output: '")
    states.send_task_success(taskToken=given, output="1")
    assert finished(states, arn)["output"] == "1"


def test_a_token_that_is_none_is_refused(states: Any) -> None:
    for wrong in ("nonsense", "x" * 1000):
        text = refused(
            states, states.send_task_success, "InvalidToken", taskToken=wrong, output="{}"
        )
        assert text == "Invalid Token: 'Invalid token'"


def test_a_task_without_heartbeats_fails(states: Any, token: Any) -> None:
    arn, _ = token(HeartbeatSeconds=10)
    execution = finished(states, arn)
    assert execution["error"] == "States.HeartbeatTimeout"


def test_heartbeats_keep_a_task_waiting(states: Any, token: Any) -> None:
    # Eighty seconds of the machine are four of ours.
    arn, given = token(HeartbeatSeconds=80)
    started = time.monotonic()
    while time.monotonic() - started < 4.5:
        states.send_task_heartbeat(taskToken=given)
        time.sleep(0.1)
    states.send_task_success(taskToken=given, output="{}")
    assert finished(states, arn)["status"] == "SUCCEEDED"


def test_activities_are_created_listed_and_deleted(states: Any) -> None:
    created = states.create_activity(name="ask", tags=[{"key": "a", "value": "b"}])
    assert states.create_activity(name="ask")["creationDate"] == created["creationDate"]
    arn = created["activityArn"]
    assert states.describe_activity(activityArn=arn)["name"] == "ask"
    assert arn in [one["activityArn"] for one in states.list_activities()["activities"]]
    assert states.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "a", "value": "b"}]
    states.delete_activity(activityArn=arn)
    text = refused(states, states.describe_activity, "ActivityDoesNotExist", activityArn=arn)
    assert text == f"Activity Does Not Exist: '{arn}'"


def test_workers_share_the_tasks_of_an_activity(states: Any, create: Create) -> None:
    activity = states.create_activity(name="add")["activityArn"]
    machine = create(one_task(activity, Parameters={"n.$": "$.n"}))
    answered: list[int] = []

    def work(name: str) -> None:
        while len(answered) < 12:
            task = states.get_activity_task(activityArn=activity, workerName=name)
            if not task.get("taskToken"):
                return
            number = json.loads(task["input"])["n"]
            if number < 0:
                return
            answered.append(number)
            states.send_task_success(taskToken=task["taskToken"], output=json.dumps(number + 1))

    workers = [threading.Thread(target=work, args=(f"worker-{n}",)) for n in range(3)]
    for worker in workers:
        worker.start()
    arns = [
        states.start_execution(stateMachineArn=machine, input=json.dumps({"n": n}))["executionArn"]
        for n in range(12)
    ]
    assert [json.loads(finished(states, arn)["output"]) for arn in arns] == list(range(1, 13))
    assert sorted(answered) == list(range(12))
    for _ in workers:
        states.start_execution(stateMachineArn=machine, input='{"n": -1}')
    for worker in workers:
        worker.join()
    found = events(states, arns[0])
    assert types(found)[2:5] == ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"]
    assert found[3]["activityStartedEventDetails"]["workerName"].startswith("worker-")


def test_a_task_of_an_activity_that_is_not_there_fails(states: Any, create: Create) -> None:
    activity = "arn:aws:states:us-east-1:123456789012:activity:forgotten"
    arn = states.start_execution(stateMachineArn=create(one_task(activity)))["executionArn"]
    execution = finished(states, arn)
    assert (execution["error"], execution["cause"]) == (
        "States.Runtime",
        f"The activity {activity} does not exist.",
    )


def test_heartbeats_are_expected_from_the_worker_that_has_the_task(
    states: Any, create: Create
) -> None:
    activity = states.create_activity(name="patient")["activityArn"]
    machine = create(one_task(activity, HeartbeatSeconds=5, TimeoutSeconds=2000))
    arn = states.start_execution(stateMachineArn=machine)["executionArn"]
    # Ten seconds of the machine.
    time.sleep(0.5)
    assert states.get_activity_task(activityArn=activity)["taskToken"]
    assert finished(states, arn)["error"] == "States.HeartbeatTimeout"
    expected = ["ActivityScheduled", "ActivityStarted", "ActivityTimedOut", "ExecutionFailed"]
    assert types(events(states, arn))[2:] == expected


def test_a_task_of_an_activity_that_nobody_takes_times_out(states: Any, create: Create) -> None:
    activity = states.create_activity(name="lonely")["activityArn"]
    machine = create(one_task(activity, TimeoutSeconds=5))
    arn = states.start_execution(stateMachineArn=machine)["executionArn"]
    assert finished(states, arn)["error"] == "States.Timeout"
