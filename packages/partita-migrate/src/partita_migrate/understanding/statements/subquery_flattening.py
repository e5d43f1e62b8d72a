"""Merges views, common table expressions and subqueries in FROM into the enclosing SELECT."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.merge_subqueries import merge_subqueries
from sqlglot.optimizer.qualify import qualify

from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.mining.view_expansion import with_views
from partita_migrate.understanding.statements.resolved_statements import NotExact


def flattened(statement: exp.Expression, schema: SchemaLookup) -> exp.Expr:
    """Returns an equivalent SELECT over tables only. Raises NotExact when that is not possible."""
    tree = with_views(statement, schema)
    if not isinstance(tree, exp.Select) or not _derived(tree):
        return tree
    try:
        qualified = qualify(
            tree,
            schema=schema.columns_by_table(),
            dialect=schema.dialect,
            quote_identifiers=False,
            validate_qualify_columns=False,
        )
        merged = merge_subqueries(_without_shell(qualified))
    except (SqlglotError, RecursionError, KeyError) as error:
        raise NotExact(f"its subquery is not understood: {str(error).splitlines()[0]}") from error
    remaining = _derived(merged)
    if remaining:
        raise NotExact(f"it reads {remaining[0]}, a SELECT that cannot be merged with its tables")
    return merged


def _derived(tree: exp.Expr) -> list[str]:
    """Returns the names of what FROM and JOIN read besides tables."""
    sources = [tree.args.get("from_") or tree.args.get("from"), *(tree.args.get("joins") or [])]
    subqueries = [
        source.this for source in sources if source and isinstance(source.this, exp.Subquery)
    ]
    return [source.alias or "a subquery" for source in (*tree.find_all(exp.CTE), *subqueries)]


def _without_shell(tree: exp.Expr) -> exp.Expr:
    """Merges an outer SELECT that only filters groups of an inner one: the filter on grouping
    columns gives the same result before grouping."""
    source = tree.args.get("from_") or tree.args.get("from")
    inner = source.this if source is not None else None
    clauses = {name for name, part in tree.args.items() if part}
    if not isinstance(inner, exp.Subquery) or clauses - {"expressions", "from_", "from", "where"}:
        return tree
    query = inner.this
    if not isinstance(query, exp.Select) or query.args.get("group") is None:
        return tree
    if query.args.get("having") or query.args.get("limit"):
        return tree
    grouped = {expression.sql() for expression in query.args["group"].expressions}
    outputs = {expression.alias_or_name: expression.unalias() for expression in query.expressions}
    where = tree.args.get("where")
    for column in list(where.find_all(exp.Column)) if where is not None else []:
        grouping = outputs.get(column.name)
        if grouping is None or grouping.sql() not in grouped:
            return tree
        column.replace(grouping.copy())
    selected = {column.name for part in tree.expressions for column in part.find_all(exp.Column)}
    if not all(isinstance(expression.unalias(), exp.Column) for expression in tree.expressions):
        return tree
    query.set(
        "expressions",
        [expression for expression in query.expressions if expression.alias_or_name in selected],
    )
    return query.where(where.this) if where is not None else query
