"""Plans EXISTS, NOT EXISTS and IN (SELECT ...): as a join, or as a request for each row.

A join is preferred: it starts from the rows of the inner SELECT and drops duplicates. Otherwise the
outer rows are read, and one request for each decides whether to keep it.
"""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.requests.item_locations import DesignedSource, NotServed
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Existence,
    JoinedTable,
    Parameter,
    ResolvedQuery,
)


def joined(query: ResolvedQuery) -> ResolvedQuery:
    """Returns the query with joins in place of EXISTS; rows may be repeated. Raises NotServed when
    a join cannot express it."""
    for existence in query.existences:
        inner = existence.query
        pairs, own = _pairs(existence)
        if existence.is_negated or inner.alternatives or not pairs:
            raise NotServed("a join cannot test that rows do not exist")
        if set(inner.tables) & set(query.tables):
            raise NotServed(f"it reads {inner.table} both outside and inside the subquery")
        query = replace(
            query,
            joins=(*query.joins, JoinedTable(inner.table, pairs), *inner.joins),
            tests=(*query.tests, *own),
        )
    return replace(query, existences=())


def repeats(source: DesignedSource, query: ResolvedQuery) -> bool:
    """True when the join can repeat a row."""
    return not all(
        not existence.query.joins
        and source.is_unique(
            existence.query.table,
            {test.ref.column for test in existence.query.tests if test.is_fixing},
        )
        for existence in query.existences
    )


def distinct(source: DesignedSource, query: ResolvedQuery) -> ResolvedQuery:
    """Returns the join with the columns that identify its duplicates."""
    return _whole(joined(query), _identity(source, query))


def plain(query: ResolvedQuery) -> ResolvedQuery:
    """Returns the query for all outer rows, with the columns that the inner SELECTs refer to."""
    taken = [ref for existence in query.existences for ref in existence.taken]
    return _whole(replace(query, existences=()), taken)


def check(existence: Existence) -> ResolvedQuery:
    """Returns the query that checks EXISTS for one given row."""
    return replace(existence.query, columns=(), order=(), limit=None, existences=())


def _whole(query: ResolvedQuery, more: list[ColumnRef]) -> ResolvedQuery:
    columns = tuple(dict.fromkeys((*query.columns, *more)))
    return replace(query, columns=columns, limit=None, offset=None)


def _identity(source: DesignedSource, query: ResolvedQuery) -> list[ColumnRef]:
    identity = []
    for name in query.tables:
        table = source.table(name)
        if table is None or not table.primary_key:
            raise NotServed(f"{name} has no primary key to identify its rows")
        identity += [ColumnRef(name, column) for column in table.primary_key]
    return identity


def _pairs(
    existence: Existence,
) -> tuple[tuple[tuple[ColumnRef, ColumnRef], ...], tuple[ColumnTest, ...]]:
    """Returns the column pairs that join inner and outer rows, and the other tests of the inner
    SELECT."""
    pairs: list[tuple[ColumnRef, ColumnRef]] = []
    own: list[ColumnTest] = []
    for test in existence.query.tests:
        outer = next(
            (value.outer for value in test.values if isinstance(value, Parameter) and value.outer),
            None,
        )
        if outer is None:
            own.append(test)
        elif test.operator == "=" and test.ref.table == existence.query.table:
            pairs.append((outer, test.ref))
        else:
            raise NotServed("the inner rows are not found by equality alone")
    return tuple(pairs), tuple(own)
