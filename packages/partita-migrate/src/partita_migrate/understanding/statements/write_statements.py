"""Reads INSERT, UPDATE and DELETE: the rows that a statement writes."""

from __future__ import annotations

from sqlglot import exp

from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.statements.from_clauses import conditions
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnChange,
    ColumnTest,
    Insertion,
    Modification,
    NotExact,
    OnConflict,
    Value,
)
from partita_migrate.understanding.statements.statement_scope import StatementScope
from partita_migrate.understanding.statements.syntax_nodes import inside, shown

_OF_CONFLICT = ("constraint", "index_predicate", "where")
_IN_CONFLICT = ("VALUES", "VALUE")
"""MySQL's functions for the value that would have been inserted."""


def insertion(scope: StatementScope, tree: exp.Insert) -> Insertion:
    schema = tree.this
    named = schema.expressions if isinstance(schema, exp.Schema) else []
    table = scope.add_table(schema.this if isinstance(schema, exp.Schema) else schema)
    node = schema.this if isinstance(schema, exp.Schema) else schema
    node.set("alias", None)
    columns = [scope.schema.column(table, identifier.name) for identifier in named] or list(
        table.columns
    )
    if None in columns:
        raise NotExact(f"it names a column that {table.name} does not have")
    refs = [ColumnRef(table.name, column.name) for column in columns if column is not None]
    for identifier, ref in zip(named, refs, strict=False):
        identifier.replace(exp.to_identifier(ref.column, quoted=True))
    values = tree.expression
    if not isinstance(values, exp.Values) or len(values.expressions) != 1:
        raise NotExact("it inserts the result of a SELECT, or several rows at once")
    tree.set("returning", None)
    row = values.expressions[0]
    if len(row.expressions) == 1 and isinstance(row.expressions[0], exp.Placeholder):
        # Digests and mined statements have a single sign for a whole list.
        row.set("expressions", [exp.Placeholder() for _ in refs])
    members = row.expressions
    if len(members) != len(refs):
        raise NotExact("its values do not match its columns")
    inserted_values: list[Value | None] = []
    for member, ref in zip(members, refs, strict=True):
        is_name = isinstance(member, exp.Var | exp.Column)
        is_default = is_name and member.name.upper() == "DEFAULT"
        inserted_values.append(
            None if is_default else scope.value(member, ref, scope.parameter_name(ref))
        )
    brought = dict(zip((ref.column for ref in refs), inserted_values, strict=True))
    action, conflict, changes = _upsert(scope, tree, table, brought)
    return Insertion(
        table=table.name,
        columns=tuple(refs),
        values=tuple(inserted_values),
        on_conflict=action,
        conflict=conflict,
        changes=changes,
        tree=tree,
    )


def _upsert(
    scope: StatementScope, tree: exp.Insert, table: SourceTable, brought: dict[str, Value | None]
) -> tuple[OnConflict, tuple[str, ...], tuple[ColumnChange, ...]]:
    """Returns what happens to an existing row with the same key: the action, the key, and its
    changes."""
    instead = str(tree.args.get("alternative") or "").upper()
    if tree.args.get("ignore") or instead == "IGNORE":
        return "nothing", (), ()
    if instead == "REPLACE":
        return "replace", (), ()
    clause = tree.args.get("conflict")
    if instead or (clause is not None and any(clause.args.get(part) for part in _OF_CONFLICT)):
        raise NotExact("requests cannot express what it does to an existing row")
    if clause is None:
        return "", (), ()
    keys = []
    for key in clause.args.get("conflict_keys") or []:
        column = scope.schema.column(table, key.find(exp.Identifier).this)
        if column is None:
            raise NotExact(f"its ON CONFLICT names a column that {table.name} does not have")
        keys.append(column.name)
    changes = [_upserted(scope, expression, table, brought) for expression in clause.expressions]
    return "update" if changes else "nothing", tuple(keys), tuple(changes)


def _upserted(
    scope: StatementScope,
    node: exp.Expression,
    table: SourceTable,
    brought: dict[str, Value | None],
) -> ColumnChange:
    if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
        raise NotExact(f"it sets {shown(node)}")
    ref = scope.column(node.this)
    node.this.set("table", None)
    value, sign = inside(node.expression), 0
    if isinstance(value, exp.Add | exp.Sub) and isinstance(value.this, exp.Column):
        if value.this.table.lower() != "excluded" and scope.column(value.this) == ref:
            sign = 1 if isinstance(value, exp.Add) else -1
            own = table.name.removeprefix(f"{table.schema}.") if table.schema else table.name
            value.this.set("table", exp.to_identifier(own, quoted=True))
            value = inside(value.expression)
    name = _excluded(value)
    if name is None:
        return ColumnChange(ref, scope.value(value, ref, scope.parameter_name(ref, ".new")), sign)
    column = scope.schema.column(table, name)
    inserted = brought.get(column.name) if column is not None else None
    if inserted is None:
        raise NotExact(f"it sets {shown(node)}, which it does not insert")
    return ColumnChange(ref, inserted, sign)


def update(scope: StatementScope, tree: exp.Update) -> Modification:
    if tree.args.get("from_") is not None or tree.args.get("from") is not None:
        raise NotExact("it changes rows by columns of other tables")
    table = scope.add_table(tree.this)
    if scope.schema.dialect == "sqlite":
        tree.this.set("alias", None)
    changes = tuple(_change(scope, expression) for expression in tree.expressions)
    return Modification(table.name, _found(scope, tree), changes, tree)


def deletion(scope: StatementScope, tree: exp.Delete) -> Modification:
    if tree.args.get("using") or tree.args.get("tables"):
        raise NotExact("it deletes rows by columns of other tables")
    table = scope.add_table(tree.this)
    tree.this.set("alias", None)
    return Modification(table.name, _found(scope, tree), (), tree)


def _found(scope: StatementScope, tree: exp.Expression) -> tuple[ColumnTest, ...]:
    tree.set("returning", None)
    where = tree.args.get("where")
    tests, _ = conditions(scope, where.this if where is not None else None)
    if scope.alternatives:
        raise NotExact("it changes rows by alternatives (OR): write a pattern for each")
    if scope.existences:
        raise NotExact(
            "it changes rows by what a SELECT inside it finds: write a pattern that reads their"
            " keys, and one that writes by key"
        )
    for part in ("order", "limit"):
        if tree.args.get(part) is not None:
            raise NotExact("it changes the first rows of an order")
    for column in tree.find_all(exp.Column):
        # There is one table only, and not every server accepts an alias here.
        column.set("table", None)
    return tuple(tests)


def _change(scope: StatementScope, node: exp.Expression) -> ColumnChange:
    if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
        raise NotExact(f"it sets {shown(node)}")
    ref = scope.column(node.this)
    value = node.expression
    name = scope.parameter_name(ref, ".new")
    if isinstance(value, exp.Add | exp.Sub) and isinstance(value.this, exp.Column):
        if scope.column(value.this) == ref:
            sign = 1 if isinstance(value, exp.Add) else -1
            return ColumnChange(ref, _given(scope, value.expression, ref, name), sign)
    return ColumnChange(ref, _given(scope, value, ref, name))


def _given(scope: StatementScope, node: exp.Expression, ref: ColumnRef, name: str) -> Value:
    if node.find(exp.Column) is not None and node.find(exp.Select) is None:
        raise NotExact(
            f"it sets {ref} to {shown(node)}, which is computed from the row: write a pattern that"
            " reads the row, and one that writes what the application computed"
        )
    return scope.value(node, ref, name)


def _excluded(node: exp.Expression) -> str | None:
    """Returns the column whose would-be inserted value the expression is, if it is one."""
    if isinstance(node, exp.Column) and node.table.lower() == "excluded":
        return str(node.name)
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in _IN_CONFLICT:
        return str(node.expressions[0].name)
    return None
