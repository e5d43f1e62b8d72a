"""EXISTS, NOT EXISTS and IN (SELECT ...): as a join, or as a request for each row.

A join finds the rows by what the SELECT inside gives, and drops repeats; it is taken first. Else
the rows outside are read, and one request for each tells whether to keep it.
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


def joined(question: ResolvedQuery) -> ResolvedQuery:
    """The same rows by joins, some perhaps several times; NotServed when no join says it."""
    for existence in question.existences:
        inner = existence.question
        pairs, own = _pairs(existence)
        if existence.is_negated or inner.alternatives or not pairs:
            raise NotServed("rows that must not be there are no join")
        if set(inner.tables) & set(question.tables):
            raise NotServed(f"it reads {inner.table} outside and inside")
        question = replace(
            question,
            joins=(*question.joins, JoinedTable(inner.table, pairs), *inner.joins),
            tests=(*question.tests, *own),
        )
    return replace(question, existences=())


def repeats(source: DesignedSource, question: ResolvedQuery) -> bool:
    """Whether a join may bring a row several times."""
    return not all(
        not existence.question.joins
        and source.is_unique(
            existence.question.table,
            {test.ref.column for test in existence.question.tests if test.is_fixing},
        )
        for existence in question.existences
    )


def distinct(source: DesignedSource, question: ResolvedQuery) -> ResolvedQuery:
    """All rows of a join, with what tells the repeated ones."""
    return _whole(joined(question), _identity(source, question))


def plain(question: ResolvedQuery) -> ResolvedQuery:
    """The rows outside, all of them, with what the SELECTs inside take of them."""
    taken = [ref for existence in question.existences for ref in existence.outer_columns]
    return _whole(replace(question, existences=()), taken)


def check(existence: Existence) -> ResolvedQuery:
    """For one row that is there."""
    return replace(existence.question, columns=(), order=(), limit=None, existences=())


def _whole(question: ResolvedQuery, more: list[ColumnRef]) -> ResolvedQuery:
    columns = tuple(dict.fromkeys((*question.columns, *more)))
    return replace(question, columns=columns, limit=None, offset=None)


def _identity(source: DesignedSource, question: ResolvedQuery) -> list[ColumnRef]:
    found = []
    for name in question.tables:
        table = source.table(name)
        if table is None or not table.primary_key:
            raise NotServed(f"nothing tells the rows of {name} apart")
        found += [ColumnRef(name, column) for column in table.primary_key]
    return found


def _pairs(
    existence: Existence,
) -> tuple[tuple[tuple[ColumnRef, ColumnRef], ...], tuple[ColumnTest, ...]]:
    """What joins the rows inside to those outside, and their other tests."""
    pairs: list[tuple[ColumnRef, ColumnRef]] = []
    own: list[ColumnTest] = []
    for test in existence.question.tests:
        outer = next((v.outer for v in test.values if isinstance(v, Parameter) and v.outer), None)
        if outer is None:
            own.append(test)
        elif test.operator == "=" and test.ref.table == existence.question.table:
            pairs.append((outer, test.ref))
        else:
            raise NotServed("the rows inside are not found by equal values alone")
    return tuple(pairs), tuple(own)
