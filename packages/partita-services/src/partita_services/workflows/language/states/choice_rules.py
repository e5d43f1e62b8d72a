"""Choice states: which of the rules matches."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache

from partita.foundation.wildcards import Matches, WildcardSign, matcher
from partita_services.workflows.language.expressions.evaluation_scope import EvaluationScope
from partita_services.workflows.language.expressions.json_paths import (
    PathNotFound,
    PathSyntaxError,
    resolve,
)
from partita_services.workflows.language.expressions.payload_templates import (
    fill_query_template,
    find_path,
)
from partita_services.workflows.language.json_values import Json, is_number, type_name
from partita_services.workflows.language.language_errors import (
    QUERY_EVALUATION_ERROR,
    RUNTIME,
    StateError,
)
from partita_services.workflows.language.machine_definition import State
from partita_services.workflows.language.timestamps import parse_timestamp

Rule = dict[str, Json]
Comparison = Callable[[Json, Json], bool]

LOGICAL = ("And", "Or", "Not")


def matching_rule(state: State, scope: EvaluationScope) -> Rule | None:
    """The first rule that matches."""
    holds = _condition_holds if state.is_jsonata else _rule_holds
    for number, rule in enumerate(state.fields["Choices"]):
        if holds(rule, scope, f"Choices[{number}]"):
            matching: Rule = rule
            return matching
    return None


def _condition_holds(rule: Rule, scope: EvaluationScope, field: str) -> bool:
    place = f"{field}/Condition"
    value = fill_query_template(rule["Condition"], scope, place)
    if not isinstance(value, bool):
        raise StateError(
            QUERY_EVALUATION_ERROR,
            f"The JSONata expression specified for the field '{place}' returned an unexpected "
            f"result type. Expected 'boolean', but was '{type_name(value)}'.",
            location=place,
        )
    return value


def _rule_holds(rule: Rule, scope: EvaluationScope, field: str) -> bool:
    if "And" in rule:
        return all(_rule_holds(inner, scope, field) for inner in rule["And"])
    if "Or" in rule:
        return any(_rule_holds(inner, scope, field) for inner in rule["Or"])
    if "Not" in rule:
        return not _rule_holds(rule["Not"], scope, field)
    name = next(name for name in rule if name in OPERATORS)
    expected = rule[name]
    if name == "IsPresent":
        return _is_present(rule["Variable"], scope) is expected
    value = _variable(rule["Variable"], scope)
    if name in TESTS:
        return TESTS[name](value) is expected
    if name.endswith("Path"):
        expected = find_path(expected, scope, name)
    return OPERATORS[name](value, expected)


def _variable(path: str, scope: EvaluationScope) -> Json:
    try:
        return resolve(path, scope.data, scope.context, scope.variables)
    except (PathNotFound, PathSyntaxError):
        raise StateError(
            RUNTIME,
            f"Invalid path '{path}': The choice state's condition path references an invalid "
            "value.",
        ) from None


def _is_present(path: str, scope: EvaluationScope) -> bool:
    try:
        resolve(path, scope.data, scope.context, scope.variables)
    except (PathNotFound, PathSyntaxError):
        return False
    return True


def _strings(compare: Comparison) -> Comparison:
    def holds(value: Json, expected: Json) -> bool:
        return isinstance(value, str) and isinstance(expected, str) and compare(value, expected)

    return holds


def _numbers(compare: Comparison) -> Comparison:
    def holds(value: Json, expected: Json) -> bool:
        return is_number(value) and is_number(expected) and compare(value, expected)

    return holds


def _timestamps(compare: Comparison) -> Comparison:
    def holds(value: Json, expected: Json) -> bool:
        left, right = parse_timestamp(value), parse_timestamp(expected)
        return left is not None and right is not None and compare(left, right)

    return holds


def _booleans(compare: Comparison) -> Comparison:
    def holds(value: Json, expected: Json) -> bool:
        return isinstance(value, bool) and isinstance(expected, bool) and compare(value, expected)

    return holds


def _matches(value: str, pattern: str) -> bool:
    return _compiled(pattern)(value)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Matches:
    """The matcher for a StringMatches pattern: `*` is any text; `\\*` is a star and `\\\\` a
    backslash."""
    tokens = re.findall(r"\\[*\\]|.", pattern, re.DOTALL)
    return matcher(WildcardSign.MANY if token == "*" else token[-1] for token in tokens)


_ORDER: dict[str, Comparison] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}

TESTS: dict[str, Callable[[Json], bool]] = {
    "IsNull": lambda value: value is None,
    "IsNumeric": is_number,
    "IsString": lambda value: isinstance(value, str),
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": lambda value: parse_timestamp(value) is not None,
}

_COMPARISONS: dict[str, Comparison] = {
    **{f"String{name}": _strings(compare) for name, compare in _ORDER.items()},
    **{f"Numeric{name}": _numbers(compare) for name, compare in _ORDER.items()},
    **{f"Timestamp{name}": _timestamps(compare) for name, compare in _ORDER.items()},
    "BooleanEquals": _booleans(operator.eq),
}

OPERATORS: dict[str, Comparison] = {
    **_COMPARISONS,
    **{f"{name}Path": compare for name, compare in _COMPARISONS.items()},
    "StringMatches": _strings(_matches),
    **dict.fromkeys((*TESTS, "IsPresent"), operator.is_),
}
"""The comparison operators, by the name of their field."""
