"""Translates a WHERE clause to a condition expression; `a IS MISSING` is attribute_not_exists."""

from __future__ import annotations

from collections.abc import Sequence

from partita.database.expressions.name_resolution import (
    CONDITION_FUNCTIONS,
    UPDATE_FUNCTIONS,
    check_operator_count,
    incorrect_type,
)
from partita.database.expressions.syntax.expression_parser import (
    CallNode,
    ComparisonNode,
    ConditionNode,
    JunctionNode,
    NotNode,
    Operand,
    PathNode,
)
from partita.database.operations.partiql.language.bindings import Bindings
from partita.database.operations.partiql.language.literals import shown
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    BagLiteral,
    FunctionCall,
    Identifier,
    ListLiteral,
    Literal,
    MissingKeyword,
    OperatorCall,
    PathExpression,
    SelectSyntax,
    SyntaxNode,
    TypeTest,
    UnsupportedSyntax,
    refusal,
)
from partita.errors import ValidationException

NOT_BOOLEAN = "WHERE clause must contain an expression that resolves to a boolean"
NOT_NEGATABLE = "The argument to NOT must be a Type or Expression"
NOT_JOINABLE = "The arguments to AND/OR must be Expressions"
NO_LIST = (
    "IN operator must have a left hand argument of type Variable Reference and right hand argument "
    "of type Seq with at least one member"
)
NOT_TESTABLE = "The left hand side argument to IS must be a Variable Reference, Literal, or Path"
NESTED = "A comparison can only be compared with TRUE or FALSE"

COMPARATORS = frozenset(("=", "<>", "<", "<=", ">", ">="))
TESTED_TYPES = {
    "null": "NULL",
    "boolean": "BOOL",
    "blob": "B",
    "string": "S",
    "numeric": "N",
    "struct": "M",
    "tuple": "M",
    "list": "L",
}
SUPPORTED_TYPES = "[MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]"


def unsupported(node: SyntaxNode) -> ValidationException:
    """Returns the error for a well-formed expression that DynamoDB does not support."""
    if isinstance(node, MissingKeyword):
        return refusal("MISSING must be compared using IS operator")
    return refusal(f"Unsupported token in expression: {shown(node)}", node.place)


def unrecognized(call: FunctionCall) -> ValidationException:
    return refusal(f"Unrecognized function: {call.function}", call.place)


class WhereTranslator:
    """Translates the tree of a WHERE clause to that of a condition, and counts its operators."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.operator_count = 0

    def where(self, node: SyntaxNode) -> tuple[ConditionNode, ...]:
        """Returns the terms of a WHERE clause, all of which must be true."""
        condition = self.condition(node, NOT_BOOLEAN)
        check_operator_count(self.operator_count)
        return _flattened(condition)

    def condition(self, node: SyntaxNode, otherwise: str, operator: str = "") -> ConditionNode:
        """Translate a test; `otherwise` is the error text if it is just an operand."""
        if isinstance(node, OperatorCall):
            return self.operation(node)
        if isinstance(node, TypeTest):
            return self.type_test(node)
        if isinstance(node, FunctionCall):
            call = self.call(node)
            if call.function != "size":
                return call
            raise incorrect_type(operator.upper(), "N") if operator else refusal(otherwise)
        if isinstance(node, (UnsupportedSyntax, SelectSyntax)):
            raise unsupported(node)
        # An error inside of a literal is reported first, so the literal is evaluated.
        self.bindings.value(node)
        raise refusal(otherwise)

    def operation(self, node: OperatorCall) -> ConditionNode:
        operator = node.operator
        if operator in ("and", "or"):
            self.operator_count += len(node.operands) - 1
            terms = [self.condition(term, NOT_JOINABLE, operator) for term in node.operands]
            return JunctionNode(operator.upper(), tuple(terms))
        if operator == "not":
            self.operator_count += 1
            return NotNode(self.condition(node.operands[0], NOT_NEGATABLE, operator))
        if operator in COMPARATORS:
            return self.comparison(operator, node.operands)
        if operator == "between":
            self.operator_count += 1
            return ComparisonNode("BETWEEN", self.operands("BETWEEN", node.operands))
        if operator == "in":
            return self.membership(*node.operands)
        raise refusal(f"Unsupported operator in Condition Expression. Operator: {operator}")

    def comparison(self, operator: str, operands: Sequence[SyntaxNode]) -> ConditionNode:
        self.operator_count += 1
        for test, value in (operands, reversed(operands)):
            if _is_test(test):
                return self.compared_test(operator, test, value)
        return ComparisonNode(operator, self.operands(operator, operands))

    def compared_test(self, operator: str, test: SyntaxNode, value: SyntaxNode) -> ConditionNode:
        """Translate a test that is compared with a boolean, as in `contains(a, b) = TRUE`.

        The result is the test itself or its negation.
        """
        condition = self.condition(test, NOT_BOOLEAN)
        if operator not in ("=", "<>"):
            raise incorrect_type(operator, "BOOL")
        if not isinstance(value, Literal) or value.kind != "BOOL":
            self.operand(operator, value)
            raise refusal(NESTED)
        return condition if value.content is (operator == "=") else NotNode(condition)

    def membership(self, operand: SyntaxNode, candidates: SyntaxNode) -> ConditionNode:
        if not isinstance(candidates, (ListLiteral, BagLiteral)) or not candidates.members:
            raise refusal(NO_LIST)
        self.operator_count += 1
        return ComparisonNode("IN", self.operands("IN", (operand, *candidates.members)))

    def type_test(self, node: TypeTest) -> ConditionNode:
        self.operator_count += 1
        if not isinstance(node.operand, (Identifier, PathExpression, Literal)):
            raise refusal(NOT_TESTABLE)
        operand = self.operand("IS", node.operand)
        if node.type_name == "missing":
            return CallNode("attribute_not_exists", (operand,))
        if node.type_name == "null" and isinstance(operand, PathNode):
            # IS NULL on a path is a comparison with NULL, so on a key it is a type mismatch
            # (observed on DynamoDB Local).
            return ComparisonNode("=", (operand, self.bindings.constant({"NULL": True})))
        kind = TESTED_TYPES.get(node.type_name)
        if kind is None:
            raise refusal(
                f"Unsupported data type for IS operator: {node.type_name.upper()}. Supported data "
                f"types are {SUPPORTED_TYPES}",
                node.place,
            )
        return CallNode("attribute_type", (operand, self.bindings.constant({"S": kind})))

    def call(self, node: FunctionCall) -> CallNode:
        self.operator_count += 1
        operands = self.operands(node.function, node.operands)
        if node.function in UPDATE_FUNCTIONS:
            raise refusal(
                f"The function is not allowed in a condition expression; function: {node.function}"
            )
        if node.function not in CONDITION_FUNCTIONS:
            raise unrecognized(node)
        return CallNode(node.function, operands)

    def operands(self, operator: str, nodes: Sequence[SyntaxNode]) -> tuple[Operand, ...]:
        return tuple(self.operand(operator, node) for node in nodes)

    def operand(self, operator: str, node: SyntaxNode) -> Operand:
        if isinstance(node, (Identifier, PathExpression)):
            return self.bindings.path(node)
        value = self.bindings.value(node)
        if value is not None:
            return value
        if isinstance(node, FunctionCall):
            call = self.call(node)
            if call.function == "size":
                return call
            raise incorrect_type(operator, "BOOL")
        if isinstance(node, OperatorCall):
            self.operation(node)
            raise incorrect_type(operator, "BOOL")
        if isinstance(node, TypeTest):
            raise incorrect_type(operator, "BOOL")
        raise unsupported(node)


def _is_test(node: SyntaxNode) -> bool:
    if isinstance(node, FunctionCall):
        return node.function in CONDITION_FUNCTIONS and node.function != "size"
    tests = ("and", "or", "not", "between", "in", *COMPARATORS)
    return isinstance(node, TypeTest) or (isinstance(node, OperatorCall) and node.operator in tests)


def _flattened(condition: ConditionNode) -> tuple[ConditionNode, ...]:
    if isinstance(condition, JunctionNode) and condition.operator == "AND":
        return tuple(flat for term in condition.terms for flat in _flattened(term))
    return (condition,)
