"""Conditions and filters, compiled to one closure per operator; no tree is left to walk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import le
from typing import Final

from partita.database.expressions import value_comparison
from partita.database.expressions.document_paths import Path, reader
from partita.database.expressions.name_resolution import (
    CONDITION_FUNCTIONS,
    Check,
    CompileScope,
    Evaluate,
    NameItems,
    Names,
    Values,
    cached,
    check_count,
    check_document_path,
    check_function,
    check_operator_count,
    check_path,
    check_size,
    incorrect_type,
    invalid,
    misused,
    refuser,
    run_checks,
)
from partita.database.expressions.syntax.expression_parser import (
    CallNode,
    ComparisonNode,
    ConditionNode,
    InvalidExpression,
    JunctionNode,
    NotNode,
    Operand,
    PathNode,
    ValueNode,
    parse_condition,
)
from partita.database.item.attribute_values import TYPES, AttributeValue, Item, type_of
from partita.foundation.service_limits import IN_OPERANDS_MAX

Predicate = Callable[[Item, Values], bool]

# The types are in the order in which DynamoDB Local lists them.
TYPE_NAMES: Final = "{N,BS,L,B,NULL,M,S,SS,NS,BOOL}"
ANY_TYPE: Final = (
    "{NS,N,INTSET,DOUBLESET,SS,S,BOOL,HD,INT,DECIMALSET,FS,DECIMAL,L,BS,DOUBLE,M,DICT,B,NULL,"
    "HDS,FLOAT}"
)


@dataclass(frozen=True, slots=True)
class CompiledCondition:
    """A condition over one item, compiled from an expression or from legacy parameters."""

    parameter: str
    names_used: frozenset[str]
    values_used: frozenset[str]
    paths: frozenset[Path]
    """The document paths that the condition reads."""
    checks: tuple[Check, ...]
    predicate: Predicate

    @property
    def attributes(self) -> frozenset[str]:
        """The top-level attributes that the condition reads."""
        return frozenset(str(path[0]) for path in self.paths)

    def check(self, values: Values) -> None:
        """Refuse values that are missing, or of a type that an operator does not accept."""
        run_checks(self.parameter, self.checks, values)

    def holds(self, item: Item | None, values: Values) -> bool:
        return self.predicate(item or {}, values)


def compile_condition(
    text: str, names: Names, parameter: str = "ConditionExpression"
) -> CompiledCondition:
    return _compiled(text, tuple(names.items()), parameter)


@cached
def _compiled(text: str, names: NameItems, parameter: str) -> CompiledCondition:
    try:
        node = checked_tree(text)
    except InvalidExpression as refusal:
        raise invalid(parameter, refusal) from None
    return condition_of(node, dict(names), parameter)


def condition_of(node: ConditionNode, names: Names, parameter: str) -> CompiledCondition:
    """Compile a tree whose functions and names have been checked."""
    scope = ConditionScope(names)
    predicate = scope.compile(node)
    return CompiledCondition(
        parameter,
        frozenset(scope.names_used),
        frozenset(scope.values_used),
        frozenset(scope.paths),
        tuple(scope.checks),
        predicate,
    )


def checked_tree(text: str) -> ConditionNode:
    """Parse a condition and check all that does not depend on names, values or the table."""
    check_size(text, shows_size=True)
    node, operator_count = parse_condition(text)
    check_operator_count(operator_count)
    _check_condition(node)
    return node


def _check_condition(node: ConditionNode) -> None:
    if isinstance(node, JunctionNode):
        for term in node.terms:
            _check_condition(term)
    elif isinstance(node, NotNode):
        _check_condition(node.term)
    elif isinstance(node, ComparisonNode):
        for operand in node.operands:
            _check_operand(operand)
    else:
        check_function(node.function, CONDITION_FUNCTIONS, "a condition expression")
        if node.function == "size":
            raise misused(node.function)
        for operand in node.operands:
            _check_operand(operand)


def _check_operand(node: Operand) -> None:
    if isinstance(node, PathNode):
        check_path(node)
    elif isinstance(node, CallNode):
        check_function(node.function, CONDITION_FUNCTIONS, "a condition expression")
        if node.function != "size":
            raise misused(node.function)
        for operand in node.operands:
            _check_operand(operand)


class ConditionScope(CompileScope):
    """Compiles a checked tree to closures, and collects the checks that need the values."""

    def __init__(self, names: Names) -> None:
        super().__init__(names)
        self.paths: set[Path] = set()

    def compile(self, node: ConditionNode) -> Predicate:
        """Returns the predicate of a tree.

        An error that could be raised right now becomes a check: those that depend on values and
        come before it in the text must be raised first.
        """
        try:
            return self.condition(node)
        except InvalidExpression as refusal:
            refuse = refuser(refusal)
            self.checks.append(refuse)
            return refuse

    def condition(self, node: ConditionNode) -> Predicate:
        if isinstance(node, ComparisonNode):
            return self.test(node)
        if isinstance(node, CallNode):
            return _FUNCTIONS[node.function](self, node)
        if isinstance(node, NotNode):
            return _negated(self.condition(node.term))
        terms = [self.condition(term) for term in node.terms]
        return _all(terms) if node.operator == "AND" else _any(terms)

    def test(self, node: ComparisonNode) -> Predicate:
        operands = [self.operand(operand) for operand in node.operands]
        if node.operator == "IN" and len(node.operands) - 1 > IN_OPERANDS_MAX:
            raise InvalidExpression(
                "The IN operator is provided with too many operands; "
                f"number of operands: {len(node.operands) - 1}"
            )
        if node.operator == "BETWEEN":
            # Unlike for other operators, types are checked before operands are compared with each
            # other (observed on DynamoDB Local).
            self.check_types(node.operator, node.operands, value_comparison.ORDERED_TYPES)
        self.check_distinct(node.operator, node.operands)
        if node.operator in value_comparison.ORDERS:
            self.check_types(node.operator, node.operands, value_comparison.ORDERED_TYPES)
        if node.operator == "BETWEEN":
            self.check_bounds(node.operands[1], node.operands[2])
            return _between(*operands)
        if node.operator == "IN":
            candidates = [self.operand(operand) for operand in dict.fromkeys(node.operands[1:])]
            return _in(operands[0], candidates)
        if node.operator == "=":
            return self.equal(node, operands)
        if node.operator == "<>":
            return _unequal(*operands)
        return _ordered(operands[0], operands[1], value_comparison.ORDERS[node.operator])

    def equal(self, node: ComparisonNode, operands: list[Evaluate]) -> Predicate:
        left, right = node.operands
        if isinstance(left, PathNode) and isinstance(right, ValueNode):
            read, name = reader(self.resolve(left)), right.name
            return lambda item, values: read(item) == values[name]
        return _equal(*operands)

    def operand(self, node: Operand) -> Evaluate:
        if isinstance(node, PathNode):
            self.paths.add(self.resolve(node))
            return self.path(node)
        if isinstance(node, ValueNode):
            return self.value(node)
        return self.size(node)

    def size(self, node: CallNode) -> Evaluate:
        operands = [self.operand(operand) for operand in node.operands]
        check_count(node, 1)
        self.check_types("size", node.operands, value_comparison.SIZED_TYPES)
        return _size(operands[0])

    def check_bounds(self, lower: Operand, upper: Operand) -> None:
        if isinstance(lower, ValueNode) and isinstance(upper, ValueNode):
            lower_name, upper_name = lower.name, upper.name
            self.checks.append(lambda values: _check_bounds(values[lower_name], values[upper_name]))

    def exists(self, node: CallNode) -> Predicate:
        self.operands(node, 1)
        check_document_path(node)
        path = node.operands[0]
        assert isinstance(path, PathNode)
        read = reader(self.resolve(path))
        if node.function == "attribute_exists":
            return lambda item, values: read(item) is not None
        return lambda item, values: read(item) is None

    def attribute_type(self, node: CallNode) -> Predicate:
        value, _ = self.operands(node, 2)
        kind = node.operands[1]
        if isinstance(kind, PathNode):
            raise incorrect_type(node.function, ANY_TYPE)
        self.check_types(node.function, [kind], frozenset("S"))
        assert isinstance(kind, ValueNode)
        name = kind.name
        self.checks.append(lambda values: _check_type_name(values[name]["S"]))
        return _has_type(value, name)

    def begins_with(self, node: CallNode) -> Predicate:
        value, prefix = self.operands(node, 2)
        self.check_types(node.function, node.operands, value_comparison.PREFIX_TYPES)
        return _related(value, prefix, value_comparison.begins_with)

    def contains(self, node: CallNode) -> Predicate:
        container, member = self.operands(node, 2)
        return _related(container, member, value_comparison.contains)

    def operands(self, node: CallNode, count: int) -> list[Evaluate]:
        operands = [self.operand(operand) for operand in node.operands]
        check_count(node, count)
        self.check_distinct(node.function, node.operands)
        return operands


_FUNCTIONS: Final[dict[str, Callable[[ConditionScope, CallNode], Predicate]]] = {
    "attribute_exists": ConditionScope.exists,
    "attribute_not_exists": ConditionScope.exists,
    "attribute_type": ConditionScope.attribute_type,
    "begins_with": ConditionScope.begins_with,
    "contains": ConditionScope.contains,
}


def _check_bounds(lower: AttributeValue, upper: AttributeValue) -> None:
    if type_of(lower) != type_of(upper):
        problem = "requires same data type for lower and upper bounds"
    elif not value_comparison.is_ordered(lower, upper, le):
        problem = "requires upper bound to be greater than or equal to lower bound"
    else:
        return
    raise InvalidExpression(
        f"The BETWEEN operator {problem}; lower bound operand: {_shown(lower)}, "
        f"upper bound operand: {_shown(upper)}"
    )


def _shown(value: AttributeValue) -> str:
    ((kind, content),) = value.items()
    return f"AttributeValue: {{{kind}:{content}}}"


def _check_type_name(name: str) -> None:
    if name not in TYPES:
        raise InvalidExpression(
            f"Invalid attribute type name found; type: {name}, valid types: {TYPE_NAMES}"
        )


def _negated(term: Predicate) -> Predicate:
    return lambda item, values: not term(item, values)


def _all(terms: Sequence[Predicate]) -> Predicate:
    if len(terms) == 2:
        first, second = terms
        return lambda item, values: first(item, values) and second(item, values)

    def holds(item: Item, values: Values) -> bool:
        for term in terms:  # noqa: SIM110 - all() over a generator takes twice as long
            if not term(item, values):
                return False
        return True

    return holds


def _any(terms: Sequence[Predicate]) -> Predicate:
    if len(terms) == 2:
        first, second = terms
        return lambda item, values: first(item, values) or second(item, values)

    def holds(item: Item, values: Values) -> bool:
        for term in terms:  # noqa: SIM110 - so does any()
            if term(item, values):
                return True
        return False

    return holds


def _equal(left: Evaluate, right: Evaluate) -> Predicate:
    def holds(item: Item, values: Values) -> bool:
        value = left(item, values)
        return value is not None and value == right(item, values)

    return holds


def _unequal(left: Evaluate, right: Evaluate) -> Predicate:
    """Returns the predicate of `<>`, which is true when an attribute is missing (recorded), even
    if both are."""
    return _negated(_equal(left, right))


def _ordered(left: Evaluate, right: Evaluate, order: value_comparison.Order) -> Predicate:
    is_ordered = value_comparison.is_ordered

    def holds(item: Item, values: Values) -> bool:
        first, second = left(item, values), right(item, values)
        return first is not None and second is not None and is_ordered(first, second, order)

    return holds


def _between(operand: Evaluate, lower: Evaluate, upper: Evaluate) -> Predicate:
    def holds(item: Item, values: Values) -> bool:
        value, low, high = operand(item, values), lower(item, values), upper(item, values)
        if value is None or low is None or high is None:
            return False
        return value_comparison.is_between(value, low, high)

    return holds


def _in(operand: Evaluate, candidates: Sequence[Evaluate]) -> Predicate:
    def holds(item: Item, values: Values) -> bool:
        value = operand(item, values)
        if value is None:
            return False
        return any(value == candidate(item, values) for candidate in candidates)

    return holds


def _related(
    left: Evaluate,
    right: Evaluate,
    relation: Callable[[AttributeValue, AttributeValue], bool],
) -> Predicate:
    def holds(item: Item, values: Values) -> bool:
        first, second = left(item, values), right(item, values)
        return first is not None and second is not None and relation(first, second)

    return holds


def _has_type(operand: Evaluate, name: str) -> Predicate:
    def holds(item: Item, values: Values) -> bool:
        value = operand(item, values)
        return value is not None and values[name]["S"] in value

    return holds


def _size(operand: Evaluate) -> Evaluate:
    def size(item: Item, values: Values) -> AttributeValue | None:
        value = operand(item, values)
        return None if value is None else value_comparison.size(value)

    return size
