"""JSONPath as the States Language uses it: finding a value, and placing a result.

A path that names one value (`$.a.b[0]['c d']`) returns that value or fails. A path that may match
many values (`$..a`, `$.a[*]`, `$.a[?@.b > 1]`) returns an array, which may be empty. Most machines
only use the first kind, which is evaluated here. The second kind is left to a library, with a limit
on how many values a path may visit: `$..*..*..*` would visit everything many times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import jsonpath
from jsonpath.exceptions import JSONPathError
from jsonpath.filter import BaseExpression, FilterQuery
from jsonpath.selectors import Filter

from partita_services.workflows.language.json_values import Json, is_number
from partita_services.workflows.language.language_errors import (
    RESULT_PATH_MATCH_FAILURE,
    StateError,
)
from partita_services.workflows.language.language_limits import PATH_NODES_MAX

Step = str | int

_ROOT = re.compile(r"\$(?P<context>\$)?(?P<variable>[^\W\d]\w*)?", re.UNICODE)
_STEP = re.compile(
    r"""
    \.(?P<name>[^\s.\[\]()*?,:@'"\\|&<>=!~+/{}]+)   # .name, which may have dashes in it
    | \[\s*(?P<index>-?\d{1,15})\s*\]
    | \[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
    | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
    """,
    re.VERBOSE,
)
_FUNCTION = re.compile(r"\.(\w+)\(\)$")
_SPARE_DOT = re.compile(
    r"""
    ( '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )   # a name, which may look like a step inside
    | (?<!\.)\.(?=\[)
    """,
    re.VERBOSE,
)
"""The dot before a bracket, as in `$.[0]`, which the service accepts and reads as `$[0]`."""
_LAX_VALUE = re.compile(
    r"""
    ( '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )   # a string, which may look like a comparison inside
    | ( (?:[=!<>]=|[<>]) \s* ) (?! (?:true|false|null)\b )
      ( [^\W\d]\w* | \.\d+ ) (?= \s* (?:[)\]]|&&|\|\|) )
    """,
    re.VERBOSE,
)
"""A string without quotes or a number without its leading zero, as in AWS's samples: `[?(@.status
== Failed)]`, `[?(@.score > .85)]`."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class PathNotFound(Exception):
    """Raised when the input has no value at the path."""


class PathSyntaxError(ValueError):
    """Raised for a text that is not a path."""


class JsonPath:
    """A parsed path: where it starts, and its steps."""

    def __init__(self, text: str) -> None:
        text = text.strip()
        root = _ROOT.match(text)
        if root is None:
            raise PathSyntaxError(f"a path begins with $, but '{text[:80]}' does not")
        if root["context"] and root["variable"]:
            raise PathSyntaxError(f"'{text[:80]}' mixes the context object with a variable")
        self.text = text
        self.is_context = bool(root["context"])
        self.variable: str | None = root["variable"]
        rest = _SPARE_DOT.sub(r"\1", text[root.end() :])
        self.function = _function_at_end(rest)
        if self.function is not None:
            rest = rest[: rest.rindex(".")]
        self.steps = _steps(rest)
        self._search = None if self.steps is not None else _search("$" + rest)

    @property
    def is_reference(self) -> bool:
        """True for a reference path, which names one place for a result."""
        return self.steps is not None and self.function is None

    def find(self, data: Json) -> Json:
        """The value that the path selects. Raises PathNotFound."""
        if self.steps is not None:
            value = _follow(data, self.steps)
        else:
            assert self._search is not None
            value = _matches(self._search, data)
        return value if self.function is None else _apply(self.function, value)


@lru_cache(maxsize=4096)
def parse_path(text: str) -> JsonPath:
    return JsonPath(text)


def resolve(text: str, data: Json, context: Json, variables: Mapping[str, Json]) -> Json:
    """The value of a path in the data, in the context object (`$$`) or in a variable (`$name`)."""
    path = parse_path(text)
    if path.is_context:
        return path.find(context)
    if path.variable is None:
        return path.find(data)
    if path.variable not in variables:
        raise PathNotFound(text)
    return path.find(variables[path.variable])


def place(text: str, data: Json, value: Json) -> Json:
    """The data with the value put at a reference path. Missing objects on the way are created."""
    path = parse_path(text)
    assert path.steps is not None
    return _placed(data, path.steps, value, text)


def _placed(data: Json, steps: tuple[Step, ...], value: Json, text: str) -> Json:
    # Objects along the path are copied, because the data may be shared.
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, str) and isinstance(data, dict):
        return {**data, step: _placed(data.get(step, {}), rest, value, text)}
    if isinstance(step, int) and isinstance(data, list) and -len(data) <= step < len(data):
        copy = list(data)
        # A negative index counts from the end, as in Python.
        copy[step] = _placed(data[step], rest, value, text)
        return copy
    raise StateError(
        RESULT_PATH_MATCH_FAILURE, f"Unable to apply step '{step}' of the path '{text}' to input."
    )


def _steps(rest: str) -> tuple[Step, ...] | None:
    """The steps of a path with names and indexes only; None for other paths."""
    steps: list[Step] = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            return None
        position = match.end()
        kind = match.lastgroup
        assert kind is not None
        step = match[kind]
        if kind == "index":
            steps.append(int(step))
        else:
            steps.append(step if kind == "name" else _ESCAPE.sub(r"\1", step))
    return tuple(steps)


def _follow(data: Json, steps: tuple[Step, ...]) -> Json:
    for step in steps:
        if not _has_steps(data, step):
            raise PathNotFound
        try:
            data = data[step]
        except (KeyError, IndexError):
            raise PathNotFound from None
    return data


def _has_steps(data: Json, step: Step) -> bool:
    return isinstance(data, dict if isinstance(step, str) else list)


class _Allowance:
    """Counts the values that a search may still visit."""

    def __init__(self) -> None:
        self.nodes = PATH_NODES_MAX

    def spend(self) -> None:
        self.nodes -= 1
        if self.nodes < 0:
            raise PathNotFound


class _Match(jsonpath.JSONPathMatch):
    """A value that a search visits. Each visit is deducted from the allowance."""

    def new_child(self, obj: object, key: Step) -> _Match:
        allowance = self.filter_context()["allowance"]
        allowance.spend()
        return _match(obj, self.root, allowance)


def _match(value: Json, root: Json, allowance: _Allowance) -> _Match:
    context = {"allowance": allowance}
    return _Match(filter_context=context, obj=value, parent=None, path="", parts=(), root=root)


class _Environment(jsonpath.JSONPathEnvironment):
    max_recursion_depth = 200

    def setup_function_extensions(self) -> None:
        """Leaves out all functions, because their regular expressions could run forever."""


_environment = _Environment(strict=True)


def _strict_value(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    return match[2] + (f"0{match[3]}" if match[3].startswith(".") else f"'{match[3]}'")


def _search(text: str) -> jsonpath.JSONPath:
    try:
        search = _environment.compile(_LAX_VALUE.sub(_strict_value, text))
    except (JSONPathError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is nested too deeply"
        raise PathSyntaxError(f"'{text[:80]}' is not a JSONPath: {reason}") from None
    assert isinstance(search, jsonpath.JSONPath)
    for segment in search.segments:
        for selector in segment.selectors:
            if isinstance(selector, Filter) and not _is_plain(selector.expression):
                raise PathSyntaxError(f"a filter in '{text[:80]}' contains another search")
    return search


def _is_plain(expression: BaseExpression) -> bool:
    """True when a filter compares single values. A nested search would not count against the
    allowance."""
    if isinstance(expression, FilterQuery) and not expression.path.singular_query():
        return False
    return all(map(_is_plain, expression.children()))


def _matches(search: jsonpath.JSONPath, data: Json) -> list[Json]:
    matches: Iterable[jsonpath.JSONPathMatch] = [_match(data, data, _Allowance())]
    for segment in search.segments:
        matches = segment.resolve(matches)
    try:
        return [match.obj for match in matches]
    except (JSONPathError, RecursionError, TypeError) as error:
        raise PathNotFound from error


def _function_at_end(rest: str) -> str | None:
    match = _FUNCTION.search(rest)
    if match is None:
        return None
    if match[1] not in _FUNCTIONS:
        raise PathSyntaxError(f"there is no path function {match[1]}()")
    return match[1]


def _apply(function: str, value: Json) -> Json:
    if function == "length":
        if isinstance(value, list | dict | str):
            return len(value)
    elif function == "keys":
        if isinstance(value, dict):
            return list(value)
    elif isinstance(value, list) and value and all(map(is_number, value)):
        return _FUNCTIONS[function](value)
    raise PathNotFound


_FUNCTIONS: dict[str, Callable[[Any], Json]] = {
    "length": len,
    "keys": list,
    "min": min,
    "max": max,
    "sum": sum,
    "avg": lambda numbers: sum(numbers) / len(numbers),
}
