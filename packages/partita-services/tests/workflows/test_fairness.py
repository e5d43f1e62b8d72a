"""One workflow cannot stop the others: expressions have bounds on time and memory, executions take
turns, and StopExecution always works."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROLE, Json, finished, states_client, types
from .conftest import events as history

ANSWER_SECONDS_MAX = 8.0
"""Generous: the machine that runs the tests may be busy with others."""
BUSY = "{% $count([1..400].$count([1..10000])) %}"
"""Takes a few hundred milliseconds, and little memory."""
BOMBS = {
    "a range": "$sum([1..9999999])",
    "a text that doubles": '$reduce([1..60], function($a, $b){$a & $a}, "xxxxxxxxxx")',
    "endless recursion": "($f := function($n){$f($n + 1)}; $f(1))",
    "recursion that is not in tail position": "($f := function($n){1 + $f($n + 1)}; $f(1))",
    "a backtracking pattern": '$match($join([1..5000].("a")), /(a*)*b\\1/)',
    "pairs of pairs": "$count([1..100000].[1..100000])",
    "a sort": "$sort([1..9000000], function($a, $b){$a < $b})[0]",
}


def loop(expression: str) -> Json:
    """A machine that evaluates an expression again and again."""
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "Again",
        "States": {"Again": {"Type": "Pass", "Output": expression, "Next": "Again"}},
    }


QUICK = {
    "QueryLanguage": "JSONata",
    "StartAt": "Add",
    "States": {"Add": {"Type": "Pass", "Output": "{% $states.input.n + 1 %}", "End": True}},
}


@contextmanager
def timed(seconds_max: float = ANSWER_SECONDS_MAX) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds_max


def test_executions_that_compute_forever_leave_everybody_else_their_turn(
    states: Any, create: Callable[..., str]
) -> None:
    quick, busy = create(QUICK), create(loop(BUSY))
    with timed():
        hogs = [states.start_execution(stateMachineArn=busy)["executionArn"] for _ in range(8)]
    for _ in range(5):
        with timed():
            started = states.start_execution(stateMachineArn=quick, input='{"n": 1}')
            assert finished(states, started["executionArn"])["output"] == "2"
        with timed():
            assert states.describe_execution(executionArn=hogs[0])["status"] == "RUNNING"
    # They take turns: none of them waits for the end of another.
    deadline = time.monotonic() + 60
    while any(len(history(states, hog)) < 6 for hog in hogs):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    for hog in hogs:
        with timed():
            states.stop_execution(executionArn=hog)
        execution = states.describe_execution(executionArn=hog)
        assert execution["status"] == "ABORTED"
        assert types(history(states, hog))[-1] == "ExecutionAborted"


def guarded(expression: str) -> Json:
    """A machine that catches the error of an expression."""
    bomb = {"Type": "Pass", "Output": "{% " + expression + " %}", "End": True}
    catcher = {
        "ErrorEquals": ["States.QueryEvaluationError"],
        "Output": "{% $states.errorOutput.Error %}",
        "Next": "Caught",
    }
    branches = [{"StartAt": "Bomb", "States": {"Bomb": bomb}}]
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "Guarded",
        "States": {
            "Guarded": {"Type": "Parallel", "Branches": branches, "Catch": [catcher], "End": True},
            "Caught": {"Type": "Succeed"},
        },
    }


def test_expressions_that_ask_for_too_much_fail_alone(
    states: Any, create: Callable[..., str]
) -> None:
    quick = create(QUICK)
    bombs = {
        name: states.start_execution(stateMachineArn=create(guarded(source)))["executionArn"]
        for name, source in BOMBS.items()
    }
    for _ in range(3):
        with timed():
            started = states.start_execution(stateMachineArn=quick, input='{"n": 1}')
            assert finished(states, started["executionArn"])["status"] == "SUCCEEDED"
    for name, arn in bombs.items():
        execution = finished(states, arn)
        assert (execution["status"], execution["output"]) == (
            "SUCCEEDED",
            '"States.QueryEvaluationError"',
        ), name
        assert "EvaluationFailed" in types(history(states, arn)), name


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_state_under_test_is_bounded_as_well(states: Any, bomb: str) -> None:
    state = {
        "QueryLanguage": "JSONata",
        "Type": "Pass",
        "Output": "{% " + BOMBS[bomb] + " %}",
        "End": True,
    }
    with timed(15):
        tested = states.test_state(definition=json.dumps(state), roleArn=ROLE)
    assert (tested["status"], tested["error"]) == ("FAILED", "States.QueryEvaluationError")


def test_data_that_doubles_in_a_loop_ends_at_the_limit_of_a_state(run: Callable[..., Json]) -> None:
    machine = {
        "StartAt": "Double",
        "States": {
            "Double": {
                "Type": "Pass",
                "Parameters": {f"{name}.$": "$" for name in "abcdefghij"},
                "Next": "Double",
            }
        },
    }
    with timed():
        execution = run(machine, {"a": "x" * 100})
    assert (execution["status"], execution["error"]) == ("FAILED", "States.DataLimitExceeded")


def test_a_template_that_repeats_its_input_a_thousand_times_fails_alone(
    run: Callable[..., Json],
) -> None:
    template = {f"{number}.$": "$" for number in range(5000)}
    machine = {
        "StartAt": "All",
        "States": {"All": {"Type": "Pass", "Parameters": template, "End": True}},
    }
    with timed(20):
        execution = run(machine, ["x" * 200_000])
    assert execution["status"] == "FAILED"
    assert execution["error"] in ("States.DataLimitExceeded", "States.Runtime")


@pytest.mark.parametrize("kind", ["Parallel", "Map"])
def test_what_branches_and_iterations_are_given_has_the_limit_of_a_state(
    run: Callable[..., Json], kind: str
) -> None:
    inner = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": 1, "End": True}}}
    twice = {"a.$": "$$.Execution.Input", "b.$": "$$.Execution.Input"}
    states: Json = {
        "Parallel": {"Branches": [inner], "Parameters": twice},
        "Map": {"ItemProcessor": inner, "ItemSelector": twice},
    }
    machine = {"StartAt": "Fork", "States": {"Fork": {"Type": kind, **states[kind], "End": True}}}
    execution = run(machine, ["x" * 200_000])
    assert (execution["status"], execution["error"]) == ("FAILED", "States.DataLimitExceeded")


def test_a_long_history_comes_in_pages_of_bounded_size(
    states: Any, create: Callable[..., str]
) -> None:
    passes = {f"P{number}": {"Type": "Pass", "Next": f"P{number + 1}"} for number in range(40)}
    machine = {"StartAt": "P0", "States": {**passes, "P40": {"Type": "Succeed"}}}
    text = json.dumps("x" * 250_000)
    started = states.start_execution(stateMachineArn=create(machine), input=text)
    arn = started["executionArn"]
    assert finished(states, arn)["status"] == "SUCCEEDED"
    page = states.get_execution_history(executionArn=arn, maxResults=1000)
    assert len(json.dumps(page["events"], default=str)) < 8_000_000 and "nextToken" in page
    found = history(states, arn)
    assert [event["id"] for event in found] == list(range(1, 85))
    assert types(found)[-1] == "ExecutionSucceeded"


DEEP = "[" * 700 + "]" * 700


def test_input_that_is_nested_too_deeply_is_refused(
    states: Any, create: Callable[..., str]
) -> None:
    with pytest.raises(states.exceptions.InvalidExecutionInput):
        states.start_execution(stateMachineArn=create(QUICK), input=DEEP)


def test_data_that_grows_deeper_with_each_state_ends_the_execution(
    run: Callable[..., Json],
) -> None:
    machine = {
        "StartAt": "Deeper",
        "States": {"Deeper": {"Type": "Pass", "Parameters": {"a.$": "$"}, "Next": "Deeper"}},
    }
    assert run(machine, {})["status"] in ("FAILED", "ABORTED")


def test_examining_a_definition_is_bounded(states: Any) -> None:
    expression = "{% " + "(" * 300_000 + "1" + ")" * 300_000 + " %}"
    texts = [
        json.dumps(loop(expression)),
        "[" * 10_000 + "]" * 10_000,
        json.dumps(
            {
                "StartAt": "A",
                "States": {
                    f"S{number}": {"Type": "Pass", "OutputPath": "$..a[?@.b > 1]", "End": True}
                    for number in range(12_000)
                },
            }
        ),
    ]
    for text in texts:
        with timed(20):
            found = states.validate_state_machine_definition(definition=text)
        assert found["result"] == "FAIL"
        with timed(20), pytest.raises(states.exceptions.InvalidDefinition):
            states.create_state_machine(name="never", definition=text, roleArn=ROLE)


def test_an_execution_that_cannot_be_resumed_can_be_stopped(serve: Any, tmp_path: Path) -> None:
    options = ("serve", "--port", "0", "--data", tmp_path / "data")
    server = serve(*options, stderr=None)
    states = states_client(server.url)
    machine = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": True}}}
    created = states.create_state_machine(
        name="waiting", definition=json.dumps(machine), roleArn=ROLE
    )
    arn = states.start_execution(stateMachineArn=created["stateMachineArn"])["executionArn"]
    server.client().update_item(
        TableName="partita-workflows",
        Key={"pk": {"S": arn}, "sk": {"S": "state"}},
        UpdateExpression="SET #record = :broken",
        ExpressionAttributeNames={"#record": "record"},
        ExpressionAttributeValues={":broken": {"S": "[]"}},
    )
    server.kill()
    states = states_client(serve(*options, stderr=None).url)
    assert states.describe_execution(executionArn=arn)["status"] == "RUNNING"
    states.stop_execution(executionArn=arn, error="Enough")
    execution = states.describe_execution(executionArn=arn)
    assert (execution["status"], execution["error"]) == ("ABORTED", "Enough")
    assert types(history(states, arn))[-1] == "ExecutionAborted"
