"""Replaces the views of a statement by their queries."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup

NESTED_MAX = 10
"""The maximum depth of views that read views."""


def with_views(statement: exp.Expr, schema: SchemaLookup, *, depth: int = 0) -> exp.Expr:
    """Returns the statement with each view as a subquery. A view that cannot be parsed stays a
    name."""
    if depth > NESTED_MAX:
        return statement
    own = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    for table in list(statement.find_all(exp.Table)):
        if isinstance(table.parent, exp.DML | exp.Schema) or not isinstance(
            table.this, exp.Identifier
        ):
            continue
        if table.name.lower() in own or schema.table(table.name, table.db) is not None:
            continue
        query = _query(schema.view_query(table.name, table.db), schema.dialect)
        if query is None:
            continue
        selected, columns = query
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name), columns=columns)
        inside = with_views(selected, schema, depth=depth + 1)
        for inner in inside.find_all(exp.Table):
            # Servers store views with qualified names; the rest of the mining expects plain ones.
            if schema.table(inner.name, inner.db) is schema.table(inner.name):
                inner.set("db", None)
        joins = table.args.get("joins")
        table.replace(exp.Subquery(this=inside, alias=alias, joins=joins))
    return statement


def without_parentheses(statement: exp.Expr) -> exp.Expr:
    """Removes the brackets of `FROM ((a JOIN b ON ...) JOIN c ON ...)`, as servers write views."""
    for select in list(statement.find_all(exp.Select)):
        source = select.args.get("from_") or select.args.get("from")
        joins: list[exp.Expr] = []
        while source is not None and isinstance(source.this, exp.Subquery):
            inner = source.this
            if not isinstance(inner.this, exp.Table | exp.Subquery) or inner.alias:
                break
            joins = [*(inner.args.get("joins") or []), *joins]
            source.set("this", inner.this)
        first = source.this if source is not None else None
        if isinstance(first, exp.Table) and first.args.get("joins"):
            joins = [*first.args["joins"], *joins]
            first.set("joins", None)
        if joins:
            select.set("joins", [*joins, *(select.args.get("joins") or [])])
    return statement


def _query(definition: str, dialect: str) -> tuple[exp.Query, list[exp.Identifier]] | None:
    """Returns the query of a view, and the names of its columns if the view gives any."""
    if not definition:
        return None
    try:
        tree = sqlglot.parse_one(definition.strip().rstrip(";"), dialect=dialect)
    except (SqlglotError, RecursionError):
        return None
    named: list[exp.Identifier] = []
    if isinstance(tree, exp.Create):
        if isinstance(tree.this, exp.Schema):
            named = [exp.to_identifier(expression.name) for expression in tree.this.expressions]
        tree = tree.expression
    if not isinstance(tree, exp.Query):
        return None
    without_parentheses(tree)
    for column in tree.find_all(exp.Column):
        # MariaDB writes columns as database.table.column.
        column.set("db", None)
        column.set("catalog", None)
    return tree, named
