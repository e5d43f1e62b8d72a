"""A run that did not succeed continues from the states in which it ended."""

from __future__ import annotations

from typing import Any

from partita_services.workflows.language import StepMoment, Stopped, advance, begin, parse, redrive

from .machines import (
    CONTEXT,
    START,
    Player,
    Story,
    fails,
    gives,
    machine_of,
    task,
)
from .test_forks import branch, mapped, odd_fails, parallel


def names(story: Story) -> list[str]:
    """The tasks that were started, by state."""
    return [started.state for started in story.tasks]


def test_only_the_task_that_failed_is_asked_for_again() -> None:
    player = Player(machine_of(task(), task(), task()), {"B": [fails("E"), gives("at last")]})
    story = player.play("in")
    assert story.error == "E"
    asked = len(story.events)
    player.redrive(story)
    assert story.output == "at last"
    assert names(story) == ["A", "B", "B", "C"]
    again = story.events[asked:]
    assert again[0] == {
        "timestamp": START,
        "type": "ExecutionRedriven",
        "id": asked + 1,
        "previousEventId": asked,
        "executionRedrivenEventDetails": {"redriveCount": 1},
    }
    assert [event["type"] for event in again[1:3]] == [
        "LambdaFunctionScheduled",
        "LambdaFunctionSucceeded",
    ]
    assert again[1]["previousEventId"] == asked + 1


def test_retries_begin_anew() -> None:
    retried = task(Retry=[{"ErrorEquals": ["E"], "MaxAttempts": 2}])
    player = Player(machine_of(retried), {"A": fails("E")})
    story = player.play()
    assert names(story) == ["A"] * 3
    player.redrive(story)
    assert story.error == "E"
    assert names(story) == ["A"] * 6


def test_the_context_counts_redrives() -> None:
    last = {"Type": "Pass", "Parameters": {"n.$": "$$.Execution.RedriveCount"}}
    player = Player(machine_of(task(), last), {"A": [fails("E"), fails("E"), gives({})]})
    story = player.redrive(player.redrive(player.play()))
    assert story.output == {"n": 2}


def test_branches_that_succeeded_are_kept() -> None:
    both = parallel(branch("Well", **task()), branch("Ill", **task()))
    player = Player(machine_of(both), {"Well": gives("kept"), "Ill": [fails("E"), gives("now")]})
    story = player.redrive(player.play())
    assert story.output == ["kept", "now"]
    assert names(story) == ["Well", "Ill", "Ill"]


def test_branches_that_were_aborted_go_on_where_they_were() -> None:
    slow = {
        "StartAt": "First",
        "States": {
            "First": {"Type": "Pass", "Result": "passed", "Next": "Long"},
            "Long": {"Type": "Wait", "Seconds": 60, "End": True},
        },
    }
    player = Player(
        machine_of(parallel(slow, branch("Ill", **task()))), {"Ill": [fails("E"), gives("now")]}
    )
    story = player.redrive(player.play())
    assert story.output == ["passed", "now"]
    assert story.types.count("PassStateEntered") == 1
    assert story.waits == [60]


def test_iterations_that_succeeded_are_kept() -> None:
    once: list[Any] = [gives(0), fails("E"), gives(1), gives(2)]
    player = Player(machine_of(mapped(MaxConcurrency=1)), {"Each": once})
    story = player.redrive(player.play([7, 8, 9]))
    assert story.output == [0, 1, 2]
    assert [started.input for started in story.tasks] == [7, 8, 8, 9]


def test_failures_that_were_tolerated_are_no_longer_when_there_were_too_many() -> None:
    player = Player(machine_of(mapped(ToleratedFailureCount=1, MaxConcurrency=1)), {})
    player.answer_all(odd_fails)
    story = player.play([0, 1, 2, 3, 4])
    assert story.error == "States.ExceedToleratedFailureThreshold"
    player.answer_all(lambda started: gives(started.input)(started))
    player.redrive(story)
    assert story.output == [0, 1, 2, 3, 4]


def test_a_parallel_in_a_map_goes_on_at_every_level() -> None:
    inner = branch("Both", **parallel(branch("Well", **task()), branch("Ill", **task())))
    player = Player(
        machine_of(mapped(processor=inner)),
        {"Well": lambda t: gives(t.input)(t), "Ill": [gives("a"), fails("E"), gives("b")]},
    )
    story = player.redrive(player.play([1, 2]))
    assert story.output == [[1, "a"], [2, "b"]]
    assert sorted(names(story)) == ["Ill", "Ill", "Ill", "Well", "Well"]


def test_a_state_that_failed_over_its_own_output_begins_anew() -> None:
    both = parallel(branch("One", **task()), ResultSelector={"it.$": "$[0].missing"})
    player = Player(machine_of(both), {"One": [gives({}), gives({"missing": "found"})]})
    story = player.redrive(player.play())
    assert story.output == {"it": "found"}
    assert names(story) == ["One", "One"]


def test_a_fail_state_fails_again() -> None:
    player = Player(machine_of({"Type": "Fail", "Error": "E"}))
    story = player.redrive(player.play())
    assert story.error == "E"
    assert story.types.count("FailStateEntered") == 1


def test_an_item_that_could_not_be_selected_is_selected_again() -> None:
    selecting = mapped(ItemSelector={"it.$": "$$.Map.Item.Value.missing"})
    player = Player(machine_of(selecting), {})
    story = player.redrive(player.play([{"missing": 1}, {}]))
    assert story.error == "States.Runtime"
    assert story.types.count("ExecutionFailed") == 2


def test_a_wait_that_was_stopped_begins_anew() -> None:
    machine = parse(machine_of({"Type": "Wait", "Seconds": 60}))
    moment = StepMoment(START, Player(machine_of(task()))._random)
    stopped = advance(machine, begin(machine, {}, CONTEXT, moment).run, Stopped(), moment)
    assert stopped.status == "ABORTED"
    later = moment._replace(now=START + 1000)
    again = redrive(machine, stopped.run, later)
    assert again.status == "RUNNING"
    assert again.run.context["Execution"]["RedriveTime"] == "2023-11-14T22:30:00.000Z"
    assert [command.until for command in again.commands] == [START + 1060]  # type: ignore[union-attr]
