"""A walk over a run: from a happening until every line waits again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from partita_services.workflows.language import processor_meter
from partita_services.workflows.language.expressions.evaluation_scope import (
    EvaluationScope,
    StepMoment,
)
from partita_services.workflows.language.interpreting import history_events
from partita_services.workflows.language.interpreting.engine_interface import (
    CancelTask,
    CancelTimer,
    Command,
    StartTimer,
)
from partita_services.workflows.language.interpreting.execution_state import (
    FAILED,
    RUNNING,
    SUCCEEDED,
    ExecutionLine,
    ExecutionState,
)
from partita_services.workflows.language.json_values import Json, check_size
from partita_services.workflows.language.language_errors import (
    DATA_LIMIT_EXCEEDED,
    RUNTIME,
    StateError,
)
from partita_services.workflows.language.language_limits import (
    EVENT_CHARS_PER_TURN,
    HISTORY_EVENTS_MAX,
    STATES_PER_TURN,
)
from partita_services.workflows.language.machine_definition import State, StateMachine
from partita_services.workflows.language.states import data_flow, map_items, parallel_and_map
from partita_services.workflows.language.states.retries import (
    catcher_for,
    delay_seconds,
    error_output,
    retrier_for,
)
from partita_services.workflows.language.states.state_types import EXECUTE
from partita_services.workflows.language.timestamps import format_timestamp

_RETRYING = ("Task", "Parallel", "Map")


class HistoryFull(Exception):
    """Raised when the history has reached its maximum number of events."""


class MachineWalk:
    """Walks the lines of a run, and collects commands and history events."""

    def __init__(self, machine: StateMachine, run: ExecutionState, moment: StepMoment) -> None:
        self.machine = machine
        self.run = run
        self.moment = moment
        self.commands: list[Command] = []
        self.events: list[history_events.Event] = []
        self._event_chars = 0
        self._ready: deque[ExecutionLine] = deque()
        self._unfinished: dict[str, ExecutionLine] = {}
        """The lines as they were before the failure that is being handled, for a redrive."""
        self.inspected: dict[str, Json] | None = None

    def go(self) -> None:
        """Execute states, one of each line in turn, until every line waits."""
        states_left = STATES_PER_TURN
        metered = processor_meter.current()
        while self._ready and self.run.status == RUNNING:
            line = self._ready.popleft()
            if line.id not in self.run.lines:
                continue
            if states_left == 0 or self._event_chars > EVENT_CHARS_PER_TURN or metered.is_turn_over:
                self.wait_until(line, self.moment.now)
                line.awaits_turn = True
                continue
            states_left -= 1
            state = self.state_of(line)
            if not line.is_entered:
                self._enter(line, state)
            self.attempt(line, partial(EXECUTE[state.type], self, line, state))

    def attempt(self, line: ExecutionLine, step: Callable[[], None]) -> None:
        """Run an action for a line. A StateError makes the line's state fail."""
        try:
            processor_meter.current().start_state()
            step()
        except RecursionError:
            self._fail_at_runtime(line, "It is nested too deeply.")
        except (MemoryError, processor_meter.ProcessorTimeExhausted):
            self._fail_at_runtime(line, "It took too much time or memory.")
        except StateError as error:
            self.fail(line, self.located(line, error))

    def _fail_at_runtime(self, line: ExecutionLine, cause: str) -> None:
        self.fail(line, self.located(line, StateError(RUNTIME, cause)))

    def state_of(self, line: ExecutionLine) -> State:
        return self.machine.states_at(line.path).states[line.state]

    def scope(self, line: ExecutionLine, token: str | None = None) -> EvaluationScope:
        """The scope for expressions of the line's state; `$` is its input."""
        entered: dict[str, Json] = {"EnteredTime": format_timestamp(line.entered_at)}
        entered["Name"] = line.state
        if self.state_of(line).type in _RETRYING:
            entered["RetryCount"] = sum(line.retries.values())
        context = {**self.run.context, "State": entered}
        if token is not None:
            context["Task"] = {"Token": token}
        variables: dict[str, Json] = {}
        for outer in self._outwards(line):
            variables = {**outer.variables, **variables}
            if outer.item is not None and "Map" not in context:
                context["Map"] = {"Item": map_items.item_context(outer.item)}
        states = {"input": line.input}
        return EvaluationScope(line.input, context, variables, self.moment, states, self.inspected)

    def _outwards(self, line: ExecutionLine) -> list[ExecutionLine]:
        lines = [line]
        while lines[-1].parent is not None:
            lines.append(self.run.lines[lines[-1].parent])
        return lines

    def _enter(self, line: ExecutionLine, state: State) -> None:
        line.is_entered = True
        line.entered_at = self.moment.now
        line.retries = {}
        details = {"name": state.name, **history_events.data("input", line.input)}
        self._event_chars += len(details["input"])
        line.entered_event = self.record_event(line, f"{state.type}StateEntered", details)

    def record_event(
        self,
        line: ExecutionLine,
        type: str,
        details: dict[str, Json] | None = None,
        *,
        moves: bool = True,
    ) -> int:
        """Add an event that follows the line's last event. With `moves`, it becomes the last event
        itself."""
        if self.run.event_count >= HISTORY_EVENTS_MAX - 1 and not type.startswith("Execution"):
            raise HistoryFull
        self.run.event_count += 1
        id = self.run.event_count
        self.events.append(
            history_events.event(type, id, line.last_event, self.moment.now, details)
        )
        if moves:
            line.last_event = id
        return id

    def new_id(self) -> str:
        self.run.ids_given += 1
        return str(self.run.ids_given)

    def ready(self, line: ExecutionLine) -> None:
        line.waits_for = line.task = line.until = None
        line.awaits_turn = False
        self._ready.append(line)

    def wait_until(self, line: ExecutionLine, until: float) -> None:
        line.waits_for, line.until = self.new_id(), until
        self.commands.append(StartTimer(line.waits_for, until))

    def conclude(self, line: ExecutionLine, state: State, result: Json) -> None:
        """Leave a state with a result."""
        scope = self.scope(line)
        self.leave(line, state, data_flow.outcome(state, scope, result), state.next)

    def leave(
        self, line: ExecutionLine, state: State, end: data_flow.StateOutcome, next: str | None
    ) -> None:
        check_size(end.output, state.name)
        details = {"name": state.name, **history_events.data("output", end.output)}
        self._event_chars += len(details["output"])
        self.record_event(
            line, f"{state.type}StateExited", details | history_events.assigned(end.assigned)
        )
        line.variables.update(end.assigned)
        line.fork = None
        if next is None:
            self.finish(line, end.output)
        else:
            line.state, line.input, line.is_entered = next, end.output, False
            self.ready(line)

    def finish(self, line: ExecutionLine, output: Json) -> None:
        """The line has left its last state."""
        if line.parent is None:
            self.end(SUCCEEDED, output=output)
            self.record_event(line, "ExecutionSucceeded", history_events.data("output", output))
        else:
            parallel_and_map.branch_ended(self, line, output)

    def fail(self, line: ExecutionLine, error: StateError) -> None:
        """A state failed: retry it, go to the state of a catcher, or fail the line."""
        self._unfinished = self.run.copy_lines()
        self.fail_too(line, error)

    def fail_too(self, line: ExecutionLine, error: StateError) -> None:
        """The same, for a state that fails because a state within it failed."""
        state = self.state_of(line)
        parallel_and_map.abort_lines(self, line)
        line.waits_for = line.task = line.until = line.fork = None
        if error.location is not None:
            details = history_events.failure(error.error, error.cause)
            details |= {"location": error.location, "state": state.name}
            self.record_event(line, "EvaluationFailed", details)
        try:
            if self._retries(line, state, error) or self._catches(line, state, error):
                return
        except StateError as second:
            error = self.located(line, second)
        if line.parent is None:
            self.end(FAILED, self._unfinished, error=error.error, cause=error.cause)
            self.record_event(
                line, "ExecutionFailed", history_events.failure(error.error, error.cause)
            )
        else:
            parallel_and_map.branch_failed(self, line, error)

    def _retries(self, line: ExecutionLine, state: State, error: StateError) -> bool:
        number = retrier_for(state, error)
        if number is None:
            return False
        attempts = line.retries.get(number, 0)
        delay = delay_seconds(state.fields["Retry"][number], attempts, self.moment.random)
        if delay is None:
            return False
        line.retries[number] = attempts + 1
        self.wait_until(line, self.moment.now + delay)
        return True

    def _catches(self, line: ExecutionLine, state: State, error: StateError) -> bool:
        match = catcher_for(state, error)
        if match is None:
            return False
        number, catcher = match
        scope = self.scope(line)
        end = data_flow.caught(state, number, scope, error_output(error))
        self.leave(line, state, end, catcher["Next"])
        return True

    def cancel(self, line: ExecutionLine) -> None:
        """Cancel what a line waits for."""
        if line.waits_for is not None:
            cancel = CancelTimer if line.task is None else CancelTask
            self.commands.append(cancel(line.waits_for))
            line.waits_for = None

    def end(
        self,
        status: str,
        unfinished: dict[str, ExecutionLine] | None = None,
        *,
        output: Json = None,
        error: str | None = None,
        cause: str | None = None,
    ) -> None:
        """End the run, and cancel everything that waits."""
        for line in self.run.lines.values():
            self.cancel(line)
        self.run.lines = unfinished or {}
        self.run.status, self.run.output = status, output
        self.run.error, self.run.cause = error, cause

    def located(self, line: ExecutionLine, error: StateError) -> StateError:
        """The error with its location, in the service's words."""
        if error.error == DATA_LIMIT_EXCEEDED:
            return error
        place = f"the state '{line.state}' (entered at the event id #{line.entered_event})"
        cause = f"An error occurred while executing {place}. {error.cause}"
        return StateError(error.error, cause, aliases=error.aliases, location=error.location)
