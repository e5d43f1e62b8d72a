"""Functions that tasks call: Lambda's events, context, limits and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Json, events, function, one_task, types

Run = Callable[..., Any]


def both(resource: str, **fields: Any) -> Json:
    """A machine that has two tasks done at once."""
    task = {"Type": "Task", "Resource": resource, "End": True, **fields}
    branches = [{"StartAt": name, "States": {name: task}} for name in ("One", "Other")]
    state = {"Type": "Parallel", "Branches": branches, "End": True}
    return {"StartAt": "Both", "States": {"Both": state}}


def test_a_function_gets_the_input_and_its_result_is_the_output(output: Run) -> None:
    assert output(one_task(function("add_one")), {"n": 41}) == {"n": 42}


def test_values_of_all_kinds_go_there_and_back(output: Run) -> None:
    value = {"texts": ["", "ä", "\u2028", "line\nline"], "numbers": [0, -1, 2**60, 0.1, 1e300]}
    value |= {"nothing": None, "truths": [True, False], "nested": {"a": [{"b": {}}]}}
    assert output(one_task(function("echo")), value) == value


def test_the_context_is_that_of_lambda(output: Run) -> None:
    assert output(one_task(function("describe"))) == {
        "function_name": "describe",
        "function_version": "$LATEST",
        "invoked_function_arn": function("describe"),
        "has_request_id": True,
        "has_time_left": True,
        "colour": "green",
    }


@pytest.mark.parametrize(
    "resource",
    [
        "arn:aws:lambda:eu-west-1:999999999999:function:add_one",
        "arn:aws:lambda:us-east-1:123456789012:function:add_one:$LATEST",
        "${add_oneArn}",
        "${add_one}",
        "${add_one.Arn}",
        "arn:aws:lambda:REGION:ACCOUNT_ID:function:add_one",
        "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${add_one}",
    ],
)
def test_a_function_is_found_by_its_name_whatever_else_its_arn_says(
    output: Run, resource: str
) -> None:
    assert output(one_task(resource), {"n": 1}) == {"n": 2}


def test_an_exception_is_the_error_and_its_traceback_is_in_the_cause(run: Run) -> None:
    execution = run(one_task(function("refuse")), {"item": "tea"})
    assert execution["status"] == "FAILED"
    assert execution["error"] == "OutOfStock"
    cause = json.loads(execution["cause"])
    assert cause["errorType"] == "OutOfStock"
    assert cause["errorMessage"] == "nothing left of tea"
    assert cause["requestId"]
    assert any("in refuse" in frame for frame in cause["stackTrace"])


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("sleep", "Sandbox.Timedout", "Task timed out after 1.00 seconds"),
        ("end", "Runtime.ExitError", "exit status 3"),
        ("forbidden", "Runtime.MarshalError", "Unable to marshal response"),
        ("not_there", "Runtime.HandlerNotFound", "Handler 'not_there' missing on module"),
        ("nowhere", "Runtime.ImportModuleError", "Unable to import module 'no_such_module'"),
        ("unheard_of", "Lambda.ResourceNotFoundException", "Function not found"),
    ],
)
def test_what_goes_wrong_has_the_name_that_lambda_gives_it(
    run: Run, name: str, error: str, words: str
) -> None:
    execution = run(one_task(function(name)))
    assert (execution["status"], execution["error"]) == ("FAILED", error)
    assert words in execution["cause"]


def test_a_function_goes_on_working_after_it_failed(run: Run, output: Run) -> None:
    assert run(one_task(function("end")))["status"] == "FAILED"
    assert output(one_task(function("echo")), {"a": 1}) == {"a": 1}


def test_one_call_more_than_the_concurrency_allows_is_refused(run: Run) -> None:
    execution = run(both(function("alone")), {"seconds": 1})
    assert execution["status"] == "FAILED"
    assert execution["error"] == "Lambda.TooManyRequestsException"


def test_a_refused_call_is_tried_again_when_the_machine_says_so(output: Run) -> None:
    retry = [
        {
            "ErrorEquals": ["Lambda.TooManyRequestsException"],
            "IntervalSeconds": 5,
            "MaxAttempts": 10,
            "BackoffRate": 1.5,
        }
    ]
    assert output(both(function("alone"), Retry=retry), {"seconds": 0.2}) == ["awake"] * 2


def test_a_failing_function_is_tried_again_until_it_succeeds(
    states: Any, run: Run, tmp_path: Path
) -> None:
    retry = [{"ErrorEquals": ["OutOfStock"], "IntervalSeconds": 1, "MaxAttempts": 3}]
    execution = run(
        one_task(function("count"), Retry=retry),
        {"file": str(tmp_path / "calls"), "failures": 2},
    )
    assert json.loads(execution["output"]) == "at last"
    found = types(events(states, execution["executionArn"]))
    assert found.count("LambdaFunctionScheduled") == 3
    assert found.count("LambdaFunctionStarted") == 3
    assert found.count("LambdaFunctionFailed") == 2
    assert found.count("LambdaFunctionSucceeded") == 1


def test_a_task_that_takes_longer_than_its_timeout_fails(run: Run) -> None:
    # Ten seconds of the machine are half a second of ours.
    execution = run(one_task(function("alone"), TimeoutSeconds=10), {"seconds": 3})
    assert (execution["status"], execution["error"]) == ("FAILED", "States.Timeout")


def test_invoke_hands_over_the_payload_and_shows_the_answer_of_lambda(output: Run) -> None:
    parameters = {"FunctionName": function("add_one"), "Payload": {"n.$": "$.n"}}
    answer = output(one_task("arn:aws:states:::lambda:invoke", Parameters=parameters), {"n": 1})
    assert answer["Payload"] == {"n": 2}
    assert answer["StatusCode"] == 200
    assert answer["ExecutedVersion"] == "$LATEST"


def test_an_error_of_an_invoked_function_is_the_error_of_the_task(run: Run) -> None:
    parameters = {"FunctionName": "refuse", "Payload": {}}
    execution = run(one_task("arn:aws:states:::lambda:invoke", Parameters=parameters))
    assert execution["error"] == "OutOfStock"


def test_an_event_is_handed_over_without_waiting_for_the_function(output: Run) -> None:
    parameters = {"FunctionName": "refuse", "Payload": {}, "InvocationType": "Event"}
    result = output(one_task("arn:aws:states:::lambda:invoke", Parameters=parameters))
    assert result["StatusCode"] == 202
