"""Key conditions: which partition a Query reads, and which range of its sort keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from partita.errors import ValidationException
from partita.expressions.condition import ConditionScope, checked_tree
from partita.expressions.parse import (
    CallNode,
    ConditionNode,
    JunctionNode,
    Operand,
    PathNode,
    Refusal,
    TestNode,
    ValueNode,
)
from partita.expressions.paths import Path
from partita.expressions.resolution import (
    COMPILED_EXPRESSIONS_MAX,
    Check,
    Names,
    Values,
    invalid,
    run_checks,
)
from partita.item.values import AttributeValue, type_of

PARAMETER = "KeyConditionExpression"

MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
TYPE_MISMATCH = (
    "One or more parameter values were invalid: Condition parameter type does not match schema type"
)
RANGE_OPERATORS = frozenset((*MIRRORED, "BETWEEN", "begins_with"))
NOT_SUPPORTED = "Query key condition not supported"


class KeyAttribute(NamedTuple):
    name: str
    type: str


class KeyTest(NamedTuple):
    """One clause: an attribute, an operator and the placeholders, or values, of its operands."""

    attribute: str
    operator: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """One partition, of whose items the sort keys begin with `equal` and satisfy one comparison."""

    partition: tuple[AttributeValue, ...]
    equal: tuple[AttributeValue, ...] = ()
    comparison: str | None = None
    operands: tuple[AttributeValue, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyCondition:
    names_used: frozenset[str]
    values_used: frozenset[str]
    checks: tuple[Check, ...]
    tests: tuple[KeyTest, ...]
    shape_error: str | None
    """Why this condition, though well formed, is not one over a key."""
    own_values: Values | None = None
    """The values of legacy KeyConditions, which have no placeholders."""

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset(test.attribute for test in self.tests)

    def check(self, values: Values) -> None:
        """Refuses values that are missing or of a type that an operator cannot take."""
        run_checks(PARAMETER, self.checks, values)

    def check_shape(self) -> None:
        """Refuses what is no key condition; the service does so after its other expressions."""
        if self.shape_error:
            raise ValidationException(self.shape_error)

    def resolve(
        self,
        partition: Sequence[KeyAttribute],
        sort: Sequence[KeyAttribute],
        values: Values,
    ) -> KeyRange:
        """The range of a table's or index's key; refuses conditions that its key cannot serve."""
        self.check_shape()
        if self.own_values is None:
            _check_test_count(self.tests, partition, sort)
            return key_range(self.tests, partition, sort, values)
        return key_range(self.tests, partition, sort, self.own_values)


def compile_key_condition(text: str, names: Names) -> KeyCondition:
    return _compiled(text, tuple(names.items()) if names else ())


@lru_cache(COMPILED_EXPRESSIONS_MAX)
def _compiled(text: str, names: tuple[tuple[str, str], ...]) -> KeyCondition:
    scope = ConditionScope(dict(names))
    try:
        node = checked_tree(text)
    except Refusal as refusal:
        raise invalid(PARAMETER, refusal) from None
    scope.whole(node)
    tests: tuple[KeyTest, ...] = ()
    shape_error = None
    try:
        tests = _key_tests(node, scope)
    except Refusal as refusal:
        shape_error = str(refusal)
    return KeyCondition(
        frozenset(scope.names_used),
        frozenset(scope.values_used),
        tuple(scope.checks),
        tests,
        shape_error,
    )


def _key_tests(node: ConditionNode, scope: ConditionScope) -> tuple[KeyTest, ...]:
    tests: dict[str, KeyTest] = {}
    for term in _conjuncts(node):
        test = _key_test(term, scope)
        if test.attribute in tests:
            raise Refusal(
                f"Invalid {PARAMETER}: "
                "KeyConditionExpressions must only contain one condition per key"
            )
        tests[test.attribute] = test
    return tuple(tests.values())


def _conjuncts(node: ConditionNode) -> Iterator[TestNode | CallNode]:
    if isinstance(node, JunctionNode) and node.operator == "AND":
        for term in node.terms:
            yield from _conjuncts(term)
    elif isinstance(node, CallNode):
        if node.function != "begins_with":
            raise _invalid_operator(node.function)
        yield node
    elif isinstance(node, TestNode):
        if node.operator not in MIRRORED and node.operator != "BETWEEN":
            raise _invalid_operator(node.operator)
        yield node
    else:
        raise _invalid_operator(node.operator if isinstance(node, JunctionNode) else "NOT")


def _invalid_operator(operator: str) -> Refusal:
    return Refusal(f"Invalid operator used in KeyConditionExpression: {operator}")


def _key_test(node: TestNode | CallNode, scope: ConditionScope) -> KeyTest:
    operator = node.function if isinstance(node, CallNode) else node.operator
    if any(isinstance(operand, CallNode) for operand in node.operands):
        raise Refusal("KeyConditionExpressions cannot contain nested operations")
    attribute = _key_attribute(operator, node.operands, scope)
    operands = tuple(operand.name for operand in node.operands if isinstance(operand, ValueNode))
    if isinstance(node.operands[0], ValueNode):
        operator = MIRRORED[operator]
    return KeyTest(attribute, operator, operands)


def _key_attribute(operator: str, operands: Sequence[Operand], scope: ConditionScope) -> str:
    paths: list[Path] = []
    for position, operand in enumerate(operands):
        if isinstance(operand, PathNode):
            if paths:
                raise _invalid_condition("Multiple attribute names used in one condition")
            if len(operand.elements) > 1:
                raise Refusal("KeyConditionExpressions cannot have conditions on nested attributes")
            paths.append(scope.resolve(operand))
        elif position == 0 and operator in ("BETWEEN", "begins_with"):
            raise _invalid_condition(
                f"{operator} operator must have the key attribute as its first operand"
            )
    if not paths:
        raise _invalid_condition("No key attribute specified")
    return str(paths[0][0])


def _invalid_condition(problem: str) -> Refusal:
    return Refusal(f"Invalid condition in KeyConditionExpression: {problem}")


def key_range(
    tests: Sequence[KeyTest],
    partition: Sequence[KeyAttribute],
    sort: Sequence[KeyAttribute],
    values: Values,
) -> KeyRange:
    by_attribute = {test.attribute: test for test in tests}
    _check_coverage(by_attribute, partition, sort)
    if any(test.operator not in RANGE_OPERATORS for test in tests):
        raise ValidationException("Attempted conditional constraint is not an indexable operation")
    _check_operand_types(by_attribute, (*partition, *sort), values)
    if any(by_attribute[attribute.name].operator != "=" for attribute in partition):
        raise ValidationException(NOT_SUPPORTED)
    hashed = tuple(values[by_attribute[attribute.name].operands[0]] for attribute in partition)
    given = [by_attribute[attribute.name] for attribute in sort if attribute.name in by_attribute]
    equal = tuple(values[test.operands[0]] for test in given if test.operator == "=")
    if len(equal) == len(given):
        return KeyRange(hashed, equal)
    last = given[-1]
    operands = tuple(values[name] for name in last.operands)
    return KeyRange(hashed, equal, last.operator, operands)


def _check_test_count(
    tests: Sequence[KeyTest], partition: Sequence[KeyAttribute], sort: Sequence[KeyAttribute]
) -> None:
    key_size = len(partition) + len(sort)
    if len(tests) > key_size:
        raise ValidationException(
            f"The number of query conditions ({len(tests)}) exceeds the number of key attributes "
            f"defined in the schema ({key_size})"
        )


def _check_operand_types(
    by_attribute: Mapping[str, KeyTest], key: Iterable[KeyAttribute], values: Values
) -> None:
    for attribute in key:
        test = by_attribute.get(attribute.name)
        if test and any(type_of(values[name]) != attribute.type for name in test.operands):
            raise ValidationException(TYPE_MISMATCH)


def _check_coverage(
    by_attribute: Mapping[str, KeyTest],
    partition: Sequence[KeyAttribute],
    sort: Sequence[KeyAttribute],
) -> None:
    for attribute in partition:
        if attribute.name not in by_attribute:
            raise ValidationException(
                f"Query condition missed key schema element: {attribute.name}"
            )
    known = {attribute.name for attribute in (*partition, *sort)}
    if not by_attribute.keys() <= known:
        missed = [attribute.name for attribute in sort if attribute.name not in by_attribute]
        if not missed:
            raise ValidationException(NOT_SUPPORTED)
        raise ValidationException(f"Query condition missed key schema element: {missed[0]}")
    _check_sort_order(by_attribute, [attribute.name for attribute in sort])


def _check_sort_order(by_attribute: Mapping[str, KeyTest], sort: Sequence[str]) -> None:
    """Sort attributes from the left without a gap, and a range only on the last (recorded)."""
    given = [position for position, name in enumerate(sort) if name in by_attribute]
    if not given:
        return
    last = given[-1]
    for name in sort[:last]:
        test = by_attribute.get(name)
        if test is None or test.operator != "=":
            raise ValidationException(
                f"RANGE key attributes {name} must have equality conditions specified in the "
                f"query because a condition is present on key attribute {sort[last]}"
            )
