"""Payload templates: JSON in which some values are expressions, in either query language."""

from __future__ import annotations

from partita_services.workflows.language.expressions.evaluation_scope import EvaluationScope
from partita_services.workflows.language.expressions.intrinsic_calls import (
    CallSyntaxError,
    evaluate_call,
    is_call,
)
from partita_services.workflows.language.expressions.json_paths import (
    PathNotFound,
    PathSyntaxError,
    resolve,
)
from partita_services.workflows.language.expressions.jsonata import (
    compile_expression,
    is_expression,
    source_of,
)
from partita_services.workflows.language.json_values import Json, json_text
from partita_services.workflows.language.language_errors import (
    PARAMETER_PATH_FAILURE,
    QUERY_EVALUATION_ERROR,
    RUNTIME,
    StateError,
)

PATH_SUFFIX = ".$"


def fill_template(template: Json, scope: EvaluationScope) -> Json:
    """Fill a template of JSONPath: fields whose names end in `.$` are paths or calls of intrinsic
    functions."""
    if isinstance(template, dict):
        return dict(_filled(name, value, scope) for name, value in template.items())
    if isinstance(template, list):
        return [fill_template(item, scope) for item in template]
    return template


def _filled(name: str, value: Json, scope: EvaluationScope) -> tuple[str, Json]:
    if name.endswith(PATH_SUFFIX) and isinstance(value, str):
        return name.removesuffix(PATH_SUFFIX), evaluate_path(value, scope, name)
    return name, fill_template(value, scope)


def evaluate_path(text: str, scope: EvaluationScope, field: str) -> Json:
    """The value of a path, or of a call of an intrinsic function."""
    if is_call(text):
        try:
            return evaluate_call(text, lambda path: find_path(path, scope, field), scope)
        except CallSyntaxError as error:
            raise StateError(RUNTIME, f"Invalid function in the field '{field}': {error}") from None
    return find_path(text, scope, field)


def find_path(text: str, scope: EvaluationScope, field: str) -> Json:
    try:
        return resolve(text, scope.data, scope.context, scope.variables)
    except PathNotFound:
        # The service reports States.Runtime; the guide has another name for it. Both can be caught.
        raise StateError(
            RUNTIME,
            f"The JSONPath '{text}' specified for the field '{field}' could not be found in the "
            f"input '{json_text(scope.data)}'",
            aliases=(PARAMETER_PATH_FAILURE,),
        ) from None
    except PathSyntaxError as error:
        raise StateError(RUNTIME, f"Invalid path in the field '{field}': {error}") from None


def fill_query_template(template: Json, scope: EvaluationScope, field: str) -> Json:
    """Fill a template of JSONata: all strings in `{% %}` are expressions."""
    if is_expression(template):
        try:
            expression = compile_expression(source_of(template))
        except ValueError as error:
            raise StateError(
                QUERY_EVALUATION_ERROR,
                f"The field '{field}' has no valid JSONata expression: {error}",
                location=field,
            ) from None
        return expression.evaluate(scope, field)
    if isinstance(template, dict):
        return {
            name: fill_query_template(value, scope, f"{field}/{name}")
            for name, value in template.items()
        }
    if isinstance(template, list):
        return [
            fill_query_template(item, scope, f"{field}[{index}]")
            for index, item in enumerate(template)
        ]
    return template
