"""Executions survive kill -9 of their process, of functions and of the server. None is lost, none
runs twice: every history is complete, and has every step once."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from .conftest import (
    ROLE,
    SECONDS_MAX,
    Json,
    events,
    finished,
    function,
    one_task,
    states_client,
    types,
    write_functions,
)

NAME = "killed"
MACHINE_ARN = f"arn:aws:states:us-east-1:123456789012:stateMachine:{NAME}"
TASK: Json = {"Type": "Task", "Resource": function("add_one")}
MACHINE: Json = {
    "StartAt": "First",
    "States": {
        "First": {**TASK, "Next": "Wait"},
        "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Both"},
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "Left", "States": {"Left": {**TASK, "End": True}}},
                {"StartAt": "Right", "States": {"Right": {**TASK, "End": True}}},
            ],
            "ResultSelector": {"n.$": "$[1].n"},
            "Next": "Last",
        },
        "Last": {**TASK, "End": True},
    },
}
"""Adds three, with a function that may be called more often than that."""
STEPS = {
    "ExecutionStarted": 1,
    "TaskStateEntered": 4,
    "LambdaFunctionScheduled": 4,
    "LambdaFunctionStarted": 4,
    "LambdaFunctionSucceeded": 4,
    "TaskStateExited": 4,
    "WaitStateEntered": 1,
    "WaitStateExited": 1,
    "ParallelStateEntered": 1,
    "ParallelStateStarted": 1,
    "ParallelStateSucceeded": 1,
    "ParallelStateExited": 1,
    "ExecutionSucceeded": 1,
}


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def companions(server: Any, module: bytes = b"partita_services.workflows") -> list[int]:
    return [
        pid
        for pid in children(server.process.pid)
        if b"\0%b\0" % module in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def function_processes(server: Any) -> list[int]:
    """The processes of functions, and the companion that runs them."""
    runners = companions(server, b"partita_services.functions")
    return [pid for runner in runners for pid in (runner, *children(runner))]


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def patiently(call: Callable[..., Any], **parameters: Any) -> Any:
    """Repeats a call until it is answered, whatever was killed in between."""
    while True:
        try:
            return call(**parameters)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ExecutionAlreadyExists":
                # The answer to the first try was lost, and it is over by now.
                return None
            if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                raise
        except BotoCoreError:
            pass
        time.sleep(0.05)


def kill_at_random(
    serve: Any, folder: Path, executions: int, kills: list[str], seconds: float
) -> None:
    settings = write_functions(folder)

    def start(port: int) -> Any:
        options = ("--port", str(port), "--data", folder / "data", "--config", settings)
        return serve("serve", *options, stderr=None)

    server = start(0)
    states = states_client(server.url)
    states.create_state_machine(name=NAME, definition=json.dumps(MACHINE), roleArn=ROLE)
    names = [f"number-{number}" for number in range(executions)]

    def start_all() -> None:
        own = states_client(server.url)
        for number, name in enumerate(names):
            given = json.dumps({"n": number})
            patiently(own.start_execution, stateMachineArn=MACHINE_ARN, name=name, input=given)
            time.sleep(seconds * (len(kills) + 1) / executions / 2)

    starting = threading.Thread(target=start_all)
    starting.start()
    chance = random.Random(executions)
    for victim in kills:
        time.sleep(chance.uniform(0.5, 1.5) * seconds)
        if victim == "companion":
            kill(companions(server))
        elif victim == "functions":
            kill(companions(server, b"partita_services.functions"))
        else:
            server.kill()
            server = start(server.port)
    starting.join()
    for number, name in enumerate(names):
        arn = MACHINE_ARN.replace("stateMachine", "execution") + f":{name}"
        execution = finished_patiently(states, arn)
        assert execution["status"] == "SUCCEEDED", execution
        assert json.loads(execution["output"]) == {"n": number + 3}
        found = events(states, arn)
        assert [event["id"] for event in found] == list(range(1, len(found) + 1))
        assert Counter(types(found)) == STEPS, name
    listed = states.get_paginator("list_executions").paginate(stateMachineArn=MACHINE_ARN)
    assert sorted(names) == sorted(one["name"] for page in listed for one in page["executions"])


def finished_patiently(states: Any, arn: str) -> Json:
    patiently(states.describe_execution, executionArn=arn)
    return finished(states, arn)


def test_no_execution_is_lost_or_run_twice(serve: Any, tmp_path: Path) -> None:
    kill_at_random(
        serve, tmp_path, executions=20, kills=["companion", "functions", "server"], seconds=1.0
    )


@pytest.mark.soak
def test_no_execution_is_lost_or_run_twice_in_many_rounds(serve: Any, tmp_path: Path) -> None:
    kills = ["companion", "functions", "server"] * 10
    kill_at_random(serve, tmp_path, executions=600, kills=kills, seconds=1.5)


def test_a_killed_function_fails_its_task_and_may_be_retried(
    states: Any, create: Callable[..., str], tmp_path: Path
) -> None:
    retry = [{"ErrorEquals": ["Runtime.ExitError"], "IntervalSeconds": 1}]
    machine = create(one_task(function("await_death"), Retry=retry))
    called = tmp_path / "called"
    given = json.dumps({"file": str(called)})
    arn = states.start_execution(stateMachineArn=machine, input=given)["executionArn"]
    deadline = time.monotonic() + SECONDS_MAX
    while not called.exists() or not called.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    kill([int(called.read_text())])
    assert finished(states, arn)["status"] == "SUCCEEDED"
    found = types(events(states, arn))
    assert (found.count("LambdaFunctionFailed"), found.count("LambdaFunctionSucceeded")) == (1, 1)


def test_waits_timeouts_and_tokens_go_on_after_a_restart(serve: Any, tmp_path: Path) -> None:
    settings = write_functions(tmp_path)
    options = ("--data", tmp_path / "data", "--config", settings)
    server = serve("serve", "--port", "0", *options, stderr=None)
    states = states_client(server.url)
    payload = {"file": str(tmp_path / "token"), "token.$": "$$.Task.Token"}
    machines: dict[str, Json] = {
        "wait": {"Type": "Wait", "Seconds": 3, "End": True},
        "timeout": {
            "Type": "Task",
            "Resource": "arn:aws:states:us-east-1:123456789012:activity:nobody",
            "TimeoutSeconds": 3,
            "End": True,
        },
        "token": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Parameters": {"FunctionName": "hand_over", "Payload": payload},
            "End": True,
        },
    }
    states.create_activity(name="nobody")
    arns = {}
    for name, state in machines.items():
        definition = json.dumps({"StartAt": "Only", "States": {"Only": state}})
        machine = states.create_state_machine(name=name, definition=definition, roleArn=ROLE)
        arns[name] = states.start_execution(stateMachineArn=machine["stateMachineArn"])[
            "executionArn"
        ]
    while "TaskSubmitted" not in types(events(states, arns["token"])):
        time.sleep(0.02)
    token = (tmp_path / "token").read_text()
    (tmp_path / "token").unlink()
    server.kill()
    server = serve("serve", "--port", str(server.port), *options, stderr=None)
    assert finished_patiently(states, arns["wait"])["status"] == "SUCCEEDED"
    assert finished(states, arns["timeout"])["error"] == "States.Timeout"
    # The function was called and that was written down: it is not called again.
    assert not (tmp_path / "token").exists()
    states.send_task_success(taskToken=token, output="{}")
    assert finished(states, arns["token"])["status"] == "SUCCEEDED"
    elapsed = states.describe_execution(executionArn=arns["wait"])
    assert (elapsed["stopDate"] - elapsed["startDate"]).total_seconds() > 2.9


def test_executions_that_wait_for_others_find_them_after_a_restart(
    server: Any, states: Any, create: Callable[..., str]
) -> None:
    """Whichever of the two is taken up first."""
    wait = {"Type": "Wait", "Seconds": 60, "End": True}
    inner = create({"StartAt": "Wait", "States": {"Wait": wait}})
    resource = "arn:aws:states:::states:startExecution.sync"
    outer = create(one_task(resource, Parameters={"StateMachineArn": inner}))
    arns = [states.start_execution(stateMachineArn=outer)["executionArn"] for _ in range(10)]
    for arn in arns:
        while "TaskSubmitted" not in types(events(states, arn)):
            time.sleep(0.02)
    kill(companions(server))
    executions = [finished_patiently(states, arn) for arn in arns]
    assert [one["status"] for one in executions] == ["SUCCEEDED"] * len(arns), executions


def test_everything_ends_with_the_server(serve: Any, tmp_path: Path) -> None:
    settings = write_functions(tmp_path)
    server = serve("serve", "--port", "0", "--in-memory", "--config", settings)
    states = states_client(server.url)
    assert companions(server) == []
    task = {"Type": "Task", "Resource": function("alone"), "End": True}
    machine = states.create_state_machine(
        name="slow",
        definition=json.dumps({"StartAt": "Only", "States": {"Only": task}}),
        roleArn=ROLE,
    )["stateMachineArn"]
    activity = states.create_activity(name="long-poll")["activityArn"]
    states.start_execution(stateMachineArn=machine, input='{"seconds": 50}')
    (companion,) = companions(server)
    deadline = time.monotonic() + SECONDS_MAX
    while len(functions := function_processes(server)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    polled: list[Json] = []
    polling = threading.Thread(
        target=lambda: polled.append(states.get_activity_task(activityArn=activity))
    )
    polling.start()
    time.sleep(1)
    started = time.monotonic()
    code, said = server.terminate()
    assert (code, said) == (0, "")
    assert time.monotonic() - started < 30
    polling.join()
    assert not polled[0].get("taskToken")
    deadline = time.monotonic() + SECONDS_MAX
    while any(Path(f"/proc/{pid}").exists() for pid in (companion, *functions)):
        assert time.monotonic() < deadline, "something was left behind"
        time.sleep(0.05)
