"""Reads conditions on columns of one row: tests, and the alternatives of an OR."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, product

from sqlglot import exp

from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.literal_values import NUMBERS
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    NotExact,
    Operator,
)
from partita_migrate.understanding.statements.statement_scope import StatementScope
from partita_migrate.understanding.statements.syntax_nodes import (
    COMPARED,
    SUFFIXES,
    inside,
    is_of_rows,
    literal_of,
    shown,
)

_OPPOSITES: dict[Operator, Operator] = {
    "=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip
_FORMS: dict[type[exp.Expression], str] = {exp.Lower: "lower", exp.Upper: "upper"}
ALTERNATIVES_MAX = 8
"""The maximum of requests for one statement."""


def test_of(scope: StatementScope, node: exp.Expression) -> ColumnTest:
    if isinstance(node, exp.Paren):
        return test_of(scope, node.this)
    if isinstance(node, exp.Not):
        return _negated(scope, node.this)
    if isinstance(node, exp.Column):
        return _truth(scope, scope.column(node), is_true=True)
    if type(node) in COMPARED:
        return _comparison(scope, node)
    if isinstance(node, exp.Between):
        ref = tested(scope, node.this)
        low = scope.value(node.args["low"], ref, scope.parameter_name(ref, ".from"))
        high = scope.value(node.args["high"], ref, scope.parameter_name(ref, ".to"))
        return ColumnTest(ref, "between", (low, high))
    if isinstance(node, exp.In):
        return _among(scope, node, "in")
    if isinstance(node, exp.Is):
        return _is(scope, node)
    if isinstance(node, exp.Like):
        return _like(scope, node)
    raise NotExact(f"no key and no filter tests {shown(node)}")


def _truth(scope: StatementScope, ref: ColumnRef, *, is_true: bool) -> ColumnTest:
    """Tests a column that stands for a condition. A number is true unless it is 0."""
    kind = scope.kind(ref)
    if kind in NUMBERS:
        return ColumnTest(ref, "<>" if is_true else "=", (Constant(0),))
    if kind != "boolean":
        raise NotExact(f"it uses {ref} as a condition, but a {kind} is neither true nor false")
    return ColumnTest(ref, "=", (Constant(is_true),))


def tested(scope: StatementScope, node: exp.Expression) -> ColumnRef:
    if isinstance(node, exp.Column):
        return scope.column(node)
    if isinstance(node, exp.Paren):
        return tested(scope, node.this)
    raise NotExact(f"it tests {shown(node)}, which no attribute holds")


def _formed(scope: StatementScope, node: exp.Expression) -> tuple[ColumnRef, str]:
    """Returns a column, or the column inside lower() or upper(), with the form in which a key holds
    it."""
    node = inside(node)
    form = _FORMS.get(type(node))
    if form is None:
        return tested(scope, node), ""
    ref = tested(scope, node.this)
    if scope.kind(ref) != "string":
        raise NotExact(f"it tests {shown(node)}, and {ref} is not a text")
    if scope.schema.dialect == "mysql" and scope.is_insensitive(ref):
        return ref, ""  # The column's collation ignores case anyway.
    if scope.schema.dialect == "sqlite":
        return ref, f"{form}_ascii"
    if not scope.is_padded(ref):
        return ref, form
    if scope.schema.dialect == "postgres":
        raise NotExact(
            f"it tests {shown(node)}, and {ref} is padded with blanks, unlike its result"
        )
    return ref, f"{form}_pad"


def _comparison(
    scope: StatementScope, node: exp.Expression, *, is_negated: bool = False
) -> ColumnTest:
    operator, exchanged = COMPARED[type(node)]
    left, right = node.this, node.expression
    if left.find(exp.Column) is None:
        operator, left, right = exchanged, right, left
    if is_negated:
        # For NULL, neither a comparison nor its opposite is true.
        operator = _OPPOSITES[operator]
    ref, form = _formed(scope, left)
    if form and operator != "=":
        raise NotExact(f"it compares {shown(left)} by more than equality")
    suffix = SUFFIXES.get(operator, "")
    return ColumnTest(
        ref, operator, (scope.value(right, ref, scope.parameter_name(ref, suffix)),), form
    )


def _negated(scope: StatementScope, node: exp.Expression) -> ColumnTest:
    if isinstance(node, exp.Paren):
        return _negated(scope, node.this)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        is_twice = bool(node.args.get("negate"))
        return ColumnTest(tested(scope, node.this), "is null" if is_twice else "is not null")
    if isinstance(node, exp.In):
        return _among(scope, node, "not in")
    if isinstance(node, exp.Column):
        return _truth(scope, scope.column(node), is_true=False)
    if type(node) in COMPARED and not is_of_rows(node):
        return _comparison(scope, node, is_negated=True)
    raise NotExact(f"no key and no filter tests NOT {shown(node)}")


def _among(scope: StatementScope, node: exp.In, operator: Operator) -> ColumnTest:
    ref, form = _formed(scope, node.this)
    members = node.expressions
    if not members or node.args.get("query") is not None:
        raise NotExact("it has a SELECT inside an alternative (OR)")
    if form and operator != "in":
        raise NotExact(f"no key and no filter tests {shown(node)}")
    values = tuple(scope.value(member, ref, scope.parameter_name(ref)) for member in members)
    return ColumnTest(ref, operator, values, form)


def _is(scope: StatementScope, node: exp.Is) -> ColumnTest:
    ref = tested(scope, node.this)
    if isinstance(node.expression, exp.Null):
        return ColumnTest(ref, "is not null" if node.args.get("negate") else "is null")
    if isinstance(node.expression, exp.Boolean) and not node.args.get("negate"):
        return _truth(scope, ref, is_true=bool(node.expression.this))
    raise NotExact(f"no key and no filter tests {shown(node)}")


def _like(scope: StatementScope, node: exp.Like) -> ColumnTest:
    ref = tested(scope, node.this)
    literal = literal_of(node.expression)
    text = literal.value if literal is not None else None
    if not isinstance(text, str):
        raise NotExact(f"a parameter of LIKE says how {ref} is searched")
    if re.search(r"[_\\]", text):
        raise NotExact(f"{ref} is searched by a pattern")
    middle = text.strip("%")
    if "%" in middle or not middle:
        raise NotExact(f"{ref} is searched by a pattern")
    if text.startswith("%"):
        raise NotExact(f"it searches inside {ref}: a search service does that")
    if scope.schema.dialect == "sqlite" and not scope.is_insensitive(ref):
        raise NotExact(f"LIKE ignores case there, and {ref} does not")
    if text.endswith("%"):
        return ColumnTest(ref, "begins_with", (Constant(middle),))
    if scope.is_padded(ref):
        raise NotExact(f"trailing blanks of {ref} count for LIKE, but not for its keys: write =")
    return ColumnTest(ref, "=", (Constant(middle),))


def either(scope: StatementScope, node: exp.Expression) -> list[ColumnTest]:
    """Returns the tests of an OR over values of one column. Other alternatives are added to the
    scope."""
    groups = _groups(scope, node)
    if len(groups) == 1:
        return list(groups[0])
    tests = [test for group in groups for test in group]
    is_single = all(len(group) == 1 for group in groups)
    kinds = {(test.ref, test.operator, test.form) for test in tests}
    if is_single and len(kinds) == 1 and tests[0].operator == "=":
        values = tuple(value for test in tests for value in test.values)
        return [replace(tests[0], operator="in", values=values)]
    scope.alternatives.append(groups)
    return []


def _groups(
    scope: StatementScope, node: exp.Expression, *, is_negated: bool = False
) -> list[tuple[ColumnTest, ...]]:
    """Returns the alternatives of a condition, each as tests that must all hold."""
    node = inside(node)
    if isinstance(node, exp.Not):
        return _groups(scope, node.this, is_negated=not is_negated)
    if isinstance(node, exp.Or | exp.And):
        sides = [
            _groups(scope, side, is_negated=is_negated) for side in (node.this, node.expression)
        ]
        if isinstance(node, exp.Or) != is_negated:
            return [group for side in sides for group in side]
        return [(*left, *right) for left, right in product(*sides)]
    if is_of_rows(node) and not is_negated:
        return _row_groups(scope, node)
    if isinstance(node, exp.Between) and is_negated:
        return _outside(scope, node)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean) and is_negated:
        ref = tested(scope, node.this)
        opposite = _truth(scope, ref, is_true=not node.expression.this)
        return [(opposite,), (ColumnTest(ref, "is null"),)]
    return [(_negated(scope, node) if is_negated else test_of(scope, node),)]


def _outside(scope: StatementScope, node: exp.Between) -> list[tuple[ColumnTest, ...]]:
    """Returns the alternatives of NOT BETWEEN: before the range, or after it."""
    ref = tested(scope, node.this)
    # Below the range, its low end is the greatest value: hence .to for low and .from for high.
    low = scope.value(node.args["low"], ref, scope.parameter_name(ref, ".to"))
    high = scope.value(node.args["high"], ref, scope.parameter_name(ref, ".from"))
    return [(ColumnTest(ref, "<", (low,)),), (ColumnTest(ref, ">", (high,)),)]


def _row_groups(scope: StatementScope, node: exp.Expression) -> list[tuple[ColumnTest, ...]]:
    """Returns the alternatives of (a, b) > (x, y): a is greater, or a is equal and b is greater."""
    operator, _ = COMPARED[type(node)]
    lefts, rights = node.this.expressions, node.expression.expressions
    if operator == "<>" or len(lefts) != len(rights):
        raise NotExact(f"no key and no filter tests {shown(node)}")
    suffix = SUFFIXES.get(operator, "")
    values = []
    for left, right in zip(lefts, rights, strict=True):
        ref = tested(scope, left)
        values.append((ref, scope.value(right, ref, scope.parameter_name(ref, suffix))))
    equal = [ColumnTest(ref, "=", (value,)) for ref, value in values]
    if operator == "=":
        return [tuple(equal)]
    beyond: Operator = ">" if operator in (">", ">=") else "<"
    groups = [
        (*equal[:place], ColumnTest(ref, beyond, (value,)))
        for place, (ref, value) in enumerate(values[:-1])
    ]
    ref, value = values[-1]
    return [*groups, (*equal[:-1], ColumnTest(ref, operator, (value,)))]


def chosen(scope: StatementScope) -> tuple[tuple[ColumnTest, ...], ...]:
    """Returns the alternatives of all ORs together, one group of each."""
    if not scope.alternatives:
        return ()
    combinations = tuple(
        tuple(chain.from_iterable(groups)) for groups in product(*scope.alternatives)
    )
    if len(combinations) > ALTERNATIVES_MAX:
        raise NotExact(f"it has {len(combinations)} alternatives (OR): write a pattern for each")
    return combinations
