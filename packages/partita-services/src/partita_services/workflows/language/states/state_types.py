"""The types of states: each has a function that runs when a line enters the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from partita_services.workflows.language.expressions.evaluation_scope import EvaluationScope
from partita_services.workflows.language.expressions.payload_templates import (
    fill_query_template,
    fill_template,
)
from partita_services.workflows.language.interpreting import history_events
from partita_services.workflows.language.interpreting.engine_interface import StartTask
from partita_services.workflows.language.interpreting.execution_state import ExecutionLine
from partita_services.workflows.language.interpreting.task_resources import resource_of
from partita_services.workflows.language.interpreting.task_tokens import make_token
from partita_services.workflows.language.json_values import Json, check_size
from partita_services.workflows.language.language_errors import NO_CHOICE_MATCHED, StateError
from partita_services.workflows.language.machine_definition import State
from partita_services.workflows.language.states import data_flow
from partita_services.workflows.language.states.choice_rules import matching_rule
from partita_services.workflows.language.states.parallel_and_map import (
    execute_map,
    execute_parallel,
)
from partita_services.workflows.language.timestamps import parse_timestamp

if TYPE_CHECKING:
    from partita_services.workflows.language.interpreting.machine_walk import MachineWalk


def execute_pass(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    scope = walk.scope(line)
    if state.is_jsonata:
        end = data_flow.passed_on(state, scope)
    else:
        if "Result" in state.fields:
            result = scope.note("result", state.fields["Result"])
        else:
            result = data_flow.effective_input(state, scope)
        end = data_flow.outcome(state, scope, result)
    walk.leave(line, state, end, state.next)


def execute_task(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    id = walk.new_id()
    resource: str = state.fields["Resource"]
    token = None
    if resource_of(resource).has_token:
        token = make_token(walk.run.context["Execution"]["Id"], id, walk.moment.random)
    scope = walk.scope(line, token)
    chosen = data_flow.selected(state, scope)
    task = StartTask(
        id=id,
        state=state.name,
        resource=resource,
        input=data_flow.effective_input(state, scope),
        scheduled_at=walk.moment.now,
        timeout_seconds=data_flow.number_of(state, "TimeoutSeconds", chosen),
        heartbeat_seconds=data_flow.number_of(state, "HeartbeatSeconds", chosen),
        token=token,
        credentials=_credentials(state, chosen),
    )
    check_size(task.input, state.name)
    scheduled = history_events.task_scheduled(task, walk.run.context["Execution"]["Id"])
    walk.record_event(line, history_events.task_type(task, "Scheduled"), scheduled)
    line.waits_for, line.task = id, task
    walk.commands.append(task)


def _credentials(state: State, scope: EvaluationScope) -> Json:
    template = state.fields.get("Credentials")
    if template is None:
        return None
    if not state.is_jsonata:
        return fill_template(template, scope)
    credentials = fill_query_template(template, scope, "Credentials")
    if not isinstance(credentials, dict):
        raise data_flow.wrong_value(state, "Credentials", "an object", credentials)
    return credentials


def execute_choice(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    scope = walk.scope(line)
    rule = matching_rule(state, data_flow.selected(state, scope))
    next = state.fields.get("Default") if rule is None else rule["Next"]
    if next is None:
        raise StateError(
            NO_CHOICE_MATCHED,
            "Failed to transition out of the state. The state does not point to a next state.",
        )
    walk.leave(line, state, data_flow.chosen(state, scope, rule), next)


def execute_wait(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    scope = data_flow.selected(state, walk.scope(line))
    seconds = data_flow.number_of(state, "Seconds", scope)
    if seconds is not None:
        until = walk.moment.now + seconds
    else:
        until = _timestamp(state, scope)
    if until > walk.moment.now:
        walk.wait_until(line, until)
    else:
        leave_wait(walk, line, state)


def leave_wait(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    walk.leave(line, state, data_flow.passed_on(state, walk.scope(line)), state.next)


def _timestamp(state: State, scope: EvaluationScope) -> float:
    text = data_flow.scalar_of(state, "Timestamp", scope)
    until = parse_timestamp(text)
    if until is None:
        raise data_flow.wrong_value(
            state, "Timestamp", "a timestamp such as 2026-01-31T12:00:00Z", text
        )
    return until


def execute_succeed(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    walk.leave(line, state, data_flow.passed_on(state, walk.scope(line)), None)


def execute_fail(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    scope = data_flow.selected(state, walk.scope(line))
    error, cause = (_text(state, name, scope) for name in ("Error", "Cause"))
    walk.fail(line, StateError(error, cause))


def _text(state: State, name: str, scope: EvaluationScope) -> str | None:
    text = data_flow.scalar_of(state, name, scope)
    if text is None or isinstance(text, str):
        return text
    raise data_flow.wrong_value(state, name, "a string", text)


EXECUTE: dict[str, Callable[[MachineWalk, ExecutionLine, State], None]] = {
    "Pass": execute_pass,
    "Task": execute_task,
    "Choice": execute_choice,
    "Wait": execute_wait,
    "Succeed": execute_succeed,
    "Fail": execute_fail,
    "Parallel": execute_parallel,
    "Map": execute_map,
}
