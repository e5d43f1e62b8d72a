"""The fields of states: which of them a state may have in each query language, and their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from partita_services.workflows.language.expressions.intrinsic_calls import (
    CallSyntaxError,
    is_call,
    parse_call,
)
from partita_services.workflows.language.expressions.json_paths import PathSyntaxError, parse_path
from partita_services.workflows.language.expressions.jsonata import (
    compile_expression,
    is_expression,
    source_of,
)
from partita_services.workflows.language.expressions.payload_templates import PATH_SUFFIX
from partita_services.workflows.language.json_values import Json, is_integer, is_number
from partita_services.workflows.language.language_limits import SECONDS_MAX, VARIABLE_NAME_CHARS_MAX
from partita_services.workflows.language.timestamps import parse_timestamp

Problem = tuple[str, str]
"""The location within the field, and the message."""

Check = Callable[[Json], Iterator[Problem]]

_VARIABLE_NAME = re.compile(r"[^\W\d]\w*")
_SEGMENT = r"(?:[^:\s]*|\$\{[^}\s]+\})"
_RESOURCE = re.compile(
    rf"arn:(?!:){_SEGMENT}:(?!:){_SEGMENT}:{_SEGMENT}:{_SEGMENT}:\S+|\$\{{[^}}]+\}}"
)


def check_string(value: Json) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield "", "The value must be a string"


def check_version(value: Json) -> Iterator[Problem]:
    if value != "1.0":
        yield "", "Value must be one of: [1.0]"


def check_boolean(value: Json) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield "", "The value must be a boolean"


def check_any(value: Json) -> Iterator[Problem]:
    yield from ()


def check_path(value: Json) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield "", "The value must be a JSONPath"
        return
    try:
        parse_path(value)
    except PathSyntaxError as error:
        yield "", f"Value is not a valid JSONPath: {error}"


def check_path_or_null(value: Json) -> Iterator[Problem]:
    if value is not None:
        yield from check_path(value)


def check_path_or_call(value: Json) -> Iterator[Problem]:
    """A path, or a call of an intrinsic function."""
    if not isinstance(value, str) or not is_call(value):
        yield from check_path(value)
        return
    try:
        parse_call(value)
    except CallSyntaxError as error:
        yield "", f"Value is not a valid intrinsic function: {error}"


def check_reference_path(value: Json) -> Iterator[Problem]:
    """A path to one place in the input, or null."""
    if value is None:
        return
    problems = list(check_path(value))
    yield from problems
    if not problems:
        path = parse_path(value)
        if not path.is_reference or path.is_context or path.variable:
            yield "", "Value is not a Reference Path"


def check_template(value: Json) -> Iterator[Problem]:
    """A template of JSONPath, in which fields that end in `.$` are paths."""
    if isinstance(value, dict):
        for name, member in value.items():
            check = check_path_or_call if name.endswith(PATH_SUFFIX) else check_template
            yield from within(f"/{name}", check(member))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from within(f"[{index}]", check_template(item))


def check_query_template(value: Json) -> Iterator[Problem]:
    """A template of JSONata, in which strings in `{% %}` are expressions."""
    if is_expression(value):
        try:
            compile_expression(source_of(value))
        except ValueError as error:
            yield "", f"Value is not a valid JSONata expression: {error}"
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from within(f"/{name}", check_query_template(member))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from within(f"[{index}]", check_query_template(item))


def check_assignments(check: Check, suffix: str) -> Check:
    def checked(value: Json) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield "", "The value must be an object"
            return
        for name in value:
            variable = name.removesuffix(suffix)
            if not _VARIABLE_NAME.fullmatch(variable) or len(variable) > VARIABLE_NAME_CHARS_MAX:
                yield f"/{name}", "The name of a variable must be an identifier of up to 80 letters"
            elif variable == "states":
                yield f"/{name}", "The name 'states' is reserved"
        yield from check(value)

    return checked


def check_object(check: Check) -> Check:
    def checked(value: Json) -> Iterator[Problem]:
        if isinstance(value, dict):
            yield from check(value)
        else:
            yield "", "The value must be an object"

    return checked


def check_integer(least: int, most: int = SECONDS_MAX) -> Check:
    def check(value: Json) -> Iterator[Problem]:
        if not is_integer(value) or not least <= value <= most:
            yield "", f"The value must be an integer from {least} to {most}"

    return check


def check_number(least: float, most: float) -> Check:
    def check(value: Json) -> Iterator[Problem]:
        if not is_number(value) or not least <= value <= most:
            yield "", f"The value must be a number from {least} to {most}"

    return check


def check_timestamp(value: Json) -> Iterator[Problem]:
    if parse_timestamp(value) is None:
        yield "", "The value must be a timestamp such as 2026-01-31T12:00:00Z"


def check_resource(value: Json) -> Iterator[Problem]:
    """An ARN, or a placeholder that CloudFormation or Partita replaces."""
    if not isinstance(value, str) or not _RESOURCE.fullmatch(value):
        yield "", "Value is not a valid resource ARN"


def or_expression(check: Check) -> Check:
    """The same check, but JSONata also allows an expression instead of the value."""

    def either(value: Json) -> Iterator[Problem]:
        yield from (check_query_template if is_expression(value) else check)(value)

    return either


def within(place: str, problems: Iterator[Problem]) -> Iterator[Problem]:
    for inner, message in problems:
        yield place + inner, message


_seconds = check_integer(1)
_count = check_integer(0)
_percentage = check_number(0, 100)

PATH_FIELDS: dict[str, Check] = {
    "InputPath": check_path_or_null,
    "OutputPath": check_path_or_null,
    "ResultPath": check_reference_path,
    "Parameters": check_template,
    "ResultSelector": check_template,
    "Result": check_any,
    "ItemsPath": check_path,
    "ItemSelector": check_template,
    "Credentials": check_object(check_template),
    "Assign": check_assignments(check_template, PATH_SUFFIX),
    "Resource": check_resource,
    "TimeoutSeconds": _seconds,
    "TimeoutSecondsPath": check_path,
    "HeartbeatSeconds": _seconds,
    "HeartbeatSecondsPath": check_path,
    "Seconds": _count,
    "SecondsPath": check_path,
    "Timestamp": check_timestamp,
    "TimestampPath": check_path,
    "Error": check_string,
    "ErrorPath": check_path_or_call,
    "Cause": check_string,
    "CausePath": check_path_or_call,
    "MaxConcurrency": _count,
    "MaxConcurrencyPath": check_path,
    "ToleratedFailureCount": _count,
    "ToleratedFailureCountPath": check_path,
    "ToleratedFailurePercentage": _percentage,
    "ToleratedFailurePercentagePath": check_path,
    "MaxItemsPerBatch": _seconds,
    "MaxItemsPerBatchPath": check_path,
    "MaxInputBytesPerBatch": check_integer(1, 262_144),
    "MaxInputBytesPerBatchPath": check_path,
    "BatchInput": check_template,
}
"""Fields of states that use JSONPath."""

QUERY_FIELDS: dict[str, Check] = {
    "Arguments": check_query_template,
    "Output": check_query_template,
    "Items": check_query_template,
    "ItemSelector": check_query_template,
    "Credentials": check_query_template,
    "BatchInput": check_query_template,
    "Assign": check_assignments(check_query_template, ""),
    "Resource": check_resource,
    **{
        name: or_expression(PATH_FIELDS[name])
        for name in (
            "TimeoutSeconds",
            "HeartbeatSeconds",
            "Seconds",
            "Timestamp",
            "Error",
            "Cause",
            "MaxConcurrency",
            "ToleratedFailureCount",
            "ToleratedFailurePercentage",
            "MaxItemsPerBatch",
            "MaxInputBytesPerBatch",
        )
    },
}
"""Fields of states that use JSONata."""


class AllowedFields(NamedTuple):
    """The fields that a type of state may have, besides those of all states."""

    paths: tuple[str, ...]
    queries: tuple[str, ...]
    required: tuple[str, ...] = ()


_flow = ("InputPath", "OutputPath")
_result = (*_flow, "ResultPath", "ResultSelector", "Assign")
_limits = ("MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage")

STATE_FIELDS = {
    "Pass": AllowedFields(
        (*_flow, "ResultPath", "Parameters", "Result", "Assign"), ("Output", "Assign")
    ),
    "Task": AllowedFields(
        (
            *(*_result, "Parameters", "Credentials", "Resource"),
            *("TimeoutSeconds", "TimeoutSecondsPath", "HeartbeatSeconds", "HeartbeatSecondsPath"),
        ),
        (
            *("Arguments", "Output", "Assign", "Credentials", "Resource"),
            *("TimeoutSeconds", "HeartbeatSeconds"),
        ),
        ("Resource",),
    ),
    "Choice": AllowedFields((*_flow, "Assign"), ("Output", "Assign"), ("Choices",)),
    "Wait": AllowedFields(
        (*_flow, "Assign", "Seconds", "SecondsPath", "Timestamp", "TimestampPath"),
        ("Output", "Assign", "Seconds", "Timestamp"),
    ),
    "Succeed": AllowedFields(_flow, ("Output",)),
    "Fail": AllowedFields(("Error", "ErrorPath", "Cause", "CausePath"), ("Error", "Cause")),
    "Parallel": AllowedFields(
        (*_result, "Parameters"), ("Arguments", "Output", "Assign"), ("Branches",)
    ),
    "Map": AllowedFields(
        (
            *(*_result, "Parameters", "ItemsPath", "ItemSelector"),
            *_limits,
            *(f"{name}Path" for name in _limits),
        ),
        ("Items", "ItemSelector", "Output", "Assign", *_limits),
    ),
}

BATCHER_FIELDS = AllowedFields(
    (
        *("MaxItemsPerBatch", "MaxItemsPerBatchPath", "BatchInput"),
        *("MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath"),
    ),
    ("MaxItemsPerBatch", "MaxInputBytesPerBatch", "BatchInput"),
)

STRUCTURE = {
    "Choice": ("Choices", "Default"),
    "Task": ("Retry", "Catch"),
    "Parallel": ("Branches", "Retry", "Catch"),
    "Map": (
        *("ItemProcessor", "Iterator", "ItemBatcher", "Label", "Retry", "Catch"),
        *("ItemReader", "ResultWriter"),
    ),
}
"""Fields that have checks of their own, in definition_checks.py."""

EXCLUSIVE = (
    ("TimeoutSeconds", "TimeoutSecondsPath"),
    ("HeartbeatSeconds", "HeartbeatSecondsPath"),
    ("Error", "ErrorPath"),
    ("Cause", "CausePath"),
    ("ItemProcessor", "Iterator"),
    ("ItemSelector", "Parameters"),
    *((name, f"{name}Path") for name in (*_limits, "MaxItemsPerBatch", "MaxInputBytesPerBatch")),
)
"""Fields that exclude each other."""
