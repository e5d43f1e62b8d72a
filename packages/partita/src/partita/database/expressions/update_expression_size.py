"""The size of an update expression, which must not exceed the 400 KB of an item either.

In most regions the service refuses an UpdateItem whose expression is too large, however small the
resulting item is. An expression counts the values that it writes, and a fixed amount for every
clause, operand and path element. The amounts were measured to the byte (recorded by the public
conformance suite in October 2026).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from partita.database.expressions.document_paths import Path
from partita.database.expressions.name_resolution import Values
from partita.database.expressions.syntax.expression_parser import (
    Assigned,
    PathNode,
    SumNode,
    UpdateNode,
    ValueNode,
)
from partita.database.item.item_sizes import string_size, value_size

STATEMENT_BYTES: Final = 3
SECTION_BYTES: Final = {"SET": 19, "ADD": 19, "REMOVE": 1, "DELETE": 1}
OPERATOR_BYTES: Final = {"+": 34, "-": 37, "list_append": 37, "if_not_exists": 39}
OPERAND_BYTES: Final = 1
OPERAND_ELEMENT_BYTES: Final = 14
TARGET_ELEMENT_BYTES: Final = 4

Resolve = Callable[[PathNode], Path]


class StatementSize(NamedTuple):
    """The bytes that the text alone counts, and the values to add, each as often as it is used."""

    fixed_bytes: int = 0
    values: tuple[str, ...] = ()

    def bytes(self, values: Values) -> int:
        return self.fixed_bytes + sum(value_size(values[name]) for name in self.values)


UNCOUNTED: Final = StatementSize()


def statement_size(update: UpdateNode, resolve: Resolve) -> StatementSize:
    total = STATEMENT_BYTES
    used: list[str] = []
    for action in update.actions:
        first, *rest = resolve(action.target)
        total += SECTION_BYTES[action.section] + _element(first)
        total += sum(TARGET_ELEMENT_BYTES + _element(element) for element in rest)
        if action.value is not None and action.section != "DELETE":
            size = _assigned(action.value, resolve)
            total += size.fixed_bytes
            used += size.values
    return StatementSize(total, tuple(used))


def _assigned(node: Assigned, resolve: Resolve) -> StatementSize:
    if isinstance(node, ValueNode):
        return StatementSize(0, (node.name,))
    if isinstance(node, PathNode):
        elements = sum(OPERAND_ELEMENT_BYTES + _element(element) for element in resolve(node))
        return StatementSize(OPERAND_BYTES + elements)
    operator = node.operator if isinstance(node, SumNode) else node.function
    sizes = [_assigned(operand, resolve) for operand in node.operands]
    fixed_bytes = OPERATOR_BYTES[operator] + sum(size.fixed_bytes for size in sizes)
    return StatementSize(fixed_bytes, tuple(name for size in sizes for name in size.values))


def _element(element: str | int) -> int:
    return string_size(str(element))
