"""Parses and resolves SQL. A part that cannot be resolved exactly is refused with the reason."""

from __future__ import annotations

import re
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from partita_migrate.understanding.patterns.mining.normalized_statements import shapes_of
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.statements.resolved_statements import NotExact, Statement
from partita_migrate.understanding.statements.select_statements import select
from partita_migrate.understanding.statements.statement_scope import StatementScope
from partita_migrate.understanding.statements.subquery_flattening import flattened
from partita_migrate.understanding.statements.syntax_nodes import COMPARED
from partita_migrate.understanding.statements.write_statements import deletion, insertion, update

_SKIPPED = re.compile(
    r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|/\*.*?\*/|--[^\n]*|::)"""
    r"|(\$\d+|%s|%\(\w+\)s|\?(?![|&?])|(?<![:\w]):[A-Za-z_]\w*|@p\d+)",
    re.DOTALL,
)
_REFUSED: tuple[tuple[type[exp.Expression], str], ...] = (
    (exp.Union, "it combines several SELECTs"),
    (exp.Window, "it computes over a window of rows"),
    (exp.With, "it has a common table expression"),
)
_ON_CONFLICT = ("conflict", "ignore", "alternative")
_REPLACE = re.compile(r"\s*REPLACE\s+INTO\s+", re.IGNORECASE)
_BOTH_SIDES = ("this", "expression")
_PARTS: dict[type[Any], tuple[str, ...]] = {
    exp.Select: ("expressions", "from_", "joins", "where", "group", "having", "order", "limit",
                 "offset", "distinct", "locks"),
    exp.Insert: ("this", "expression", "returning", *_ON_CONFLICT),
    exp.Update: ("this", "expressions", "where", "returning"),
    exp.Delete: ("this", "where", "returning"),
    exp.Table: ("this", "db", "catalog", "alias", "hints"),
    exp.Join: ("this", "side", "kind", "on", "using"),
    exp.In: ("this", "expressions", "query"),
    exp.Between: ("this", "low", "high"),
    exp.Like: _BOTH_SIDES,
    exp.Is: (*_BOTH_SIDES, "negate"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Distinct: (),
    exp.Ordered: ("this", "desc", "nulls_first"),
    **dict.fromkeys(COMPARED, _BOTH_SIDES),
}  # fmt: skip
"""The parts that are understood of each kind of node. Any other part would change the meaning."""


def parse_statement(statement: str, schema: SchemaLookup) -> Statement:
    """Resolves a statement. Raises NotExact if a part of it is not understood."""
    text = statement
    # MySQL's digests abbreviate lists as (...); the normalized text has one placeholder instead.
    if "..." in text:
        text = shapes_of(statement, schema.dialect)[0].text
    # Every placeholder style becomes :p1, :p2, ...; quoted texts and comments are skipped, because
    # they may contain the same characters.
    numbers = iter(range(1, 10_000))
    text = _SKIPPED.sub(lambda match: match[1] or f":p{next(numbers)}", text)
    is_replace = _REPLACE.match(text) is not None
    if is_replace:
        text = _REPLACE.sub("INSERT INTO ", text, count=1)
    try:
        parsed = sqlglot.parse(text, dialect=schema.dialect)
    except (SqlglotError, RecursionError) as error:
        raise NotExact(f"its SQL is not understood: {str(error).splitlines()[0]}") from error
    trees = [tree for tree in parsed if isinstance(tree, exp.Expression)]
    if len(trees) != 1:
        raise NotExact("it is more than one statement")
    if is_replace:
        trees[0].set("alternative", "REPLACE")
    return _read(flattened(trees[0], schema), StatementScope(schema))


def _read(tree: exp.Expr, scope: StatementScope) -> Statement:
    for kind, reason in _REFUSED:
        if tree.find(kind) is not None:
            raise NotExact(reason)
    for node in tree.walk():
        parts = _PARTS.get(type(node))
        if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.AggFunc):
            continue  # The application counts COUNT(DISTINCT column).
        for name, part in node.args.items():
            if part and parts is not None and name not in parts:
                raise NotExact(f"its {name.upper()} is not understood")
    if isinstance(tree, exp.Select):
        return select(scope, tree)
    if isinstance(tree, exp.Insert):
        return insertion(scope, tree)
    if isinstance(tree, exp.Update):
        return update(scope, tree)
    if isinstance(tree, exp.Delete):
        return deletion(scope, tree)
    raise NotExact(f"it is a {tree.key.upper()}")
