"""Plans a compiled statement for a table: the key of its item, or the key ranges that it reads.

Comparisons of key attributes with constants in WHERE become keys; everything else remains a
condition. A statement that does not fix the partition key is a scan.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita.database.expressions.condition import CompiledCondition
from partita.database.expressions.key_condition import (
    RANGE_OPERATORS,
    TYPE_MISMATCH,
    KeyTest,
)
from partita.database.expressions.name_resolution import Values
from partita.database.expressions.syntax.expression_parser import (
    CallNode,
    ComparisonNode,
    ConditionNode,
    JunctionNode,
    NotNode,
    PathNode,
    ValueNode,
)
from partita.database.item.attribute_values import AttributeValue, Item
from partita.database.item.key_encoding import KeyAttribute, KeyRange, key_bytes
from partita.database.operations.partiql.language.key_comparisons import check_key_type, key_test
from partita.database.operations.partiql.language.statement_compiler import (
    ConditionalStatement,
    SelectStatement,
    conjunction,
)
from partita.database.operations.partiql.language.syntax.syntax_tree import refusal
from partita.database.operations.partiql.language.where_branches import check_branches
from partita.database.tables.definition.table_schema import Table
from partita.errors import KeyTypeError, ValidationException

NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
KEY_PLACEHOLDER = "#key"
TYPED_FUNCTIONS = ("begins_with", "contains")


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The key ranges to read one after the other; an empty tuple means a scan."""

    ranges: tuple[KeyRange, ...]
    filter: CompiledCondition | None
    is_forward: bool


@dataclass(frozen=True, slots=True)
class SingleItemPlan:
    """The complete key of one item, and further terms that the item must satisfy."""

    key: Item
    terms: tuple[ConditionNode, ...]


def plan_read(
    statement: SelectStatement,
    partition: KeyAttribute,
    sort: KeyAttribute | None,
    table: Table,
    values: Values,
) -> ReadPlan:
    check_branches(statement, partition, sort, table, values)
    tests = _tests(statement)
    used: list[ConditionNode] = []
    partitions = _partitions(statement, tests, partition, values, used)
    ranges: tuple[KeyRange, ...] = ()
    if partitions:
        equal, comparison, operands = _sort_range(tests, sort, values, used)
        ranges = tuple(KeyRange((value,), equal, comparison, operands) for value in partitions)
    rest = tuple(term for term in statement.where if term not in used)
    keys = dict((*table.key_attributes, partition, *((sort,) if sort else ())))
    for term in rest:
        _check_types(term, keys, statement.bindings.names, values)
    ranges, is_forward = _ordered(statement, ranges, partition, sort)
    return ReadPlan(ranges, conjunction(rest, statement.bindings.names), is_forward)


def plan_single_read(
    statement: SelectStatement, table: Table, values: Values
) -> SingleItemPlan | None:
    """Returns the item that a SELECT in a batch or transaction reads, or None without a whole key.

    Here, the service accepts an IN with one value for an equality (recorded).
    """
    check_branches(statement, table.partition, table.sort, table, values)
    return _plan_item(statement, table, values, ("=", "IN"))


def plan_item(
    statement: ConditionalStatement, table: Table, values: Values
) -> SingleItemPlan | None:
    """Returns the item of a write or of EXISTS, or None if the statement has no whole key."""
    return _plan_item(statement, table, values, ("=",))


def _plan_item(
    statement: ConditionalStatement, table: Table, values: Values, operators: Sequence[str]
) -> SingleItemPlan | None:
    tests = _tests(statement)
    used: list[ConditionNode] = []
    key: Item = {}
    for attribute in table.key_attributes:
        for term, test in tests:
            is_equality = test.operator in operators and len(test.operands) == 1
            if test.attribute != attribute.name or not is_equality:
                continue
            value = values[test.operands[0]]
            if key.setdefault(attribute.name, value) == value:
                used.append(term)
            elif not isinstance(statement, SelectStatement):
                raise KeyTypeError(
                    f"Multiple conditions on same key {attribute.name}. Only single item "
                    "Update/Insert/Delete are supported"
                )
        if attribute.name not in key:
            return None
        check_key_type(attribute, key[attribute.name])
    return SingleItemPlan(key, tuple(term for term in statement.where if term not in used))


def existing(
    statement: ConditionalStatement, table: Table, terms: Sequence[ConditionNode]
) -> CompiledCondition | None:
    """Returns the condition that an item exists and satisfies the terms."""
    names = {**statement.bindings.names, KEY_PLACEHOLDER: table.partition.name}
    exists = CallNode("attribute_exists", (PathNode((KEY_PLACEHOLDER,)),))
    return conjunction((exists, *terms), names)


def absent_or(
    statement: ConditionalStatement, table: Table, terms: Sequence[ConditionNode]
) -> CompiledCondition | None:
    """Returns the condition that an item does not exist or satisfies the terms."""
    if not terms:
        return None
    names = {**statement.bindings.names, KEY_PLACEHOLDER: table.partition.name}
    absent = CallNode("attribute_not_exists", (PathNode((KEY_PLACEHOLDER,)),))
    both = terms[0] if len(terms) == 1 else JunctionNode("AND", tuple(terms))
    return conjunction((JunctionNode("OR", (absent, both)),), names)


def _tests(statement: ConditionalStatement) -> list[tuple[ConditionNode, KeyTest]]:
    """Returns the terms that compare one attribute with constants, in their order."""
    names = statement.bindings.names
    tests = ((term, key_test(term, names)) for term in statement.where)
    return [(term, test) for term, test in tests if test]


def _partitions(
    statement: SelectStatement,
    tests: Sequence[tuple[ConditionNode, KeyTest]],
    partition: KeyAttribute,
    values: Values,
    used: list[ConditionNode],
) -> list[AttributeValue]:
    """Returns the partition keys that a statement fixes, in order; none for a scan."""
    first = _first(tests, partition.name, ("=",)) or _first(tests, partition.name, ("IN",))
    if first:
        term, test = first
        used.append(term)
        keys = [values[name] for name in test.operands]
        for value in keys:
            check_key_type(partition, value)
    else:
        # The terms are not marked as used: an OR may restrict more than the key.
        all_terms = JunctionNode("AND", statement.where)
        keys = _alternatives(all_terms, partition, statement.bindings.names, values)
    distinct = {key_bytes(value): value for value in keys}
    return [distinct[key] for key in sorted(distinct)]


def _alternatives(
    node: ConditionNode, attribute: KeyAttribute, names: Mapping[str, str], values: Values
) -> list[AttributeValue]:
    """Returns the values to which a condition restricts a key attribute; none if it does not.

    `pk = 'a' OR pk = 'b'` is not a scan (guide, "PartiQL select statements").
    """
    if isinstance(node, JunctionNode):
        by_term = [_alternatives(term, attribute, names, values) for term in node.terms]
        if node.operator == "OR":
            return list(itertools.chain(*by_term)) if all(by_term) else []
        return next(filter(None, by_term), [])
    test = key_test(node, names)
    if test is None or test.attribute != attribute.name or test.operator not in ("=", "IN"):
        return []
    operands = (values[name] for name in test.operands)
    return [operand for operand in operands if operand.get(attribute.type)]


def _sort_range(
    tests: Sequence[tuple[ConditionNode, KeyTest]],
    sort: KeyAttribute | None,
    values: Values,
    used: list[ConditionNode],
) -> tuple[tuple[AttributeValue, ...], str | None, tuple[AttributeValue, ...]]:
    """Returns the restriction of the sort key, as the members of a KeyRange: the value that it
    equals, or a comparison and its operands."""
    first = sort and (_first(tests, sort.name, ("=",)) or _first(tests, sort.name, RANGE_OPERATORS))
    if not sort or not first:
        return (), None, ()
    term, test = first
    operands = tuple(values[name] for name in test.operands)
    for operand in operands:
        check_key_type(sort, operand)
    used.append(term)
    return (operands, None, ()) if test.operator == "=" else ((), test.operator, operands)


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
    """Check that key attributes are compared with constants of their type."""
    if isinstance(node, JunctionNode):
        for term in node.terms:
            _check_types(term, keys, names, values)
    elif isinstance(node, NotNode):
        _check_types(node.term, keys, names, values)
    elif isinstance(node, ComparisonNode) or node.function in TYPED_FUNCTIONS:
        kinds = {
            keys[names[str(path.elements[0])]]
            for path in node.operands
            if isinstance(path, PathNode)
            and len(path.elements) == 1
            and names[str(path.elements[0])] in keys
        }
        for operand in node.operands:
            if isinstance(operand, ValueNode) and not kinds <= values[operand.name].keys():
                raise ValidationException(TYPE_MISMATCH)


def _ordered(
    statement: SelectStatement,
    ranges: tuple[KeyRange, ...],
    partition: KeyAttribute,
    sort: KeyAttribute | None,
) -> tuple[tuple[KeyRange, ...], bool]:
    """Returns the ranges in the order of ORDER BY, and True if each is read forward."""
    descending: dict[str, bool] = {}
    key_names = {attribute.name for attribute in (partition, sort) if attribute}
    for name, is_descending in statement.order_by:
        if name not in key_names:
            raise refusal(
                f"Variable reference {name} in ORDER BY clause must be part of the primary key"
            )
        descending.setdefault(name, is_descending)
    if statement.order_by and not ranges:
        raise refusal(
            "Must have at least one non-optional hash key condition in WHERE clause when using "
            "ORDER BY clause."
        )
    if descending.get(partition.name):
        ranges = ranges[::-1]
    return ranges, not (sort and descending.get(sort.name))
