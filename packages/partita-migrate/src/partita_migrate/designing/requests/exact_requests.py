"""A design with the requests that answer each pattern, planned on its own keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from msgspec.structs import replace

from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.read_planner import ParameterNameClash, ReadPlanner
from partita_migrate.designing.requests.write_planner import CopiesNotFound, WritePlanner
from partita_migrate.model.design import (
    READS,
    Design,
    Entity,
    ItemAttribute,
    PatternAccess,
    SecondaryIndex,
    TableDesign,
    UnservedPattern,
)
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.literal_values import not_in_keys
from partita_migrate.understanding.statements.pattern_statements import (
    PatternStatements,
    StatementUnknown,
)
from partita_migrate.understanding.statements.resolved_statements import (
    Insertion,
    NotExact,
    ResolvedQuery,
    Statement,
)


def with_exact_requests(
    design: Design,
    patterns: list[AccessPattern],
    volumes: Volumes,
    refused: dict[str, str],
) -> Design:
    """Reads are planned anew from their statements; what cannot be is unserved, with the reason.

    `refused`: patterns for which no items were planned, and why.
    """
    statements = PatternStatements(SchemaLookup(volumes.inventory))
    planned = _plan_all(design, patterns, volumes, statements, refused)
    if planned.blocked:
        # What is looked up for each item needs no copy that has to be changed.
        fewer = _plan_all(
            _without_copies(design, planned.blocked), patterns, volumes, statements, refused
        )
        if len(fewer.unserved) < len(planned.unserved):
            planned = fewer
    said = [f"{one.pattern!r} is not served: {one.why}." for one in planned.unserved]
    return replace(
        planned.design,
        access=planned.served,
        unserved=planned.unserved,
        risks=[*said, *design.risks],
    )


@dataclass(frozen=True)
class _Planned:
    design: Design
    served: list[PatternAccess]
    unserved: list[UnservedPattern]
    blocked: set[tuple[str, str]]
    """(entity, table): copies of a table's columns that no key finds when they change."""


def _plan_all(
    design: Design,
    patterns: list[AccessPattern],
    volumes: Volumes,
    statements: PatternStatements,
    refused: dict[str, str],
) -> _Planned:
    planner = ReadPlanner(design, volumes.inventory, never_null(volumes))
    drafted: dict[str, list[PatternAccess]] = {}
    for access in design.access:
        drafted.setdefault(access.pattern, []).append(access)
    planned = _Planned(design, [], [], set())
    for pattern in patterns:
        try:
            found = _requests(pattern, statements, planner, drafted.get(pattern.name, []))
            planned.served.extend(found)
        except (NotExact, NotServed) as reason:
            is_said = isinstance(reason, NotExact | ParameterNameClash) and not isinstance(
                reason, StatementUnknown
            )
            why = str(reason) if is_said else refused.get(pattern.name) or str(reason)
            planned.unserved.append(UnservedPattern(pattern=pattern.name, why=why))
            if isinstance(reason, CopiesNotFound):
                planned.blocked.add((reason.entity, pattern.table))
    return planned


def _without_copies(design: Design, blocked: set[tuple[str, str]]) -> Design:
    """Without the single columns that some items copy from some tables; keys stay."""

    def kept(table: TableDesign, entity: Entity) -> list[ItemAttribute]:
        homes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
        keys = {key.name for home in homes for key in home.keys}
        return [
            attribute
            for attribute in entity.attributes
            if attribute.name in keys
            or not (
                attribute.through
                and attribute.column
                and (entity.name, ColumnRef.parse(attribute.column).table) in blocked
            )
        ]

    def index(table: TableDesign, index: SecondaryIndex) -> SecondaryIndex:
        known = {attr.name for entity in table.entities for attr in kept(table, entity)}
        return replace(index, include=[name for name in index.include if name in known])

    tables = [
        replace(
            table,
            entities=[replace(entity, attributes=kept(table, entity)) for entity in table.entities],
            indexes=[index(table, one) for one in table.indexes],
        )
        for table in design.tables
    ]
    return replace(design, tables=tables)


def never_null(volumes: Volumes) -> set[ColumnRef]:
    """Columns without a NULL in any row that was sampled."""
    refs = (
        ColumnRef(table.name, column.name)
        for table in volumes.inventory.tables
        for column in table.columns
    )
    return {ref for ref in refs if volumes.column(ref) is not None and not volumes.null_share(ref)}


def _is_unbounded(planner: ReadPlanner, ref: ColumnRef) -> bool:
    """Fractions, which a text does not sort."""
    column = planner.column(ref)
    return column is not None and column.kind in ("decimal", "float")


def _requests(
    pattern: AccessPattern,
    statements: PatternStatements,
    planner: ReadPlanner,
    drafted: list[PatternAccess],
) -> list[PatternAccess]:
    if pattern.operation not in ("read", "aggregate"):
        if not drafted:
            raise NotServed("no item can be found by what it gives")
        return _writes(pattern, statements, planner, drafted)
    try:
        question = statements.of(pattern)
    except StatementUnknown as reason:
        sorted_by = map(ColumnRef.parse, (*pattern.range, *pattern.order_by))
        if not drafted or any(_is_unbounded(planner, ref) for ref in sorted_by):
            raise NotServed(str(reason)) from reason
        return drafted
    if not isinstance(question, ResolvedQuery):
        raise NotExact("it is called a read, and its statement is none")
    _refuse_columns(planner, question)
    return planner.plan(question, pattern.name, is_consistent=pattern.is_consistent)


def _refuse_columns(planner: ReadPlanner, statement: Statement) -> None:
    """What the source compares in a way that keys cannot, or computes itself."""
    for ref in _compared(planner, statement):
        column = planner.column(ref)
        why = not_in_keys(column, planner.inventory.dialect) if column is not None else ""
        if why:
            raise NotServed(f"{ref}: {why}")


def _compared(planner: ReadPlanner, statement: Statement) -> Iterator[ColumnRef]:
    if isinstance(statement, Insertion):
        table = planner.table(statement.table)
        unique = [index.columns for index in table.indexes if index.is_unique] if table else []
        for name in (*(table.primary_key if table else ()), *chain(*unique)):
            yield ColumnRef(statement.table, name)
        return
    tests = statement.all_tests if isinstance(statement, ResolvedQuery) else statement.tests
    yield from (test.ref for test in tests if test.operator not in ("is null", "is not null"))
    if isinstance(statement, ResolvedQuery):
        yield from (one.ref for one in statement.order)
        yield from (ref for join in statement.joins for pair in join.pairs for ref in pair)
        for existence in statement.existences:
            yield from _compared(planner, existence.question)


def _writes(
    pattern: AccessPattern,
    statements: PatternStatements,
    planner: ReadPlanner,
    drafted: list[PatternAccess],
) -> list[PatternAccess]:
    if any(one.request == "TTL" for one in drafted):
        return drafted
    try:
        statement = statements.of(pattern)
    except NotExact:
        # What it writes is known, and its words are not: it stays unproven.
        return drafted
    if isinstance(statement, ResolvedQuery):
        raise NotServed("it is called a write, and its statement is none")
    _refuse_columns(planner, statement)
    planned = WritePlanner(planner.design, planner).plan(statement, pattern.name, drafted)
    return [
        one if one.request in READS else replace(one, transaction=pattern.transaction)
        for one in planned
    ]
