"""Expands a WHERE clause into the reads that the service would do for its alternatives.

Every term of an OR that restricts the key is a read of its own, and so is every value of an IN on
a key attribute; conditions on other attributes are filters. `pk = 'a' AND sk IN (1, 2)` has two
branches. The service refuses too many branches, and branches of one partition that overlap
(recorded). This module only finds those errors: what is really read is decided by `plan`, which
reads each partition once and filters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from partita.database.expressions.key_condition import KeyTest
from partita.database.expressions.name_resolution import Values
from partita.database.expressions.syntax.expression_parser import (
    ComparisonNode,
    ConditionNode,
    JunctionNode,
    NotNode,
    Operand,
    PathNode,
    ValueNode,
)
from partita.database.item.attribute_values import AttributeValue
from partita.database.item.key_encoding import KeyAttribute, KeyRange, key_bytes
from partita.database.operations.partiql.language.key_comparisons import check_key_type, key_test
from partita.database.operations.partiql.language.statement_compiler import ConditionalStatement
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import Table
from partita.errors import ValidationException
from partita.foundation.service_limits import STATEMENT_READS_MAX

OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"
TOO_MANY_READS = "Too many decomposed read operations for a given query."


class RefusedRead(ValidationException):
    """Raised for a WHERE clause that the service refuses to read.

    It is a request error even in a transaction, where other errors cancel the transaction.
    """

    code = "ValidationException"


@dataclass(frozen=True, slots=True)
class WhereBranch:
    """One way to satisfy WHERE: tests of key attributes, and filters on other attributes."""

    tests: tuple[KeyTest, ...] = ()
    filters: tuple[ConditionNode, ...] = ()
    negates_sort: bool = False
    """True when a filter negates a condition on the sort key; the service does not check whether
    that branch overlaps others (recorded)."""


def _joined(branches: Iterable[WhereBranch]) -> WhereBranch:
    tests: list[KeyTest] = []
    filters: list[ConditionNode] = []
    negates_sort = False
    for branch in branches:
        tests += branch.tests
        filters += branch.filters
        negates_sort = negates_sort or branch.negates_sort
    return WhereBranch(tuple(tests), tuple(filters), negates_sort)


def check_branches(
    statement: ConditionalStatement,
    partition: KeyAttribute,
    sort: KeyAttribute | None,
    table: Table,
    values: Values,
) -> None:
    """Refuse a statement with too many branches, or with two that overlap."""
    if any(_has_alternatives(term) for term in statement.where):
        _branches(statement, partition, sort, table, values)


def filtered_attributes(
    statement: ConditionalStatement,
    partition: KeyAttribute,
    sort: KeyAttribute | None,
    table: Table,
    values: Values,
) -> list[frozenset[str]]:
    """Returns the attributes that each branch filters on, or nothing for a scan.

    The branches are in the order of their partition keys.
    """
    names = statement.bindings.names
    return [
        _attributes(JunctionNode("AND", branch.filters), names)
        for branch in _branches(statement, partition, sort, table, values)
    ]


def _has_alternatives(term: ConditionNode) -> bool:
    return isinstance(term, JunctionNode) or (
        isinstance(term, ComparisonNode) and term.operator == "IN"
    )


def _branches(
    statement: ConditionalStatement,
    partition: KeyAttribute,
    sort: KeyAttribute | None,
    table: Table,
    values: Values,
) -> list[WhereBranch]:
    """Returns the branches of a statement in the order of their partition keys; none for a scan."""
    where = JunctionNode("AND", statement.where)
    schema = _KeySchema(partition, sort, statement.bindings.names)
    if not schema.is_partition_given(where):
        return []
    branches = schema.branches(where)
    for branch in branches:
        schema.check_types(branch, values)
    partition_values = [_partition_values(branch, partition, values) for branch in branches]
    # If a branch contradicts itself (pk = 'a' AND pk = 'b'), the whole statement is a scan
    # (recorded).
    if any(value != first for first, *others in partition_values for value in others):
        return []
    if len(branches) == 1:
        return branches
    compared = [branch for branch in branches if not branch.negates_sort]
    _refuse_overlap([_range(branch, partition, table, values) for branch in compared])
    return sorted(
        branches, key=lambda branch: key_bytes(_partition_values(branch, partition, values)[0])
    )


@dataclass(frozen=True, slots=True)
class _KeySchema:
    """The key attributes of a table or index, and how conditions restrict them."""

    partition: KeyAttribute
    sort: KeyAttribute | None
    names: Mapping[str, str]

    def test(self, node: ConditionNode) -> KeyTest | None:
        """Returns a term's test of a key attribute, or None if a read cannot use it."""
        test = key_test(node, self.names)
        if test is None:
            return None
        if test.attribute == self.partition.name:
            return test if test.operator in ("=", "IN") else None
        return test if self.sort and test.attribute == self.sort.name else None

    def is_partition_given(self, node: ConditionNode) -> bool:
        """True when every way to satisfy a condition fixes the partition key."""
        if isinstance(node, JunctionNode):
            return (all if node.operator == "OR" else any)(map(self.is_partition_given, node.terms))
        test = self.test(node)
        return test is not None and test.attribute == self.partition.name

    def is_named(self, node: ConditionNode) -> bool:
        if isinstance(node, JunctionNode):
            return any(map(self.is_named, node.terms))
        return self.test(node) is not None

    def branches(self, node: ConditionNode) -> list[WhereBranch]:
        if isinstance(node, JunctionNode) and node.operator == "AND":
            return self._product(node)
        if isinstance(node, JunctionNode) and self.is_named(node):
            return _counted([branch for term in node.terms for branch in self.branches(term)])
        test = self.test(node)
        if test is None:
            return [WhereBranch((), (node,), self._negates_sort(node))]
        if test.operator != "IN":
            return [WhereBranch((test,))]
        equal = [KeyTest(test.attribute, "=", (operand,)) for operand in test.operands]
        return _counted([WhereBranch((test,)) for test in equal])

    def _product(self, junction: JunctionNode) -> list[WhereBranch]:
        factors = [self.branches(term) for term in junction.terms]
        product = [_joined(factor[0] for factor in factors if len(factor) == 1)]
        for factor in factors:
            if len(factor) > 1:
                product = _counted([_joined(pair) for pair in itertools.product(product, factor)])
        return product

    def check_types(self, branch: WhereBranch, values: Values) -> None:
        by_name = {
            attribute.name: attribute for attribute in (self.partition, self.sort) if attribute
        }
        for test in branch.tests:
            for operand in test.operands:
                check_key_type(by_name[test.attribute], values[operand])

    def _negates_sort(self, node: ConditionNode) -> bool:
        if isinstance(node, JunctionNode):
            return any(map(self._negates_sort, node.terms))
        is_negation = isinstance(node, NotNode) or (
            isinstance(node, ComparisonNode) and node.operator == "<>"
        )
        return (
            is_negation
            and self.sort is not None
            and self.sort.name in _attributes(node, self.names)
        )


def _attributes(node: ConditionNode | Operand, names: Mapping[str, str]) -> frozenset[str]:
    """Returns the top-level attributes that a condition reads."""
    if isinstance(node, ValueNode):
        return frozenset()
    if isinstance(node, PathNode):
        return frozenset((names[str(node.elements[0])],))
    if isinstance(node, NotNode):
        return _attributes(node.term, names)
    members = node.terms if isinstance(node, JunctionNode) else node.operands
    return frozenset(
        itertools.chain.from_iterable(_attributes(member, names) for member in members)
    )


def _counted(branches: list[WhereBranch]) -> list[WhereBranch]:
    if len(branches) > STATEMENT_READS_MAX:
        raise RefusedRead(TOO_MANY_READS)
    return branches


def _partition_values(
    branch: WhereBranch, partition: KeyAttribute, values: Values
) -> list[AttributeValue]:
    """Returns all values that a branch compares the partition key with."""
    return [values[test.operands[0]] for test in branch.tests if test.attribute == partition.name]


_Range = tuple[bytes, bytes]


def _range(branch: WhereBranch, partition: KeyAttribute, table: Table, values: Values) -> _Range:
    """Returns the storage keys between which the items of a branch lie."""
    value, *_ = _partition_values(branch, partition, values)
    start, stop = table_layout.table_range(table, KeyRange((value,)))
    for test in branch.tests:
        if test.attribute != partition.name:
            first, last = table_layout.table_range(table, _key_range(value, test, values))
            start, stop = max(start, first), min(stop, last)
    return start, stop


def _key_range(partition: AttributeValue, test: KeyTest, values: Values) -> KeyRange:
    operands = tuple(values[operand] for operand in test.operands)
    if test.operator == "=":
        return KeyRange((partition,), operands)
    return KeyRange((partition,), (), test.operator, operands)


def _refuse_overlap(ranges: Sequence[_Range]) -> None:
    for (start, stop), (other_start, other_stop) in itertools.combinations(ranges, 2):
        if max(start, other_start) < min(stop, other_stop):
            raise RefusedRead(OVERLAPPING)
