"""The expression parameters of a request: read, checked and compiled in the service's order.

Each family of operations has a table of parameters. `check_parameters` refuses invalid
combinations, which the service does before it looks at items and keys. `compile_expressions` does
the rest, and `read_expressions` does both. Errors raised here do not begin with ENVELOPE: PutItem,
UpdateItem and DeleteItem add it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, Final

from partita.database.expressions import legacy_parameters
from partita.database.expressions.condition import CompiledCondition, compile_condition
from partita.database.expressions.key_condition import KeyCondition, compile_key_condition
from partita.database.expressions.name_resolution import Names, Values, name_problem
from partita.database.expressions.projection import Projection, compile_projection
from partita.database.expressions.update import CompiledUpdate, compile_update
from partita.database.item.attribute_values import ErrorWording, ValueCheck, normalize_value
from partita.database.item.item_limits import nests_too_deep
from partita.database.item.item_sizes import string_size, value_size
from partita.database.operations.operation_context import Request
from partita.errors import ValidationException
from partita.foundation.service_limits import (
    EXPRESSION_PLACEHOLDER_BYTES_MAX,
    EXPRESSION_VALUES_BYTES_MAX,
    NEWER_NESTING_LEVELS_MAX,
)

_PLACEHOLDER: Final = re.compile(r"[#:][A-Za-z0-9_]+")
KNOWN_KEYS_MAX: Final = 1000
_KNOWN_KEYS: Final[set[str]] = set()
"""Valid placeholders that need not be checked again: applications reuse the same few."""
ENVELOPE: Final = "1 validation error detected: "
UNUSED_SHOWN_MAX: Final = 100
"""The number of unused placeholders that an error lists; our own limit."""
ACTION_LEVELS_MAX: Final = 60
"""In a transaction, errors about values that are nested deeper name the key (recorded)."""
NOT_IN_USE: Final = "can only be specified when using expressions"


@dataclass(frozen=True, slots=True)
class ParameterFamily:
    """The parameters of a family of operations, in the order in which the service lists them."""

    legacy: tuple[str, ...]
    expressions: tuple[str, ...]
    valued: tuple[str, ...]
    """The expressions that can contain values."""
    wording: ErrorWording = ErrorWording.CURRENT
    wraps_values: bool = False
    """True when errors about a value contain its placeholder."""
    wraps_beyond_levels: int = 0
    """The same for values that are nested deeper than this (recorded); 0 for no values."""
    names_absent: bool = True
    """True when the error about values without expressions lists the missing expressions."""
    members: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        placeholders = ("ExpressionAttributeNames", "ExpressionAttributeValues")
        members = frozenset((*self.legacy, *self.expressions, *placeholders))
        object.__setattr__(self, "members", members)


PUT_OR_DELETE: Final = ParameterFamily(
    ("Expected", "ConditionalOperator"),
    ("ConditionExpression",),
    ("ConditionExpression",),
    names_absent=False,
)
UPDATE: Final = ParameterFamily(
    ("AttributeUpdates", "Expected", "ConditionalOperator"),
    ("UpdateExpression", "ConditionExpression"),
    ("UpdateExpression", "ConditionExpression"),
    wraps_beyond_levels=NEWER_NESTING_LEVELS_MAX,
    names_absent=False,
)
# GetItem, one table of BatchGetItem, or one Get of TransactGetItems.
GET: Final = ParameterFamily(("AttributesToGet",), ("ProjectionExpression",), ())
QUERY: Final = ParameterFamily(
    ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
    ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
    ("FilterExpression", "KeyConditionExpression"),
)
SCAN: Final = ParameterFamily(
    ("AttributesToGet", "ScanFilter", "ConditionalOperator"),
    ("ProjectionExpression", "FilterExpression"),
    ("FilterExpression",),
    wording=ErrorWording.OLDER,
    wraps_values=True,
)
# One Put, Delete or ConditionCheck of TransactWriteItems; UPDATE_ACTION is for one Update.
ACTION: Final = ParameterFamily(
    (), ("ConditionExpression",), ("ConditionExpression",), wraps_beyond_levels=ACTION_LEVELS_MAX
)
UPDATE_ACTION: Final = ParameterFamily(
    (),
    ("UpdateExpression", "ConditionExpression"),
    ("UpdateExpression", "ConditionExpression"),
    wraps_beyond_levels=ACTION_LEVELS_MAX,
)


class RequestExpressions:
    """The compiled expressions of a request; those that it does not have are None."""

    __slots__ = ("condition", "filter", "key_condition", "projection", "update", "values")

    def __init__(
        self,
        condition: CompiledCondition | None = None,
        filter: CompiledCondition | None = None,
        key_condition: KeyCondition | None = None,
        projection: Projection | None = None,
        update: CompiledUpdate | None = None,
        values: Values | None = None,
    ) -> None:
        self.condition = condition
        self.filter = filter
        self.key_condition = key_condition
        self.projection = projection
        self.update = update
        self.values: Values = values or {}


NOTHING: Final = RequestExpressions()


def check_parameters(request: Request, family: ParameterFamily) -> None:
    """Refuse expressions together with legacy parameters, and placeholders without expressions."""
    if family.members.isdisjoint(request):
        return
    old = [name for name in family.legacy if name in request]
    new = [name for name in family.expressions if name in request]
    if old and new and not (old == ["KeyConditions"] and "KeyConditionExpression" not in new):
        if "KeyConditionExpression" not in new:
            old = [name for name in old if name != "KeyConditions"]
        raise ValidationException(
            "Can not use both expression and non-expression parameters in the same request: "
            f"Non-expression parameters: {{{', '.join(old)}}} "
            f"Expression parameters: {{{', '.join(new)}}}"
        )
    if "ExpressionAttributeNames" in request and not new:
        raise ValidationException(f"ExpressionAttributeNames {NOT_IN_USE}")
    if "ExpressionAttributeValues" in request and family.valued:
        if not any(name in request for name in family.valued):
            raise ValidationException(f"ExpressionAttributeValues {NOT_IN_USE}{_absent(family)}")


def _absent(family: ParameterFamily) -> str:
    if not family.names_absent:
        return ""
    verb = "is" if len(family.valued) == 1 else "are"
    return f": {' and '.join(family.valued)} {verb} null"


def enveloped(error: ValidationException, request: Request) -> ValidationException:
    """Returns a validation error with the prefix that the service adds since 2026.

    It does so for errors that it finds before it looks at the table, except in requests with very
    deeply nested values (recorded).
    """
    if nests_too_deep(request):
        return error
    return ValidationException(ENVELOPE + (error.message or ""))


def read_expressions(request: Request, family: ParameterFamily) -> RequestExpressions:
    check_parameters(request, family)
    return compile_expressions(request, family)


def compile_expressions(request: Request, family: ParameterFamily) -> RequestExpressions:
    if family is not QUERY and family.members.isdisjoint(request):
        return NOTHING
    replaced = _legacy(request, family)
    if "KeyConditions" in family.legacy and not (
        "KeyConditions" in request or "KeyConditionExpression" in request
    ):
        raise ValidationException(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the "
            "request."
        )
    if not any(name in request for name in family.expressions):
        return replaced
    names = _names(request)
    values = _values(request, family)
    update = condition = filtering = projection = key_condition = None
    if "UpdateExpression" in request and "UpdateExpression" in family.expressions:
        update = compile_update(request["UpdateExpression"], names)
        update.check(values)
    if "ConditionExpression" in request and "ConditionExpression" in family.expressions:
        condition = compile_condition(request["ConditionExpression"], names)
        condition.check(values)
    if "FilterExpression" in request and "FilterExpression" in family.expressions:
        filtering = compile_condition(request["FilterExpression"], names, "FilterExpression")
        filtering.check(values)
    if "ProjectionExpression" in request and "ProjectionExpression" in family.expressions:
        projection = compile_projection(request["ProjectionExpression"], names)
    if "KeyConditionExpression" in request and "KeyConditionExpression" in family.expressions:
        key_condition = compile_key_condition(request["KeyConditionExpression"], names)
        key_condition.check(values)
    _check_used(names, values, (update, condition, filtering, projection, key_condition))
    if key_condition:
        key_condition.check_shape()
    return RequestExpressions(
        condition or replaced.condition,
        filtering or replaced.filter,
        key_condition or replaced.key_condition,
        projection or replaced.projection,
        update or replaced.update,
        values,
    )


def _legacy(request: Request, family: ParameterFamily) -> RequestExpressions:
    """Compile the legacy parameters; a request never has one together with its expression."""
    parameters = {name: request[name] for name in family.legacy if name in request}
    if not parameters:
        return NOTHING
    wording = family.wording
    operator = parameters.get("ConditionalOperator")
    conditions = parameters.get(
        "Expected", parameters.get("QueryFilter", parameters.get("ScanFilter"))
    )
    legacy_parameters.check_conditional_operator(operator, conditions)
    update = condition = filtering = projection = key_condition = None
    if parameters.get("AttributeUpdates"):
        update = legacy_parameters.attribute_updates(parameters["AttributeUpdates"], wording)
    if parameters.get("Expected"):
        condition = legacy_parameters.expected_condition(parameters["Expected"], operator, wording)
    if parameters.get("QueryFilter"):
        filtering = _filter(parameters, "QueryFilter", wording)
    # A Scan's filter is checked after AttributesToGet, a Query's before (recorded).
    if "AttributesToGet" in parameters:
        projection = legacy_parameters.attributes_to_get(parameters["AttributesToGet"])
    if parameters.get("ScanFilter"):
        filtering = _filter(parameters, "ScanFilter", wording)
    if "KeyConditions" in parameters:
        is_index = "IndexName" in request
        conditions = parameters["KeyConditions"]
        key_condition = legacy_parameters.key_conditions(conditions, wording, is_index=is_index)
    return RequestExpressions(condition, filtering, key_condition, projection, update)


def _filter(parameters: Request, name: str, wording: ErrorWording) -> CompiledCondition:
    operator = parameters.get("ConditionalOperator")
    return legacy_parameters.filter_condition(name, parameters[name], operator, wording)


def _names(request: Request) -> Names:
    names: Names | None = request.get("ExpressionAttributeNames")
    if names is None:
        return {}
    _check_keys("ExpressionAttributeNames", names, "#")
    for key, name in names.items():
        if problem := name_problem(name):
            raise ValidationException(
                f"ExpressionAttributeNames contains invalid value: {problem} for key {key}"
            )
    size = sum(len(key) + string_size(name) for key, name in names.items())
    if size > EXPRESSION_VALUES_BYTES_MAX:
        raise ValidationException("ExpressionAttributeNames exceeds max size")
    return names


def _values(request: Request, family: ParameterFamily) -> Values:
    attribute_values = request.get("ExpressionAttributeValues")
    if attribute_values is None or not family.valued:
        return {}
    _check_keys("ExpressionAttributeValues", attribute_values, ":")
    values = {}
    check = ValueCheck(family.wording)
    for key, value in attribute_values.items():
        try:
            values[key] = normalize_value(value, check=check)
        except ValidationException as error:
            levels = family.wraps_beyond_levels
            if not family.wraps_values and not (levels and nests_too_deep(request, levels)):
                raise
            raise ValidationException(
                f"ExpressionAttributeValues contains invalid value: {error.message} for key {key}"
            ) from None
    size = sum(len(key) + value_size(value) for key, value in values.items())
    if size > EXPRESSION_VALUES_BYTES_MAX:
        raise ValidationException("ExpressionAttributeValues exceeds max size")
    return values


def _check_keys(parameter: str, placeholders: Mapping[str, Any], mark: str) -> None:
    if not placeholders:
        raise ValidationException(f"{parameter} must not be empty")
    for key in placeholders:
        if not key:
            problem = "The expression attribute map contains an empty key;"
        elif len(key) > EXPRESSION_PLACEHOLDER_BYTES_MAX:
            shown = f" size of key: {len(key)}" if parameter == "ExpressionAttributeNames" else ""
            problem = f"The expression attribute map contains a key that is too long;{shown}"
        elif key[0] != mark or not (key in _KNOWN_KEYS or _PLACEHOLDER.fullmatch(key)):
            problem = f'Syntax error; key: "{key}"'
        else:
            if len(_KNOWN_KEYS) < KNOWN_KEYS_MAX:
                _KNOWN_KEYS.add(key)
            continue
        raise ValidationException(f"{parameter} contains invalid key: {problem}")


def _check_used(
    names: Names,
    values: Values,
    compiled: Iterable[CompiledUpdate | CompiledCondition | Projection | KeyCondition | None],
) -> None:
    if not names and not values:
        return
    unused_names, unused_values = set(names), set(values)
    for expression in compiled:
        if expression is not None:
            unused_names -= expression.names_used
            unused_values -= expression.values_used
    if unused_names:
        raise _unused("ExpressionAttributeNames", unused_names)
    if unused_values:
        raise _unused("ExpressionAttributeValues", unused_values)


def _unused(parameter: str, unused: set[str]) -> ValidationException:
    """Returns the error for unused placeholders, which lists them in alphabetical order, as the
    service does with all names (recorded)."""
    keys = ", ".join(nsmallest(UNUSED_SHOWN_MAX, unused))
    return ValidationException(
        f"Value provided in {parameter} unused in expressions: keys: {{{keys}}}"
    )
