"""Filter patterns: which records a function is called with. (Lambda guide, "Event filtering")

A pattern has the shape of the record. Where the record has a value, the pattern has a list of
rules, of which one must hold. All fields of a pattern must match; of several patterns, one.

    {"dynamodb": {"NewImage": {"status": {"S": ["paid", {"prefix": "re"}]}}}}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from operator import eq, ge, gt, le, lt
from typing import Any

from partita.errors import PartitaError

Matches = Callable[[dict[str, Any]], bool]
Rule = Callable[[Any], bool]
"""Takes the value of a field, or ABSENT, and returns True when the rule holds."""

ABSENT = object()
OR = "$or"
NUMBER_TYPES = ("N", "NS")
LEVELS_MAX = 100
"""Items nest to 32 levels, each of which is two levels of JSON."""
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


class _Malformed(Exception):
    """Raised for a malformed pattern; its text continues "The filter pattern ... is wrong: "."""


def compile_filters(patterns: Sequence[str]) -> Matches | None:
    """A function that is True for records that match any pattern; None without patterns, when all
    records match."""
    if not patterns:
        return None
    compiled = [_compile(text) for text in patterns]
    return lambda record: any(matches(record) for matches in compiled)


def _compile(text: str) -> Matches:
    try:
        pattern = json.loads(text)
        if _levels(pattern) > LEVELS_MAX:
            raise _Malformed(f"it has more than {LEVELS_MAX} levels")
        return _object(pattern, "")
    except (ValueError, RecursionError, _Malformed) as error:
        raise PartitaError(f"The filter pattern {text} is wrong: {error}.") from error


def _levels(pattern: Any) -> int:
    """Returns the nesting depth of a pattern. Each level costs time with every record."""
    if not isinstance(pattern, dict | list):
        return 0
    members = pattern.values() if isinstance(pattern, dict) else pattern
    return 1 + max(map(_levels, members), default=0)


def _object(pattern: Any, name: str) -> Matches:
    if not isinstance(pattern, dict) or not pattern:
        raise _Malformed(f"{name or 'it'} must be an object with fields")
    parts = [_field(name, rules) for name, rules in pattern.items()]
    return lambda record: all(matches(record) for matches in parts)


def _field(name: str, rules: Any) -> Matches:
    if name == OR:
        if not isinstance(rules, list) or not rules:
            raise _Malformed(f"{OR} takes a list of patterns")
        choices = [_object(choice, OR) for choice in rules]
        return lambda record: any(matches(record) for matches in choices)
    if isinstance(rules, list):
        if not rules:
            raise _Malformed(f"{name} has no rules")
        compiled = [_rule(rule) for rule in rules]
        # DynamoDB writes numbers as texts; no other text is compared as a number.
        is_number = name in NUMBER_TYPES
        return lambda record: _holds_any(compiled, _leaves(record, name, is_number))
    if not isinstance(rules, dict):
        raise _Malformed(f"{name} takes a list of rules, such as [{json.dumps(rules)}]")
    inner = _object(rules, name)
    # Where the object is missing, its fields are absent.
    return lambda record: any(map(inner, _objects(record, name) or [{}]))


class _Number(str):
    """The text of a DynamoDB number."""


def _members(record: dict[str, Any], name: str) -> list[Any]:
    """The value of a field. For a list, its elements, of which any may match."""
    value = record.get(name, ABSENT)
    return value if isinstance(value, list) else [value]


def _objects(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [member for member in _members(record, name) if isinstance(member, dict)]


def _leaves(record: dict[str, Any], name: str, is_number: bool) -> list[Any]:
    """The values of a field that rules apply to. An object has fields of its own, and is not a
    value. (Lambda guide, "Exists")"""
    leaves = [member for member in _members(record, name) if not isinstance(member, dict)]
    if is_number:
        leaves = [_Number(leaf) if isinstance(leaf, str) else leaf for leaf in leaves]
    return leaves or [ABSENT]


def _holds_any(rules: list[Rule], values: list[Any]) -> bool:
    return any(rule(value) for rule in rules for value in values)


def _rule(rule: Any) -> Rule:
    if not isinstance(rule, dict):
        return lambda value: _equals(value, rule)
    if len(rule) != 1:
        raise _Malformed("a rule has one operator")
    ((operator, operand),) = rule.items()
    if operator not in _OPERATORS:
        raise _Malformed(f"there is no operator {operator}")
    return _OPERATORS[operator](operand)


def _equals(value: Any, expected: Any) -> bool:
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    return bool(value == expected)


def _text(operand: Any, operator: str) -> str:
    if not isinstance(operand, str):
        raise _Malformed(f"{operator} takes a text")
    return operand


def _prefix(operand: Any) -> Rule:
    text = _text(operand, "prefix")
    return lambda value: isinstance(value, str) and value.startswith(text)


def _suffix(operand: Any) -> Rule:
    text = _text(operand, "suffix")
    return lambda value: isinstance(value, str) and value.endswith(text)


def _ignoring_case(operand: Any) -> Rule:
    text = _text(operand, "equals-ignore-case").lower()
    return lambda value: isinstance(value, str) and value.lower() == text


def _anything_but(operand: Any) -> Rule:
    refused = [_rule(rule) for rule in (operand if isinstance(operand, list) else [operand])]
    return lambda value: value is not ABSENT and not any(rule(value) for rule in refused)


def _exists(operand: Any) -> Rule:
    if not isinstance(operand, bool):
        raise _Malformed("exists takes true or false")
    return lambda value: (value is not ABSENT) == operand


def _numeric(operand: Any) -> Rule:
    if not isinstance(operand, list) or len(operand) not in (2, 4):
        raise _Malformed('numeric takes one or two comparisons, such as [">", 0, "<=", 5]')
    comparisons = list(zip(operand[::2], operand[1::2], strict=True))
    for sign, bound in comparisons:
        if sign not in COMPARISONS or _number(bound) is None:
            raise _Malformed(f"{sign} {bound} is not a comparison")
    bounds = [(COMPARISONS[sign], _number(bound)) for sign, bound in comparisons]

    def holds(value: Any) -> bool:
        number = _number(value)
        return number is not None and all(compare(number, bound) for compare, bound in bounds)

    return holds


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | _Number):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


_OPERATORS: dict[str, Callable[[Any], Rule]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignoring_case,
    "anything-but": _anything_but,
    "exists": _exists,
    "numeric": _numeric,
}
