"""One workflow cannot stop the others: expressions have bounds on time and memory, executions take
turns, and StopExecution always works."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .conftest import ROLE, Json, finished, types
from .conftest import events as history

ANSWER_SECONDS_MAX = 3.0
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


@pytest.mark.parametrize("bomb", BOMBS)
def test_an_expression_that_asks_for_too_much_fails_alone(
    states: Any, create: Callable[..., str], bomb: str
) -> None:
    expression = "{% " + BOMBS[bomb] + " %}"
    machine = {
        "QueryLanguage": "JSONata",
        "StartAt": "Guarded",
        "States": {
            "Guarded": {
                "Type": "Parallel",
                "Branches": [
                    {
                        "StartAt": "Bomb",
                        "States": {"Bomb": {"Type": "Pass", "Output": expression, "End": True}},
                    }
                ],
                "Catch": [
                    {
                        "ErrorEquals": ["States.QueryEvaluationError"],
                        "Output": "{% $states.errorOutput.Error %}",
                        "Next": "Caught",
                    }
                ],
                "End": True,
            },
            "Caught": {"Type": "Succeed"},
        },
    }
    quick = create(QUICK)
    bombs = [
        states.start_execution(stateMachineArn=create(machine))["executionArn"] for _ in range(2)
    ]
    with timed():
        started = states.start_execution(stateMachineArn=quick, input='{"n": 1}')
        assert finished(states, started["executionArn"])["status"] == "SUCCEEDED"
    for arn in bombs:
        execution = finished(states, arn)
        assert execution["status"] == "SUCCEEDED", execution
        if execution["output"] == '"States.QueryEvaluationError"':
            assert "EvaluationFailed" in types(history(states, arn))
        else:
            assert bomb == "a range"


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
    if tested["status"] != "SUCCEEDED":
        assert tested["error"] == "States.QueryEvaluationError"
