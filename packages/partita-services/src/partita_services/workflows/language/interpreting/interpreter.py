"""The interpreter: a pure function from a run and a happening to the next run.

Nothing here does I/O, sleeps or reads a clock. The engine stores the run that is returned, carries
out its commands, and calls again when something has happened.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from partita_services.workflows.language.definition import StateMachine
from partita_services.workflows.language.errors import (
    HEARTBEAT_TIMEOUT,
    RUNTIME,
    TIMEOUT,
    StateError,
)
from partita_services.workflows.language.expressions.scope import Moment
from partita_services.workflows.language.interpreting import history
from partita_services.workflows.language.interpreting.happenings import (
    Command,
    ExecutionTimedOut,
    Happening,
    HeartbeatMissed,
    StartTask,
    StartTimer,
    Stopped,
    TaskFailed,
    TaskHappening,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
    TaskTimedOut,
    TimerFired,
)
from partita_services.workflows.language.interpreting.resources import MAP_RUN
from partita_services.workflows.language.interpreting.run import (
    ABORTED,
    FAILED,
    RUNNING,
    TIMED_OUT,
    Line,
    Run,
)
from partita_services.workflows.language.interpreting.walk import HistoryFull, Walk
from partita_services.workflows.language.limits import HISTORY_EVENTS_MAX
from partita_services.workflows.language.states import forks
from partita_services.workflows.language.states.state_types import leave_wait
from partita_services.workflows.language.timestamps import format_timestamp
from partita_services.workflows.language.values import Json, check_size


class Progress(msgspec.Struct, frozen=True):
    """A run after a step, with the commands and the history events of the step."""

    run: Run
    commands: list[Command] = []
    events: list[history.Event] = []

    @property
    def status(self) -> str:
        return self.run.status

    @property
    def output(self) -> Json:
        return self.run.output

    @property
    def error(self) -> str | None:
        return self.run.error

    @property
    def cause(self) -> str | None:
        return self.run.cause


def begin(machine: StateMachine, input: Json, context: dict[str, Json], moment: Moment) -> Progress:
    """Start an execution."""
    execution = {"RedriveCount": 0, **context["Execution"], "Input": input}
    line = Line(id="0", state=machine.start_at, input=input)
    run = Run(context={**context, "Execution": execution}, lines={line.id: line})
    walk = Walk(machine, run, moment)
    details = {**history.data("input", input), "roleArn": execution.get("RoleArn", "")}
    walk.record_event(line, "ExecutionStarted", details, moves=False)
    walk.ready(line)
    return _walked(walk, walk.go)


def advance(machine: StateMachine, run: Run, happening: Happening, moment: Moment) -> Progress:
    """Continue after a happening. The run that is passed in is not changed."""
    if run.status != RUNNING:
        return Progress(run)
    walk = Walk(machine, run.copy(), moment)
    if isinstance(happening, Stopped | ExecutionTimedOut):
        return _walked(walk, partial(_end, walk, happening))
    line = walk.run.line_waiting_for(happening.id)
    if line is None or isinstance(happening, TimerFired) != (line.task is None):
        return Progress(run)
    return _walked(walk, partial(react, walk, line, happening))


def react(walk: Walk, line: Line, happening: TimerFired | TaskHappening) -> None:
    """Continue the line that waits for this happening."""
    if isinstance(happening, TimerFired):
        _fire(walk, line)
    else:
        assert line.task is not None
        _REACTIONS[type(happening)](walk, line, line.task, happening)


def redrive(machine: StateMachine, run: Run, moment: Moment) -> Progress:
    """Continue a run that did not succeed, from the states in which it ended."""
    run = run.copy()
    execution = run.context["Execution"]
    count = execution["RedriveCount"] + 1
    redriven = {"RedriveCount": count, "RedriveTime": format_timestamp(moment.now)}
    run.context = {**run.context, "Execution": {**execution, **redriven}}
    run.status, run.output, run.error, run.cause = RUNNING, None, None, None
    walk = Walk(machine, run, moment)
    first = next(iter(run.lines.values()))
    first.last_event = run.event_count
    event = walk.record_event(first, "ExecutionRedriven", {"redriveCount": count})
    for line in run.lines.values():
        line.last_event = event
    return _walked(walk, partial(_resume, walk))


def _resume(walk: Walk) -> None:
    for line in list(walk.run.lines.values()):
        if walk.run.lines.get(line.id) is not line:
            # An earlier line has failed again, which ended this one.
            continue
        line.retries = {}
        if not forks.resume(walk, line):
            line.fork = None
            walk.ready(line)


def outstanding(run: Run) -> list[Command]:
    """The commands for everything that a run waits for, to be carried out again after a restart."""
    commands: list[Command] = []
    for line in run.lines.values():
        if line.waits_for is None or run.status != RUNNING:
            continue
        if line.task is not None:
            commands.append(line.task)
        elif line.until is not None:
            commands.append(StartTimer(line.waits_for, line.until))
    return commands


def _walked(walk: Walk, step: Callable[[], None]) -> Progress:
    try:
        step()
        walk.go()
    except HistoryFull:
        cause = (
            f"The execution reached the maximum number of history events ({HISTORY_EVENTS_MAX})."
        )
        _break_off(walk, RUNTIME, cause)
    return Progress(walk.run, walk.commands, walk.events)


def break_off(machine: StateMachine, run: Run, error: str, cause: str, moment: Moment) -> Progress:
    """Fail a run that cannot continue, without asking retriers and catchers."""
    walk = Walk(machine, run.copy(), moment)
    return _walked(walk, partial(_break_off, walk, error, cause))


def _break_off(walk: Walk, error: str, cause: str) -> None:
    first = next(iter(walk.run.lines.values()))
    walk.end(FAILED, error=error, cause=cause)
    walk.record_event(first, "ExecutionFailed", history.failure(error, cause))


def _end(walk: Walk, happening: Stopped | ExecutionTimedOut) -> None:
    """End the execution, in whatever states its lines are."""
    first = next(iter(walk.run.lines.values()))
    unfinished = walk.run.copy_lines()
    forks.abort_lines(walk, first)
    if first.is_entered and walk.state_of(first).type in _ABORTABLE:
        walk.record_event(first, f"{walk.state_of(first).type}StateAborted")
    if isinstance(happening, Stopped):
        walk.end(ABORTED, unfinished, error=happening.error, cause=happening.cause)
        details = history.failure(happening.error, happening.cause)
        walk.record_event(first, "ExecutionAborted", details)
    else:
        walk.end(TIMED_OUT, unfinished)
        walk.record_event(first, "ExecutionTimedOut", {})


_ABORTABLE = ("Task", "Wait", "Parallel", "Map")


def _fire(walk: Walk, line: Line) -> None:
    """A timer has fired: the end of a Wait state, or of the delay before a retry."""
    state = walk.state_of(line)
    if state.type == "Wait" and line.is_entered and not line.awaits_turn:
        line.waits_for = line.until = None
        walk.attempt(line, partial(leave_wait, walk, line, state))
    else:
        walk.ready(line)


def _started(walk: Walk, line: Line, task: StartTask, happening: TaskStarted) -> None:
    details = history.task_details(task) or None
    if task.resource == MAP_RUN:
        details = {"mapRunArn": task.input["mapRunArn"]}
    if happening.worker_name is not None:
        details = {"workerName": happening.worker_name}
    line.task = replace(task, is_started=True)
    walk.record_event(line, history.task_type(task, "Started"), details)


def _submitted(walk: Walk, line: Line, task: StartTask, happening: TaskSubmitted) -> None:
    details = {**history.task_details(task), **history.data("output", happening.output)}
    line.task = replace(task, is_submitted=True, submitted=happening.output)
    walk.record_event(line, history.task_type(task, "Submitted"), details)


def _succeeded(walk: Walk, line: Line, task: StartTask, happening: TaskSucceeded) -> None:
    try:
        check_size(happening.output, history.task_details(task).get("resourceType", task.resource))
    except StateError as error:
        _fail(walk, line, task, "Failed", error)
        return
    details = {**history.task_details(task), **history.data("output", happening.output)}
    walk.record_event(line, history.task_type(task, "Succeeded"), details)
    if task.resource == MAP_RUN:
        walk.record_event(line, "MapStateSucceeded", moves=False)
    line.waits_for = line.task = None
    state = walk.state_of(line)
    walk.attempt(line, partial(walk.conclude, line, state, happening.output))


def _failed(walk: Walk, line: Line, task: StartTask, happening: TaskFailed) -> None:
    _fail(walk, line, task, "Failed", StateError(happening.error, happening.cause))


def _timed_out(walk: Walk, line: Line, task: StartTask, _: TaskTimedOut) -> None:
    _fail(walk, line, task, "TimedOut", StateError(TIMEOUT))


def _heartbeat_missed(walk: Walk, line: Line, task: StartTask, _: HeartbeatMissed) -> None:
    _fail(walk, line, task, "TimedOut", StateError(HEARTBEAT_TIMEOUT))


def _fail(walk: Walk, line: Line, task: StartTask, what: str, error: StateError) -> None:
    details = {**history.task_details(task), **history.failure(error.error, error.cause)}
    walk.record_event(line, history.task_type(task, what), details)
    if task.resource == MAP_RUN:
        walk.record_event(line, "MapStateFailed")
    walk.fail(line, error)


_REACTIONS: dict[type[TaskHappening], Callable[..., None]] = {
    TaskStarted: _started,
    TaskSubmitted: _submitted,
    TaskSucceeded: _succeeded,
    TaskFailed: _failed,
    TaskTimedOut: _timed_out,
    HeartbeatMissed: _heartbeat_missed,
}
