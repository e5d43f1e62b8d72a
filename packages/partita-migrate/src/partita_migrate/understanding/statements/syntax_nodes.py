"""Small questions about nodes of a parsed statement that do not depend on the tables."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from partita_migrate.understanding.statements.resolved_statements import Constant, Operator

COMPARED: dict[type[exp.Expression], tuple[Operator, Operator]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""Operators by node, each with the operator for exchanged sides: a < b is b > a."""
SUFFIXES: dict[Operator, str] = {">": ".from", ">=": ".from", "<": ".to", "<=": ".to"}


def conjuncts(node: exp.Expression | None) -> list[exp.Expression]:
    if node is None:
        return []
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    if isinstance(node, exp.Boolean) and node.this:
        return []
    if isinstance(node, exp.EQ) and node.this == node.expression and literal_of(node.this):
        return []  # WHERE 1 = 1
    return [node]


def literal_of(node: exp.Expression) -> Constant | None:
    if isinstance(node, exp.Paren):
        return literal_of(node.this)
    if isinstance(node, exp.Boolean):
        return Constant(bool(node.this))
    if isinstance(node, exp.Null):
        return Constant(None)
    if isinstance(node, exp.Neg):
        inner = literal_of(node.this)
        return Constant(-inner.value) if inner is not None and not _is_text(inner.value) else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return None if node.this == "?" else Constant(node.this)
    try:
        number = Decimal(node.this)
    except InvalidOperation:
        return None
    return Constant(int(number) if number == number.to_integral_value() else number)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or value is None


def is_compound(node: exp.Expression) -> bool:
    """True for a condition that combines tests (AND, OR), or that compares several
    columns at once."""
    node = inside(node)
    if isinstance(node, exp.Not):
        return _is_either(inside(node.this)) or is_compound(node.this)
    return isinstance(node, exp.Or | exp.And) or is_of_rows(node)


def _is_either(node: exp.Expression) -> bool:
    """True when the negation is an alternative: NOT BETWEEN is before or after the range, NOT (x IS
    TRUE) is false or NULL."""
    is_of_truth = isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean)
    return isinstance(node, exp.Between) or is_of_truth


def is_of_rows(node: exp.Expression) -> bool:
    if type(node) not in COMPARED:
        return False
    return isinstance(node.this, exp.Tuple) and isinstance(node.expression, exp.Tuple)


def inside(node: exp.Expression) -> exp.Expression:
    return inside(node.this) if isinstance(node, exp.Paren) else node


def unaliased(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Alias) else node


def shown(node: exp.Expr) -> str:
    text = node.sql()
    return text if len(text) <= 80 else f"{text[:80]}…"
