"""Translates SET and REMOVE to an update expression; set_add and set_delete are ADD and DELETE."""

from __future__ import annotations

from collections.abc import Sequence

from partita.database.expressions.document_paths import disjoint
from partita.database.expressions.name_resolution import (
    CONDITION_FUNCTIONS,
    UPDATE_FUNCTIONS,
    Values,
    check_operator_count,
)
from partita.database.expressions.syntax.expression_parser import (
    ActionNode,
    Assigned,
    CallNode,
    PathNode,
    SumNode,
    UpdateNode,
    ValueNode,
)
from partita.database.item.attribute_values import SET_TYPES
from partita.database.operations.partiql.language.bindings import Bindings, elements
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    Assignment,
    FunctionCall,
    Identifier,
    OperatorCall,
    PathExpression,
    Removal,
    SyntaxNode,
    TokenPlace,
    TypeTest,
    refusal,
)
from partita.database.operations.partiql.language.where_conditions import unrecognized, unsupported
from partita.errors import ValidationException

SET_FUNCTIONS = {"set_add": "ADD", "set_delete": "DELETE"}


class UpdateTranslator:
    """Translates the actions of an UPDATE statement to those of an update expression."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.operator_count = 0
        self.sets: list[tuple[str, str, TokenPlace | None]] = []
        """The set functions, the placeholders of their operands, and where they are in the text."""

    def update(self, actions: Sequence[SyntaxNode]) -> UpdateNode:
        nodes = tuple(self.action(action) for action in actions)
        check_operator_count(self.operator_count)
        disjoint(
            elements(action.target)
            for action in actions
            if isinstance(action, Assignment | Removal)
        )
        sections = tuple(dict.fromkeys(node.section for node in nodes))
        return UpdateNode(sections, nodes, self.operator_count)

    def check_sets(self, values: Values) -> None:
        for function, placeholder, place in self.sets:
            if SET_TYPES.isdisjoint(values[placeholder]):
                raise _not_a_set(function, place)

    def action(self, node: SyntaxNode) -> ActionNode:
        if isinstance(node, Removal):
            return ActionNode("REMOVE", self.bindings.path(node.target))
        assert isinstance(node, Assignment)
        target = self.bindings.path(node.target)
        if isinstance(node.value, FunctionCall) and node.value.function in SET_FUNCTIONS:
            return self.set_action(node.target, target, node.value)
        return ActionNode("SET", target, self.assigned(node.value))

    def set_action(self, written: SyntaxNode, target: PathNode, call: FunctionCall) -> ActionNode:
        name = call.function.upper()
        if len(call.operands) != 2:
            raise refusal(f"{name} must have exactly two arguments", call.place)
        first, second = call.operands
        if not isinstance(first, (Identifier, PathExpression)) or elements(first) != elements(
            written
        ):
            raise refusal(
                f"The first argument to {name} must equal the assignment value", call.place
            )
        self.operator_count += 1
        value = self.bindings.value(second)
        if value is None:
            raise _not_a_set(name, first.place)
        self.sets.append((name, value.name, first.place))
        return ActionNode(SET_FUNCTIONS[call.function], target, value)

    def assigned(self, node: SyntaxNode) -> Assigned:
        if isinstance(node, (Identifier, PathExpression)):
            return self.bindings.path(node)
        value: ValueNode | None = self.bindings.value(node)
        if value is not None:
            return value
        if isinstance(node, OperatorCall):
            return self.sum(node)
        if isinstance(node, FunctionCall):
            return self.call(node)
        if isinstance(node, TypeTest):
            raise refusal("IS operator is not supported in update expressions")
        raise unsupported(node)

    def sum(self, node: OperatorCall) -> Assigned:
        if node.operator not in ("+", "-"):
            raise refusal(f"Unsupported operator in Update Expression. Operator: {node.operator}")
        self.operator_count += 1
        if len(node.operands) != 2:
            raise refusal(
                "Incorrect number of operands for operator or function; operator or function: "
                f"{node.operator}, number of operands: {len(node.operands)}"
            )
        left, right = node.operands
        return SumNode(node.operator, (self.assigned(left), self.assigned(right)))

    def call(self, node: FunctionCall) -> Assigned:
        self.operator_count += 1
        if node.function in CONDITION_FUNCTIONS:
            raise refusal(
                f"The function is not allowed in an update expression; function: {node.function}"
            )
        if node.function not in UPDATE_FUNCTIONS:
            raise unrecognized(node)
        operands = tuple(self.assigned(operand) for operand in node.operands)
        if any(isinstance(operand, SumNode) for operand in operands):
            raise refusal(f"A sum cannot be an operand of {node.function}")
        return CallNode(
            node.function,
            tuple(operand for operand in operands if not isinstance(operand, SumNode)),
        )


def _not_a_set(function: str, place: TokenPlace | None) -> ValidationException:
    return refusal(f"The second argument to {function} must be a value with type SET", place)
