"""Parallel and Map states: many lines that go on side by side and end together."""

from __future__ import annotations

from typing import Any

import pytest

from partita_services.workflows.language import (
    CancelTask,
    CancelTimer,
    StartTask,
    StartTimer,
    StepMoment,
    TaskFailed,
    TaskSucceeded,
    advance,
    begin,
    parse,
)

from .machines import (
    CONTEXT,
    START,
    Player,
    fails,
    gives,
    machine_of,
    play,
    task,
)


def branch(name: str, **state: Any) -> dict[str, Any]:
    return {"StartAt": name, "States": {name: {"End": True, **state}}}


def parallel(*branches: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"Type": "Parallel", "Branches": list(branches), **fields}


def mapped(*, processor: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    inner = processor or branch("Each", **task())
    return {"Type": "Map", "ItemProcessor": inner, **fields}


def numbers(count: int) -> list[int]:
    return list(range(count))


def odd_fails(started: StartTask) -> TaskFailed | TaskSucceeded:
    if started.input % 2:
        return TaskFailed(started.id, "Odd", f"{started.input} is odd")
    return TaskSucceeded(started.id, started.input)


def test_branches_get_the_same_input_and_their_outputs_come_in_order() -> None:
    definition = machine_of(
        parallel(
            branch("Slow", Type="Wait", Seconds=9),
            branch("Named", Type="Pass", Result="second", ResultPath="$.b"),
            branch("Task", **task()),
        )
    )
    story = play(definition, {"a": 1}, {"Task": gives("third")})
    assert story.output == [{"a": 1}, {"a": 1, "b": "second"}, "third"]
    assert story.waits == [9]


def test_a_parallel_state_shapes_its_data_like_a_task() -> None:
    definition = machine_of(
        parallel(
            branch("One", Type="Pass"),
            branch("Two", Type="Pass", Result=2),
            Parameters={"x.$": "$.a"},
            ResultSelector={"first.$": "$[0].x", "second.$": "$[1]"},
            ResultPath="$.both",
        )
    )
    assert play(definition, {"a": 1}).output == {"a": 1, "both": {"first": 1, "second": 2}}


def test_when_a_branch_fails_the_others_are_cancelled() -> None:
    machine = parse(
        machine_of(
            parallel(
                branch("T", **task()),
                branch("W", Type="Wait", Seconds=60),
                branch("Inner", **parallel(branch("T2", **task()))),
            )
        )
    )
    moment = StepMoment(START, Player(machine.definition)._random)
    progress = begin(machine, {}, CONTEXT, moment)
    ids = {command.id for command in progress.commands}
    assert {type(command) for command in progress.commands} == {StartTask, StartTimer}
    failed = next(command for command in progress.commands if isinstance(command, StartTask))
    progress = advance(machine, progress.run, TaskFailed(failed.id, "E", "because"), moment)
    assert (progress.status, progress.error, progress.cause) == ("FAILED", "E", "because")
    cancelled = [
        command for command in progress.commands if isinstance(command, CancelTask | CancelTimer)
    ]
    assert {command.id for command in cancelled} == ids - {failed.id}
    types = [event["type"] for event in progress.events]
    assert types == [
        "LambdaFunctionFailed",
        "WaitStateAborted",
        "TaskStateAborted",
        "ParallelStateAborted",
        "ParallelStateFailed",
        "ExecutionFailed",
    ]


@pytest.mark.parametrize("name", ["E", "States.ALL", "States.BranchFailed", "States.TaskFailed"])
def test_a_branch_that_fails_can_be_caught(name: str) -> None:
    definition = machine_of(
        parallel(branch("T", **task()), Catch=[{"ErrorEquals": [name], "Next": "B"}]),
        {"Type": "Succeed"},
    )
    output = play(definition, {}, {"T": fails("E", "because")}).output
    assert output == {"Error": "E", "Cause": "because"}


def test_a_parallel_state_is_retried_as_a_whole() -> None:
    definition = machine_of(
        parallel(
            branch("T", **task()),
            branch("P", Type="Pass", Result="ok"),
            Retry=[{"ErrorEquals": ["E"], "IntervalSeconds": 4}],
        )
    )
    story = play(definition, {}, {"T": [fails("E"), gives("done")]})
    assert story.output == ["done", "ok"]
    assert story.waits == [4]
    assert story.types.count("ParallelStateStarted") == 2
    assert story.types.count("ParallelStateEntered") == 1


def test_an_inner_catch_keeps_the_branch_alive() -> None:
    inner = {
        "StartAt": "T",
        "States": {
            "T": {
                **task(),
                "End": True,
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Saved"}],
            },
            "Saved": {"Type": "Pass", "Result": "saved", "End": True},
        },
    }
    definition = machine_of(parallel(inner, branch("P", Type="Pass", Result=1)))
    assert play(definition, {}, {"T": fails("E")}).output == ["saved", 1]


def test_variables_of_a_branch_stay_in_it_and_see_those_outside() -> None:
    inner = {
        "StartAt": "In",
        "States": {
            "In": {"Type": "Pass", "Assign": {"inner.$": "$outer"}, "Next": "Out"},
            "Out": {"Type": "Pass", "Parameters": {"v.$": "$inner"}, "End": True},
        },
    }
    definition = machine_of(
        {"Type": "Pass", "Assign": {"outer": "seen"}},
        parallel(inner),
        {"Type": "Pass", "Parameters": {"inner.$": "$inner"}},
    )
    story = play(definition)
    assert story.error == "States.Runtime"
    assert "'$inner'" in (story.cause or "")
    [left] = [event for event in story.events if event["type"] == "ParallelStateExited"]
    assert left["stateExitedEventDetails"]["output"] == '[{"v":"seen"}]'


def test_a_map_state_works_on_each_item_in_order() -> None:
    definition = machine_of(mapped(ItemsPath="$.list"))
    story = play(
        definition, {"list": [3, 1, 2]}, {"Each": lambda t: TaskSucceeded(t.id, t.input * 10)}
    )
    assert story.output == [30, 10, 20]


@pytest.mark.parametrize("name", ["ItemProcessor", "Iterator"])
def test_the_processor_has_two_names(name: str) -> None:
    definition = machine_of({"Type": "Map", name: branch("P", Type="Pass")})
    assert play(definition, [1, 2]).output == [1, 2]


@pytest.mark.parametrize("field", ["ItemSelector", "Parameters"])
def test_items_are_shaped_with_the_context_object(field: str) -> None:
    selector = {
        "index.$": "$$.Map.Item.Index",
        "value.$": "$$.Map.Item.Value",
        "factor.$": "$.factor",
    }
    definition = machine_of(
        mapped(processor=branch("P", Type="Pass"), ItemsPath="$.list", **{field: selector})
    )
    assert play(definition, {"list": ["a", "b"], "factor": 2}).output == [
        {"index": 0, "value": "a", "factor": 2},
        {"index": 1, "value": "b", "factor": 2},
    ]


def test_the_context_of_the_item_is_seen_within() -> None:
    inner = branch(
        "P", Type="Pass", Parameters={"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value"}
    )
    assert play(machine_of(mapped(processor=inner)), ["x"]).output == [{"i": 0, "v": "x"}]


def test_an_inner_map_has_its_own_item() -> None:
    deepest = branch("P", Type="Pass", Parameters={"v.$": "$$.Map.Item.Value"})
    inner = branch("M", Type="Map", ItemProcessor=deepest)
    assert play(machine_of(mapped(processor=inner)), [[1, 2], [3]]).output == [
        [{"v": 1}, {"v": 2}],
        [{"v": 3}],
    ]


def test_no_items_give_no_outputs() -> None:
    story = play(machine_of(mapped()), [])
    assert story.output == []
    assert "MapStateSucceeded" in story.types


@pytest.mark.parametrize("input", [{"list": {}}, {"list": None}, {"list": "text"}])
def test_what_is_no_array_fails_the_map_state(input: Any) -> None:
    story = play(machine_of(mapped(ItemsPath="$.list")), input)
    assert story.error == "States.Runtime"
    assert 'Reference path "$.list" must point to array.' in (story.cause or "")


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({}, 40),
        ({"MaxConcurrency": 0}, 40),
        ({"MaxConcurrency": 3}, 3),
        ({"MaxConcurrency": 500}, 40),
    ],
)
def test_so_many_items_are_worked_on_at_once(fields: dict[str, Any], most: int) -> None:
    story = play(machine_of(mapped(**fields)), numbers(100))
    assert story.output == numbers(100)
    assert story.most_at_once == most


def test_the_concurrency_may_come_from_the_input() -> None:
    definition = machine_of(mapped(ItemsPath="$.list", MaxConcurrencyPath="$.n"))
    assert play(definition, {"list": numbers(9), "n": 2}).most_at_once == 2


def test_an_item_that_fails_fails_the_map_state_with_its_error() -> None:
    story = play(machine_of(mapped()), numbers(5), {"Each": odd_fails})
    assert (story.error, story.cause) == ("Odd", "1 is odd")
    assert "MapIterationFailed" in story.types
    assert "MapIterationAborted" in story.types
    assert "MapStateFailed" in story.types


@pytest.mark.parametrize(
    ("fields", "is_tolerated"),
    [
        ({"ToleratedFailureCount": 5}, True),
        ({"ToleratedFailureCount": 4}, False),
        ({"ToleratedFailurePercentage": 50}, True),
        ({"ToleratedFailurePercentage": 49.9}, False),
        ({"ToleratedFailureCount": 9, "ToleratedFailurePercentage": 10}, False),
        ({"ToleratedFailureCount": 0}, False),
    ],
)
def test_so_many_items_may_fail(fields: dict[str, Any], is_tolerated: bool) -> None:
    story = play(machine_of(mapped(**fields)), numbers(10), {"Each": odd_fails})
    if is_tolerated:
        assert story.output == [0, 2, 4, 6, 8]
    else:
        assert story.error == "States.ExceedToleratedFailureThreshold"


def test_tolerance_may_come_from_the_input() -> None:
    definition = machine_of(mapped(ItemsPath="$.list", ToleratedFailureCountPath="$.n"))
    assert play(definition, {"list": numbers(4), "n": 2}, {"Each": odd_fails}).output == [0, 2]


@pytest.mark.parametrize(
    ("batcher", "batches"),
    [
        ({"MaxItemsPerBatch": 2}, [[0, 1], [2, 3], [4]]),
        ({"MaxItemsPerBatch": 5}, [[0, 1, 2, 3, 4]]),
        ({"MaxItemsPerBatch": 9}, [[0, 1, 2, 3, 4]]),
        ({"MaxInputBytesPerBatch": 3}, [[0, 1, 2], [3, 4]]),
        ({"MaxInputBytesPerBatch": 3, "MaxItemsPerBatch": 2}, [[0, 1], [2, 3], [4]]),
    ],
)
def test_items_come_in_batches(batcher: dict[str, Any], batches: list[list[int]]) -> None:
    definition = machine_of(mapped(processor=branch("P", Type="Pass"), ItemBatcher=batcher))
    assert play(definition, numbers(5)).output == [{"Items": batch} for batch in batches]


def test_a_batch_has_its_own_input_and_selected_items() -> None:
    definition = machine_of(
        mapped(
            processor=branch("P", Type="Pass"),
            ItemsPath="$.list",
            ItemSelector={"v.$": "$$.Map.Item.Value"},
            ItemBatcher={"MaxItemsPerBatchPath": "$.n", "BatchInput": {"for.$": "$.name"}},
        )
    )
    output = play(definition, {"list": [1, 2, 3], "n": 2, "name": "x"}).output
    assert output == [
        {"BatchInput": {"for": "x"}, "Items": [{"v": 1}, {"v": 2}]},
        {"BatchInput": {"for": "x"}, "Items": [{"v": 3}]},
    ]


def test_a_map_state_is_retried_from_its_first_item() -> None:
    retrier = {"ErrorEquals": ["Odd"], "MaxAttempts": 1}
    story = play(machine_of(mapped(Retry=[retrier], MaxConcurrency=1)), [0, 1], {"Each": odd_fails})
    assert [started.input for started in story.tasks] == [0, 1, 0, 1]
    assert story.error == "Odd"


def test_an_item_selector_that_fails_fails_the_map_state() -> None:
    definition = machine_of(mapped(ItemSelector={"a.$": "$.no"}))
    assert play(definition, [1]).error == "States.Runtime"


@pytest.mark.parametrize("most", [1, 2, 40])
def test_an_item_selector_that_fails_late_ends_the_items_under_way(most: int) -> None:
    caught = {"ErrorEquals": ["States.ParameterPathFailure"], "Next": "B"}
    selector = {"v.$": "$$.Map.Item.Value.a"}
    definition = machine_of(
        mapped(ItemSelector=selector, MaxConcurrency=most, Catch=[caught]),
        {"Type": "Wait", "Seconds": 5},
        {"Type": "Pass", "Result": "caught"},
    )
    story = play(definition, [{"a": 1}, {"a": 2}, {}, {"a": 4}])
    assert story.output == "caught"
    assert story.types.count("MapIterationStarted") == 2


def test_a_map_of_many_items_that_never_wait_gives_way_in_between() -> None:
    definition = machine_of(mapped(processor=branch("P", Type="Pass")))
    story = play(definition, numbers(1000))
    assert story.output == numbers(1000)
    assert len(story.waits) > 3
