"""The operators of conditions in policies, with IfExists, ForAllValues and ForAnyValue.

(IAM User Guide, "IAM JSON policy elements: Condition operators" and "Multivalued context keys")
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from ipaddress import ip_address, ip_network
from typing import Any, Final, NamedTuple

from partita.server.security.policies.policy_patterns import (
    ConditionContext,
    UnresolvedVariable,
    arn_matches,
    effort_of,
    has_variables,
    literal,
    matches,
)

ALL, ANY = "ForAllValues:", "ForAnyValue:"
IF_EXISTS: Final = "IfExists"
NULL: Final = "Null"
STEP_CHARS: Final = 100
"""Comparing this many characters takes about as long as one step, which is starting a comparison.
"""
READ_STEPS: Final = 20
"""The cost of reading a number, a date or a network, in steps."""
VARIABLE_STEPS: Final = 4
"""The cost of replacing variables, in steps."""
LOOKUPS_PER_STEP: Final = 10
"""The number of lookups in a set that take as long as one step."""
EPOCH_MILLISECONDS: Final = 10**11
"""Numbers from here on are dates in milliseconds, smaller ones in seconds."""

Test = Callable[[str, str, ConditionContext | None], bool]
"""Tests a value of the policy and one of the request. Without a context, `${` is plain text."""


def _string(policy_value: str, request_value: str, context: ConditionContext | None) -> bool:
    return _resolved(policy_value, context) == request_value


def _string_ignoring_case(
    policy_value: str, request_value: str, context: ConditionContext | None
) -> bool:
    return _resolved(policy_value, context).casefold() == request_value.casefold()


def _resolved(policy_value: str, context: ConditionContext | None) -> str:
    return (
        policy_value
        if context is None or "${" not in policy_value
        else literal(policy_value, context)
    )


def _like(policy_value: str, request_value: str, context: ConditionContext | None) -> bool:
    return matches(policy_value, request_value, context)


def _arn(policy_value: str, request_value: str, context: ConditionContext | None) -> bool:
    return arn_matches(policy_value, request_value, context)


def _ordered(
    read: Callable[[str], Any], holds: Callable[[Any, Any], bool]
) -> Callable[[str, str, ConditionContext | None], bool]:
    def test(policy_value: str, request_value: str, context: ConditionContext | None) -> bool:
        try:
            return holds(read(request_value), read(_resolved(policy_value, context)))
        except ValueError:
            return False

    return test


def number(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not value.is_finite():
        raise ValueError(text)
    return value


def moment(text: str) -> float:
    """Reads a date in ISO 8601, or as a number of seconds or milliseconds since 1970."""
    try:
        value = float(text)
    except ValueError:
        # A date without a zone is in UTC. A year or a month alone means its beginning.
        full = text + "-01-01"[(len(text) - 4) :] if len(text) in (4, 7) else text
        parsed = datetime.fromisoformat(full)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(text)
    return value / 1000 if value >= EPOCH_MILLISECONDS else value


def boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def binary(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise ValueError(text) from None


def network(text: str) -> Any:
    return ip_network(text, strict=False)


def _in_network(policy_value: str, request_value: str, context: ConditionContext | None) -> bool:
    try:
        address = ip_address(request_value)
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address) in network(_resolved(policy_value, context))
    except ValueError:
        return False


class ConditionOperator(NamedTuple):
    """An operator such as StringEquals."""

    test: Test
    is_negated: bool = False
    read: Callable[[str], Any] | None = None
    """Reads a value; raises ValueError for a value that the operator cannot take."""
    is_arn: bool = False
    is_wild: bool = False
    """True if the values of the policy are patterns."""
    fold: Callable[[str], str] | None = None
    """Maps texts that the operator regards as equal to the same text, if there is such a function.
    Then one lookup in a set replaces a test of each value."""


_COMPARISONS: dict[str, tuple[Callable[[Any, Any], bool], bool]] = {
    "Equals": (lambda value, bound: value == bound, False),
    "NotEquals": (lambda value, bound: value == bound, True),
    "LessThan": (lambda value, bound: value < bound, False),
    "LessThanEquals": (lambda value, bound: value <= bound, False),
    "GreaterThan": (lambda value, bound: value > bound, False),
    "GreaterThanEquals": (lambda value, bound: value >= bound, False),
}

OPERATORS: Final[dict[str, ConditionOperator]] = {
    "StringEquals": ConditionOperator(_string, fold=str),
    "StringNotEquals": ConditionOperator(_string, True, fold=str),
    "StringEqualsIgnoreCase": ConditionOperator(_string_ignoring_case, fold=str.casefold),
    "StringNotEqualsIgnoreCase": ConditionOperator(_string_ignoring_case, True, fold=str.casefold),
    "StringLike": ConditionOperator(_like, is_wild=True),
    "StringNotLike": ConditionOperator(_like, True, is_wild=True),
    **{
        f"Numeric{name}": ConditionOperator(_ordered(number, holds), negated, number)
        for name, (holds, negated) in _COMPARISONS.items()
    },
    **{
        f"Date{name}": ConditionOperator(_ordered(moment, holds), negated, moment)
        for name, (holds, negated) in _COMPARISONS.items()
    },
    "Bool": ConditionOperator(
        _ordered(boolean, lambda value, bound: value == bound), False, boolean
    ),
    "BinaryEquals": ConditionOperator(
        _ordered(binary, lambda value, bound: value == bound), read=binary
    ),
    "IpAddress": ConditionOperator(_in_network, False, network),
    "NotIpAddress": ConditionOperator(_in_network, True, network),
    "ArnEquals": ConditionOperator(_arn, is_arn=True, is_wild=True),
    "ArnLike": ConditionOperator(_arn, is_arn=True, is_wild=True),
    "ArnNotEquals": ConditionOperator(_arn, True, is_arn=True, is_wild=True),
    "ArnNotLike": ConditionOperator(_arn, True, is_arn=True, is_wild=True),
}
_NAMES: Final = {name.lower(): name for name in (*OPERATORS, NULL)}


class PolicyCondition(NamedTuple):
    """A condition on one key with one operator. `new_condition` makes them."""

    key: str
    """The condition key in lower case."""
    operator: str
    values: tuple[str, ...]
    qualifier: str
    if_exists: bool
    exact: frozenset[str]
    """The folded values, if a lookup among them decides; else empty."""
    cost: int
    """The cost of testing one value of the request, in steps."""
    effort: int
    """The further cost per STEP_CHARS characters of the request's values, in steps."""

    def __str__(self) -> str:
        suffix = IF_EXISTS if self.if_exists else ""
        return f"{self.qualifier}{self.operator}{suffix} on {self.key}"

    def steps(self, request_values: Sequence[str]) -> int:
        """Returns the maximum cost of testing these values of a request."""
        if self.exact:
            return len(request_values) // LOOKUPS_PER_STEP
        return (
            self.cost * len(request_values)
            + self.effort * sum(map(len, request_values)) // STEP_CHARS
        )


def new_condition(
    key: str, operator: str, values: tuple[str, ...], qualifier: str, if_exists: bool, varies: bool
) -> PolicyCondition:
    """Makes a condition. `varies` is True if the values may contain variables."""
    exact: frozenset[str] = frozenset()
    cost = effort = 0
    if operator != NULL:
        rules = OPERATORS[operator]
        varying = sum(map(has_variables, values)) if varies else 0
        if rules.fold is not None and not varying:
            exact = frozenset(map(rules.fold, values))
        cost = len(values) * (READ_STEPS if rules.read else 1) + varying * VARIABLE_STEPS
        effort = sum(map(effort_of, values)) if rules.is_wild else len(values)
    return PolicyCondition(key.lower(), operator, values, qualifier, if_exists, exact, cost, effort)


def parse_operator(text: str) -> tuple[str, str, bool] | None:
    """Splits `ForAllValues:StringLikeIfExists` into qualifier, operator and True for IfExists.

    Case does not matter. Returns None if there is no such operator.
    """
    qualifier = ""
    for prefix in (ALL, ANY):
        if text.lower().startswith(prefix.lower()):
            qualifier, text = prefix, text[len(prefix) :]
    if_exists = text.lower().endswith(IF_EXISTS.lower())
    if if_exists:
        text = text[: -len(IF_EXISTS)]
    operator = _NAMES.get(text.lower())
    if operator is None or (operator == NULL and (if_exists or qualifier)):
        return None
    return qualifier, operator, if_exists


def holds(
    condition: PolicyCondition,
    request_values: Sequence[str] | None,
    context: ConditionContext,
    *,
    has_variables: bool,
    is_deny: bool,
) -> bool:
    """True if the values that a request has for the condition's key satisfy the condition.

    For a key with several values, a condition should have a qualifier. Without one, an Allow
    applies only if all values match, and a Deny already if any value matches. So a value that does
    not match cannot get through beside one that does.
    """
    if condition.operator == NULL:
        return any(
            (request_values is None or not request_values) == boolean(value)
            for value in condition.values
        )
    operator = OPERATORS[condition.operator]
    if not request_values:
        if condition.if_exists:
            return True
        if condition.qualifier:
            return condition.qualifier == ALL
        return operator.is_negated
    if condition.exact and operator.fold is not None:
        exact, fold, is_negated = condition.exact, operator.fold, operator.is_negated
        fits = [(fold(request_value) in exact) != is_negated for request_value in request_values]
    else:
        try:
            fits = [
                _fits(operator, condition.values, request_value, context if has_variables else None)
                for request_value in request_values
            ]
        except UnresolvedVariable:
            return False
    if condition.qualifier == ANY or (not condition.qualifier and is_deny):
        return any(fits)
    return all(fits)


def _fits(
    operator: ConditionOperator,
    policy_values: Sequence[str],
    request_value: str,
    context: ConditionContext | None,
) -> bool:
    """True if any value of the policy matches, or for a negated operator, if none does."""
    return operator.is_negated != any(
        operator.test(policy_value, request_value, context) for policy_value in policy_values
    )
