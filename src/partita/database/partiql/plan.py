"""A compiled statement and its table: which item it names, or which ranges it reads.

What WHERE says of the key with constants becomes the key; the rest stays a condition. A statement
that does not fix the partition key is a scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from partita.database.expressions.condition import Condition
from partita.database.expressions.key_condition import (
    MIRRORED,
    RANGE_OPERATORS,
    TYPE_MISMATCH,
    KeyRange,
    KeyTest,
)
from partita.database.expressions.parse import (
    CallNode,
    ComparisonNode,
    ConditionNode,
    JunctionNode,
    NotNode,
    PathNode,
    ValueNode,
)
from partita.database.expressions.resolution import Values
from partita.database.item.keys import KeyAttribute, key_bytes
from partita.database.item.values import AttributeValue, Item
from partita.database.partiql.compile import ConditionalStatement, SelectStatement, conjunction
from partita.database.partiql.nodes import refusal
from partita.database.tables.schema import Table
from partita.errors import KeyTypeError, ValidationException
from partita.limits import IN_OPERANDS_MAX

NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
KEY_PLACEHOLDER = "#key"
TYPED_FUNCTIONS = ("begins_with", "contains")


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The ranges to read, one after the other; none of them means a scan."""

    ranges: tuple[KeyRange, ...]
    filter: Condition | None
    is_forward: bool


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """One item by its whole key, and the terms that it must satisfy besides."""

    key: Item
    terms: tuple[ConditionNode, ...]


def plan_read(
    statement: SelectStatement,
    partition: Sequence[KeyAttribute],
    sort: Sequence[KeyAttribute],
    table: Table,
    values: Values,
) -> ReadPlan:
    tests = _tests(statement)
    used: list[ConditionNode] = []
    partitions = _partitions(statement, tests, partition, values, used)
    ranges: tuple[KeyRange, ...] = ()
    if partitions:
        equal, comparison, operands = _sort_range(tests, sort, values, used)
        ranges = tuple(KeyRange(values_, equal, comparison, operands) for values_ in partitions)
    rest = tuple(term for term in statement.where if term not in used)
    keys = dict((*table.key_attributes, *partition, *sort))
    for term in rest:
        _check_types(term, keys, statement.bindings.names, values)
    ranges, is_forward = _ordered(statement, ranges, partition, sort)
    return ReadPlan(ranges, conjunction(rest, statement.bindings.names), is_forward)


def plan_item(statement: ConditionalStatement, table: Table, values: Values) -> ItemPlan | None:
    """The item of a write or of a transaction; None if the key is not given as a whole."""
    tests = _tests(statement)
    used: list[ConditionNode] = []
    key: Item = {}
    for attribute in table.key_attributes:
        for term, test in tests:
            if test.attribute != attribute.name or test.operator != "=":
                continue
            value = values[test.operands[0]]
            if key.get(attribute.name, value) != value:
                raise KeyTypeError(
                    f"Multiple conditions on same key {attribute.name}. Only single item "
                    "Update/Insert/Delete are supported"
                )
            key[attribute.name] = value
            used.append(term)
        if attribute.name not in key:
            return None
        check_key_type(attribute, key[attribute.name])
    return ItemPlan(key, tuple(term for term in statement.where if term not in used))


def existing(
    statement: ConditionalStatement, table: Table, terms: Sequence[ConditionNode]
) -> Condition | None:
    """The condition that an item is there and satisfies the terms."""
    names = {**statement.bindings.names, KEY_PLACEHOLDER: table.partition.name}
    exists = CallNode("attribute_exists", (PathNode((KEY_PLACEHOLDER,)),))
    return conjunction((exists, *terms), names)


def absent_or(
    statement: ConditionalStatement, table: Table, terms: Sequence[ConditionNode]
) -> Condition | None:
    """The condition that an item, if it is there, satisfies the terms."""
    if not terms:
        return None
    names = {**statement.bindings.names, KEY_PLACEHOLDER: table.partition.name}
    absent = CallNode("attribute_not_exists", (PathNode((KEY_PLACEHOLDER,)),))
    both = terms[0] if len(terms) == 1 else JunctionNode("AND", tuple(terms))
    return conjunction((JunctionNode("OR", (absent, both)),), names)


def check_key_type(attribute: KeyAttribute, value: AttributeValue) -> None:
    if attribute.type not in value:
        raise KeyTypeError(
            "Key attribute's data type should match its data type in table's schema: "
            f"Key {attribute.name}"
        )


def _tests(statement: ConditionalStatement) -> list[tuple[ConditionNode, KeyTest]]:
    """The terms that compare one attribute with constants, in the order of the statement."""
    names = statement.bindings.names
    found = ((term, _test(term, names)) for term in statement.where)
    return [(term, test) for term, test in found if test]


def _test(term: ConditionNode, names: Mapping[str, str]) -> KeyTest | None:
    if isinstance(term, CallNode):
        operator = term.function
    elif isinstance(term, ComparisonNode):
        operator = term.operator
    else:
        return None
    operands = list(term.operands)
    if operator in MIRRORED and isinstance(operands[0], ValueNode):
        operator, operands = MIRRORED[operator], operands[::-1]
    path, *others = operands
    constants = tuple(one.name for one in others if isinstance(one, ValueNode))
    if operator not in RANGE_OPERATORS and operator != "IN":
        return None
    if not isinstance(path, PathNode) or len(path.elements) > 1 or len(constants) < len(others):
        return None
    return KeyTest(names[str(path.elements[0])], operator, constants)


def _partitions(
    statement: SelectStatement,
    tests: Sequence[tuple[ConditionNode, KeyTest]],
    partition: Sequence[KeyAttribute],
    values: Values,
    used: list[ConditionNode],
) -> list[tuple[AttributeValue, ...]]:
    """The partitions that a statement names, in the order of their keys; none if it does not."""
    candidates: list[list[AttributeValue]] = []
    terms: list[ConditionNode] = []
    for attribute in partition:
        found = _first(tests, attribute.name, ("=",)) or _first(tests, attribute.name, ("IN",))
        if found:
            term, test = found
            terms.append(term)
            named = [values[place] for place in test.operands]
            for value in named:
                check_key_type(attribute, value)
        else:
            # Stays a condition too: there may be more in it than the key.
            both = JunctionNode("AND", statement.where)
            named = _alternatives(both, attribute, statement.bindings.names, values)
        if not named:
            return []
        distinct = {key_bytes(value): value for value in named}
        candidates.append([distinct[key] for key in sorted(distinct)])
    if prod(map(len, candidates)) > IN_OPERANDS_MAX:
        return []
    used += terms
    return list(product(*candidates))


def _alternatives(
    node: ConditionNode, attribute: KeyAttribute, names: Mapping[str, str], values: Values
) -> list[AttributeValue]:
    """The values that a condition leaves to a key attribute; none if it may have any.

    `pk = 'a' OR pk = 'b'` is no scan (guide, "PartiQL select statements").
    """
    if isinstance(node, JunctionNode):
        found = [_alternatives(term, attribute, names, values) for term in node.terms]
        if node.operator == "OR":
            return [value for one in found for value in one] if all(found) else []
        return next(filter(None, found), [])
    test = _test(node, names)
    if test is None or test.attribute != attribute.name or test.operator not in ("=", "IN"):
        return []
    operands = (values[place] for place in test.operands)
    return [operand for operand in operands if operand.get(attribute.type)]


def _sort_range(
    tests: Sequence[tuple[ConditionNode, KeyTest]],
    sort: Sequence[KeyAttribute],
    values: Values,
    used: list[ConditionNode],
) -> tuple[tuple[AttributeValue, ...], str | None, tuple[AttributeValue, ...]]:
    """Sort attributes that are fixed, and what is compared of the next."""
    equal: list[AttributeValue] = []
    for attribute in sort:
        found = _first(tests, attribute.name, ("=",)) or _first(
            tests, attribute.name, RANGE_OPERATORS
        )
        if found is None:
            break
        term, test = found
        operands = tuple(values[place] for place in test.operands)
        for operand in operands:
            check_key_type(attribute, operand)
        used.append(term)
        if test.operator != "=":
            return tuple(equal), test.operator, operands
        equal.append(operands[0])
    return tuple(equal), None, ()


def _first(
    tests: Sequence[tuple[ConditionNode, KeyTest]],
    attribute: str,
    operators: Sequence[str] | frozenset[str],
) -> tuple[ConditionNode, KeyTest] | None:
    for term, test in tests:
        if test.attribute == attribute and test.operator in operators:
            return term, test
    return None


def _check_types(
    node: ConditionNode, keys: Mapping[str, str], names: Mapping[str, str], values: Values
) -> None:
    """Constants that key attributes are compared with must have their type."""
    if isinstance(node, JunctionNode):
        for term in node.terms:
            _check_types(term, keys, names, values)
    elif isinstance(node, NotNode):
        _check_types(node.term, keys, names, values)
    elif isinstance(node, ComparisonNode) or node.function in TYPED_FUNCTIONS:
        kinds = {
            keys[names[str(one.elements[0])]]
            for one in node.operands
            if isinstance(one, PathNode)
            and len(one.elements) == 1
            and names[str(one.elements[0])] in keys
        }
        for operand in node.operands:
            if isinstance(operand, ValueNode) and not kinds <= values[operand.name].keys():
                raise ValidationException(TYPE_MISMATCH)


def _ordered(
    statement: SelectStatement,
    ranges: tuple[KeyRange, ...],
    partition: Sequence[KeyAttribute],
    sort: Sequence[KeyAttribute],
) -> tuple[tuple[KeyRange, ...], bool]:
    """The ranges in the order that is asked for, and the direction within each."""
    descending: dict[str, bool] = {}
    known = {attribute.name for attribute in (*partition, *sort)}
    for name, is_descending in statement.order_by:
        if name not in known:
            raise refusal(
                f"Variable reference {name} in ORDER BY clause must be part of the primary key"
            )
        descending.setdefault(name, is_descending)
    if statement.order_by and not ranges:
        raise refusal(
            "Must have at least one non-optional hash key condition in WHERE clause when using "
            "ORDER BY clause."
        )
    if any(descending.get(attribute.name) for attribute in partition):
        ranges = ranges[::-1]
    return ranges, not any(descending.get(attribute.name) for attribute in sort)
