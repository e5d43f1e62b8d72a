"""The legacy parameters, from before expressions: Expected, QueryFilter, ScanFilter,
AttributeUpdates, AttributesToGet and KeyConditions.

They compile to the same objects as expressions do. Those contain their values, so the
ExpressionAttributeValues of a request are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import lt
from typing import Any

from partita.database.expressions import value_comparison
from partita.database.expressions.condition import CompiledCondition, Predicate
from partita.database.expressions.key_condition import CONDITION_COUNT, KeyCondition, KeyTest
from partita.database.expressions.name_resolution import Values, name_problem
from partita.database.expressions.projection import Projection, attributes_projection, shape_of
from partita.database.expressions.update import (
    CompiledAction,
    CompiledUpdate,
    Compute,
    KnownType,
    added,
    without,
)
from partita.database.item.attribute_values import (
    SET_TYPES,
    TYPES,
    AttributeValue,
    ErrorWording,
    normalize_value,
    type_of,
)
from partita.errors import INVALID, ValidationException
from partita.foundation.service_limits import EXPRESSION_OPERATORS_MAX

OTHER_TYPE = "Type mismatch for attribute to update"
NO_OPERAND = 0
ARGUMENT_COUNTS = {"NULL": NO_OPERAND, "NOT_NULL": NO_OPERAND, "BETWEEN": 2}
DOCUMENT_TYPES = SET_TYPES | {"L", "M"}
ARGUMENT_TYPES = {
    **dict.fromkeys(("LT", "LE", "GT", "GE", "BETWEEN", "IN"), value_comparison.ORDERED_TYPES),
    **dict.fromkeys(("CONTAINS", "NOT_CONTAINS"), TYPES - DOCUMENT_TYPES),
    "BEGINS_WITH": value_comparison.PREFIX_TYPES,
}
KEY_OPERATORS = {
    "EQ": "=",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
    "BETWEEN": "BETWEEN",
    "BEGINS_WITH": "begins_with",
}

Arguments = Sequence[AttributeValue]
Test = Callable[[AttributeValue], bool]
"""True when the value of an attribute satisfies an operator, whose arguments are bound already."""


def _ordering(operator: str) -> Callable[..., Test]:
    order = value_comparison.ORDERS[operator]
    return lambda argument: lambda value: value_comparison.is_ordered(value, argument, order)


def _among(*arguments: AttributeValue) -> Test:
    """Returns the test of IN, whose arguments are scalars of one type."""
    kind = type_of(arguments[0])
    contents = frozenset(argument[kind] for argument in arguments)
    return lambda value: value.get(kind) in contents


_TESTS: dict[str, Callable[..., Test]] = {
    "EQ": lambda argument: lambda value: value == argument,
    "NE": lambda argument: lambda value: value != argument,
    "LT": _ordering("<"),
    "LE": _ordering("<="),
    "GT": _ordering(">"),
    "GE": _ordering(">="),
    "BETWEEN": lambda lower, upper: lambda value: value_comparison.is_between(value, lower, upper),
    "IN": _among,
    "BEGINS_WITH": lambda argument: lambda value: value_comparison.begins_with(value, argument),
    "CONTAINS": lambda argument: lambda value: value_comparison.contains(value, argument),
    "NOT_CONTAINS": lambda argument: lambda value: not value_comparison.contains(value, argument),
    "NOT_NULL": lambda: lambda value: True,
    "NULL": lambda: lambda value: False,
}
# The operators that are true for a missing attribute (observed on DynamoDB Local).
_HOLDS_WHEN_MISSING = frozenset(("NULL", "NE"))


def expected_condition(
    expected: Mapping[str, Mapping[str, Any]],
    conditional_operator: str | None,
    wording: ErrorWording,
) -> CompiledCondition:
    _check_condition_count(expected)
    tests = []
    for name, entry in expected.items():
        _check_name(name)
        operator, arguments = _expectation(name, entry, wording)
        tests.append((name, operator, arguments))
    return _condition("Expected", tests, conditional_operator)


def filter_condition(
    parameter: str,
    conditions: Mapping[str, Mapping[str, Any]],
    conditional_operator: str | None,
    wording: ErrorWording,
) -> CompiledCondition:
    """Compile a QueryFilter or ScanFilter."""
    _check_condition_count(conditions)
    tests = []
    for name, entry in conditions.items():
        _check_name(name)
        tests.append((name, entry["ComparisonOperator"], _arguments(entry, wording)))
    return _condition(parameter, tests, conditional_operator)


def _check_condition_count(conditions: Mapping[str, Any]) -> None:
    """Refuse more conditions than an expression may have operators.

    This limit is Partita's own: it is not known what the service does.
    """
    if len(conditions) > EXPRESSION_OPERATORS_MAX:
        raise ValidationException(
            f"{INVALID}Too many conditions, at most {EXPRESSION_OPERATORS_MAX} are allowed"
        )


def attribute_updates(
    updates: Mapping[str, Mapping[str, Any]], wording: ErrorWording
) -> CompiledUpdate:
    """Compile AttributeUpdates."""
    changes = []
    for name, entry in updates.items():
        _check_name(name)
        value = normalize_value(entry["Value"], wording) if "Value" in entry else None
        section = entry.get("Action", "PUT")
        known_type = _known_type(value if section != "DELETE" else None)
        changes.append(CompiledAction(section, (name,), _compute(section, value), known_type))
    paths = tuple(change.path for change in changes)
    return CompiledUpdate(frozenset(), frozenset(), paths, (), (), tuple(changes), shape_of(paths))


def _known_type(value: AttributeValue | None) -> KnownType:
    kind = type_of(value) if value else None
    return lambda values: kind


def attributes_to_get(attributes: Sequence[str]) -> Projection:
    seen: set[str] = set()
    for name in attributes:
        _check_name(name)
        if name in seen:
            raise ValidationException(f"{INVALID}Duplicate value in attribute name: {name}")
        seen.add(name)
    return attributes_projection(attributes)


def key_conditions(
    conditions: Mapping[str, Mapping[str, Any]], wording: ErrorWording, *, is_index: bool = False
) -> KeyCondition:
    """Compile KeyConditions.

    More than two are refused right away for a table. An index may have a longer key, which is
    checked when the index is known.
    """
    tests = []
    values: dict[str, AttributeValue] = {}
    for position, (name, entry) in enumerate(conditions.items()):
        _check_name(name)
        arguments = _arguments(entry, wording)
        places = tuple(f"{position}.{index}" for index in range(len(arguments)))
        values.update(zip(places, arguments, strict=True))
        operator = entry["ComparisonOperator"]
        tests.append(KeyTest(name, KEY_OPERATORS.get(operator, operator), places))
    if not tests or (not is_index and len(tests) > 2):
        raise ValidationException(CONDITION_COUNT)
    return KeyCondition(frozenset(), frozenset(), (), tuple(tests), None, own_values=values)


def check_conditional_operator(operator: str | None, conditions: Mapping[str, Any] | None) -> None:
    if operator is None:
        return
    if not conditions:
        raise ValidationException("ConditionalOperator cannot be used without Filter or Expected")
    if len(conditions) < 2:
        raise ValidationException(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements"
        )


def _check_name(name: str) -> None:
    problem = name_problem(name)
    if problem:
        raise ValidationException(problem)


def _expectation(
    name: str, entry: Mapping[str, Any], wording: ErrorWording
) -> tuple[str, Arguments]:
    """Returns one entry of Expected as an operator and its arguments."""
    operator, exists = entry.get("ComparisonOperator"), entry.get("Exists")
    has_value, has_list = "Value" in entry, "AttributeValueList" in entry
    if has_value and has_list:
        raise _unfit("Value and AttributeValueList cannot be used together", name)
    if operator is not None:
        if exists is not None:
            raise _unfit("Exists and ComparisonOperator cannot be used together", name)
        if not has_value and not has_list and ARGUMENT_COUNTS.get(operator) != NO_OPERAND:
            raise _unfit(
                "Value or AttributeValueList must be used with ComparisonOperator: " + operator,
                name,
            )
        values = [entry["Value"]] if has_value else entry.get("AttributeValueList", [])
        return operator, _arguments(
            {"ComparisonOperator": operator, "AttributeValueList": values}, wording
        )
    if has_list:
        raise _unfit("AttributeValueList can only be used with a ComparisonOperator", name)
    if exists is False:
        if has_value:
            raise _unfit("Value cannot be used when Exists is false", name)
        return "NULL", []
    if not has_value:
        shown = "null" if exists is None else "true"
        raise _unfit(f"Value must be provided when Exists is {shown}", name)
    return "EQ", [normalize_value(entry["Value"], wording)]


def _unfit(problem: str, name: str) -> ValidationException:
    return ValidationException(f"{INVALID}{problem} for Attribute: {name}")


def _arguments(entry: Mapping[str, Any], wording: ErrorWording) -> Arguments:
    """Returns the normalized AttributeValueList, checked against its operator."""
    operator = entry["ComparisonOperator"]
    arguments = [normalize_value(value, wording) for value in entry.get("AttributeValueList", ())]
    count = ARGUMENT_COUNTS.get(operator, 1)
    if (not arguments) if operator == "IN" else len(arguments) != count:
        raise ValidationException(
            f"{INVALID}Invalid number of argument(s) for the {operator} ComparisonOperator"
        )
    kinds = [type_of(argument) for argument in arguments]
    if len(set(kinds)) > 1:
        raise ValidationException(
            f"{INVALID}AttributeValues inside AttributeValueList must be of same type"
        )
    allowed = ARGUMENT_TYPES.get(operator, TYPES)
    for kind in kinds:
        if kind not in allowed:
            raise ValidationException(
                f"{INVALID}ComparisonOperator {operator} is not valid for {kind} "
                "AttributeValue type"
            )
    if operator == "BETWEEN" and value_comparison.is_ordered(arguments[1], arguments[0], lt):
        raise ValidationException(
            "The BETWEEN condition was provided a range where the lower bound is greater than the "
            "upper bound"
        )
    return arguments


def _condition(
    parameter: str,
    tests: Iterable[tuple[str, str, Arguments]],
    conditional_operator: str | None,
) -> CompiledCondition:
    tests = list(tests)
    paths = frozenset((name,) for name, _, _ in tests)
    combine = any if conditional_operator == "OR" else all
    predicates = [_predicate(*test) for test in tests]
    return CompiledCondition(
        parameter,
        frozenset(),
        frozenset(),
        paths,
        (),
        lambda item, values: combine(predicate(item, values) for predicate in predicates),
    )


def _predicate(name: str, operator: str, arguments: Arguments) -> Predicate:
    test, when_missing = _TESTS[operator](*arguments), operator in _HOLDS_WHEN_MISSING

    def holds(item: Mapping[str, AttributeValue], values: Values) -> bool:
        value = item.get(name)
        return when_missing if value is None else test(value)

    return holds


def _compute(action: str, value: AttributeValue | None) -> Compute:
    if value is None:
        if action != "DELETE":
            raise ValidationException(
                f"{INVALID}Only DELETE action is allowed when no attribute value is specified"
            )
        return lambda old, item, values: None
    if action == "PUT":
        return lambda old, item, values: value
    kind = type_of(value)
    if action == "DELETE":
        if kind not in SET_TYPES:
            raise ValidationException(
                f"{INVALID}DELETE action with value is not supported for the type {kind}"
            )
        return lambda old, item, values: without(_same_type(old, kind), value)
    if kind not in SET_TYPES and kind not in ("N", "L"):
        raise ValidationException(f"{INVALID}ADD action is not supported for the type {kind}")
    if kind == "L":
        return lambda old, item, values: _extended(_same_type(old, "L"), value)
    return lambda old, item, values: added(_same_type(old, kind), value)


def _same_type(old: AttributeValue | None, kind: str) -> AttributeValue | None:
    if old is not None and kind not in old:
        raise ValidationException(OTHER_TYPE)
    return old


def _extended(old: AttributeValue | None, value: AttributeValue) -> AttributeValue:
    return value if old is None else {"L": old["L"] + value["L"]}
