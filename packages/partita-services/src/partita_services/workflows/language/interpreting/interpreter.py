"""The interpreter: a pure function from a run and a happening to the next run.

Nothing here does I/O, sleeps or reads a clock. The engine stores the run that is returned, carries
out its commands, and calls again when something has happened.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from partita_services.workflows.language.expressions.evaluation_scope import StepMoment
from partita_services.workflows.language.interpreting import history_events
from partita_services.workflows.language.interpreting.engine_interface import (
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
from partita_services.workflows.language.interpreting.execution_state import (
    ABORTED,
    FAILED,
    RUNNING,
    TIMED_OUT,
    ExecutionLine,
    ExecutionState,
)
from partita_services.workflows.language.interpreting.machine_walk import HistoryFull, MachineWalk
from partita_services.workflows.language.interpreting.task_resources import MAP_RUN
from partita_services.workflows.language.json_values import Json, check_size
from partita_services.workflows.language.language_errors import (
    HEARTBEAT_TIMEOUT,
    RUNTIME,
    TIMEOUT,
    StateError,
)
from partita_services.workflows.language.language_limits import HISTORY_EVENTS_MAX
from partita_services.workflows.language.machine_definition import StateMachine
from partita_services.workflows.language.states import parallel_and_map
from partita_services.workflows.language.states.state_types import leave_wait
from partita_services.workflows.language.timestamps import format_timestamp


class StepResult(msgspec.Struct, frozen=True):
    """A run after a step, with the commands and the history events of the step."""

    run: ExecutionState
    commands: list[Command] = []
    events: list[history_events.Event] = []

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


def begin(
    machine: StateMachine, input: Json, context: dict[str, Json], moment: StepMoment
) -> StepResult:
    """Start an execution."""
    execution = {"RedriveCount": 0, **context["Execution"], "Input": input}
    line = ExecutionLine(id="0", state=machine.start_at, input=input)
    run = ExecutionState(context={**context, "Execution": execution}, lines={line.id: line})
    walk = MachineWalk(machine, run, moment)
    details = {**history_events.data("input", input), "roleArn": execution.get("RoleArn", "")}
    walk.record_event(line, "ExecutionStarted", details, moves=False)
    walk.ready(line)
    return _walked(walk, walk.go)


def advance(
    machine: StateMachine, run: ExecutionState, happening: Happening, moment: StepMoment
) -> StepResult:
    """Continue after a happening. The run that is passed in is not changed."""
    if run.status != RUNNING:
        return StepResult(run)
    walk = MachineWalk(machine, run.copy(), moment)
    if isinstance(happening, Stopped | ExecutionTimedOut):
        return _walked(walk, partial(_end, walk, happening))
    line = walk.run.line_waiting_for(happening.id)
    # A late happening: the line that waited for it has ended, or waits for something else by now.
    if line is None or isinstance(happening, TimerFired) != (line.task is None):
        return StepResult(run)
    return _walked(walk, partial(react, walk, line, happening))


def react(walk: MachineWalk, line: ExecutionLine, happening: TimerFired | TaskHappening) -> None:
    """Continue the line that waits for this happening."""
    if isinstance(happening, TimerFired):
        _fire(walk, line)
    else:
        assert line.task is not None
        _REACTIONS[type(happening)](walk, line, line.task, happening)


def redrive(machine: StateMachine, run: ExecutionState, moment: StepMoment) -> StepResult:
    """Continue a run that did not succeed, from the states in which it ended."""
    run = run.copy()
    execution = run.context["Execution"]
    count = execution["RedriveCount"] + 1
    redriven = {"RedriveCount": count, "RedriveTime": format_timestamp(moment.now)}
    run.context = {**run.context, "Execution": {**execution, **redriven}}
    run.status, run.output, run.error, run.cause = RUNNING, None, None, None
    walk = MachineWalk(machine, run, moment)
    first = next(iter(run.lines.values()))
    first.last_event = run.event_count
    event = walk.record_event(first, "ExecutionRedriven", {"redriveCount": count})
    for line in run.lines.values():
        line.last_event = event
    return _walked(walk, partial(_resume, walk))


def _resume(walk: MachineWalk) -> None:
    for line in list(walk.run.lines.values()):
        if walk.run.lines.get(line.id) is not line:
            # An earlier line has failed again, which ended this one.
            continue
        line.retries = {}
        if not parallel_and_map.resume(walk, line):
            line.fork = None
            walk.ready(line)


def outstanding(run: ExecutionState) -> list[Command]:
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


def _walked(walk: MachineWalk, step: Callable[[], None]) -> StepResult:
    try:
        step()
        walk.go()
    except HistoryFull:
        cause = (
            f"The execution reached the maximum number of history events ({HISTORY_EVENTS_MAX})."
        )
        _break_off(walk, RUNTIME, cause)
    return StepResult(walk.run, walk.commands, walk.events)


def break_off(
    machine: StateMachine, run: ExecutionState, error: str, cause: str, moment: StepMoment
) -> StepResult:
    """Fail a run that cannot continue, without asking retriers and catchers."""
    walk = MachineWalk(machine, run.copy(), moment)
    return _walked(walk, partial(_break_off, walk, error, cause))


def _break_off(walk: MachineWalk, error: str, cause: str) -> None:
    first = next(iter(walk.run.lines.values()))
    walk.end(FAILED, error=error, cause=cause)
    walk.record_event(first, "ExecutionFailed", history_events.failure(error, cause))


def _end(walk: MachineWalk, happening: Stopped | ExecutionTimedOut) -> None:
    """End the execution, in whatever states its lines are."""
    first = next(iter(walk.run.lines.values()))
    unfinished = walk.run.copy_lines()
    parallel_and_map.abort_lines(walk, first)
    if first.is_entered and walk.state_of(first).type in _ABORTABLE:
        walk.record_event(first, f"{walk.state_of(first).type}StateAborted")
    if isinstance(happening, Stopped):
        walk.end(ABORTED, unfinished, error=happening.error, cause=happening.cause)
        details = history_events.failure(happening.error, happening.cause)
        walk.record_event(first, "ExecutionAborted", details)
    else:
        walk.end(TIMED_OUT, unfinished)
        walk.record_event(first, "ExecutionTimedOut", {})


_ABORTABLE = ("Task", "Wait", "Parallel", "Map")


def _fire(walk: MachineWalk, line: ExecutionLine) -> None:
    """A timer has fired: the end of a Wait state, or of the delay before a retry."""
    state = walk.state_of(line)
    if state.type == "Wait" and line.is_entered and not line.awaits_turn:
        line.waits_for = line.until = None
        walk.attempt(line, partial(leave_wait, walk, line, state))
    else:
        walk.ready(line)


def _started(
    walk: MachineWalk, line: ExecutionLine, task: StartTask, happening: TaskStarted
) -> None:
    details = history_events.task_details(task) or None
    if task.resource == MAP_RUN:
        details = {"mapRunArn": task.input["mapRunArn"]}
    if happening.worker_name is not None:
        details = {"workerName": happening.worker_name}
    line.task = replace(task, is_started=True)
    walk.record_event(line, history_events.task_type(task, "Started"), details)


def _submitted(
    walk: MachineWalk, line: ExecutionLine, task: StartTask, happening: TaskSubmitted
) -> None:
    details = {
        **history_events.task_details(task),
        **history_events.data("output", happening.output),
    }
    line.task = replace(task, is_submitted=True, submitted=happening.output)
    walk.record_event(line, history_events.task_type(task, "Submitted"), details)


def _succeeded(
    walk: MachineWalk, line: ExecutionLine, task: StartTask, happening: TaskSucceeded
) -> None:
    try:
        check_size(
            happening.output, history_events.task_details(task).get("resourceType", task.resource)
        )
    except StateError as error:
        _fail(walk, line, task, "Failed", error)
        return
    details = {
        **history_events.task_details(task),
        **history_events.data("output", happening.output),
    }
    walk.record_event(line, history_events.task_type(task, "Succeeded"), details)
    if task.resource == MAP_RUN:
        walk.record_event(line, "MapStateSucceeded", moves=False)
    line.waits_for = line.task = None
    state = walk.state_of(line)
    walk.attempt(line, partial(walk.conclude, line, state, happening.output))


def _failed(walk: MachineWalk, line: ExecutionLine, task: StartTask, happening: TaskFailed) -> None:
    _fail(walk, line, task, "Failed", StateError(happening.error, happening.cause))


def _timed_out(walk: MachineWalk, line: ExecutionLine, task: StartTask, _: TaskTimedOut) -> None:
    _fail(walk, line, task, "TimedOut", StateError(TIMEOUT))


def _heartbeat_missed(
    walk: MachineWalk, line: ExecutionLine, task: StartTask, _: HeartbeatMissed
) -> None:
    _fail(walk, line, task, "TimedOut", StateError(HEARTBEAT_TIMEOUT))


def _fail(
    walk: MachineWalk, line: ExecutionLine, task: StartTask, what: str, error: StateError
) -> None:
    details = {
        **history_events.task_details(task),
        **history_events.failure(error.error, error.cause),
    }
    walk.record_event(line, history_events.task_type(task, what), details)
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
