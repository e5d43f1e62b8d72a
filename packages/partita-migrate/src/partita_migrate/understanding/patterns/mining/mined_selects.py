"""Reads a SELECT with everything inside it: its tables, conditions, order and columns.

Subqueries are looked through: a subquery in FROM passes its columns on, and one in WHERE (IN,
EXISTS) narrows the answer like a join.
"""

from __future__ import annotations

from sqlglot import exp

from partita_migrate.understanding.patterns.mining.mined_conditions import (
    MinedConditions,
    outside_subqueries,
)
from partita_migrate.understanding.patterns.mining.mined_query import MinedQuery
from partita_migrate.understanding.patterns.mining.name_scopes import (
    ColumnReference,
    DerivedTable,
    NotUnderstood,
    SelectScope,
    TableOccurrence,
)
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.join_paths import self_reference


def read_select(
    select: exp.Expr, query: MinedQuery, outer: SelectScope | None = None
) -> DerivedTable:
    """Adds a SELECT to the query, and returns the columns that it passes on."""
    if isinstance(select, exp.Subquery):
        return read_select(select.this, query, outer)
    if isinstance(select, exp.SetOperation):
        # A UNION inside another statement: both of its sides narrow or feed that statement.
        first = read_select(select.left, query, outer)
        read_select(select.right, query, outer)
        return DerivedTable(outputs=dict.fromkeys(first.outputs), is_open=first.is_open)
    if not isinstance(select, exp.Select):
        return DerivedTable(is_open=True)
    scope = SelectScope(query.schema, outer)
    add_ctes(select, query, scope)
    add_sources(select, query, scope)
    where = select.args.get("where")
    if where:
        MinedConditions(query, scope, read_select).add(where.this)
    if _is_aggregate(select):
        query.is_aggregate = True
    query.is_locking = query.is_locking or bool(select.args.get("locks"))
    return _outputs(select, query, scope)


def add_ctes(statement: exp.Expr, query: MinedQuery, scope: SelectScope) -> None:
    with_ = statement.args.get("with_")
    if not with_:
        return
    for cte in with_.expressions:
        name = cte.alias
        if with_.args.get("recursive") and _names_itself(cte.this, name):
            scope.ctes[name.lower()] = _read_tree(cte, query, scope)
            continue
        # A CTE's tables count as tables of the query, as if it were a subquery in FROM.
        if isinstance(cte.this, exp.Query):
            inner = MinedQuery(query.schema)
            passed = read_select(cte.this, inner, scope)
            scope.ctes[name.lower()] = _renamed(passed, cte.args.get("alias"))
            query.absorb(inner)
        else:
            # The CTE has what an INSERT, UPDATE or DELETE returns; that statement is read
            # separately.
            scope.ctes[name.lower()] = DerivedTable(is_open=True)


def _read_tree(cte: exp.Expr, query: MinedQuery, scope: SelectScope) -> DerivedTable:
    """Reads a recursive CTE that starts from rows and joins its own table by the column that refers
    to the row above: it returns these rows and everything below them."""
    inner = MinedQuery(query.schema)
    union = cte.this
    if isinstance(union, exp.SetOperation) and not _names_itself(union.left, cte.alias):
        passed = read_select(union.left, inner, scope)
        below = _step_down(union.right, cte.alias, inner)
        if below is not None:
            inner.hierarchy = below
            inner.equality = [_row_above(reference, below) for reference in inner.equality]
            query.absorb(inner)
            return _renamed(passed, cte.args.get("alias"))
    raise NotUnderstood("it walks a hierarchy in an unknown way; write the pattern by hand")


def _step_down(select: exp.Expr, name: str, query: MinedQuery) -> ColumnReference | None:
    for occurrence in query.occurrences:
        for equal in select.find_all(exp.EQ):
            sides = [side for side in (equal.left, equal.right) if isinstance(side, exp.Column)]
            own = [side for side in sides if side.table.lower() != name.lower()]
            if len(sides) == 2 and len(own) == 1:
                column = query.schema.column(occurrence.table, own[0].name)
                if column and self_reference(occurrence.table, column.name):
                    return ColumnReference(occurrence, column.name)
    return None


def _row_above(reference: ColumnReference, below: ColumnReference) -> ColumnReference:
    """Returns the key of the row above, if a query starts from the children of a row: everything
    below that row is read."""
    link = self_reference(below.occurrence.table, below.column)
    if reference != below or link is None:
        return reference
    return ColumnReference(below.occurrence, link.key.referenced_columns[0])


def _names_itself(body: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name.lower() for table in body.find_all(exp.Table))


def add_sources(select: exp.Expr, query: MinedQuery, scope: SelectScope) -> None:
    """Adds FROM and JOIN, in the order in which they are written."""
    from_ = select.args.get("from_")
    if from_:
        add_source(from_.this, query, scope)
    for join in select.args.get("joins") or []:
        add_join(join, query, scope)


def add_join(join: exp.Join, query: MinedQuery, scope: SelectScope) -> None:
    before = list(scope.sources.values())
    add_source(join.this, query, scope)
    condition = join.args.get("on")
    if condition and join.side:
        _add_outer_condition(condition, query, scope)
    elif condition:
        MinedConditions(query, scope, read_select).add(condition)
    shared = [column.name for column in join.args.get("using") or []]
    joined = list(scope.sources.values())[-1]
    # NATURAL joins by all columns that have the same name on both sides.
    if join.args.get("method") == "NATURAL" and isinstance(joined, TableOccurrence):
        shared = [column.name for column in joined.table.columns]
    for name in shared:
        _link_shared(name, before, joined, query, scope)


def _add_outer_condition(condition: exp.Expr, query: MinedQuery, scope: SelectScope) -> None:
    """Adds the condition of a LEFT JOIN. Rows that fail it stay in the answer, so it is a filter
    and finds no rows."""
    inner = MinedQuery(query.schema)
    MinedConditions(inner, scope, read_select).add(condition)
    inner.filters += [*inner.equality, *inner.range]
    inner.equality, inner.range = [], []
    query.absorb(inner)


def _link_shared(
    name: str,
    before: list[TableOccurrence | DerivedTable],
    joined: TableOccurrence | DerivedTable,
    query: MinedQuery,
    scope: SelectScope,
) -> None:
    """Links a column that both sides of a USING or a NATURAL JOIN have."""
    sides = []
    for source in (joined, *before):
        if isinstance(source, DerivedTable):
            reference = source.reference(name)
        else:
            column = scope.schema.column(source.table, name)
            reference = ColumnReference(source, column.name) if column else None
        if reference:
            sides.append(reference)
    if len(sides) > 1:
        query.links.append((sides[0], sides[1]))


def add_source(source: exp.Expr, query: MinedQuery, scope: SelectScope) -> None:
    alias = source.alias_or_name.lower()
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        scope.sources[alias] = _table(source, query, scope)
        for join in source.args.get("joins") or []:
            add_join(join, query, scope)
    elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table | exp.Subquery):
        # This is a table or a join in parentheses.
        add_source(source.this, query, scope)
        for join in source.args.get("joins") or []:
            add_join(join, query, scope)
    elif isinstance(source, exp.Subquery | exp.Lateral):
        inner = source.this
        if isinstance(inner, exp.Subquery | exp.Query):
            part = MinedQuery(query.schema)
            passed = read_select(inner, part, scope)
            scope.sources[alias] = _renamed(passed, source.args.get("alias"))
            query.absorb(part)
        else:
            scope.sources[alias] = DerivedTable(is_open=True)
    else:
        scope.sources[alias or f"source {len(scope.sources)}"] = DerivedTable(is_open=True)


def _renamed(passed: DerivedTable, alias: exp.Expr | None) -> DerivedTable:
    """Renames the outputs: `AS x (a, b)`."""
    columns = alias.args.get("columns") if alias else None
    if not columns:
        return passed
    references = list(passed.outputs.values())
    return DerivedTable(
        outputs={
            column.name.lower(): references[position] if position < len(references) else None
            for position, column in enumerate(columns)
        }
    )


def _table(
    table: exp.Table, query: MinedQuery, scope: SelectScope
) -> TableOccurrence | DerivedTable:
    if not table.db:
        cte = scope.cte(table.name)
        if cte is not None:
            return cte
    table_found = query.schema.table(table.name, table.db)
    if table_found is None:
        raise unknown_table(table, query.schema)
    occurrence = TableOccurrence(table_found)
    query.occurrences.append(occurrence)
    return occurrence


def unknown_table(table: exp.Table, schema: SchemaLookup) -> Exception:
    name = f"{table.db}.{table.name}" if table.db else table.name
    if schema.is_view(table.name, table.db):
        return NotUnderstood(
            f"it reads the view {name}; write the pattern for the tables behind it"
        )
    return NotUnderstood(f"it names {name}, which is not a table of the inventory")


def _is_aggregate(select: exp.Select) -> bool:
    """True when the SELECT aggregates its rows. With OVER the rows stay, and a subquery aggregates
    for itself."""
    if select.args.get("group") or select.args.get("having"):
        return True
    nodes = (
        node
        for part in select.expressions
        for node in part.walk(prune=lambda node: isinstance(node, exp.Query | exp.Window))
    )
    return any(isinstance(node, exp.AggFunc) for node in nodes)


def _outputs(select: exp.Select, query: MinedQuery, scope: SelectScope) -> DerivedTable:
    derived = DerivedTable()
    for part in select.expressions:
        if isinstance(part, exp.Star) or (isinstance(part, exp.Column) and part.is_star):
            _pass_all(part, query, scope, derived)
            continue
        inner = part.unalias()
        reference = None
        if isinstance(inner, exp.Column):
            reference = scope.resolve(inner)
            if reference:
                query.want(reference)
        else:
            _want_inside(inner, query, scope)
        if part.alias_or_name:
            derived.outputs[part.alias_or_name.lower()] = reference
    _add_order(select, query, scope, derived)
    return derived


def _pass_all(part: exp.Expr, query: MinedQuery, scope: SelectScope, derived: DerivedTable) -> None:
    sources = scope.sources
    if isinstance(part, exp.Column):
        source_named = scope.source(part.table)
        sources = {part.table: source_named} if source_named else {}
    for source in sources.values():
        if isinstance(source, DerivedTable):
            derived.outputs |= source.outputs
            derived.is_open = derived.is_open or source.is_open
            for reference in source.outputs.values():
                if reference:
                    query.want(reference)
            continue
        query.want_all(source)
        for column in source.table.columns:
            derived.outputs.setdefault(column.name.lower(), ColumnReference(source, column.name))


def _want_inside(expression: exp.Expr, query: MinedQuery, scope: SelectScope) -> None:
    """Adds the columns of an expression. A subquery in it is another read of its tables."""
    for node in outside_subqueries(expression):
        if isinstance(node, exp.Column) and not node.is_star:
            reference = scope.resolve(node)
            if reference:
                query.want(reference)
        elif isinstance(node, exp.Query):
            inner = MinedQuery(query.schema)
            passed = read_select(node, inner, scope)
            # The order and limit of a subquery say nothing about the rows of the statement itself.
            inner.order, inner.limit = [], None
            inner.is_aggregate = False
            query.absorb(inner)
            for reference in passed.outputs.values():
                if reference:
                    query.want(reference)
            query.remarks.append("with a subquery for each row")


def _add_order(
    select: exp.Select, query: MinedQuery, scope: SelectScope, derived: DerivedTable
) -> None:
    order = select.args.get("order")
    parts = list(select.expressions)
    query.order = []
    for ordered in order.expressions if order else []:
        by = ordered.this
        # ORDER BY 2 means the second column of the SELECT.
        if isinstance(by, exp.Literal) and by.is_int and 0 < int(by.this) <= len(parts):
            by = parts[int(by.this) - 1].unalias()
        reference = None
        if isinstance(by, exp.Column):
            alias = by.name.lower()
            is_alias = not by.table and alias in derived.outputs
            reference = derived.outputs[alias] if is_alias else scope.resolve(by)
        if reference is None:
            query.remarks.append("in an order that is computed")
            break
        query.order.append((reference, bool(ordered.args.get("desc"))))
    limit = select.args.get("limit")
    count = limit.args.get("count") or limit.args.get("expression") if limit else None
    query.limit = int(count.this) if isinstance(count, exp.Literal) and count.is_int else None
