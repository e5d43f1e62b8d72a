"""Key conditions: the partition key that a Query reads, and a range of its sort keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from partita.database.expressions.condition import ConditionScope, checked_tree
from partita.database.expressions.document_paths import Path
from partita.database.expressions.name_resolution import (
    Check,
    NameItems,
    Names,
    Values,
    cached,
    invalid,
    run_checks,
)
from partita.database.expressions.syntax.expression_parser import (
    CallNode,
    ComparisonNode,
    ConditionNode,
    InvalidExpression,
    JunctionNode,
    Operand,
    PathNode,
    ValueNode,
)
from partita.database.item.key_encoding import KeyAttribute, KeyRange
from partita.errors import INVALID, ValidationException

PARAMETER: Final = "KeyConditionExpression"

MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
TYPE_MISMATCH: Final = f"{INVALID}Condition parameter type does not match schema type"
RANGE_OPERATORS: Final = frozenset((*MIRRORED, "BETWEEN", "begins_with"))
CONDITION_COUNT: Final = "Conditions can be of length 1 or 2 only"
NOT_SUPPORTED: Final = "Query key condition not supported"
PLANS_MAX: Final = 1024


class KeyTest(NamedTuple):
    """One clause: an attribute, an operator, and the names of its operands among the values.

    `#k BETWEEN :a AND :b` is `KeyTest("year", "BETWEEN", (":a", ":b"))`, if `#k` is "year".
    """

    attribute: str
    operator: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A compiled key condition, which `resolve` turns into a key range for a key schema."""

    names_used: frozenset[str]
    values_used: frozenset[str]
    checks: tuple[Check, ...]
    tests: tuple[KeyTest, ...]
    shape_error: str | None
    """The reason why a well-formed condition is not a key condition, such as an OR in it."""
    own_values: Values | None = None
    """The values of legacy KeyConditions, which have no placeholders."""

    def check(self, values: Values) -> None:
        """Refuse values that are missing, or of a type that an operator does not accept."""
        run_checks(PARAMETER, self.checks, values)

    def check_shape(self) -> None:
        """Refuse a condition that is not a key condition.

        The service does so only after it has checked the request's other expressions.
        """
        if self.shape_error:
            raise ValidationException(self.shape_error)

    def resolve(
        self,
        partition: Sequence[KeyAttribute],
        sort: Sequence[KeyAttribute],
        values: Values,
    ) -> KeyRange:
        """Returns the range of keys that satisfies the condition, for a table's or index's key.

        Raises the service's error for a condition that does not fit that key.
        """
        self.check_shape()
        is_expression = self.own_values is None
        plan = _plan(self.tests, tuple(partition), tuple(sort), is_expression)
        return plan.fill(values if self.own_values is None else self.own_values)


def compile_key_condition(text: str, names: Names) -> KeyCondition:
    return _compiled(text, tuple(names.items()), PARAMETER)


@cached
def _compiled(text: str, names: NameItems, parameter: str) -> KeyCondition:
    scope = ConditionScope(dict(names))
    try:
        node = checked_tree(text)
    except InvalidExpression as refusal:
        raise invalid(parameter, refusal) from None
    scope.compile(node)
    tests: tuple[KeyTest, ...] = ()
    shape_error = None
    try:
        tests = _key_tests(node, scope)
    except InvalidExpression as refusal:
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
            raise InvalidExpression(
                f"Invalid {PARAMETER}: "
                "KeyConditionExpressions must only contain one condition per key"
            )
        tests[test.attribute] = test
    return tuple(tests.values())


def _conjuncts(node: ConditionNode) -> Iterator[ComparisonNode | CallNode]:
    if isinstance(node, JunctionNode) and node.operator == "AND":
        for term in node.terms:
            yield from _conjuncts(term)
    elif isinstance(node, CallNode):
        if node.function != "begins_with":
            raise _invalid_operator(node.function)
        yield node
    elif isinstance(node, ComparisonNode):
        if node.operator not in MIRRORED and node.operator != "BETWEEN":
            raise _invalid_operator(node.operator)
        yield node
    else:
        raise _invalid_operator(node.operator if isinstance(node, JunctionNode) else "NOT")


def _invalid_operator(operator: str) -> InvalidExpression:
    return InvalidExpression(f"Invalid operator used in KeyConditionExpression: {operator}")


def _key_test(node: ComparisonNode | CallNode, scope: ConditionScope) -> KeyTest:
    operator = node.function if isinstance(node, CallNode) else node.operator
    if any(isinstance(operand, CallNode) for operand in node.operands):
        raise InvalidExpression("KeyConditionExpressions cannot contain nested operations")
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
                raise InvalidExpression(
                    "KeyConditionExpressions cannot have conditions on nested attributes"
                )
            paths.append(scope.resolve(operand))
        elif position == 0 and operator in ("BETWEEN", "begins_with"):
            raise _invalid_condition(
                f"{operator} operator must have the key attribute as its first operand"
            )
    if not paths:
        raise _invalid_condition("No key attribute specified")
    return str(paths[0][0])


def _invalid_condition(problem: str) -> InvalidExpression:
    return InvalidExpression(f"Invalid condition in KeyConditionExpression: {problem}")


@dataclass(frozen=True, slots=True)
class _Plan:
    """A key range for one condition and one key schema, with names where values belong."""

    partition: tuple[str, ...]
    equal: tuple[str, ...]
    comparison: str | None
    operands: tuple[str, ...]
    types: tuple[tuple[str, str], ...]
    """The type that each value must have: that of its key attribute."""
    refusal: str | None
    """The error of a condition that does not fit the key, raised after wrong types."""

    def fill(self, values: Values) -> KeyRange:
        """Returns the key range for the values of one request."""
        for name, kind in self.types:
            if kind not in values[name]:
                raise ValidationException(TYPE_MISMATCH)
        if self.refusal:
            raise ValidationException(self.refusal)
        return KeyRange(
            tuple([values[name] for name in self.partition]),
            tuple([values[name] for name in self.equal]),
            self.comparison,
            tuple([values[name] for name in self.operands]),
        )


@lru_cache(PLANS_MAX)
def _plan(
    tests: tuple[KeyTest, ...],
    partition: tuple[KeyAttribute, ...],
    sort: tuple[KeyAttribute, ...],
    is_expression: bool,
) -> _Plan:
    _check_test_count(tests, partition, sort, is_expression)
    by_attribute = {test.attribute: test for test in tests}
    _check_coverage(by_attribute, partition, sort)
    if any(test.operator not in RANGE_OPERATORS for test in tests):
        raise ValidationException("Attempted conditional constraint is not an indexable operation")
    types = tuple(
        (name, attribute.type)
        for attribute in (*partition, *sort)
        if attribute.name in by_attribute
        for name in by_attribute[attribute.name].operands
    )
    partition_tests = [by_attribute[attribute.name] for attribute in partition]
    sort_tests = [
        by_attribute[attribute.name] for attribute in sort if attribute.name in by_attribute
    ]
    equal = tuple(test.operands[0] for test in sort_tests if test.operator == "=")
    last = sort_tests[-1] if len(equal) < len(sort_tests) else None
    return _Plan(
        tuple(test.operands[0] for test in partition_tests),
        equal,
        last.operator if last else None,
        last.operands if last else (),
        types,
        NOT_SUPPORTED if any(test.operator != "=" for test in partition_tests) else None,
    )


def _check_test_count(
    tests: Sequence[KeyTest],
    partition: Sequence[KeyAttribute],
    sort: Sequence[KeyAttribute],
    is_expression: bool,
) -> None:
    key_size = len(partition) + len(sort)
    if not is_expression:
        if len(tests) > max(key_size, 2):
            raise ValidationException(CONDITION_COUNT)
    elif len(tests) > key_size:
        raise ValidationException(
            f"The number of query conditions ({len(tests)}) exceeds the number of key attributes "
            f"defined in the schema ({key_size})"
        )


def _check_coverage(
    by_attribute: Mapping[str, KeyTest],
    partition: Sequence[KeyAttribute],
    sort: Sequence[KeyAttribute],
) -> None:
    if len(partition) > 1:
        _check_partition_equality(by_attribute, [attribute.name for attribute in partition])
    for attribute in partition:
        if attribute.name not in by_attribute:
            raise ValidationException(
                f"Query condition missed key schema element: {attribute.name}"
            )
    key_names = {attribute.name for attribute in (*partition, *sort)}
    if not by_attribute.keys() <= key_names:
        missing = [attribute.name for attribute in sort if attribute.name not in by_attribute]
        if not missing:
            raise ValidationException(NOT_SUPPORTED)
        raise ValidationException(f"Query condition missed key schema element: {missing[0]}")
    _check_sort_order(by_attribute, [attribute.name for attribute in sort])


def _check_partition_equality(
    by_attribute: Mapping[str, KeyTest], partition: Sequence[str]
) -> None:
    """Check that every attribute of a partition key of several is compared with `=`.

    The service's exact text is not recorded, only that it mentions HASH and equality.
    """
    missing = [
        name for name in partition if name not in by_attribute or by_attribute[name].operator != "="
    ]
    if missing:
        raise ValidationException(
            f"HASH key attributes {', '.join(missing)} must have equality conditions specified in "
            "the query"
        )


def _check_sort_order(by_attribute: Mapping[str, KeyTest], sort: Sequence[str]) -> None:
    """Check that the sort attributes are used from the left without a gap, and that only the last
    one used has a range (recorded)."""
    used = [position for position, name in enumerate(sort) if name in by_attribute]
    if not used:
        return
    last = used[-1]
    for name in sort[:last]:
        test = by_attribute.get(name)
        if test is None or test.operator != "=":
            raise ValidationException(
                f"RANGE key attributes {name} must have equality conditions specified in the "
                f"query because a condition is present on key attribute {sort[last]}"
            )
