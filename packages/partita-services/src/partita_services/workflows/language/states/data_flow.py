"""The data flow through a state: input, result, output, and the variables that it assigns."""

from __future__ import annotations

from typing import NamedTuple

from partita_services.workflows.language.expressions.evaluation_scope import EvaluationScope
from partita_services.workflows.language.expressions.json_paths import (
    PathNotFound,
    PathSyntaxError,
    place,
    resolve,
)
from partita_services.workflows.language.expressions.jsonata import is_expression
from partita_services.workflows.language.expressions.payload_templates import (
    evaluate_path,
    fill_query_template,
    fill_template,
)
from partita_services.workflows.language.json_values import Json, is_integer, json_text
from partita_services.workflows.language.language_errors import (
    QUERY_EVALUATION_ERROR,
    RUNTIME,
    StateError,
)
from partita_services.workflows.language.language_limits import SECONDS_MAX, VARIABLE_BYTES_MAX
from partita_services.workflows.language.machine_definition import State

Fields = dict[str, Json]


class StateOutcome(NamedTuple):
    output: Json
    assigned: dict[str, Json]


def effective_input(state: State, scope: EvaluationScope) -> Json:
    """The effective input: selected by InputPath, then shaped by Parameters or Arguments."""
    if state.is_jsonata:
        if "Arguments" in state.fields:
            arguments = fill_query_template(state.fields["Arguments"], scope, "Arguments")
            return scope.note("afterArguments", arguments)
        return scope.data
    inner = selected(state, scope)
    parameters = inner.data
    if "Parameters" in state.fields and state.type != "Map":
        parameters = fill_template(state.fields["Parameters"], inner)
    return scope.note("afterParameters", parameters)


def selected(state: State, scope: EvaluationScope) -> EvaluationScope:
    """The scope after InputPath, for the other paths of the state."""
    if state.is_jsonata:
        return scope
    data = _selected(state.fields, "InputPath", scope)
    return scope._replace(data=scope.note("afterInputPath", data))


def passed_on(state: State, scope: EvaluationScope) -> StateOutcome:
    """The outcome of a state that passes on its input."""
    if state.is_jsonata:
        return query_outcome(state.fields, scope, scope.data)
    inner = selected(state, scope)
    return StateOutcome(
        _selected(state.fields, "OutputPath", inner), _assigned(state.fields, inner)
    )


def outcome(state: State, scope: EvaluationScope, result: Json) -> StateOutcome:
    """The outcome of a result, after ResultSelector, ResultPath and OutputPath."""
    if state.is_jsonata:
        inner = scope._replace(states={**scope.states, "result": result})
        return query_outcome(state.fields, inner, result)
    if "ResultSelector" in state.fields:
        result = fill_template(state.fields["ResultSelector"], scope._replace(data=result))
    scope.note("afterResultSelector", result)
    assigned = _assigned(state.fields, scope._replace(data=result))
    placed = scope.note("afterResultPath", _placed(state.fields, scope.data, result))
    return StateOutcome(
        _selected(state.fields, "OutputPath", scope._replace(data=placed)), assigned
    )


def caught(state: State, number: int, scope: EvaluationScope, error_output: Json) -> StateOutcome:
    """The outcome of an error that a catcher handles."""
    catcher = state.fields["Catch"][number]
    if state.is_jsonata:
        inner = scope._replace(states={**scope.states, "errorOutput": error_output})
        return query_outcome(catcher, inner, error_output, f"Catch[{number}]/")
    assigned = _assigned(catcher, scope._replace(data=error_output))
    return StateOutcome(_placed(catcher, scope.data, error_output), assigned)


def chosen(state: State, scope: EvaluationScope, rule: Fields | None) -> StateOutcome:
    """The outcome of a Choice state: a rule that matched has its own Output and Assign."""
    fields = state.fields if rule is None else rule
    if state.is_jsonata:
        return query_outcome(fields, scope, scope.data)
    inner = selected(state, scope)
    return StateOutcome(_selected(state.fields, "OutputPath", inner), _assigned(fields, inner))


def query_outcome(
    fields: Fields, scope: EvaluationScope, default: Json, prefix: str = ""
) -> StateOutcome:
    output = default
    if "Output" in fields:
        output = fill_query_template(fields["Output"], scope, f"{prefix}Output")
    assigned = {
        name: fill_query_template(value, scope, f"{prefix}Assign/{name}")
        for name, value in fields.get("Assign", {}).items()
    }
    return StateOutcome(output, _checked(assigned))


def number_of(state: State, name: str, scope: EvaluationScope) -> int | None:
    """The integer in a field, in an expression, or at the path in the field's `...Path` variant;
    None without any of them."""
    value = scalar_of(state, name, scope)
    if value is None:
        return None
    if not is_integer(value) or not 0 <= value <= SECONDS_MAX:
        raise wrong_value(state, name, f"an integer from 0 to {SECONDS_MAX}", value)
    return int(value)


def scalar_of(state: State, name: str, scope: EvaluationScope) -> Json:
    """The value of a field, of an expression, or at the path in the `...Path` variant; None without
    any of them."""
    if name in state.fields:
        value = state.fields[name]
        if state.is_jsonata and is_expression(value):
            return fill_query_template(value, scope, name)
        return value
    path = state.fields.get(f"{name}Path")
    return None if path is None else evaluate_path(path, scope, f"{name}Path")


def wrong_value(state: State, field: str, what: str, value: Json) -> StateError:
    """The error for a value that is not valid for its field."""
    return StateError(
        QUERY_EVALUATION_ERROR if state.is_jsonata else RUNTIME,
        f"The value for the field '{field}' must be {what}, but was {json_text(value)[:80]}.",
        location=field if state.is_jsonata else None,
    )


def _selected(fields: Fields, name: str, scope: EvaluationScope) -> Json:
    path = fields.get(name, "$")
    if path is None:
        return {}
    if path == "$":
        return scope.data
    try:
        return resolve(path, scope.data, scope.context, scope.variables)
    except (PathNotFound, PathSyntaxError):
        raise StateError(
            RUNTIME,
            f"Invalid path '{path}': The {name[:-4]} path references an invalid value.",
        ) from None


def _placed(fields: Fields, data: Json, result: Json) -> Json:
    path = fields.get("ResultPath", "$")
    if path is None:
        return data
    return place(path, data, result)


def _assigned(fields: Fields, scope: EvaluationScope) -> dict[str, Json]:
    if "Assign" not in fields:
        return {}
    return _checked(fill_template(fields["Assign"], scope))


def _checked(assigned: dict[str, Json]) -> dict[str, Json]:
    if assigned and len(json_text(assigned).encode()) > VARIABLE_BYTES_MAX:
        raise StateError(RUNTIME, "The variables of one Assign may have at most 256 KB in total.")
    return assigned
