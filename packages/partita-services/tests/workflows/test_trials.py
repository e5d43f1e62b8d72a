"""TestState: one state, without a machine around it. Expected answers are those of the service."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import ROLE, Json, function
from .test_state_machines import refused

LAMBDA: Json = {"Type": "Task", "Resource": function("echo"), "End": True}
INVOKE: Json = {
    "Type": "Task",
    "QueryLanguage": "JSONata",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Arguments": {"FunctionName": "f", "Payload": "{% $states.input.n %}"},
    "Retry": [
        {"ErrorEquals": ["Other"]},
        {"ErrorEquals": ["Busy"], "IntervalSeconds": 3, "MaxAttempts": 2, "BackoffRate": 2},
    ],
    "Catch": [
        {"ErrorEquals": ["Busy"], "Next": "Later", "Output": "{% $states.errorOutput.Error %}"},
        {"ErrorEquals": ["States.ALL"], "Next": "Never", "Output": "{% $states.errorOutput %}"},
    ],
    "End": True,
}
MAP: Json = {
    "Type": "Map",
    "ItemsPath": "$.values",
    "ItemSelector": {"it.$": "$$.Map.Item.Value"},
    "MaxConcurrency": 2,
    "ToleratedFailureCount": 1,
    "ItemProcessor": {"StartAt": "Each", "States": {"Each": {"Type": "Pass", "End": True}}},
    "Next": "After",
}


def tried(states: Any, definition: Json, input: Any = None, **parameters: Any) -> Json:
    """The answer without its metadata, and with what is JSON in it decoded."""
    given = {"roleArn": ROLE, "input": json.dumps({} if input is None else input)}
    answer = states.test_state(definition=json.dumps(definition), **given | parameters)
    del answer["ResponseMetadata"]
    if "output" in answer:
        answer["output"] = json.loads(answer["output"])
    if "inspectionData" in answer:
        answer["inspectionData"] = {
            name: json.loads(value) if isinstance(value, str) else value
            for name, value in answer["inspectionData"].items()
        }
    found: Json = answer
    return found


def test_a_choice_says_where_it_goes(states: Any) -> None:
    choice = {
        "Type": "Choice",
        "Choices": [
            {"Variable": "$.number", "NumericEquals": 1, "Next": "Equals 1"},
            {"Variable": "$.number", "NumericEquals": 2, "Next": "Equals 2"},
        ],
        "Default": "No Match",
    }
    two = {"number": 2}
    assert tried(states, choice, two) == {
        "output": two,
        "nextState": "Equals 2",
        "status": "SUCCEEDED",
    }
    assert tried(states, choice, two, inspectionLevel="DEBUG")["inspectionData"] == {
        "input": two,
        "afterInputPath": two,
    }


def test_what_became_of_the_data_of_a_pass_state_is_shown(states: Any) -> None:
    state = {
        "Type": "Pass",
        "InputPath": "$.payload",
        "Parameters": {"data": 1},
        "ResultPath": "$.result",
        "OutputPath": "$.result.data",
        "Next": "Another State",
    }
    payload = {"payload": {"foo": "bar"}}
    assert tried(states, state, payload, inspectionLevel="DEBUG") == {
        "output": 1,
        "inspectionData": {
            "input": payload,
            "afterInputPath": {"foo": "bar"},
            "afterParameters": {"data": 1},
            "afterResultSelector": {"data": 1},
            "afterResultPath": {"payload": {"foo": "bar"}, "result": {"data": 1}},
        },
        "nextState": "Another State",
        "status": "SUCCEEDED",
    }


def test_a_pass_state_with_a_result_does_not_look_at_its_input(states: Any) -> None:
    state = {"Type": "Pass", "Result": {"a": 1}, "ResultPath": "$.b", "End": True}
    assert tried(states, state, {"c": 2}, inspectionLevel="TRACE")["inspectionData"] == {
        "input": {"c": 2},
        "result": {"a": 1},
        "afterResultSelector": {"a": 1},
        "afterResultPath": {"c": 2, "b": {"a": 1}},
    }


def test_fail_and_succeed(states: Any) -> None:
    fail = {"Type": "Fail", "Error": "SomeFailure", "Cause": "because"}
    assert tried(states, fail, {"a": 1}, inspectionLevel="DEBUG") == {
        "error": "SomeFailure",
        "cause": "because",
        "inspectionData": {"input": {"a": 1}, "afterInputPath": {"a": 1}},
        "status": "FAILED",
    }
    assert tried(states, {"Type": "Succeed"}, {"a": 1}) == {
        "output": {"a": 1},
        "status": "SUCCEEDED",
    }


def test_a_wait_passes(states: Any) -> None:
    before = time.monotonic()
    answer = tried(states, {"Type": "Wait", "Seconds": 10, "Next": "Then"})
    assert answer == {"output": {}, "nextState": "Then", "status": "SUCCEEDED"}
    assert time.monotonic() - before >= 10 / 20


@pytest.mark.soak
def test_a_wait_of_more_than_five_minutes_is_broken_off(states: Any) -> None:
    before = time.monotonic()
    answer = tried(states, {"Type": "Wait", "Seconds": 100_000, "Next": "Then"})
    assert answer == {"error": "States.Timeout", "status": "FAILED"}
    assert 300 / 20 <= time.monotonic() - before < 60


def test_a_function_is_called(states: Any) -> None:
    task = {
        **LAMBDA,
        "InputPath": "$.a",
        "Parameters": {"n.$": "$"},
        "ResultSelector": {"m.$": "$.n"},
        "ResultPath": "$.b",
    }
    assert tried(states, task, {"a": 1}, inspectionLevel="DEBUG") == {
        "output": {"a": 1, "b": {"m": 1}},
        "inspectionData": {
            "input": {"a": 1},
            "afterInputPath": 1,
            "afterParameters": {"n": 1},
            "result": {"n": 1},
            "afterResultSelector": {"m": 1},
            "afterResultPath": {"a": 1, "b": {"m": 1}},
        },
        "status": "SUCCEEDED",
    }


def test_a_function_that_fails_is_caught_or_could_be_called_again(states: Any) -> None:
    refusing = {**LAMBDA, "Resource": function("refuse")}
    failed = tried(states, refusing, inspectionLevel="DEBUG")
    assert (failed["status"], failed["error"]) == ("FAILED", "OutOfStock")
    assert failed["inspectionData"] == {"input": {}, "afterInputPath": {}, "afterParameters": {}}

    catching = {**refusing, "Catch": [{"ErrorEquals": ["OutOfStock"], "Next": "No"}]}
    caught = tried(states, catching, inspectionLevel="DEBUG")
    assert (caught["status"], caught["nextState"]) == ("CAUGHT_ERROR", "No")
    assert caught["output"]["Error"] == "OutOfStock"
    assert caught["inspectionData"]["errorDetails"] == {"catchIndex": 0}

    retrying = {**catching, "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 7}]}
    again = tried(states, retrying, inspectionLevel="DEBUG")
    assert (again["status"], again["error"]) == ("RETRIABLE", "OutOfStock")
    assert "output" not in again
    assert again["inspectionData"]["errorDetails"] == {
        "retryIndex": 0,
        "retryBackoffIntervalSeconds": 7,
    }


def test_a_function_that_takes_too_long_times_out(states: Any) -> None:
    slow = {**LAMBDA, "Resource": function("sleep"), "TimeoutSeconds": 10}
    assert tried(states, slow) == {"error": "States.Timeout", "status": "FAILED"}


def test_a_table_is_asked(states: Any) -> None:
    missing = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:getItem",
        "Parameters": {"TableName": "not-there", "Key": {"id": {"S": "1"}}},
        "End": True,
    }
    answer = tried(states, missing)
    assert (answer["status"], answer["error"]) == ("FAILED", "DynamoDB.ResourceNotFoundException")


def test_each_trial_starts_an_execution_of_its_own(states: Any, create: Callable[..., str]) -> None:
    machine = create({"StartAt": "Y", "States": {"Y": {"Type": "Succeed"}}})
    starting = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution",
        "Parameters": {"StateMachineArn": machine},
        "End": True,
    }
    arns = {tried(states, starting)["output"]["ExecutionArn"] for _ in range(2)}
    assert len(arns) == len(states.list_executions(stateMachineArn=machine)["executions"]) == 2


def test_variables_are_given_and_assigned(states: Any) -> None:
    state = {
        "Type": "Pass",
        "QueryLanguage": "JSONata",
        "Assign": {"sum": "{% $a + 1 %}"},
        "Output": {"was": "{% $a %}", "name": "{% $states.context.State.Name %}"},
        "End": True,
    }
    answer = tried(states, state, variables='{"a": 1}', inspectionLevel="DEBUG")
    assert answer["output"] == {"was": 1, "name": "StateName"}
    assert answer["inspectionData"] == {"input": {}, "variables": {"a": 1, "sum": 2}}


def test_a_state_of_a_machine_is_named(states: Any) -> None:
    machine = {
        "QueryLanguage": "JSONata",
        "StartAt": "All",
        "States": {
            "All": {
                "Type": "Map",
                "ItemProcessor": {
                    "StartAt": "Inner",
                    "States": {
                        "Inner": {
                            "Type": "Pass",
                            "Output": "{% $states.input.n * 2 %}",
                            "End": True,
                        }
                    },
                },
                "End": True,
            }
        },
    }
    assert tried(states, machine, {"n": 4}, stateName="Inner")["output"] == 8
    refused(
        states,
        states.test_state,
        "ValidationException",
        definition=json.dumps(machine),
        stateName="Other",
    )


def test_a_mock_stands_for_the_service(states: Any) -> None:
    result = {"Payload": "function output", "StatusCode": 200}
    mock = {"result": json.dumps(result)}
    assert tried(states, INVOKE, {"n": 1}, mock=mock, inspectionLevel="DEBUG") == {
        "output": result,
        "inspectionData": {
            "input": {"n": 1},
            "afterArguments": {"FunctionName": "f", "Payload": 1},
            "result": result,
        },
        "status": "SUCCEEDED",
    }


def test_a_mocked_error_meets_retriers_and_catchers(states: Any) -> None:
    busy = {"errorOutput": {"error": "Busy", "cause": "many"}}

    def answer(retries: int) -> Json:
        return tried(
            states,
            INVOKE,
            {"n": 1},
            mock=busy,
            inspectionLevel="DEBUG",
            stateConfiguration={"retrierRetryCount": retries},
        )

    first, second, third = map(answer, range(3))
    assert first["status"] == second["status"] == "RETRIABLE"
    assert [one["inspectionData"]["errorDetails"] for one in (first, second)] == [
        {"retryIndex": 1, "retryBackoffIntervalSeconds": seconds} for seconds in (3, 6)
    ]
    assert (third["status"], third["nextState"], third["output"]) == (
        "CAUGHT_ERROR",
        "Later",
        "Busy",
    )
    assert (third["error"], third["cause"]) == ("Busy", "many")


def test_a_map_with_a_mock(states: Any) -> None:
    values = {"values": [1, 2, 3]}
    mock = {"result": '["a", "b", "c"]'}
    assert tried(states, MAP, values, mock=mock, inspectionLevel="DEBUG") == {
        "output": ["a", "b", "c"],
        "nextState": "After",
        "inspectionData": {
            "input": values,
            "afterInputPath": values,
            "afterItemsPath": [1, 2, 3],
            "afterItemSelector": [{"it": 1}, {"it": 2}, {"it": 3}],
            "maxConcurrency": 2,
            "toleratedFailureCount": 1,
            "afterResultSelector": ["a", "b", "c"],
            "afterResultPath": ["a", "b", "c"],
        },
        "status": "SUCCEEDED",
    }
    failed = tried(
        states, MAP, values, mock=mock, stateConfiguration={"mapIterationFailureCount": 2}
    )
    assert failed == {
        "error": "States.ExceedToleratedFailureThreshold",
        "cause": "The specified tolerated failure threshold was exceeded",
        "status": "FAILED",
    }
    no_list = tried(states, MAP, {"values": 1}, mock=mock)
    assert (no_list["error"], no_list["cause"]) == (
        "States.Runtime",
        'Reference path "$.values" must point to array.',
    )


def test_a_context_can_be_given_with_a_mock(states: Any) -> None:
    waiting = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {"token.$": "$$.Task.Token", "all.$": "$$"},
        "End": True,
    }
    context = {"Task": {"Token": "abcd123"}, "State": {}}
    answer = tried(
        states,
        waiting,
        mock={"result": "{}"},
        context=json.dumps(context),
        inspectionLevel="DEBUG",
    )
    assert answer["inspectionData"]["afterParameters"] == {"token": "abcd123", "all": context}


@pytest.mark.parametrize(
    ("definition", "parameters", "code", "message"),
    [
        (
            MAP,
            {},
            "InvalidDefinition",
            "TestState API does not support Map or Parallel states. Supported state types include: "
            "[Task, Wait, Pass, Succeed, Fail, Choice]",
        ),
        (
            {"Type": "Succeed"},
            {"mock": {"result": "{}"}},
            "ValidationException",
            "State type 'Succeed' is not supported when a mock is specified",
        ),
        (
            LAMBDA,
            {},
            "ValidationException",
            "RoleArn must be specified when testing a Task state",
        ),
        (
            LAMBDA,
            {"mock": {"result": "{}", "errorOutput": {"error": "E"}}},
            "ValidationException",
            "A test mock should have only one of the following fields: [result, errorOutput].",
        ),
        (
            LAMBDA,
            {"mock": {"result": "not JSON"}},
            "ValidationException",
            "Mocked result must be valid JSON",
        ),
        (
            LAMBDA,
            {"mock": {"result": "{}"}, "revealSecrets": True},
            "ValidationException",
            "TestState does not support RevealSecrets when a mock is specified.",
        ),
        (MAP, {"mock": {"result": "{}"}}, "ValidationException", "Mocked result must be an array."),
        (
            INVOKE,
            {"mock": {"result": '{"StatusCode": "200"}'}},
            "ValidationException",
            "Mock result schema validation error: Field 'StatusCode' must be a number",
        ),
        (
            LAMBDA,
            {"mock": {"result": "{}"}, "context": '{"Execution": {"Id": 1}}'},
            "ValidationException",
            "Invalid Context object provided: Execution.Id must be a string",
        ),
        (
            LAMBDA,
            {"mock": {"result": "{}"}, "context": '{"Pokedex": {}}'},
            "ValidationException",
            "Invalid Context object provided: Field 'Pokedex' is not allowed",
        ),
    ],
)
def test_what_cannot_be_tried_is_refused(
    states: Any, definition: Json, parameters: Json, code: str, message: str
) -> None:
    found = refused(
        states, states.test_state, code, definition=json.dumps(definition), **parameters
    )
    assert found == message


@pytest.mark.parametrize(
    ("mode", "result", "problem"),
    [
        ("STRICT", {}, "Required field 'ExecutionArn' is missing"),
        ("STRICT", {"ExecutionArn": "a", "StartDate": 1}, "Field 'StartDate' must be a string"),
        ("PRESENT", {"StartDate": True}, "Field 'StartDate' must be a string"),
        ("PRESENT", {"other": True}, None),
        ("NONE", {"StartDate": 1}, None),
    ],
)
def test_a_mocked_result_is_one_that_the_service_could_give(
    states: Any, mode: str, result: Json, problem: str | None
) -> None:
    starting = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution",
        "Parameters": {},
        "End": True,
    }
    mock = {"result": json.dumps(result), "fieldValidationMode": mode}
    if problem is None:
        assert tried(states, starting, mock=mock)["output"] == result
        return
    message = refused(
        states,
        states.test_state,
        "ValidationException",
        definition=json.dumps(starting),
        mock=mock,
    )
    assert message == f"Mock result schema validation error: {problem}"


def test_an_invalid_state_is_refused_as_a_machine_would_be(states: Any) -> None:
    for definition in ('{"Type": "Pass"}', '{"Type": "Nothing"}', "[]", "{", '{"End": true}'):
        refused(states, states.test_state, "InvalidDefinition", definition=definition)
