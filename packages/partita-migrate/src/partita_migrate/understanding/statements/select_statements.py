"""Reads SELECT: the columns, the order and the number of rows."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable, is_derived
from partita_migrate.understanding.statements.from_clauses import rows_of
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    Existence,
    JoinedTable,
    NotExact,
    Parameter,
    ResolvedQuery,
    Sorting,
)
from partita_migrate.understanding.statements.statement_scope import StatementScope
from partita_migrate.understanding.statements.syntax_nodes import shown, unaliased
from partita_migrate.understanding.statements.where_conditions import chosen

_OF_SETS = re.compile(
    r"(POS)?EXPLODE.*|UNNEST|(EXPLODING_?)?GENERATE_?(SERIES|SUBSCRIPTS)|REGEXP_(MATCHES|.*_TO_TABLE)"
    r"|STRING_TO_TABLE|JSONB?_(ARRAY_ELEMENTS|EACH|OBJECT_KEYS|POPULATE_RECORDSET|PATH_QUERY)(_TEXT)?",
    re.IGNORECASE,
)
"""PostgreSQL's functions that turn one row into several."""


def select(scope: StatementScope, tree: exp.Select) -> ResolvedQuery:
    return _finished(scope, tree, *rows_of(scope, tree))


def _finished(
    scope: StatementScope,
    tree: exp.Select,
    first: SourceTable,
    joins: list[JoinedTable],
    tests: list[ColumnTest],
) -> ResolvedQuery:
    finish = _finish(tree)
    columns = _columns(scope, tree, first)
    joins, tests = _without_matches(scope, joins, tests, columns)
    joins = [_inner(join, tests) for join in joins]
    order = [] if finish else _order(scope, tree)
    limit = None if finish else _count(scope, tree, "limit", "limit")
    offset = None if finish else _count(scope, tree, "offset", "offset")
    # The statement then returns the rows that the application groups or counts, not the result.
    if finish:
        for part in ("group", "having", "distinct", "order", "limit", "offset"):
            tree.set(part, None)
    # FOR UPDATE takes locks but does not change the rows; proofs run on a read-only session.
    tree.set("locks", None)
    return ResolvedQuery(
        table=first.name,
        joins=tuple(joins),
        tests=tuple(tests),
        alternatives=chosen(scope),
        existences=tuple(scope.existences),
        order=tuple(order),
        limit=limit,
        offset=offset,
        columns=tuple(dict.fromkeys([*columns, *(sorting.ref for sorting in order)])),
        finish=finish,
        tree=tree,
    )


def _inner(join: JoinedTable, tests: list[ColumnTest]) -> JoinedTable:
    """Turns a LEFT JOIN into an inner one, if a test drops the rows that the join adds."""
    is_tested = any(test.ref.table == join.table and test.operator != "is null" for test in tests)
    return replace(join, is_outer=False) if is_tested else join


def _without_matches(
    scope: StatementScope,
    joins: list[JoinedTable],
    tests: list[ColumnTest],
    columns: list[ColumnRef],
) -> tuple[list[JoinedTable], list[ColumnTest]]:
    """Turns a LEFT JOIN whose rows must not exist (`WHERE other.id IS NULL`) into a NOT EXISTS."""
    for join in joins:
        own = [test for test in tests if test.ref.table == join.table]
        absent = [
            test for test in own if test.operator == "is null" and not scope.may_be_null(test.ref)
        ]
        others = [pair for other in joins if other is not join for pair in other.pairs]
        is_used = any(ref.table == join.table for ref in (*columns, *sum(others, ())))
        if not join.is_outer or len(own) != 1 or not absent or is_used:
            continue
        outer_tests = tuple(
            ColumnTest(ref, "=", (Parameter(scope.parameter_name(ref), ref, outer),))
            for outer, ref in join.pairs
        )
        scope.existences.append(
            Existence(ResolvedQuery(join.table, tests=outer_tests), is_negated=True)
        )
        joins = [other for other in joins if other is not join]
        tests = [test for test in tests if test not in absent]
    return joins, tests


def _columns(scope: StatementScope, tree: exp.Select, first: SourceTable) -> list[ColumnRef]:
    columns: list[ColumnRef] = []
    for expression in tree.expressions:
        if isinstance(expression, exp.Star):
            columns += _all(list(scope.tables.values()))
        elif isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star):
            table = scope.tables.get(expression.table.lower())
            if table is None:
                raise NotExact(f"{expression.table} is not one of its tables")
            columns += _all([table])
        elif expression.find(exp.Select) is not None:
            raise NotExact(
                f"{shown(expression)} is read for each row: make it a pattern of its own"
            )
        elif (several := _several(expression)) is not None:
            raise NotExact(f"{shown(several)} turns one row into several, or none")
        else:
            columns += [scope.column(column) for column in expression.find_all(exp.Column)]
    for part in ("group", "having") if _finish(tree) else ():
        clause = tree.args.get(part)
        named = {expression.alias.lower() for expression in tree.expressions if expression.alias}
        for column in clause.find_all(exp.Column) if clause is not None else ():
            if column.table or column.name.lower() not in named:
                columns.append(scope.column(column))
    key = [ColumnRef(first.name, name) for name in first.primary_key]
    return list(dict.fromkeys(columns)) or key or _all([first])


def _several(node: exp.Expression) -> exp.Func | None:
    """Returns a function that returns a set of rows, if the expression has one."""
    for function in node.find_all(exp.Func):
        name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        if _OF_SETS.fullmatch(name):
            return function
    return None


def _all(tables: list[SourceTable]) -> list[ColumnRef]:
    return [
        ColumnRef(table.name, column.name)
        for table in tables
        for column in table.columns
        if not is_derived(column)
    ]


def _order(scope: StatementScope, tree: exp.Select) -> list[Sorting]:
    clause = tree.args.get("order")
    sortings = []
    for ordered in clause.expressions if clause is not None else ():
        node = ordered.this
        if isinstance(node, exp.Literal) and node.is_int:
            node = unaliased(tree.expressions[int(node.this) - 1]).copy()
            ordered.set("this", node)
        if isinstance(node, exp.Column) and not node.table:
            named = {other.alias.lower(): other for other in tree.expressions if other.alias}
            alias = named.get(node.name.lower())
            if alias is not None:
                node = unaliased(alias).copy()
                ordered.set("this", node)
        if not isinstance(node, exp.Column):
            raise NotExact(f"it sorts by {shown(node)}, which no attribute holds")
        ref, is_descending = scope.column(node), bool(ordered.args.get("desc"))
        # By default NULLs come first, but last in PostgreSQL; DESC turns the order around.
        is_first = is_descending == (scope.schema.dialect == "postgres")
        if bool(ordered.args.get("nulls_first")) != is_first and scope.is_nullable(ref):
            raise NotExact(f"it states where rows without {ref} are sorted")
        sortings.append(Sorting(ref, is_descending))
    return sortings


def _count(
    scope: StatementScope, tree: exp.Expression, part: str, name: str
) -> int | Parameter | None:
    clause = tree.args.get(part)
    if clause is None:
        return None
    counted = clause.expression
    if isinstance(clause, exp.Fetch):
        counted = clause.args.get("count") or exp.Literal.number(1)
        options = clause.args.get("limit_options")
        if options is not None and (options.args["percent"] or options.args["with_ties"]):
            raise NotExact(f"it takes rows by {shown(clause)}")
    value = scope.value(counted, None, name)
    return int(value.value) if isinstance(value, Constant) else value


def _finish(tree: exp.Select) -> str:
    """Returns the application's work on the rows once it has them."""
    if tree.args.get("group") is not None:
        return "groups the rows"
    if any(expression.find(exp.AggFunc) is not None for expression in tree.expressions):
        return "counts or sums the rows"
    return "drops repeated rows" if tree.args.get("distinct") is not None else ""
