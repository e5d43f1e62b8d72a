"""Retry and Catch: which one an error meets, how often, and after which wait."""

from __future__ import annotations

from typing import Any

import pytest

from partita_services.workflows.language import HeartbeatMissed, StartTask, TaskTimedOut
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.language.states.retries import matches

from .machines import (
    Answer,
    Player,
    fails,
    gives,
    machine_of,
    play,
    task,
)


def times_out(started: StartTask) -> TaskTimedOut:
    return TaskTimedOut(started.id)


def misses_heartbeat(started: StartTask) -> HeartbeatMissed:
    return HeartbeatMissed(started.id)


def retried(*retriers: dict[str, Any], answers: list[Answer]) -> tuple[str, list[float]]:
    """The status after retries, and the waits before each."""
    story = play(machine_of(task(Retry=list(retriers))), {}, {"A": answers})
    return story.status, story.waits


@pytest.mark.parametrize(
    ("names", "error", "is_matched"),
    [
        (["E"], "E", True),
        (["E"], "F", False),
        (["D", "E"], "E", True),
        (["States.ALL"], "E", True),
        (["States.ALL"], "States.Timeout", True),
        (["States.TaskFailed"], "E", True),
        (["States.TaskFailed"], "Lambda.TooManyRequestsException", True),
        (["States.TaskFailed"], "States.Timeout", False),
        (["States.TaskFailed"], "States.HeartbeatTimeout", False),
        (["States.Timeout"], "States.HeartbeatTimeout", True),
        (["States.HeartbeatTimeout"], "States.Timeout", False),
        (["States.ALL"], "States.DataLimitExceeded", False),
        (["States.TaskFailed"], "States.DataLimitExceeded", False),
        (["States.DataLimitExceeded"], "States.DataLimitExceeded", True),
        (["States.ALL"], "States.Runtime", False),
        (["States.Runtime"], "States.Runtime", False),
        (["States.ALL"], None, True),
    ],
)
def test_which_names_stand_for_which_errors(
    names: list[str], error: str | None, is_matched: bool
) -> None:
    assert matches(names, StateError(error)) is is_matched


@pytest.mark.parametrize(
    ("retrier", "waits"),
    [
        ({}, [1, 2, 4]),
        ({"IntervalSeconds": 3, "MaxAttempts": 2, "BackoffRate": 1.5}, [3, 4.5]),
        ({"BackoffRate": 1, "MaxAttempts": 4}, [1, 1, 1, 1]),
        ({"MaxAttempts": 0}, []),
        ({"IntervalSeconds": 2, "MaxAttempts": 5, "MaxDelaySeconds": 9}, [2, 4, 8, 9, 9]),
        ({"MaxAttempts": 2, "JitterStrategy": "NONE"}, [1, 2]),
    ],
)
def test_waits_grow_until_the_attempts_are_used_up(
    retrier: dict[str, Any], waits: list[float]
) -> None:
    always = [fails("E")]
    assert retried({"ErrorEquals": ["E"], **retrier}, answers=always) == ("FAILED", waits)


def test_full_jitter_waits_up_to_the_delay() -> None:
    retrier = {
        "ErrorEquals": ["E"],
        "IntervalSeconds": 10,
        "MaxAttempts": 50,
        "MaxDelaySeconds": 100,
        "JitterStrategy": "FULL",
    }
    _, waits = retried(retrier, answers=[fails("E")])
    assert len(set(waits)) == 50
    assert all(0 <= wait <= min(100, 10 * 2**number) for number, wait in enumerate(waits))
    assert min(waits[5:]) < 50 < max(waits)


def test_a_backoff_beyond_all_numbers_still_waits() -> None:
    retrier = {"ErrorEquals": ["E"], "BackoffRate": 99_999_999, "MaxAttempts": 60}
    _, waits = retried(retrier, answers=[fails("E")])
    assert waits[-1] == waits[-2] == 31_622_400


def test_each_retrier_counts_its_own_attempts() -> None:
    status, waits = retried(
        {"ErrorEquals": ["A", "B"], "IntervalSeconds": 1, "BackoffRate": 2.0, "MaxAttempts": 2},
        {"ErrorEquals": ["C"], "IntervalSeconds": 5},
        answers=[fails("A"), fails("C"), fails("B"), fails("C"), fails("B")],
    )
    assert status == "FAILED"
    assert waits == [1, 5, 2, 10]


def test_only_the_first_retrier_that_matches_is_asked() -> None:
    never = {"ErrorEquals": ["E"], "MaxAttempts": 0}
    always = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 7, "MaxAttempts": 1}
    assert retried(never, always, answers=[fails("E")]) == ("FAILED", [])
    assert retried(never, always, answers=[fails("F"), gives(1)]) == ("SUCCEEDED", [7])


def test_attempts_are_counted_from_zero_when_the_state_is_entered_again() -> None:
    definition = machine_of(
        task(Retry=[{"ErrorEquals": ["E"], "MaxAttempts": 1}], ResultPath="$.again"),
        {
            "Type": "Choice",
            "Choices": [{"Variable": "$.again", "BooleanEquals": True, "Next": "A"}],
            "Default": "C",
        },
        {"Type": "Succeed"},
    )
    answers = [fails("E"), gives(True), fails("E"), gives(False)]
    assert play(definition, {}, {"A": answers}).status == "SUCCEEDED"


def test_the_context_object_counts_retries() -> None:
    definition = machine_of(
        task(
            Parameters={"n.$": "$$.State.RetryCount"},
            Retry=[{"ErrorEquals": ["E"]}, {"ErrorEquals": ["F"]}],
        )
    )
    story = play(definition, {}, {"A": [fails("E"), fails("F"), gives(1)]})
    assert [started.input for started in story.tasks] == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("catcher", "output"),
    [
        ({}, {"Error": "E", "Cause": "because"}),
        ({"ResultPath": "$.why"}, {"x": 1, "why": {"Error": "E", "Cause": "because"}}),
        ({"ResultPath": "$.a.b"}, {"x": 1, "a": {"b": {"Error": "E", "Cause": "because"}}}),
        ({"ResultPath": None}, {"x": 1}),
    ],
)
def test_a_catcher_places_the_error_into_the_input(catcher: dict[str, Any], output: Any) -> None:
    caught = {"ErrorEquals": ["States.ALL"], "Next": "B", **catcher}
    definition = machine_of(task(Catch=[caught], ResultPath="$.ignored"), {"Type": "Succeed"})
    assert play(definition, {"x": 1}, {"A": fails("E", "because")}).output == output


def test_an_error_output_without_cause_has_none() -> None:
    caught = {"ErrorEquals": ["States.ALL"], "Next": "B"}
    definition = machine_of(task(Catch=[caught]), {"Type": "Succeed"})
    assert play(definition, {}, {"A": fails("E")}).output == {"Error": "E"}


def test_the_first_catcher_that_matches_is_taken_after_the_retries() -> None:
    definition = machine_of(
        task(
            Retry=[{"ErrorEquals": ["E"], "MaxAttempts": 1}],
            Catch=[
                {"ErrorEquals": ["F"], "Next": "B"},
                {"ErrorEquals": ["E", "G"], "Next": "C"},
                {"ErrorEquals": ["States.ALL"], "Next": "B"},
            ],
        ),
        {"Type": "Pass", "Result": "first or last", "End": True},
        {"Type": "Pass", "Result": "second"},
    )
    story = play(definition, {}, {"A": fails("E")})
    assert (story.output, story.waits) == ("second", [1])
    assert play(definition, {}, {"A": fails("H")}).output == "first or last"


def test_an_error_that_nothing_meets_ends_the_execution() -> None:
    caught = {"ErrorEquals": ["F"], "Next": "B"}
    definition = machine_of(task(Catch=[caught]), {"Type": "Succeed"})
    story = play(definition, {}, {"A": fails("E", "because")})
    assert (story.error, story.cause) == ("E", "because")


@pytest.mark.parametrize(
    ("answer", "error"),
    [(times_out, "States.Timeout"), (misses_heartbeat, "States.HeartbeatTimeout")],
)
def test_a_task_that_is_late_fails_with_a_timeout(answer: Answer, error: str) -> None:
    late = {"ErrorEquals": ["States.Timeout"], "Next": "B"}
    definition = machine_of(task(TimeoutSeconds=9, Catch=[late]), {"Type": "Succeed"})
    assert play(definition, {}, {"A": answer}).output == {"Error": error}
    story = play(machine_of(task()), {}, {"A": answer})
    assert (story.error, story.cause) == (error, None)


def test_a_path_that_finds_nothing_is_caught_by_its_documented_name_only() -> None:
    def output(name: str) -> Any:
        caught = {"ErrorEquals": [name], "Next": "B"}
        definition = machine_of(
            task(Parameters={"a.$": "$.no"}, Catch=[caught]), {"Type": "Pass", "Result": "caught"}
        )
        return play(definition).status

    assert output("States.ParameterPathFailure") == "SUCCEEDED"
    assert output("States.ALL") == "FAILED"
    assert output("States.Runtime") == "FAILED"


def test_a_result_that_does_not_fit_is_caught() -> None:
    caught = {"ErrorEquals": ["States.ResultPathMatchFailure"], "Next": "B"}
    definition = machine_of(
        task(ResultPath="$.a.b", Catch=[{**caught, "ResultPath": None}]),
        {"Type": "Pass", "Result": "caught"},
    )
    assert play(definition, {"a": 1}, {"A": gives(1)}).output == "caught"


def test_a_catcher_that_fails_itself_fails_the_state() -> None:
    caught = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.a.b", "Next": "B"}
    definition = machine_of(task(Catch=[caught]), {"Type": "Succeed"})
    story = play(definition, {"a": 1}, {"A": fails("E")})
    assert story.error == "States.ResultPathMatchFailure"


def test_jitter_depends_on_nothing_but_the_chance_that_is_passed_in() -> None:
    retrier = {"ErrorEquals": ["E"], "MaxAttempts": 9, "JitterStrategy": "FULL"}
    definition = machine_of(task(Retry=[retrier]))
    waits = [Player(definition, {"A": fails("E")}, seed=seed).play().waits for seed in (1, 1, 2)]
    assert waits[0] == waits[1] != waits[2]


def test_a_cause_is_cut_where_the_api_has_its_limit() -> None:
    story = play(machine_of(task()), {}, {"A": fails("E" * 300, "x" * 40_000)})
    assert (len(story.error or ""), len(story.cause or "")) == (256, 32_768)
    story = play(machine_of({"Type": "Pass", "Parameters": {"a.$": "$.no"}}), {"b": "x" * 40_000})
    assert len(story.cause or "") == 32_768
