"""RedriveExecution: what failed continues, what succeeded is kept, and nobody redrives twice."""

from __future__ import annotations

import json
import random
import string
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .conftest import Json, events, finished, function, one_task, states_client, types
from .test_killed import companions, kill, patiently
from .test_state_machines import refused

TWO_TASKS: Json = {
    "StartAt": "Kept",
    "States": {
        "Kept": {
            "Type": "Task",
            "Resource": function("count"),
            "ResultPath": "$.kept",
            "Next": "Two",
        },
        "Two": {
            "Type": "Task",
            "Resource": function("count"),
            "Parameters": {"file.$": "$.second", "failures.$": "$.secondFailures"},
            "End": True,
        },
    },
}


def started(states: Any, arn: str, input: Json, **parameters: Any) -> str:
    answer = states.start_execution(stateMachineArn=arn, input=json.dumps(input), **parameters)
    return str(answer["executionArn"])


def two_tasks(folder: Path, failures: int) -> Json:
    return {
        "file": str(folder / "first"),
        "failures": 0,
        "second": str(folder / "second"),
        "secondFailures": failures,
    }


def test_an_execution_goes_on_from_the_task_that_failed(
    states: Any, create: Callable[..., str], tmp_path: Path
) -> None:
    machine = create(TWO_TASKS)
    execution = started(states, machine, two_tasks(tmp_path, 1))
    failed = finished(states, execution)
    assert (failed["status"], failed["error"]) == ("FAILED", "OutOfStock")
    assert (failed["redriveStatus"], failed["redriveCount"]) == ("REDRIVABLE", 0)
    assert "redriveDate" not in failed
    before = events(states, execution)

    redriven = states.redrive_execution(executionArn=execution)
    done = finished(states, execution)
    assert (done["status"], done["output"]) == ("SUCCEEDED", '"at last"')
    assert done["redriveCount"] == 1
    assert done["redriveDate"] == redriven["redriveDate"]
    assert done["startDate"] == failed["startDate"] < done["redriveDate"] <= done["stopDate"]
    assert "error" not in done
    assert done["redriveStatusReason"] == "Execution is SUCCEEDED and cannot be redriven"
    assert (tmp_path / "first").read_text() == "x"
    assert (tmp_path / "second").read_text() == "xx"

    after = events(states, execution)
    assert after[: len(before)] == before
    assert types(after)[len(before) :] == [
        "ExecutionRedriven",
        "LambdaFunctionScheduled",
        "LambdaFunctionStarted",
        "LambdaFunctionSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]
    assert after[len(before)]["executionRedrivenEventDetails"] == {"redriveCount": 1}


def test_listed_executions_say_whether_they_were_redriven(
    states: Any, create: Callable[..., str]
) -> None:
    machine = create({"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "E"}}})
    once, never = (started(states, machine, {}, name=name) for name in ("once", "never"))
    for execution in (once, never):
        finished(states, execution)
    states.redrive_execution(executionArn=once)
    assert finished(states, once)["status"] == "FAILED"

    def listed(**filters: str) -> list[tuple[str, int, bool]]:
        found = states.list_executions(stateMachineArn=machine, **filters)["executions"]
        return [(one["name"], one["redriveCount"], "redriveDate" in one) for one in found]

    assert listed(redriveFilter="REDRIVEN") == [("once", 1, True)]
    assert listed(redriveFilter="NOT_REDRIVEN", statusFilter="FAILED") == [("never", 0, False)]
    assert len(listed()) == 2
    refused(
        states,
        states.list_executions,
        "ValidationException",
        stateMachineArn=machine,
        statusFilter="PENDING_REDRIVE",
    )


def test_an_execution_can_be_redriven_again_and_again(
    states: Any, create: Callable[..., str], tmp_path: Path
) -> None:
    task = one_task(function("count"))
    execution = started(states, create(task), {"file": str(tmp_path / "file"), "failures": 3})
    for count in (1, 2, 3):
        assert finished(states, execution)["status"] == "FAILED"
        states.redrive_execution(executionArn=execution)
        assert finished(states, execution)["redriveCount"] == count
    assert finished(states, execution)["status"] == "SUCCEEDED"
    ids = [event["id"] for event in events(states, execution)]
    assert ids == [*range(1, len(ids) + 1)]


def test_the_same_token_redrives_once(states: Any, create: Callable[..., str]) -> None:
    machine = create({"StartAt": "No", "States": {"No": {"Type": "Fail"}}})
    execution = started(states, machine, {})
    finished(states, execution)
    first = states.redrive_execution(executionArn=execution, clientToken="one")
    again = states.redrive_execution(executionArn=execution, clientToken="one")
    assert again["redriveDate"] == first["redriveDate"]
    assert finished(states, execution)["redriveCount"] == 1
    states.redrive_execution(executionArn=execution, clientToken="two")
    assert finished(states, execution)["redriveCount"] == 2


def test_of_many_redrives_at_once_one_counts(
    states: Any, create: Callable[..., str], tmp_path: Path
) -> None:
    task = {**one_task(function("count"))["States"]["Only"], "Next": "Long"}
    del task["End"]
    wait = {"Type": "Wait", "Seconds": 9000, "End": True}
    machine = create({"StartAt": "Only", "States": {"Only": task, "Long": wait}})
    execution = started(states, machine, {"file": str(tmp_path / "file"), "failures": 1})
    assert finished(states, execution)["status"] == "FAILED"

    def redrive(_: int) -> bool:
        try:
            states.redrive_execution(executionArn=execution)
        except states.exceptions.ExecutionNotRedrivable:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(redrive, range(8))) == 1
    assert states.describe_execution(executionArn=execution)["redriveCount"] == 1
    assert types(events(states, execution)).count("ExecutionRedriven") == 1
    states.stop_execution(executionArn=execution)


def test_what_runs_or_succeeded_is_not_redriven(states: Any, create: Callable[..., str]) -> None:
    waiting = create(
        {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9000, "End": True}}}
    )
    running = started(states, waiting, {})
    message = refused(
        states, states.redrive_execution, "ExecutionNotRedrivable", executionArn=running
    )
    assert message == "Execution is RUNNING and cannot be redriven"
    states.stop_execution(executionArn=running)
    states.redrive_execution(executionArn=running)
    assert states.describe_execution(executionArn=running)["status"] == "RUNNING"
    states.stop_execution(executionArn=running)

    done = started(states, create({"StartAt": "Y", "States": {"Y": {"Type": "Succeed"}}}), {})
    finished(states, done)
    refused(states, states.redrive_execution, "ExecutionNotRedrivable", executionArn=done)
    refused(
        states,
        states.redrive_execution,
        "ExecutionDoesNotExist",
        executionArn=f"{done}-not-there",
    )


def test_the_timeout_of_the_machine_begins_anew(states: Any, create: Callable[..., str]) -> None:
    wait = {"Type": "Wait", "SecondsPath": "$.seconds", "End": True}
    machine = create({"StartAt": "W", "States": {"W": wait}, "TimeoutSeconds": 10})
    execution = started(states, machine, {"seconds": 300})
    assert finished(states, execution)["status"] == "TIMED_OUT"
    states.redrive_execution(executionArn=execution)
    again = finished(states, execution)
    assert again["status"] == "TIMED_OUT"
    assert (again["stopDate"] - again["redriveDate"]).total_seconds() >= 10 / 20


def test_a_redriven_execution_survives_a_kill(serve: Any, tmp_path: Path) -> None:
    """The state is too long for one item."""
    server = serve("serve", "--port", "0", "--data", tmp_path / "data", "--time-scale", "20")
    states = states_client(server.url)
    text = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=200_000))
    branches = [
        {
            "StartAt": f"P{number}",
            "States": {
                f"P{number}": {"Type": "Pass", "Result": text, "Next": f"W{number}"},
                f"W{number}": {"Type": "Wait", "Seconds": 40, "End": True},
            },
        }
        for number in range(4)
    ]
    definition = {
        "StartAt": "All",
        "States": {
            "All": {"Type": "Parallel", "Branches": branches, "ResultSelector": {}, "End": True}
        },
    }
    machine = states.create_state_machine(
        name="long", definition=json.dumps(definition), roleArn="arn:aws:iam::1:role/r"
    )["stateMachineArn"]
    execution = started(states, machine, {})
    states.stop_execution(executionArn=execution)
    kill(companions(server))
    patiently(states.redrive_execution, executionArn=execution, clientToken="token")
    kill(companions(server))
    while patiently(states.describe_execution, executionArn=execution)["status"] == "RUNNING":
        time.sleep(0.05)
    done = states.describe_execution(executionArn=execution)
    assert (done["status"], done["redriveCount"]) == ("SUCCEEDED", 1)
    found = events(states, execution)
    assert [event["id"] for event in found] == [*range(1, len(found) + 1)]
    assert types(found).count("ExecutionRedriven") == 1
    assert types(found).count("PassStateEntered") == 4
