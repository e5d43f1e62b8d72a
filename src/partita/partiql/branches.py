"""WHERE multiplied out: the reads that alternatives on a key come down to.

Every term of an OR that names the key makes a read of its own, and so does every value of an IN on
a key attribute; what says nothing of the key is a filter. The service refuses too many such reads,
and reads of one partition that overlap (recorded). Ours are those of `plan`, which meet no item
twice; here it is only told what the service would not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, starmap

from partita.errors import ValidationException
from partita.expressions.key_condition import KeyRange, KeyTest
from partita.expressions.parse import (
    ComparisonNode,
    ConditionNode,
    JunctionNode,
    NotNode,
    Operand,
    PathNode,
    ValueNode,
)
from partita.expressions.resolution import Values
from partita.item.keys import KeyAttribute, key_bytes
from partita.item.values import AttributeValue
from partita.limits import STATEMENT_READS_MAX
from partita.partiql.compile import ConditionalStatement
from partita.partiql.key_tests import check_key_type, key_test
from partita.tables import layout
from partita.tables.schema import Table

OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"
TOO_MANY_READS = "Too many decomposed read operations for a given query."


class RefusedRead(ValidationException):
    """A WHERE clause that no read serves. No transaction is even begun for it."""

    code = "ValidationException"


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to satisfy WHERE: what it says of the key, without IN, and the filters besides."""

    tests: tuple[KeyTest, ...] = ()
    filters: tuple[ConditionNode, ...] = ()

    def joined(self, other: Branch) -> Branch:
        return Branch(self.tests + other.tests, self.filters + other.filters)


def check_branches(
    statement: ConditionalStatement,
    partition: KeyAttribute,
    sort: KeyAttribute | None,
    table: Table,
    values: Values,
) -> None:
    """Refuses alternatives on the key that are too many, or of which two overlap."""
    if not any(_has_alternatives(term) for term in statement.where):
        return
    where = JunctionNode("AND", statement.where)
    keys = _Keys(partition, sort, statement.bindings.names)
    if not keys.fix_partition(where):
        return
    branches = keys.branches(where)
    for branch in branches:
        keys.check_types(branch, values)
    ranges = [
        _range(branch, partition, table, values)
        for branch in branches
        if not keys.negate_sort(branch)
    ]
    known = [one for one in ranges if one]
    # With a branch of no partition all of it is a scan (recorded).
    if len(known) == len(ranges) and any(starmap(_overlap, combinations(known, 2))):
        raise RefusedRead(OVERLAPPING)


def _has_alternatives(term: ConditionNode) -> bool:
    return isinstance(term, JunctionNode) or (
        isinstance(term, ComparisonNode) and term.operator == "IN"
    )


@dataclass(frozen=True, slots=True)
class _Keys:
    """The key attributes, and what conditions say of them."""

    partition: KeyAttribute
    sort: KeyAttribute | None
    names: Mapping[str, str]

    def test(self, node: ConditionNode) -> KeyTest | None:
        """What a term says of the key that a read can use."""
        test = key_test(node, self.names)
        if test is None:
            return None
        if test.attribute == self.partition.name:
            return test if test.operator in ("=", "IN") else None
        return test if self.sort and test.attribute == self.sort.name else None

    def fix_partition(self, node: ConditionNode) -> bool:
        """Whether every way to satisfy a condition fixes the partition."""
        if isinstance(node, JunctionNode):
            return (all if node.operator == "OR" else any)(map(self.fix_partition, node.terms))
        test = self.test(node)
        return test is not None and test.attribute == self.partition.name

    def are_named(self, node: ConditionNode) -> bool:
        if isinstance(node, JunctionNode):
            return any(map(self.are_named, node.terms))
        return self.test(node) is not None

    def branches(self, node: ConditionNode) -> list[Branch]:
        if isinstance(node, JunctionNode) and node.operator == "AND":
            return self._product(node)
        if isinstance(node, JunctionNode) and self.are_named(node):
            return _counted([branch for term in node.terms for branch in self.branches(term)])
        test = self.test(node)
        if test is None:
            return [Branch(filters=(node,))]
        if test.operator != "IN":
            return [Branch((test,))]
        equal = [KeyTest(test.attribute, "=", (operand,)) for operand in test.operands]
        return _counted([Branch((one,)) for one in equal])

    def _product(self, junction: JunctionNode) -> list[Branch]:
        branches = [Branch()]
        for term in junction.terms:
            others = self.branches(term)
            branches = _counted([one.joined(other) for one in branches for other in others])
        return branches

    def check_types(self, branch: Branch, values: Values) -> None:
        attributes = {one.name: one for one in (self.partition, self.sort) if one}
        for test in branch.tests:
            for operand in test.operands:
                check_key_type(attributes[test.attribute], values[operand])

    def negate_sort(self, branch: Branch) -> bool:
        """Whether the sort key is negated; such a branch overlaps with no other (recorded)."""
        return self.sort is not None and any(map(self._negates_sort, branch.filters))

    def _negates_sort(self, node: ConditionNode) -> bool:
        if isinstance(node, JunctionNode):
            return any(map(self._negates_sort, node.terms))
        if isinstance(node, NotNode):
            return self._mentions_sort(node.term)
        return (
            isinstance(node, ComparisonNode) and node.operator == "<>" and self._mentions_sort(node)
        )

    def _mentions_sort(self, node: ConditionNode | Operand) -> bool:
        assert self.sort
        if isinstance(node, ValueNode):
            return False
        if isinstance(node, PathNode):
            return self.names[str(node.elements[0])] == self.sort.name
        if isinstance(node, NotNode):
            return self._mentions_sort(node.term)
        members = node.terms if isinstance(node, JunctionNode) else node.operands
        return any(map(self._mentions_sort, members))


def _counted(branches: list[Branch]) -> list[Branch]:
    if len(branches) > STATEMENT_READS_MAX:
        raise RefusedRead(TOO_MANY_READS)
    return branches


_Range = tuple[bytes, bytes]


def _range(branch: Branch, partition: KeyAttribute, table: Table, values: Values) -> _Range | None:
    """Between which bytes the items of a branch lie; None if they can be in no partition."""
    fixed = [values[test.operands[0]] for test in branch.tests if test.attribute == partition.name]
    if len(set(map(key_bytes, fixed))) > 1:
        return None
    start, stop = layout.table_range(table, KeyRange((fixed[0],)))
    for test in branch.tests:
        if test.attribute != partition.name:
            first, last = layout.table_range(table, _key_range(fixed[0], test, values))
            start, stop = max(start, first), min(stop, last)
    return start, stop


def _key_range(partition: AttributeValue, test: KeyTest, values: Values) -> KeyRange:
    operands = tuple(values[operand] for operand in test.operands)
    if test.operator == "=":
        return KeyRange((partition,), operands)
    return KeyRange((partition,), (), test.operator, operands)


def _overlap(one: _Range, other: _Range) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
