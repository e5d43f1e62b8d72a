"""Executions over Step Functions' API: started, described, listed, stopped, and their history."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import SECONDS_MAX, Json, events, finished, function, one_task, types
from .test_state_machines import PASS, WAIT, refused

Create = Callable[..., str]
LOOP: Json = {
    "StartAt": "Add",
    "States": {
        "Add": {
            "Type": "Pass",
            "Parameters": {"n.$": "States.MathAdd($.n, 1)"},
            "Next": "Enough",
        },
        "Enough": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericLessThan": 100, "Next": "Add"}],
            "Default": "Done",
        },
        "Done": {"Type": "Succeed"},
    },
}


def test_an_execution_is_described_with_input_and_output(states: Any, create: Create) -> None:
    arn = create(one_task(function("add_one")))
    started = states.start_execution(stateMachineArn=arn, name="first", input='{"n": 1}')
    assert started["executionArn"] == arn.replace("stateMachine", "execution") + ":first"
    execution = finished(states, started["executionArn"])
    assert execution["name"] == "first"
    assert execution["stateMachineArn"] == arn
    assert execution["input"] == '{"n": 1}'
    assert execution["output"] == '{"n":2}'
    assert execution["startDate"] == started["startDate"]
    assert execution["stopDate"] >= execution["startDate"]
    assert execution["redriveStatus"] == "NOT_REDRIVABLE"


def test_the_history_has_the_events_of_step_functions(states: Any, create: Create) -> None:
    machine = create(one_task(function("add_one")))
    arn = states.start_execution(stateMachineArn=machine, input='{"n": 1}')["executionArn"]
    finished(states, arn)
    found = events(states, arn)
    assert types(found) == [
        "ExecutionStarted",
        "TaskStateEntered",
        "LambdaFunctionScheduled",
        "LambdaFunctionStarted",
        "LambdaFunctionSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]
    assert [event["id"] for event in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [event["previousEventId"] for event in found] == [0, 0, 2, 3, 4, 5, 6]
    assert found[0]["executionStartedEventDetails"]["input"] == '{"n":1}'
    assert found[1]["stateEnteredEventDetails"]["name"] == "Only"
    assert found[2]["lambdaFunctionScheduledEventDetails"]["resource"] == function("add_one")
    assert found[4]["lambdaFunctionSucceededEventDetails"]["output"] == '{"n":2}'
    times = [event["timestamp"] for event in found]
    assert times == sorted(times)


def test_a_history_can_be_read_in_pages_and_backwards(states: Any, create: Create) -> None:
    arn = states.start_execution(stateMachineArn=create(LOOP), input='{"n": 0}')["executionArn"]
    finished(states, arn)
    whole = events(states, arn)
    assert [event["id"] for event in whole] == list(range(1, len(whole) + 1))
    assert len(whole) > 400
    for size in (7, 1000):
        config = {"PageSize": size}
        assert events(states, arn, PaginationConfig=config) == whole
        assert events(states, arn, PaginationConfig=config, reverseOrder=True) == whole[::-1]


def test_a_history_can_be_had_without_data(states: Any, create: Create) -> None:
    arn = states.start_execution(stateMachineArn=create(PASS), input='{"n": 0}')["executionArn"]
    finished(states, arn)
    found = events(states, arn, includeExecutionData=False)
    assert "input" not in found[0]["executionStartedEventDetails"]
    assert "output" not in found[-1]["executionSucceededEventDetails"]


def test_starting_a_running_execution_again_is_the_same_execution(
    states: Any, create: Create
) -> None:
    arn = create(WAIT)
    first = states.start_execution(stateMachineArn=arn, name="one", input='{"a": 1}')
    again = states.start_execution(stateMachineArn=arn, name="one", input='{"a": 1}')
    assert again["startDate"] == first["startDate"]
    text = refused(
        states,
        states.start_execution,
        "ExecutionAlreadyExists",
        stateMachineArn=arn,
        name="one",
        input='{"a": 2}',
    )
    assert text == f"Execution Already Exists: '{first['executionArn']}'"
    states.stop_execution(executionArn=first["executionArn"])
    refused(
        states,
        states.start_execution,
        "ExecutionAlreadyExists",
        stateMachineArn=arn,
        name="one",
        input='{"a": 1}',
    )


@pytest.mark.parametrize("text", ["", "nonsense", '{"a": NaN}', '{"a": 1} and more', "[" * 5000])
def test_an_input_that_is_not_json_is_refused(states: Any, create: Create, text: str) -> None:
    told = refused(
        states,
        states.start_execution,
        "InvalidExecutionInput",
        stateMachineArn=create(PASS),
        input=text,
    )
    assert told.startswith("Invalid State Machine Execution Input: '")


def test_large_inputs_and_outputs_are_kept(states: Any, create: Create) -> None:
    import random

    chance = random.Random(7)
    text = "".join(chance.choices('abcdefghijklmnopqrstuvwxyzäöü😀0123456789"\\', k=50_000))
    given = json.dumps({"texts": [text, text[::-1]]})
    arn = states.start_execution(stateMachineArn=create(PASS), input=given)["executionArn"]
    execution = finished(states, arn)
    assert execution["input"] == given
    assert json.loads(execution["output"]) == json.loads(given)
    assert json.loads(events(states, arn)[1]["stateEnteredEventDetails"]["input"]) == json.loads(
        given
    )


def test_more_than_a_transaction_holds_is_kept_too(states: Any, create: Create) -> None:
    items = [{"seed": number, "length": 200_000} for number in range(30)]
    machine = {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": one_task(function("random_text")),
                "ResultSelector": {"first.$": "$[0]"},
                "End": True,
            }
        },
    }
    given = json.dumps({"items": items})
    arn = states.start_execution(stateMachineArn=create(machine), input=given)["executionArn"]
    execution = finished(states, arn)
    assert len(json.loads(execution["output"])["first"]) == 200_000
    found = events(states, arn)
    assert [event["id"] for event in found] == list(range(1, len(found) + 1))
    texts = [
        json.loads(event["lambdaFunctionSucceededEventDetails"]["output"])
        for event in found
        if event["type"] == "LambdaFunctionSucceeded"
    ]
    assert len(set(texts)) == 30
    assert {len(text) for text in texts} == {200_000}


def test_a_stopped_execution_is_aborted(states: Any, create: Create) -> None:
    arn = states.start_execution(stateMachineArn=create(WAIT))["executionArn"]
    stopped = states.stop_execution(executionArn=arn, error="Enough", cause="no more")
    execution = states.describe_execution(executionArn=arn)
    assert execution["status"] == "ABORTED"
    assert (execution["error"], execution["cause"]) == ("Enough", "no more")
    assert execution["stopDate"] == stopped["stopDate"]
    last = events(states, arn)[-1]
    assert last["type"] == "ExecutionAborted"
    assert last["executionAbortedEventDetails"] == {"error": "Enough", "cause": "no more"}
    assert states.stop_execution(executionArn=arn)["stopDate"] == stopped["stopDate"]


def test_a_machine_that_takes_longer_than_its_timeout_is_timed_out(
    states: Any, create: Create
) -> None:
    arn = states.start_execution(stateMachineArn=create({**WAIT, "TimeoutSeconds": 5}))
    execution = finished(states, arn["executionArn"])
    assert execution["status"] == "TIMED_OUT"
    assert types(events(states, arn["executionArn"]))[-1] == "ExecutionTimedOut"


def test_waits_pass_as_fast_as_the_server_was_told(states: Any, create: Create) -> None:
    machine = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 20, "End": True}}}
    started = time.monotonic()
    arn = states.start_execution(stateMachineArn=create(machine))["executionArn"]
    finished(states, arn)
    assert time.monotonic() - started > 0.9


def test_executions_are_listed_the_newest_first(states: Any, create: Create) -> None:
    arn = create(PASS)
    names = [f"number-{number}" for number in range(7)]
    for name in names:
        execution = states.start_execution(stateMachineArn=arn, name=name)["executionArn"]
        finished(states, execution)
    pages = states.get_paginator("list_executions").paginate(
        stateMachineArn=arn, PaginationConfig={"PageSize": 3}
    )
    listed = [execution for page in pages for execution in page["executions"]]
    assert [execution["name"] for execution in listed] == names[::-1]
    assert {execution["status"] for execution in listed} == {"SUCCEEDED"}
    assert all(execution["stopDate"] for execution in listed)


def test_executions_are_listed_by_status(states: Any, create: Create) -> None:
    arn = create(WAIT)
    for number in range(4):
        states.start_execution(stateMachineArn=arn, name=f"number-{number}")
    stopped = arn.replace("stateMachine", "execution") + ":number-1"
    states.stop_execution(executionArn=stopped)

    def names(status: str) -> list[str]:
        listed = states.list_executions(stateMachineArn=arn, statusFilter=status, maxResults=10)
        return [execution["name"] for execution in listed["executions"]]

    assert names("RUNNING") == ["number-3", "number-2", "number-0"]
    assert names("ABORTED") == ["number-1"]
    assert names("FAILED") == []


def test_an_express_machine_is_run_while_its_caller_waits(states: Any, create: Create) -> None:
    arn = create(one_task(function("add_one")), type="EXPRESS")
    answer = states.start_sync_execution(stateMachineArn=arn, input='{"n": 1}', name="now")
    assert answer["status"] == "SUCCEEDED"
    assert json.loads(answer["output"]) == {"n": 2}
    assert ":express:" in answer["executionArn"]
    assert answer["billingDetails"]["billedDurationInMilliseconds"] >= 100
    failed = states.start_sync_execution(stateMachineArn=arn, input="{}")
    assert (failed["status"], failed["error"]) == ("FAILED", "KeyError")
    refused(states, states.list_executions, "StateMachineTypeNotSupported", stateMachineArn=arn)
    refused(
        states,
        states.describe_execution,
        "InvalidArn",
        executionArn=answer["executionArn"],
    )


def test_an_express_machine_can_also_be_started(states: Any, create: Create, tmp_path: Any) -> None:
    arn = create(one_task(function("hand_over")), type="EXPRESS")
    path = tmp_path / "said"
    given = json.dumps({"file": str(path), "token": "hello"})
    for _ in range(2):
        states.start_execution(stateMachineArn=arn, name="same", input=given)
    deadline = time.monotonic() + SECONDS_MAX
    while not path.exists() or path.read_text() != "hello":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_standard_machine_is_not_for_callers_that_wait(states: Any, create: Create) -> None:
    arn = create(PASS)
    refused(
        states, states.start_sync_execution, "StateMachineTypeNotSupported", stateMachineArn=arn
    )


def test_what_is_not_there_is_said_to_be_missing(states: Any) -> None:
    arn = "arn:aws:states:us-east-1:123456789012:execution:nothing:here"
    for call in (
        states.describe_execution,
        states.get_execution_history,
        states.stop_execution,
        states.describe_state_machine_for_execution,
    ):
        text = refused(states, call, "ExecutionDoesNotExist", executionArn=arn)
        assert text == f"Execution Does Not Exist: '{arn}'"


@pytest.mark.parametrize("token", ["nonsense", "%%%"])
def test_a_token_of_nobody_is_refused(states: Any, create: Create, token: str) -> None:
    refused(states, states.list_state_machines, "InvalidToken", nextToken=token)


def test_a_token_of_another_list_is_refused(states: Any, create: Create) -> None:
    first, second = create(PASS), create(PASS)
    for name in ("one", "other"):
        states.start_execution(stateMachineArn=first, name=name)
    token = states.list_executions(stateMachineArn=first, maxResults=1)["nextToken"]
    refused(states, states.list_executions, "InvalidToken", stateMachineArn=second, nextToken=token)
