"""Machines run to their end on a clock of their own, with answers that were prepared."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from partita_services.workflows.language import (
    CancelTask,
    CancelTimer,
    Command,
    Happening,
    StartTask,
    StartTimer,
    StepMoment,
    StepResult,
    TaskFailed,
    TaskSucceeded,
    TimerFired,
    advance,
    begin,
    decode_run,
    encode_run,
    language_errors,
    outstanding,
    parse,
    redrive,
)

START = 1_700_000_000.0
ARN = "arn:aws:states:eu-west-1:123456789012:execution:machine:run"
CONTEXT = {
    "Execution": {
        "Id": ARN,
        "Name": "run",
        "RoleArn": "arn:aws:iam::123456789012:role/r",
        "StartTime": "2023-11-14T22:13:20.000Z",
    },
    "StateMachine": {
        "Id": "arn:aws:states:eu-west-1:123456789012:stateMachine:machine",
        "Name": "machine",
    },
}

PREDEFINED = frozenset(
    name
    for name in vars(language_errors).values()
    if isinstance(name, str) and name.startswith("States.")
)
"""The names of the language's own errors."""

Answer = Callable[[StartTask], Happening]
Answers = Mapping[str, Answer | Sequence[Answer]]


def gives(output: Any) -> Answer:
    return lambda task: TaskSucceeded(task.id, output)


def fails(error: str | None, cause: str | None = None) -> Answer:
    return lambda task: TaskFailed(task.id, error, cause)


def echoes(task: StartTask) -> Happening:
    return TaskSucceeded(task.id, task.input)


class NoEnd(AssertionError):
    """A machine went on for longer than it was given."""


@dataclass
class Story:
    """The course of an execution: its last state, its history, its tasks and its waits."""

    progress: StepResult
    events: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[StartTask] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """The duration of each timer in seconds."""
    most_at_once: int = 0

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def status(self) -> str:
        return self.progress.status

    @property
    def output(self) -> Any:
        assert self.status == "SUCCEEDED", (self.progress.error, self.progress.cause)
        return self.progress.output

    @property
    def error(self) -> str | None:
        assert self.status == "FAILED", self.progress.output
        return self.progress.error

    @property
    def cause(self) -> str | None:
        return self.progress.cause


class Player:
    """Carries out commands in the order of time; every step goes through the stored form."""

    def __init__(self, definition: Any, answers: Answers | None = None, seed: int = 1) -> None:
        self.machine = parse(definition)
        self._answers = {
            state: list(answer) if isinstance(answer, Sequence) else answer
            for state, answer in (answers or {}).items()
        }
        self._random = random.Random(seed)
        self.now = START
        self._otherwise: Answer = echoes
        self._waiting: dict[str, Command] = {}

    def play(self, input: Any = None, steps_max: int = 3000) -> Story:
        first = begin(self.machine, {} if input is None else input, CONTEXT, self._moment())
        story = Story(first)
        self._note(story, first)
        return self._to_the_end(story, steps_max)

    def redrive(self, story: Story, steps_max: int = 3000) -> Story:
        """The same execution once more, from where it failed."""
        stored = decode_run(encode_run(story.progress.run))
        self._note(story, redrive(self.machine, stored, self._moment()))
        return self._to_the_end(story, steps_max)

    def _to_the_end(self, story: Story, steps_max: int) -> Story:
        for _ in range(steps_max):
            if story.status != "RUNNING":
                assert not self._waiting
                return story
            happening = self._next(story)
            stored = decode_run(encode_run(story.progress.run))
            assert {command.id for command in outstanding(stored)} == set(self._waiting) | {
                happening.id
            }
            self._note(story, advance(self.machine, stored, happening, self._moment()))
        raise NoEnd(f"no end after {steps_max} steps")

    def answer_all(self, answer: Answer) -> None:
        """Answer every task that has no answer of its own."""
        self._otherwise = answer

    def _moment(self) -> StepMoment:
        return StepMoment(self.now, self._random)

    def _note(self, story: Story, progress: StepResult) -> None:
        story.progress = progress
        story.events += progress.events
        for command in progress.commands:
            if isinstance(command, CancelTask | CancelTimer):
                self._waiting.pop(command.id, None)
                continue
            self._waiting[command.id] = command
            if isinstance(command, StartTask):
                story.tasks.append(command)
        tasks = [command for command in self._waiting.values() if isinstance(command, StartTask)]
        story.most_at_once = max(story.most_at_once, len(tasks))

    def _next(self, story: Story) -> Any:
        """The next happening: tasks answer at once, timers fire one after the other."""
        for command in self._waiting.values():
            if isinstance(command, StartTask):
                del self._waiting[command.id]
                return self._answer(command)
        timers = [timer for timer in self._waiting.values() if isinstance(timer, StartTimer)]
        timer = min(timers, key=lambda timer: timer.until)
        story.waits.append(timer.until - self.now)
        self.now = max(self.now, timer.until)
        del self._waiting[timer.id]
        return TimerFired(timer.id)

    def _answer(self, task: StartTask) -> Happening:
        answer = self._answers.get(task.state, self._otherwise)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer(task)


def play(definition: Any, input: Any = None, answers: Answers | None = None) -> Story:
    return Player(definition, answers).play(input)


def machine_of(*states: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A machine of states A, B, C, ..., one after the other unless they say where they go."""
    names = [chr(ord("A") + number) for number in range(len(states))]
    linked = {}
    for number, (name, state) in enumerate(zip(names, states, strict=True)):
        goes_on = state["Type"] in ("Choice", "Succeed", "Fail") or "Next" in state
        if goes_on or "End" in state:
            linked[name] = state
        elif number + 1 < len(names):
            linked[name] = {**state, "Next": names[number + 1]}
        else:
            linked[name] = {**state, "End": True}
    return {"StartAt": names[0], "States": linked, **fields}


def task(**fields: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:lambda:eu-west-1:123456789012:function:f",
        **fields,
    }
