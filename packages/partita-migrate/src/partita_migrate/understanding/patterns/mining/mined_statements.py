"""Turns a normalized statement into accesses to tables, or says why that is not possible."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from partita_migrate.understanding.patterns.access_patterns import Operation
from partita_migrate.understanding.patterns.mining.mined_conditions import MinedConditions
from partita_migrate.understanding.patterns.mining.mined_query import MinedQuery
from partita_migrate.understanding.patterns.mining.mined_selects import (
    add_ctes,
    add_join,
    add_source,
    read_select,
    unknown_table,
)
from partita_migrate.understanding.patterns.mining.name_scopes import (
    ColumnReference,
    NotAnAccess,
    NotUnderstood,
    SelectScope,
    TableOccurrence,
)
from partita_migrate.understanding.patterns.mining.normalized_statements import NormalizedStatement
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.mining.table_access import TableAccess
from partita_migrate.understanding.patterns.mining.view_expansion import with_views
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.join_paths import distinguishing_names
from partita_migrate.understanding.schema.relationships import is_unique

# sqlglot warns of what it cannot parse; here that becomes a reason.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

OWN_ALIASES = "partita_"
"""The prefix of aliases in Partita's own statements: digests keep aliases, but no comments."""

_NOISE = {
    "transactions": "BEGIN START COMMIT ROLLBACK SAVEPOINT RELEASE END ABORT XA",
    "settings": "SET RESET USE DISCARD",
    "questions about the server": "SHOW DESCRIBE DESC EXPLAIN HELP PRAGMA",
    "cursors and prepared statements": "FETCH CLOSE MOVE PREPARE EXECUTE DEALLOCATE DECLARE",
    "changes of the schema": "CREATE ALTER DROP TRUNCATE RENAME COMMENT GRANT REVOKE REINDEX",
    "upkeep": "VACUUM ANALYZE OPTIMIZE CHECK REPAIR FLUSH KILL CHECKPOINT CLUSTER REFRESH PURGE"
    " LOCK UNLOCK LISTEN UNLISTEN NOTIFY INSTALL SHUTDOWN CHANGE STOP BINLOG CACHE HANDLER"
    " SECURITY REASSIGN ATTACH DETACH",
    "bulk copies": "COPY LOAD",
}
"""The kind of a statement, by its first word."""
_KIND_BY_WORD = {word: kind for kind, words in _NOISE.items() for word in words.split()}
_OPERATIONS: dict[type[exp.Expr], Operation] = {
    exp.Insert: "insert",
    exp.Update: "update",
    exp.Delete: "delete",
}
_STATEMENTS = (exp.Query, exp.DML, exp.Values)
_OWN = re.compile(rf"\b{OWN_ALIASES}", re.IGNORECASE)
_HIDDEN = re.compile(r"<\s*insufficient privilege\s*>")
_FOREIGN_KEY_CHECK = re.compile(r"FROM ONLY .* FOR KEY SHARE OF x$", re.DOTALL)


def read_statement(shape: NormalizedStatement, schema: SchemaLookup) -> list[TableAccess]:
    """Returns the accesses of a statement. Raises NotAnAccess or NotUnderstood with the reason."""
    _refuse_noise(shape)
    if shape.is_cut:
        raise NotUnderstood("the server kept only its beginning; raise max_digest_length")
    statement = with_views(_parse(shape.sql, schema.dialect), schema)
    if not isinstance(statement.unnest(), _STATEMENTS):
        raise NotUnderstood(
            f"it begins with {shape.sql.split()[0]!r}, and no statement on rows does"
        )
    try:
        accesses = _accesses(statement, schema)
    except (NotAnAccess, NotUnderstood):
        raise
    except RecursionError:
        raise NotUnderstood("it is nested too deeply") from None
    except Exception as error:
        # sqlglot has about a thousand kinds of nodes. A form that was never seen before must not
        # end a stage.
        raise NotUnderstood(f"its form is unknown ({type(error).__name__}: {error})") from error
    if not accesses:
        own = {cte.alias for cte in statement.find_all(exp.CTE)}
        named = {table.name for table in statement.find_all(exp.Table) if table.name} - own
        tables = sorted(name for name in named if schema.table(name))
        if tables:
            raise NotUnderstood(f"how it reads {tables[0]} is not tables")
        raise NotAnAccess("statements without a table")
    return [access.settle() for access in accesses]


def known_table(shape: NormalizedStatement, schema: SchemaLookup) -> TableAccess | None:
    """Returns an access to the first table of a statement that parses and whose tables all exist.
    The statement is not understood then, but it is not a mistake either."""
    try:
        statement = with_views(_parse(shape.sql, schema.dialect), schema)
    except NotUnderstood:
        return None
    own = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    named = [table for table in statement.find_all(exp.Table) if table.name.lower() not in own]
    tables = [schema.table(table.name, table.db) for table in named]
    first = next(iter(tables), None)
    if first is None or None in tables:
        return None
    operation = next((name for kind, name in _OPERATIONS.items() if statement.find(kind)), None)
    return TableAccess(operation or "read", first)


def _refuse_noise(shape: NormalizedStatement) -> None:
    word = re.match(r"\W*(\w*)", shape.sql)
    kind = _KIND_BY_WORD.get(word.group(1).upper()) if word else None
    if kind:
        raise NotAnAccess(kind)
    if word and word.group(1).upper() in ("CALL", "DO"):
        raise NotUnderstood("it runs code inside the server, whose statements are unknown")
    if _HIDDEN.fullmatch(shape.text):
        raise NotUnderstood(
            "the server hides what other users ran; GRANT pg_read_all_stats to the user"
        )
    if _OWN.search(shape.text):
        raise NotAnAccess("Partita's own reading")
    if _FOREIGN_KEY_CHECK.search(shape.text):
        raise NotAnAccess("the server's own checks of foreign keys")


def _parse(sql: str, dialect: str) -> exp.Expr:
    try:
        try:
            return sqlglot.parse_one(sql, dialect=dialect)
        except SqlglotError as error:
            # MySQL's digests fold the arguments of a function into one value.
            if not _lacks_an_argument(error):
                raise
            return sqlglot.parse_one(sql, dialect=dialect, error_level=ErrorLevel.IGNORE)
    except RecursionError:
        raise NotUnderstood("it does not parse: it is nested too deeply") from None
    except ParseError as error:
        raise NotUnderstood(f"it does not parse{_place(error)}") from None
    except (SqlglotError, ValueError, AttributeError):
        raise NotUnderstood("it does not parse; a quote or a bracket may be missing") from None


def _lacks_an_argument(error: SqlglotError) -> bool:
    match = re.match(r"Required keyword: '\w+' missing for <class '[\w.]*\.(\w+)'>", str(error))
    return match is not None and issubclass(getattr(exp, match.group(1), exp.Expr), exp.Func)


def _place(error: ParseError) -> str:
    first = error.errors[0] if error.errors else {}
    before = str(first.get("start_context") or "").split()[-2:]
    near = " ".join([*before, str(first.get("highlight") or "")]).strip()
    return f" near {near!r}" if near else ""


def _accesses(statement: exp.Expr, schema: SchemaLookup) -> list[TableAccess]:
    _refuse_system_tables(statement, schema)
    accesses = []
    for cte in statement.find_all(exp.CTE):
        # PostgreSQL allows WITH x AS (DELETE ... RETURNING ...).
        if isinstance(cte.this, exp.DML):
            accesses += _accesses(cte.this, schema)
    statement = statement.unnest()
    if isinstance(statement, exp.SetOperation):
        for branch in _branches(statement):
            accesses += _reads(branch, schema, statement)
    elif isinstance(statement, exp.Select):
        accesses += _reads(statement, schema)
    elif isinstance(statement, exp.Insert):
        accesses += _inserts(statement, schema)
    elif isinstance(statement, exp.Update):
        accesses += _updates(statement, schema)
    elif isinstance(statement, exp.Delete):
        accesses += _deletes(statement, schema)
    elif isinstance(statement, exp.Merge):
        accesses.append(_insert_into(statement.this, schema, "an upsert"))
    return accesses


def _refuse_system_tables(statement: exp.Expr, schema: SchemaLookup) -> None:
    tables = [table for table in statement.find_all(exp.Table) if table.name]
    system = [table for table in tables if schema.is_system(table.name, table.db)]
    if any(schema.table(table.name, table.db) is None for table in system):
        raise NotAnAccess("questions about the server")


def _branches(statement: exp.Expr) -> Iterable[exp.Expr]:
    statement = statement.unnest()
    if isinstance(statement, exp.SetOperation):
        yield from _branches(statement.left)
        yield from _branches(statement.right)
    else:
        yield statement


def _reads(
    select: exp.Expr, schema: SchemaLookup, around: exp.Expr | None = None
) -> list[TableAccess]:
    """Returns the reads of a SELECT. `around` is the UNION or INSERT whose WITH it may use."""
    query = MinedQuery(schema)
    scope = SelectScope(schema)
    if around is not None:
        add_ctes(around, query, scope)
    # Every branch of a UNION is a read of its own.
    if isinstance(around, exp.SetOperation):
        query.remarks.append("one part of a UNION")
    read_select(select, query, scope)
    if not query.occurrences:
        return []
    return [_access("aggregate" if query.is_aggregate else "read", query)]


def _access(
    operation: Operation, query: MinedQuery, target: TableOccurrence | None = None
) -> TableAccess:
    """Returns the access from the view of the table that is read: with its own columns where they
    are equal to others by the joins."""
    main = target or _wanted_most(query)
    access = TableAccess(operation, main.table)
    own = _OwnNames(query, main)
    access.equality = _in_order(main, (own.of(reference) for reference in query.equality))
    access.forms = {str(own.of(reference)): form for reference, form in query.forms.items()}
    access.range = _in_order(main, (own.of(reference) for reference in query.range))
    access.filters = [str(own.of(reference)) for reference in query.filters]
    access.remarks = list(query.remarks)
    access.references = _undeclared(query)
    access.is_among = query.is_among
    access.is_consistent = query.is_locking
    if query.hierarchy is not None and query.hierarchy.occurrence.table is main.table:
        access.hierarchy = str(query.hierarchy)
    _add_self_join(access, query, main, own)
    if operation in ("read", "aggregate"):
        _add_wanted(access, query, main)
        _add_through(access, query, main)
    if operation == "read":
        access.order_by = [str(own.of(reference)) for reference, _ in query.order]
        access.limit = query.limit
        directions = [is_descending for _, is_descending in query.order]
        access.is_descending = directions[:1] == [True]
        if len(set(directions)) > 1:
            access.remarks.append("in mixed order")
    return access


def _undeclared(query: MinedQuery) -> list[str]:
    """Returns joins of a column with another table's key that have no foreign key."""
    references = []
    for link in query.links:
        first, second = link
        keys = [side for side in link if is_unique(side.occurrence.table, {side.column})]
        # With a key on both sides, the direction of the reference cannot be told.
        if len(keys) != 1 or first.occurrence.table is second.occurrence.table:
            continue
        child, parent = link if keys == [second] else (second, first)
        links = query.schema.join_paths.links
        declared = (*links[child.occurrence.table.name], *links[parent.occurrence.table.name])
        if not any(frozenset(map(str, link)) in foreign_key.pairs() for foreign_key in declared):
            references.append(f"{child} = {parent}")
    return references


def _add_self_join(
    access: TableAccess, query: MinedQuery, main: TableOccurrence, own: _OwnNames
) -> None:
    """Separates conditions of a self-join: those on the table's other occurrence are filters."""
    tested = {own.of(reference) for reference in (*query.equality, *query.range)}
    mine = {str(reference) for reference in tested if reference.occurrence is main}
    others = {
        str(reference)
        for reference in tested
        if reference.occurrence is not main and reference.occurrence.table is main.table
    }
    if others:
        access.equality = [name for name in access.equality if name in mine or name not in others]
        access.range = [name for name in access.range if name in mine or name not in others]
        access.filters += sorted(others - mine)
        access.remarks.append("of a table that is joined to itself")


def _wanted_most(query: MinedQuery) -> TableOccurrence:
    """Returns the only table whose columns are read, or the first of several."""
    read = [occurrence for occurrence in query.occurrences if query.wanted.get(occurrence)]
    return read[0] if len(read) == 1 else query.occurrences[0]


class _OwnNames:
    """Names columns by equal columns of one occurrence, as the joins of the statement make them
    equal."""

    def __init__(self, query: MinedQuery, main: TableOccurrence) -> None:
        self._main = main
        self._groups: list[set[ColumnReference]] = []
        for link in query.links:
            touched = [group for group in self._groups if group & set(link)]
            merged = set(link).union(*touched)
            self._groups = [group for group in self._groups if group not in touched] + [merged]

    def of(self, reference: ColumnReference) -> ColumnReference:
        group = next((group for group in self._groups if reference in group), {reference})
        own = sorted(member.column for member in group if member.occurrence is self._main)
        return ColumnReference(self._main, own[0]) if own else reference


def _in_order(main: TableOccurrence, references: Iterable[ColumnReference]) -> list[str]:
    """Sorts columns: the table's own ones first, in its order, then the others by name."""
    positions = {column.name: i for i, column in enumerate(main.table.columns)}

    def place(reference: ColumnReference) -> tuple[bool, int, str]:
        is_own = reference.occurrence is main
        return (not is_own, positions[reference.column] if is_own else 0, str(reference))

    return [str(reference) for reference in sorted(set(references), key=place)]


def _add_wanted(access: TableAccess, query: MinedQuery, main: TableOccurrence) -> None:
    columns_read = {
        occurrence: query.wanted.get(occurrence, set()) for occurrence in query.occurrences
    }
    others = [
        occurrence
        for occurrence in query.occurrences
        if occurrence is not main and columns_read[occurrence]
    ]
    access.joins = sorted({other.table.name for other in others})
    is_whole = all(
        len(columns_read[table]) == len(table.table.columns) for table in (main, *others)
    )
    if not is_whole:
        access.columns = sorted(
            {
                str(ColumnReference(table, name))
                for table in (main, *others)
                for name in columns_read[table]
            }
        )
    # SELECT 1 or EXISTS: the key is enough for an answer.
    if not any(columns_read.values()) and access.operation == "read":
        access.columns = [str(ColumnRef(main.table.name, name)) for name in main.table.primary_key]
        access.remarks.append("only whether it is there")


def _add_through(access: TableAccess, query: MinedQuery, main: TableOccurrence) -> None:
    """Adds the path of the joins, if several paths lead to the same table."""
    joined = {frozenset(str(side) for side in link) for link in query.links if len(set(link)) == 2}
    tested = [ColumnRef.parse(name).table for name in (*access.equality, *access.range)]
    taken: set[str] = set()
    for other in {*access.joins, *tested} - {main.table.name}:
        paths = query.schema.join_paths.between(main.table.name, other)
        if len(paths) > 1:
            names = zip(distinguishing_names(paths), paths, strict=True)
            taken |= {name for name, path in names if all(link.pairs() <= joined for link in path)}
    access.through = sorted(taken - set(tested) - set(access.joins))


def _inserts(insert: exp.Insert, schema: SchemaLookup) -> list[TableAccess]:
    remark = ""
    conflict = insert.args.get("conflict")
    if conflict:
        does_update = bool(conflict.expressions) or conflict.args.get("duplicate")
        remark = "an upsert" if does_update else "only when it is not there yet"
    elif insert.args.get("ignore"):
        remark = "only when it is not there yet"
    accesses = [_insert_into(insert.this, schema, remark)]
    feeding = insert.expression
    if isinstance(feeding, exp.Query):
        for branch in _branches(feeding):
            accesses += _reads(branch, schema, insert)
    elif feeding is not None:
        accesses += _inner_reads([feeding], schema, SelectScope(schema))
    return accesses


def _insert_into(target: exp.Expr, schema: SchemaLookup, remark: str) -> TableAccess:
    table = target.this if isinstance(target, exp.Schema) else target
    named = target.expressions if isinstance(target, exp.Schema) else []
    occurrence = _occurrence(table, schema)
    access = TableAccess("insert", occurrence.table, remarks=[remark] if remark else [])
    columns = [schema.column(occurrence.table, column.name) for column in named]
    access.columns = sorted(
        str(ColumnRef(occurrence.table.name, column.name)) for column in columns if column
    )
    return access


def _occurrence(table: exp.Expr, schema: SchemaLookup) -> TableOccurrence:
    if not isinstance(table, exp.Table):
        raise NotUnderstood("what it changes is not a table")
    table_found = schema.table(table.name, table.db)
    if table_found is None:
        raise unknown_table(table, schema)
    return TableOccurrence(table_found)


def _updates(update: exp.Update, schema: SchemaLookup) -> list[TableAccess]:
    query, scope = _changing(update, schema)
    assigned = []
    for expression in update.expressions:
        left = expression.this if isinstance(expression, exp.EQ) else expression
        columns = left.expressions if isinstance(left, exp.Tuple) else [left]
        assigned += [scope.resolve(column) for column in columns if isinstance(column, exp.Column)]
    changed = [reference for reference in assigned if reference]
    if not changed:
        raise NotUnderstood("the columns that it changes are unknown")
    # PostgreSQL writes the columns of SET without a table: then the first table is meant.
    target = changed[0].occurrence
    access = _access("update", query, target)
    access.columns = sorted({str(reference) for reference in changed})
    return [access, *_inner_reads(update.expressions, schema, scope)]


def _inner_reads(
    parts: Iterable[exp.Expr], schema: SchemaLookup, scope: SelectScope
) -> list[TableAccess]:
    """Returns the reads of subqueries that supply values to write."""
    accesses = []
    for part in parts:
        for select in part.find_all(exp.Select):
            query = MinedQuery(schema)
            read_select(select, query, scope)
            if query.occurrences:
                query.equality += _given_from_outside(query)
                accesses.append(_access("aggregate" if query.is_aggregate else "read", query))
    return accesses


def _given_from_outside(query: MinedQuery) -> list[ColumnReference]:
    """Returns columns that must equal one of the outer statement's row, which is already known."""
    inside = set(query.occurrences)
    sides = [*query.links, *((right, left) for left, right in query.links)]
    return [
        left
        for left, right in sides
        if left.occurrence in inside and right.occurrence not in inside
    ]


def _deletes(delete: exp.Delete, schema: SchemaLookup) -> list[TableAccess]:
    query, scope = _changing(delete, schema)
    targets = []
    for table in delete.args.get("tables") or []:
        source = scope.source(table.alias_or_name)
        if isinstance(source, TableOccurrence):
            targets.append(source)
    return [_access("delete", query, target) for target in targets or query.occurrences[:1]]


def _changing(
    statement: exp.Update | exp.Delete, schema: SchemaLookup
) -> tuple[MinedQuery, SelectScope]:
    """Collects the tables and conditions of an UPDATE or DELETE."""
    query, scope = MinedQuery(schema), SelectScope(schema)
    add_ctes(statement, query, scope)
    add_source(statement.this, query, scope)
    from_ = statement.args.get("from_")
    for source in [from_.this] if from_ else statement.args.get("using") or []:
        if source.alias_or_name.lower() not in scope.sources:
            add_source(source, query, scope)
        for join in source.args.get("joins") or []:
            if join.this.alias_or_name.lower() not in scope.sources:
                add_join(join, query, scope)
            elif join.args.get("on"):
                MinedConditions(query, scope, read_select).add(join.args["on"])
    where = statement.args.get("where")
    if where:
        MinedConditions(query, scope, read_select).add(where.this)
    if not query.occurrences:
        raise NotUnderstood("what it changes is not a table")
    return query, scope
