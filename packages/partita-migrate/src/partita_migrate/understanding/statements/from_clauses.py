"""Reads FROM, JOIN and WHERE: the rows of a statement, and other rows that must exist."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceColumn, SourceTable
from partita_migrate.understanding.schema.relationships import is_unique
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Existence,
    JoinedTable,
    NotExact,
    Operator,
    Parameter,
    ResolvedQuery,
)
from partita_migrate.understanding.statements.statement_scope import StatementScope
from partita_migrate.understanding.statements.syntax_nodes import (
    COMPARED,
    SUFFIXES,
    conjuncts,
    inside,
    is_compound,
    shown,
)
from partita_migrate.understanding.statements.where_conditions import (
    chosen,
    either,
    test_of,
    tested,
)

_JOIN_KINDS = ("", "INNER", "OUTER", "CROSS", "STRAIGHT_JOIN")


def rows_of(
    scope: StatementScope, tree: exp.Select
) -> tuple[SourceTable, list[JoinedTable], list[ColumnTest]]:
    """Reads FROM, JOIN and WHERE."""
    source = tree.args.get("from_") or tree.args.get("from")
    if source is None:
        raise NotExact("it reads no table")
    first = scope.add_table(source.this)
    joins: list[JoinedTable] = []
    tests: list[ColumnTest] = []
    comma: list[SourceTable] = []
    for join in tree.args.get("joins") or []:
        table = scope.add_table(join.this)
        side = (join.side or "").upper()
        kind = (join.kind or "").upper()
        if side not in ("", "LEFT") or kind not in _JOIN_KINDS:
            raise NotExact(f"it has a {side} {join.kind} {join.method or ''} JOIN")
        before = len(scope.alternatives)
        found_tests, pairs = conditions(scope, join.args.get("on"))
        pairs += _using(scope, join, table)
        # A comma join, or an ON without columns of both sides: WHERE has to join the table.
        if not pairs:
            comma.append(table)
            tests += found_tests
            continue
        # In ON such a test only decides which rows match; in WHERE it would drop rows.
        if side == "LEFT" and (found_tests or len(scope.alternatives) > before):
            raise NotExact("its LEFT JOIN tests more than the columns that join")
        tests += found_tests
        joins.append(_joined(table, pairs, is_outer=side == "LEFT"))
    where = tree.args.get("where")
    found_tests, pairs = conditions(scope, where.this if where is not None else None)
    tests += found_tests
    for table in comma:
        own = [pair for pair in pairs if table.name in (pair[0].table, pair[1].table)]
        if not own:
            raise NotExact(f"no condition joins {table.name} to the other tables")
        pairs = [pair for pair in pairs if pair not in own]
        joins.append(_joined(table, own, is_outer=False))
    if pairs:
        raise NotExact("its WHERE compares columns of two tables that are joined already")
    return first, joins, tests


def _using(
    scope: StatementScope, join: exp.Join, table: SourceTable
) -> list[tuple[ColumnRef, ColumnRef]]:
    pairs = []
    for name in join.args.get("using") or []:
        column = scope.schema.column(table, name.name)
        others = [candidate for candidate in scope.tables.values() if candidate is not table]
        other = next(
            (candidate for candidate in others if scope.schema.column(candidate, name.name)), None
        )
        if column is None or other is None:
            raise NotExact(f"USING names {name.name}, which is not a column of both tables")
        own = scope.schema.column(other, name.name)
        assert own is not None
        pairs.append((ColumnRef(other.name, own.name), ColumnRef(table.name, column.name)))
    return pairs


def conditions(
    scope: StatementScope, node: exp.Expression | None
) -> tuple[list[ColumnTest], list[tuple[ColumnRef, ColumnRef]]]:
    tests: list[ColumnTest] = []
    pairs: list[tuple[ColumnRef, ColumnRef]] = []
    for conjunct in conjuncts(node):
        outer_test = _taken(scope, conjunct)
        if outer_test is not None:
            tests.append(outer_test)
            continue
        pair = _pair(scope, conjunct)
        if pair is not None:
            pairs.append(pair)
        elif _exists(scope, conjunct):
            continue
        elif is_compound(conjunct):
            tests += either(scope, conjunct)
        else:
            tests.append(test_of(scope, conjunct))
    return tests, pairs


def _pair(scope: StatementScope, node: exp.Expression) -> tuple[ColumnRef, ColumnRef] | None:
    """Returns two columns of two tables that must be equal."""
    if not isinstance(node, exp.EQ):
        return None
    if not (isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column)):
        return None
    left, right = scope.column(node.this), scope.column(node.expression)
    if left.table == right.table:
        raise NotExact(f"it compares columns of one row: {node}")
    _refuse_other_texts(scope.inventoried(left), scope.inventoried(right), node)
    return left, right


def _refuse_other_texts(
    left: SourceColumn | None, right: SourceColumn | None, node: exp.Expression
) -> None:
    """Refuses two texts with different collations: the server compares them by its own rules."""
    texts = [column for column in (left, right) if column is not None and column.kind == "string"]
    if len({(column.is_case_insensitive, column.pad, column.collation) for column in texts}) > 1:
        raise NotExact(f"it compares texts of two collations: {node}")


def _taken(scope: StatementScope, node: exp.Expression) -> ColumnTest | None:
    """Returns the test of a column against one of the outer row."""
    if scope.outer is None or type(node) not in COMPARED:
        return None
    operator, exchanged = COMPARED[type(node)]
    left, right = node.this, node.expression
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    if _is_outside(scope, left):
        operator, left, right = exchanged, right, left
    if _is_outside(scope, left) or not _is_outside(scope, right):
        return None
    ref, outer = scope.column(left), scope.outer.column(right)
    return ColumnTest(ref, operator, (_from_outside(scope, ref, outer, operator),))


def _from_outside(
    scope: StatementScope, ref: ColumnRef, outer: ColumnRef, operator: Operator
) -> Parameter:
    """Returns a parameter that comes from the outer row. Refuses columns whose keys would differ
    where the source treats the values as equal."""
    own, outer_column = (
        scope.inventoried(ref),
        scope.outer.inventoried(outer) if scope.outer else None,
    )
    kinds = {
        (column.kind, column.collation, column.is_case_insensitive, column.pad)
        for column in (own, outer_column)
        if column
    }
    if len(kinds) != 1:
        raise NotExact(f"it compares {ref} with {outer}, which holds other values")
    return scope.parameter(scope.parameter_name(ref, SUFFIXES.get(operator, "")), ref, outer)


def _is_outside(scope: StatementScope, node: exp.Column) -> bool:
    if node.table:
        return node.table.lower() not in scope.tables
    return all(scope.schema.column(table, node.name) is None for table in scope.tables.values())


def _exists(scope: StatementScope, node: exp.Expression) -> bool:
    """True for a test of whether rows exist, which is then added to the scope."""
    node = inside(node)
    is_negated = isinstance(node, exp.Not)
    if is_negated:
        node = inside(node.this)
    if isinstance(node, exp.Exists):
        _add_existence(scope, node.this, None, is_negated=is_negated)
        return True
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        _add_existence(scope, node.args["query"], node.this, is_negated=is_negated)
        return True
    is_equal = isinstance(node, exp.EQ) and isinstance(node.expression, exp.Subquery)
    if not is_equal or is_negated or node.expression.find(exp.AggFunc) is not None:
        return False
    _add_existence(scope, node.expression, node.this, is_negated=False, is_single=True)
    return True


def _add_existence(
    scope: StatementScope,
    subquery: exp.Expression,
    compared: exp.Expression | None,
    *,
    is_negated: bool,
    is_single: bool = False,
) -> None:
    """Adds an existence test. `compared` is what the column of the inner SELECT must equal. With
    `is_single` it is compared by =, where several rows would be an error."""
    select = subquery.unnest()
    if scope.outer is not None:
        raise NotExact("its inner SELECT contains another SELECT")
    if not isinstance(select, exp.Select):
        raise NotExact("the SELECT inside it combines several")
    if any(select.args.get(part) for part in ("group", "having", "offset")):
        raise NotExact("the SELECT inside it groups or skips rows")
    if select.args.get("limit") is not None and (compared is not None or is_negated):
        raise NotExact("the SELECT inside it takes the first rows of an order")
    inner = StatementScope(scope.schema, scope)
    query = _inside_select(inner, select)
    if compared is not None:
        column = select.expressions[0].unalias()
        if len(select.expressions) != 1 or not isinstance(column, exp.Column):
            raise NotExact(f"it tests {shown(compared)} with {shown(column)}")
        ref, outer = inner.column(column), tested(scope, compared)
        absent = [column for column in (ref,) if inner.may_be_null(column)]
        absent += [column for column in (outer,) if scope.may_be_null(column)]
        if is_negated and absent:
            raise NotExact(f"NOT IN finds nothing once {absent[0]} is NULL: write NOT EXISTS")
        equality = ColumnTest(ref, "=", (_from_outside(inner, ref, outer, "="),))
        query = replace(query, tests=(*query.tests, equality))
        if is_single and not _names_one(inner, query, ref):
            raise NotExact("the SELECT inside it can return several rows, which = does not allow")
    scope.existences.append(Existence(query, is_negated))


def _names_one(scope: StatementScope, query: ResolvedQuery, but: ColumnRef) -> bool:
    """True when the tests, except those of one column, leave at most one row."""
    fixed_columns = {test.ref.column for test in query.tests if test.is_fixing and test.ref != but}
    table = next(iter(scope.tables.values()))
    return not query.joins and is_unique(table, fixed_columns)


def _inside_select(scope: StatementScope, tree: exp.Select) -> ResolvedQuery:
    first, joins, tests = rows_of(scope, tree)
    return ResolvedQuery(
        table=first.name,
        joins=tuple(joins),
        tests=tuple(tests),
        alternatives=chosen(scope),
        existences=tuple(scope.existences),
        tree=tree,
    )


def _joined(
    table: SourceTable, pairs: list[tuple[ColumnRef, ColumnRef]], *, is_outer: bool
) -> JoinedTable:
    ordered = tuple(
        (left, right) if right.table == table.name else (right, left) for left, right in pairs
    )
    if any(right.table != table.name for _, right in ordered):
        raise NotExact(f"the condition that joins {table.name} is not in its JOIN")
    return JoinedTable(table.name, ordered, is_outer)
