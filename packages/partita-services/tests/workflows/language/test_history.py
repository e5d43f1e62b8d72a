"""History events, in the shapes and with the predecessors that the service was recorded with."""

from __future__ import annotations

import random
from typing import Any

import pytest

from partita_services.workflows.language import (
    ExecutionTimedOut,
    Happening,
    StartTask,
    StepMoment,
    StepResult,
    Stopped,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
    TimerFired,
    advance,
    begin,
    decode_run,
    encode_run,
    outstanding,
    parse,
    task_of_token,
)

from .machines import (
    ARN,
    CONTEXT,
    START,
    fails,
    gives,
    machine_of,
    play,
    task,
)

MOMENT = StepMoment(START, random.Random(1))
WHOLE = {"truncated": False}
LAMBDA = "arn:aws:lambda:eu-west-1:123456789012:function:f"


def chain(events: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    return [(event["id"], event["previousEventId"], event["type"]) for event in events]


class Stepwise:
    """A machine that continues when the test reports a happening."""

    def __init__(self, definition: Any, input: Any = None) -> None:
        self.machine = parse(definition)
        self.progress = begin(self.machine, input or {}, CONTEXT, MOMENT)
        self.events = list(self.progress.events)

    def tell(self, happening: Happening) -> StepResult:
        self.progress = advance(self.machine, self.progress.run, happening, MOMENT)
        self.events += self.progress.events
        return self.progress

    @property
    def waiting(self) -> list[Any]:
        return outstanding(self.progress.run)


def test_the_history_of_a_pass_state() -> None:
    story = play(machine_of({"Type": "Pass", "Assign": {"x": 1}}), {"a": 1})
    assert story.events == [
        {
            "timestamp": START,
            "type": "ExecutionStarted",
            "id": 1,
            "previousEventId": 0,
            "executionStartedEventDetails": {
                "input": '{"a":1}',
                "inputDetails": WHOLE,
                "roleArn": "arn:aws:iam::123456789012:role/r",
            },
        },
        {
            "timestamp": START,
            "type": "PassStateEntered",
            "id": 2,
            "previousEventId": 0,
            "stateEnteredEventDetails": {"name": "A", "input": '{"a":1}', "inputDetails": WHOLE},
        },
        {
            "timestamp": START,
            "type": "PassStateExited",
            "id": 3,
            "previousEventId": 2,
            "stateExitedEventDetails": {
                "name": "A",
                "output": '{"a":1}',
                "outputDetails": WHOLE,
                "assignedVariables": {"x": "1"},
                "assignedVariablesDetails": WHOLE,
            },
        },
        {
            "timestamp": START,
            "type": "ExecutionSucceeded",
            "id": 4,
            "previousEventId": 3,
            "executionSucceededEventDetails": {"output": '{"a":1}', "outputDetails": WHOLE},
        },
    ]


def test_the_history_of_a_function() -> None:
    steps = Stepwise(machine_of(task(TimeoutSeconds=5)))
    id = steps.waiting[0].id
    steps.tell(TaskStarted(id))
    steps.tell(TaskSucceeded(id, {"ok": True}))
    assert chain(steps.events) == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "TaskStateEntered"),
        (3, 2, "LambdaFunctionScheduled"),
        (4, 3, "LambdaFunctionStarted"),
        (5, 4, "LambdaFunctionSucceeded"),
        (6, 5, "TaskStateExited"),
        (7, 6, "ExecutionSucceeded"),
    ]
    assert steps.events[2]["lambdaFunctionScheduledEventDetails"] == {
        "resource": LAMBDA,
        "input": "{}",
        "inputDetails": WHOLE,
        "timeoutInSeconds": 5,
    }
    assert "lambdaFunctionStartedEventDetails" not in steps.events[3]
    assert steps.events[4]["lambdaFunctionSucceededEventDetails"] == {
        "output": '{"ok":true}',
        "outputDetails": WHOLE,
    }


def test_the_history_of_a_service() -> None:
    steps = Stepwise(
        machine_of(
            {
                "Type": "Task",
                "Resource": "arn:aws:states:::dynamodb:putItem.waitForTaskToken",
                "Parameters": {"TableName": "t"},
                "HeartbeatSeconds": 5,
            }
        )
    )
    id = steps.waiting[0].id
    steps.tell(TaskStarted(id))
    steps.tell(TaskSubmitted(id, {"sent": 1}))
    again = outstanding(decode_run(encode_run(steps.progress.run)))[0]
    assert isinstance(again, StartTask)
    assert (again.is_started, again.is_submitted, again.submitted) == (True, True, {"sent": 1})
    steps.tell(TaskFailed(id, "E", "because"))
    service = {"resourceType": "dynamodb", "resource": "putItem.waitForTaskToken"}
    assert steps.events[2]["taskScheduledEventDetails"] == {
        **service,
        "region": "eu-west-1",
        "parameters": '{"TableName":"t"}',
        "heartbeatInSeconds": 5,
    }
    assert steps.events[3]["taskStartedEventDetails"] == service
    assert steps.events[4]["type"] == "TaskSubmitted"
    assert steps.events[5]["taskFailedEventDetails"] == {
        **service,
        "error": "E",
        "cause": "because",
    }
    assert steps.events[6]["executionFailedEventDetails"] == {"error": "E", "cause": "because"}


def test_the_history_of_an_activity() -> None:
    arn = "arn:aws:states:eu-west-1:123456789012:activity:paint"
    steps = Stepwise(machine_of({"Type": "Task", "Resource": arn}))
    id = steps.waiting[0].id
    assert task_of_token(steps.waiting[0].token) == (ARN, id)
    steps.tell(TaskStarted(id, "worker 7"))
    steps.tell(TaskSucceeded(id, 1))
    assert [event["type"] for event in steps.events[2:5]] == [
        "ActivityScheduled",
        "ActivityStarted",
        "ActivitySucceeded",
    ]
    assert steps.events[3]["activityStartedEventDetails"] == {"workerName": "worker 7"}


def test_the_history_of_a_map_state_that_takes_one_item_after_the_other() -> None:
    inner = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    story = play(machine_of({"Type": "Map", "ItemProcessor": inner, "MaxConcurrency": 1}), [1, 2])
    assert chain(story.events) == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "MapStateEntered"),
        (3, 2, "MapStateStarted"),
        (4, 3, "MapIterationStarted"),
        (5, 4, "PassStateEntered"),
        (6, 5, "PassStateExited"),
        (7, 6, "MapIterationSucceeded"),
        (8, 6, "MapIterationStarted"),
        (9, 8, "PassStateEntered"),
        (10, 9, "PassStateExited"),
        (11, 10, "MapIterationSucceeded"),
        (12, 10, "MapStateSucceeded"),
        (13, 10, "MapStateExited"),
        (14, 13, "ExecutionSucceeded"),
    ]
    assert story.events[2]["mapStateStartedEventDetails"] == {"length": 2}
    assert story.events[7]["mapIterationStartedEventDetails"] == {"name": "A", "index": 1}


def test_the_history_of_branches() -> None:
    branches = [
        {"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}} for name in ("X", "Y")
    ]
    story = play(machine_of({"Type": "Parallel", "Branches": branches}))
    assert chain(story.events[2:]) == [
        (3, 2, "ParallelStateStarted"),
        (4, 3, "PassStateEntered"),
        (5, 4, "PassStateExited"),
        (6, 3, "PassStateEntered"),
        (7, 6, "PassStateExited"),
        (8, 7, "ParallelStateSucceeded"),
        (9, 7, "ParallelStateExited"),
        (10, 9, "ExecutionSucceeded"),
    ]


def test_a_retry_is_seen_as_the_task_scheduled_again() -> None:
    definition = machine_of(task(Retry=[{"ErrorEquals": ["E"]}]))
    story = play(definition, {}, {"A": [fails("E"), gives(1)]})
    assert chain(story.events[2:6]) == [
        (3, 2, "LambdaFunctionScheduled"),
        (4, 3, "LambdaFunctionFailed"),
        (5, 4, "LambdaFunctionScheduled"),
        (6, 5, "LambdaFunctionSucceeded"),
    ]


@pytest.mark.parametrize(
    ("happening", "status", "last"),
    [
        (Stopped("Mine", "enough"), "ABORTED", "ExecutionAborted"),
        (Stopped(), "ABORTED", "ExecutionAborted"),
        (ExecutionTimedOut(), "TIMED_OUT", "ExecutionTimedOut"),
    ],
)
def test_an_execution_that_is_ended_from_outside_cancels_what_it_waits_for(
    happening: Happening, status: str, last: str
) -> None:
    steps = Stepwise(machine_of({"Type": "Wait", "Seconds": 9}))
    waiting = steps.waiting[0].id
    progress = steps.tell(happening)
    assert progress.status == status
    assert [command.id for command in progress.commands] == [waiting]
    assert [event["type"] for event in progress.events] == ["WaitStateAborted", last]
    assert (progress.error, progress.cause) == (
        getattr(happening, "error", None),
        getattr(happening, "cause", None),
    )
    assert steps.waiting == []


def test_what_is_not_waited_for_changes_nothing() -> None:
    steps = Stepwise(machine_of(task(), task()))
    run, id = steps.progress.run, steps.waiting[0].id
    for stray in (TaskSucceeded("99", 1), TimerFired(id), TimerFired("99")):
        progress = advance(steps.machine, run, stray, MOMENT)
        assert progress.run is run
        assert (progress.commands, progress.events) == ([], [])
    steps.tell(TaskSucceeded(id, 1))
    late = advance(steps.machine, steps.progress.run, TaskSucceeded(id, 2), MOMENT)
    assert late.run is steps.progress.run
    steps.tell(TaskSucceeded(steps.waiting[0].id, 3))
    assert steps.progress.status == "SUCCEEDED"
    assert advance(steps.machine, steps.progress.run, Stopped(), MOMENT).status == "SUCCEEDED"


def test_going_on_leaves_the_run_before_as_it_was() -> None:
    inner = {"StartAt": "T", "States": {"T": {**task(), "End": True, "Assign": {"y": 2}}}}
    steps = Stepwise(
        machine_of({"Type": "Pass", "Assign": {"x": 1}}, {"Type": "Map", "ItemProcessor": inner}),
        [1, 2, 3],
    )
    before = encode_run(steps.progress.run)
    run = steps.progress.run
    for waiting in steps.waiting:
        first = advance(steps.machine, run, TaskSucceeded(waiting.id, 5), MOMENT)
        second = advance(steps.machine, run, TaskSucceeded(waiting.id, 5), MOMENT)
        assert encode_run(first.run) == encode_run(second.run)
        assert first.events == second.events
        assert encode_run(run) == before


def test_an_endless_loop_ends_with_its_history() -> None:
    definition = machine_of({"Type": "Pass", "Next": "B"}, {"Type": "Pass", "Next": "A"})
    story = play(definition)
    assert story.error == "States.Runtime"
    assert "25000" in (story.cause or "")
    assert len(story.events) == 25_000
    assert set(story.waits) == {0}
