"""Plans the requests of every pattern on a design's own keys."""

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
    """Returns the design with requests that are planned from the statements themselves.

    Patterns that cannot be planned become unserved, with the reason. `refused` has the reasons of
    patterns for which no items were planned.
    """
    statements = PatternStatements(SchemaLookup(volumes.inventory))
    planned = _plan_all(design, patterns, volumes, statements, refused)
    if planned.blocked:
        # Without the repeated columns the patterns look them up, and updates need not change any
        # copies.
        fewer = _plan_all(
            _without_copies(design, planned.blocked), patterns, volumes, statements, refused
        )
        if len(fewer.unserved) < len(planned.unserved):
            planned = fewer
    unserved_risks = [
        f"{pattern.pattern!r} is not served: {pattern.why}." for pattern in planned.unserved
    ]
    return replace(
        planned.design,
        access=planned.served,
        unserved=planned.unserved,
        risks=[*unserved_risks, *design.risks],
    )


@dataclass(frozen=True)
class _Planned:
    design: Design
    served: list[PatternAccess]
    unserved: list[UnservedPattern]
    blocked: set[tuple[str, str]]
    """Pairs of entity and table: the entity repeats columns of the table, and no key finds its
    items when they change."""


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
            requests = _requests(pattern, statements, planner, drafted.get(pattern.name, []))
            planned.served.extend(requests)
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
    """Returns the design without these repeated columns, unless they are part of a key."""

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
        # An index projects only attributes that some item still has.
        names = {attr.name for entity in table.entities for attr in kept(table, entity)}
        return replace(index, include=[name for name in index.include if name in names])

    tables = [
        replace(
            table,
            entities=[replace(entity, attributes=kept(table, entity)) for entity in table.entities],
            indexes=[index(table, secondary) for secondary in table.indexes],
        )
        for table in design.tables
    ]
    return replace(design, tables=tables)


def never_null(volumes: Volumes) -> set[ColumnRef]:
    """Returns the columns without NULL in any sampled row."""
    refs = (
        ColumnRef(table.name, column.name)
        for table in volumes.inventory.tables
        for column in table.columns
    )
    return {ref for ref in refs if volumes.column(ref) is not None and not volumes.null_share(ref)}


def _is_unbounded(planner: ReadPlanner, ref: ColumnRef) -> bool:
    """True for a column with fractions of unlimited length, which texts in keys cannot sort."""
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
            raise NotServed("no item can be found by the given values")
        return _writes(pattern, statements, planner, drafted)
    try:
        query = statements.of(pattern)
    except StatementUnknown as reason:
        sorted_by = map(ColumnRef.parse, (*pattern.range, *pattern.order_by))
        if not drafted or any(_is_unbounded(planner, ref) for ref in sorted_by):
            raise NotServed(str(reason)) from reason
        return drafted
    if not isinstance(query, ResolvedQuery):
        raise NotExact("it is declared as a read, but its statement is not a SELECT")
    _refuse_columns(planner, query)
    return planner.plan(query, pattern.name, is_consistent=pattern.is_consistent)


def _refuse_columns(planner: ReadPlanner, statement: Statement) -> None:
    """Refuses columns that the source computes, or compares in a way that keys cannot."""
    for ref in _compared(planner, statement):
        column = planner.column(ref)
        why = not_in_keys(column, planner.inventory.dialect) if column is not None else ""
        if why:
            raise NotServed(f"{ref}: {why}")


def _compared(planner: ReadPlanner, statement: Statement) -> Iterator[ColumnRef]:
    if isinstance(statement, Insertion):
        table = planner.table(statement.table)
        # An insert compares its values with the existing rows, to refuse duplicates.
        unique = [index.columns for index in table.indexes if index.is_unique] if table else []
        for name in (*(table.primary_key if table else ()), *chain(*unique)):
            yield ColumnRef(statement.table, name)
        return
    tests = statement.all_tests if isinstance(statement, ResolvedQuery) else statement.tests
    yield from (test.ref for test in tests if test.operator not in ("is null", "is not null"))
    if isinstance(statement, ResolvedQuery):
        yield from (sorting.ref for sorting in statement.order)
        yield from (ref for join in statement.joins for pair in join.pairs for ref in pair)
        for existence in statement.existences:
            yield from _compared(planner, existence.query)


def _writes(
    pattern: AccessPattern,
    statements: PatternStatements,
    planner: ReadPlanner,
    drafted: list[PatternAccess],
) -> list[PatternAccess]:
    if any(request.request == "TTL" for request in drafted):
        return drafted
    try:
        statement = statements.of(pattern)
    except NotExact:
        # The pattern says what it writes, but the statement was not understood: the pattern stays
        # unproven.
        return drafted
    if isinstance(statement, ResolvedQuery):
        raise NotServed("it is declared as a write, but its statement is a SELECT")
    _refuse_columns(planner, statement)
    planned = WritePlanner(planner.design, planner).plan(statement, pattern.name, drafted)
    return [
        request if request.request in READS else replace(request, transaction=pattern.transaction)
        for request in planned
    ]
