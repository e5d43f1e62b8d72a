"""A design with the requests that answer each pattern, planned on its own keys."""

from __future__ import annotations

from msgspec.structs import replace

from partita.migrate.designing.requests.reads import NotServed, ReadPlanner
from partita.migrate.model.design import Access, Design, Unserved
from partita.migrate.model.volumes import Volumes
from partita.migrate.statements.patterns import NotStated, Statements
from partita.migrate.statements.question import NotExact, Question
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.patterns.mining.lookup import SchemaLookup
from partita.migrate.understanding.schema.column_refs import Ref


def with_exact_requests(
    design: Design,
    patterns: list[AccessPattern],
    volumes: Volumes,
    refused: dict[str, str],
) -> Design:
    """Reads are planned anew from their statements; what cannot be is unserved, with the reason.

    `refused`: patterns for which no items were planned, and why.
    """
    inventory = volumes.inventory
    statements = Statements(SchemaLookup(inventory))
    planner = ReadPlanner(design, inventory, never_null(volumes))
    drafted: dict[str, list[Access]] = {}
    for access in design.access:
        drafted.setdefault(access.pattern, []).append(access)
    served: list[Access] = []
    unserved: list[Unserved] = []
    for pattern in patterns:
        try:
            served += _requests(pattern, statements, planner, drafted.get(pattern.name, []))
        except (NotExact, NotServed) as reason:
            why = refused.get(pattern.name) or str(reason)
            unserved.append(Unserved(pattern=pattern.name, why=why))
    said = [f"{one.pattern!r} is not served: {one.why}." for one in unserved]
    return replace(design, access=served, unserved=unserved, risks=[*said, *design.risks])


def never_null(volumes: Volumes) -> set[Ref]:
    """Columns without a NULL in any row that was sampled."""
    refs = (
        Ref(table.name, column.name)
        for table in volumes.inventory.tables
        for column in table.columns
    )
    return {ref for ref in refs if volumes.column(ref) is not None and not volumes.null_share(ref)}


def _is_unbounded(planner: ReadPlanner, ref: Ref) -> bool:
    """Fractions, which a text does not sort."""
    column = planner.column(ref)
    return column is not None and column.kind in ("decimal", "float")


def _requests(
    pattern: AccessPattern, statements: Statements, planner: ReadPlanner, drafted: list[Access]
) -> list[Access]:
    if pattern.operation not in ("read", "aggregate"):
        if not drafted:
            raise NotServed("no item can be found by what it gives")
        return drafted
    try:
        question = statements.of(pattern)
    except NotStated as reason:
        sorted_by = map(Ref.parse, (*pattern.range, *pattern.order_by))
        if not drafted or any(_is_unbounded(planner, ref) for ref in sorted_by):
            raise NotServed(str(reason)) from reason
        return drafted
    if not isinstance(question, Question):
        raise NotExact("it is called a read, and its statement is none")
    return planner.plan(question, pattern.name, is_consistent=pattern.is_consistent)
