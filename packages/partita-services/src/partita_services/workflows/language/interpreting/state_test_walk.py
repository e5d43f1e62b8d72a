"""The test of one state (TestState): its output for an input, and the intermediate data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partita_services.workflows.language.expressions.evaluation_scope import (
    EvaluationScope,
    StepMoment,
)
from partita_services.workflows.language.interpreting.engine_interface import (
    StartTask,
    StartTimer,
    TaskHappening,
    TimerFired,
)
from partita_services.workflows.language.interpreting.execution_state import (
    FAILED,
    SUCCEEDED,
    ExecutionLine,
    ExecutionState,
)
from partita_services.workflows.language.interpreting.interpreter import react
from partita_services.workflows.language.interpreting.machine_walk import MachineWalk
from partita_services.workflows.language.json_values import Json, check_size
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.language.machine_definition import State, StateMachine
from partita_services.workflows.language.states import data_flow, map_items
from partita_services.workflows.language.states.retries import catcher_for, retrier_for
from partita_services.workflows.language.states.state_types import EXECUTE

RETRIABLE, CAUGHT_ERROR = "RETRIABLE", "CAUGHT_ERROR"


class StateTestWalk(MachineWalk):
    """A walk that ends with its first state, and retries nothing."""

    def __init__(
        self,
        machine: StateMachine,
        input: Json,
        variables: dict[str, Json],
        context: dict[str, Json],
        moment: StepMoment,
    ) -> None:
        line = ExecutionLine(id="0", state=machine.start_at, input=input, variables=variables)
        line.is_entered, line.entered_at = True, moment.now
        super().__init__(machine, ExecutionState(context=context, lines={line.id: line}), moment)
        self.state: State = self.state_of(line)
        self.inspected: dict[str, Json] = {"input": input}
        self.context: dict[str, Json] | None = None
        """The context object of the request, which replaces the usual one."""
        self.next: str | None = None
        self._line = line
        self._outcome: data_flow.StateOutcome | None = None
        self._error: StateError | None = None
        self._tolerated: int | None = None

    # Steps of the test

    def begin(self) -> StartTask | StartTimer | None:
        """Begin with the state. Returns the task or timer that has to be carried out first, if
        there is one."""
        prepare = _PREPARE.get(self.state.type, EXECUTE[self.state.type])
        self.attempt(self._line, partial(prepare, self, self._line, self.state))
        waits_for = self.commands[-1] if self.status is None and self.commands else None
        assert waits_for is None or isinstance(waits_for, StartTask | StartTimer)
        return waits_for

    def go_on(self, happening: TimerFired | TaskHappening) -> None:
        react(self, self._line, happening)

    def succeed(self, result: Json, failures: int = 0) -> None:
        """Give the state its result. `failures` says how many iterations of a Map state failed."""
        if self._tolerated is not None and failures > self._tolerated:
            self.fail(self._line, map_items.too_many_failures())
            return
        if self.state.type == "Task":
            self.inspected["result"] = result
        self.attempt(self._line, partial(super().conclude, self._line, self.state, result))

    def break_off(self, error: str | None, cause: str | None, retries: int = 0) -> None:
        """Let the state fail, after `retries` attempts of its retrier."""
        broken = StateError(error, cause)
        number = retrier_for(self.state, broken)
        if number is not None:
            self._line.retries[number] = retries
        self.fail(self._line, broken)

    # Its outcome

    @property
    def status(self) -> str | None:
        """The status in the answer to TestState; None while the test is under way."""
        if self.run.status == FAILED:
            return FAILED
        if self._outcome is not None:
            return SUCCEEDED if self._error is None else CAUGHT_ERROR
        return None if self._error is None else RETRIABLE

    @property
    def output(self) -> Json:
        assert self._outcome is not None
        return self._outcome.output

    @property
    def failure(self) -> tuple[str | None, str | None]:
        """The error and its cause."""
        if self.run.status == FAILED:
            return self.run.error, self.run.cause
        return (None, None) if self._error is None else (self._error.error, self._error.cause)

    @property
    def variables(self) -> dict[str, Json]:
        return self._line.variables | ({} if self._outcome is None else self._outcome.assigned)

    @property
    def error_details(self) -> dict[str, int]:
        """The retrier or catcher that matched an error."""
        if self._error is None:
            return {}
        if self.status == CAUGHT_ERROR:
            caught = catcher_for(self.state, self._error)
            return {} if caught is None else {"catchIndex": caught[0]}
        number = retrier_for(self.state, self._error)
        if self.status != RETRIABLE or number is None:
            return {}
        assert isinstance(self.commands[-1], StartTimer)
        delay = int(self.commands[-1].until - self.moment.now)
        return {"retryIndex": number, "retryBackoffIntervalSeconds": delay}

    # Overridden steps of a walk

    def scope(self, line: ExecutionLine, token: str | None = None) -> EvaluationScope:
        scope = super().scope(line, token)
        return scope if self.context is None else scope._replace(context=self.context)

    def conclude(self, line: ExecutionLine, state: State, result: Json) -> None:
        self.succeed(result)

    def leave(
        self, line: ExecutionLine, state: State, end: data_flow.StateOutcome, next: str | None
    ) -> None:
        check_size(end.output, state.name)
        self._outcome, self.next = end, next

    def fail(self, line: ExecutionLine, error: StateError) -> None:
        self._error = error
        super().fail(line, error)

    def located(self, line: ExecutionLine, error: StateError) -> StateError:
        """Leaves out the location, because a test has no history to point to."""
        return error

    def tolerate(self, failures: int | None) -> None:
        self._tolerated = failures


def _prepare_parallel(trial: StateTestWalk, line: ExecutionLine, state: State) -> None:
    data_flow.effective_input(state, trial.scope(line))


def _prepare_map(trial: StateTestWalk, line: ExecutionLine, state: State) -> None:
    scope = data_flow.selected(state, trial.scope(line))
    items = map_items.items_of(state, scope)
    inputs = [map_items.item_input(trial, line, state, item) for item in items]
    if "ItemBatcher" in state.fields:
        scope.note("afterItemBatcher", inputs)
    elif "ItemSelector" in state.fields:
        scope.note("afterItemSelector", inputs)
    scope.note("maxConcurrency", data_flow.number_of(state, "MaxConcurrency", scope) or 0)
    for name in ("ToleratedFailureCount", "ToleratedFailurePercentage"):
        threshold = data_flow.scalar_of(state, name, scope)
        if threshold is not None:
            scope.note(name[0].lower() + name[1:], threshold)
    trial.tolerate(map_items.threshold(state, scope).of(len(items)))


_PREPARE: dict[str, Callable[[StateTestWalk, ExecutionLine, State], None]] = {
    "Parallel": _prepare_parallel,
    "Map": _prepare_map,
}
"""Parallel and Map states can only be tested with a mock: their branches do not run."""
