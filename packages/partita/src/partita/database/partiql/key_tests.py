"""What one term of a WHERE clause says of one attribute: the tests of which keys are made."""

from __future__ import annotations

from collections.abc import Mapping

from partita.database.expressions.key_condition import MIRRORED, RANGE_OPERATORS, KeyTest
from partita.database.expressions.parse import (
    CallNode,
    ComparisonNode,
    ConditionNode,
    PathNode,
    ValueNode,
)
from partita.database.item.keys import KeyAttribute
from partita.database.item.values import AttributeValue
from partita.errors import KeyTypeError


def key_test(term: ConditionNode, names: Mapping[str, str]) -> KeyTest | None:
    """The term as a comparison of one attribute with constants, if it is one."""
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


def check_key_type(attribute: KeyAttribute, value: AttributeValue) -> None:
    if attribute.type not in value:
        raise KeyTypeError(
            "Key attribute's data type should match its data type in table's schema: "
            f"Key {attribute.name}"
        )
