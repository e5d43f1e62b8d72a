"""Terms of a WHERE clause that compare one attribute with constants, and so can select keys."""

from __future__ import annotations

from collections.abc import Mapping

from partita.database.expressions.key_condition import MIRRORED, RANGE_OPERATORS, KeyTest
from partita.database.expressions.syntax.expression_parser import (
    CallNode,
    ComparisonNode,
    ConditionNode,
    PathNode,
    ValueNode,
)
from partita.database.item.attribute_values import AttributeValue
from partita.database.item.key_encoding import KeyAttribute
from partita.errors import KeyTypeError


def key_test(term: ConditionNode, names: Mapping[str, str]) -> KeyTest | None:
    """Returns the term as a comparison of one top-level attribute with constants, or None."""
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
    constants = tuple(operand.name for operand in others if isinstance(operand, ValueNode))
    if operator not in RANGE_OPERATORS and operator != "IN":
        return None
    if not isinstance(path, PathNode) or len(path.elements) > 1 or len(constants) < len(others):
        return None
    return KeyTest(names[str(path.elements[0])], operator, constants)


def check_key_type(attribute: KeyAttribute, value: AttributeValue) -> None:
    if attribute.type not in value:
        raise KeyTypeError(
            "Key attribute's data type should match its data type in table's schema: "
            f"Key {attribute.name}"
        )
