"""Checks that a request serves every pattern, and that no key gets more traffic than a partition
takes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from partita.foundation.service_limits import (
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    TRANSACTION_FACTOR,
)
from partita_migrate.costing.capacity_estimate import PatternUnits, units, write_units
from partita_migrate.designing.requests.exact_requests import never_null
from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.model.design import (
    READS,
    Entity,
    ItemAttribute,
    PatternAccess,
    SecondaryIndex,
    TableDesign,
    columns_of,
    type_attribute,
)
from partita_migrate.model.design_findings import CheckedDesign, DesignFinding, error, warning
from partita_migrate.model.keys.key_formats import is_order_preserving
from partita_migrate.model.keys.key_templates import template_fields
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.column_refs import ColumnRef, qualified
from partita_migrate.understanding.statements.pattern_statements import PatternStatements
from partita_migrate.understanding.statements.resolved_statements import NotExact, ResolvedQuery


def check_serving(subject: CheckedDesign) -> Iterator[DesignFinding]:
    yield from _patterns_are_served(subject)
    yield from _keys_are_not_hot(subject)


def _patterns_are_served(subject: CheckedDesign) -> Iterator[DesignFinding]:
    if not subject.patterns:
        yield warning(
            "patterns.toml",
            "there are no access patterns to check the model against; write"
            " some, or run `partita migrate analyze` on a server that keeps statement statistics",
        )
    served: dict[str, list[PatternAccess]] = {}
    for access in subject.design.access:
        served.setdefault(access.pattern, []).append(access)
    unserved = {pattern.pattern: pattern.why for pattern in subject.design.unserved}
    for name in (name for name in served if name not in subject.patterns):
        yield warning(f"access {name!r}", "this pattern does not exist any more")
    for pattern in subject.patterns.values():
        accesses = served.get(pattern.name, [])
        place = f"access {pattern.name!r}"
        if not accesses:
            why = unserved.get(pattern.name, "it would need a scan")
            yield error(
                place,
                f"no request serves this pattern, {why}; change it, or remove it from"
                " patterns.toml",
            )
        if len(accesses) > 1:
            yield warning(place, f"it takes {len(accesses)} requests instead of one")
        for position, access in enumerate(accesses):
            table = subject.design.table(access.table)
            assert table is not None
            if access.request in READS:
                ordered = pattern if not position else replace(pattern, range=[], order_by=[])
                yield from _read_is_served(subject, place, access, ordered, table)
            elif access.request != "TTL":
                yield from _whole_key(place, access, table)


def _read_is_served(
    subject: CheckedDesign,
    place: str,
    access: PatternAccess,
    pattern: AccessPattern,
    table: TableDesign,
) -> Iterator[DesignFinding]:
    index = table.index(access.index) if access.index else None
    keys = index or table
    if access.request == "Scan":
        if not table.is_scanned:
            yield error(place, f"it is a scan; if {table.name} stays small, set is_scanned on it")
        return
    conditions = {condition.attribute: condition for condition in access.key}
    first = conditions.pop(keys.partition_key.name, None)
    if first is None or first.comparison != "=":
        yield error(
            place,
            f"{keys.partition_key.name} must be equal to a value; without it, it is a scan",
        )
    sort = keys.sort_key.name if keys.sort_key else None
    for name in (name for name in conditions if name != sort):
        yield error(place, f"{name} is not a key attribute of {keys.name}; move it into filter")
    if access.request == "GetItem":
        if index is not None:
            yield error(place, "GetItem cannot read an index; use Query")
        yield from _whole_key(place, access, table)
    if pattern.is_consistent and index is not None and index.kind == "global":
        yield error(place, "a global index does not support consistent reads")
    if access.requests > 1:
        yield warning(place, f"it takes {access.requests:g} requests instead of one")
    kind = type_attribute(table)
    filters = [condition.attribute for condition in access.filter if condition.attribute != kind]
    if filters and access.request in READS:
        names = ", ".join(filters)
        yield warning(
            place, f"{names} is filtered after reading: items that are filtered out are charged too"
        )
    if not _is_planned(subject, access):
        yield from _range_fits(subject, place, access, pattern, table, keys)


def _is_planned(subject: CheckedDesign, access: PatternAccess) -> bool:
    """True when the request is what the planner makes of the pattern's statement on these keys."""
    inventory = subject.volumes.inventory
    try:
        query = PatternStatements(SchemaLookup(inventory)).of(subject.patterns[access.pattern])
        if not isinstance(query, ResolvedQuery):
            return False
        planner = ReadPlanner(subject.design, inventory, never_null(subject.volumes))
        planned = planner.plan(query, access.pattern)
    except (NotExact, NotServed):
        return False
    return any(replace(request, why="") == replace(access, why="") for request in planned)


def _range_fits(
    subject: CheckedDesign,
    place: str,
    access: PatternAccess,
    pattern: AccessPattern,
    table: TableDesign,
    keys: TableDesign | SecondaryIndex,
) -> Iterator[DesignFinding]:
    """Checks that the sort key holds the column of the pattern's range or order."""
    columns = [
        subject.schema.canonical(ColumnRef.parse(name))
        for name in pattern.range or pattern.order_by
    ]
    if not columns or access.request == "GetItem" or access.limit == 1 or access.sorts:
        return
    if _is_tested_later(subject, access, table, columns[0]):
        return
    equal_columns = {ColumnRef.parse(name) for name in pattern.equality}
    keys_of = subject.schema.unique_keys(pattern.table)
    if any({ColumnRef(pattern.table, name) for name in key} <= equal_columns for key in keys_of):
        return
    entity = table.entity(access.entity)
    attribute = entity.attribute(keys.sort_key.name) if entity and keys.sort_key else None
    if entity is None or attribute is None:
        yield error(place, f"{keys.name} has no sort key for {columns[0].column}")
        return
    # An item without the index's sort key is missing from the index, so the query would lose the
    # row.
    share = subject.volumes.absent_share(entity, attribute)
    if isinstance(keys, SecondaryIndex) and not pattern.range and share:
        yield warning(
            place,
            f"{share:.0%} of the rows have no {columns[0].column}: they are not in"
            f" {keys.name}, and not in the answer",
        )
    sort_key_columns = [subject.schema.canonical(ref) for ref in columns_of(entity, attribute)]
    if columns[0].column not in {ref.column for ref in sort_key_columns}:
        yield error(
            place, f"the sort key {attribute.name} of {keys.name} does not hold {columns[0]}"
        )
    yield from _numbers_sort(subject, place, entity, attribute, columns[0])


def _is_tested_later(
    subject: CheckedDesign, access: PatternAccess, table: TableDesign, column: ColumnRef
) -> bool:
    entity = table.entity(access.entity)
    names = {condition.attribute for condition in (*access.filter, *access.tested)}
    return entity is not None and any(
        subject.schema.canonical(ref) == column
        for attribute in entity.attributes
        if attribute.name in names
        for ref in columns_of(entity, attribute)
    )


def _numbers_sort(
    subject: CheckedDesign, place: str, entity: Entity, attribute: ItemAttribute, column: ColumnRef
) -> Iterator[DesignFinding]:
    """Checks that numbers keep their order in a sort key of type S."""
    for part in template_fields(attribute.template or ""):
        ref = qualified(entity.source, part.name)
        if subject.volumes.kind(ref) not in ("integer", "decimal", "float"):
            continue
        if is_order_preserving(part.format, "N"):
            continue
        measured = subject.volumes.column(ref)
        is_padded = part.format.startswith("0")
        if subject.schema.canonical(ref) == column and subject.volumes.kind(ref) != "integer":
            if not is_padded:
                yield error(
                    place,
                    f"{ref} has fractions, which do not sort as the text {attribute.name}: give"
                    f" an index {ref.column} itself as its sort key, of type N",
                )
        elif subject.schema.canonical(ref) == column and not is_padded:
            yield error(place, f"{ref} is not padded in {attribute.name}: as text, 10 is before 9")
        elif measured is not None and (measured.least or "").startswith("-"):
            yield error(place, f"{ref} has negative values, which do not sort as text")


def _whole_key(place: str, access: PatternAccess, table: TableDesign) -> Iterator[DesignFinding]:
    equal_attributes = {
        condition.attribute for condition in access.key if condition.comparison == "="
    }
    for key in table.keys:
        if key.name not in equal_attributes:
            yield error(place, f"{access.request} needs all of the key; {key.name} is missing")


def _keys_are_not_hot(subject: CheckedDesign) -> Iterator[DesignFinding]:
    counted = units(subject.design, list(subject.patterns.values()), subject.volumes)
    for access, pattern_units in zip(_known_accesses(subject), counted.patterns, strict=True):
        table = subject.design.table(access.table)
        entity = table.entity(access.entity) if table else None
        if table is not None and entity is not None:
            yield from _heat(subject, access, pattern_units, table, entity)


def _known_accesses(subject: CheckedDesign) -> list[PatternAccess]:
    """Returns the requests in the order in which their units are counted."""
    return [access for access in subject.design.access if access.pattern in subject.patterns]


def _heat(
    subject: CheckedDesign,
    access: PatternAccess,
    pattern_units: PatternUnits,
    table: TableDesign,
    entity: Entity,
) -> Iterator[DesignFinding]:
    index = table.index(access.index) if access.index else None
    attribute = entity.attribute((index or table).partition_key.name)
    if attribute is None:
        return
    share = _top_share(subject, entity, attribute) / max(attribute.shards, 1)
    place = f"access {access.pattern!r}"
    written = share * _own_write_units(subject, access, pattern_units, entity)
    if written > PARTITION_WRITE_UNITS:
        yield error(
            place,
            f"one value of {attribute.name} would get {written:,.0f} write units a second; a"
            f" partition takes {PARTITION_WRITE_UNITS:,}: spread it over shards",
        )
    if pattern_units.read_units * share > PARTITION_READ_UNITS:
        yield warning(
            place,
            f"one value of {attribute.name} may get {pattern_units.read_units * share:,.0f} read"
            f" units a second; a partition delivers {PARTITION_READ_UNITS:,}: cache it",
        )


def _own_write_units(
    subject: CheckedDesign, access: PatternAccess, pattern_units: PatternUnits, entity: Entity
) -> float:
    """Returns the write units of the items that the pattern addresses, without copies elsewhere."""
    if not pattern_units.write_units:
        return 0.0
    factor = TRANSACTION_FACTOR if access.request == "TransactWriteItems" else 1
    each = write_units(subject.volumes.item_bytes(entity)) * factor
    return pattern_units.calls_per_second * pattern_units.items * each


def _top_share(subject: CheckedDesign, entity: Entity, attribute: ItemAttribute) -> float:
    """Returns the share of the items that have the most frequent partition key."""
    refs = columns_of(entity, attribute)
    if not refs or attribute.constant is not None:
        return 1 - subject.volumes.absent_share(entity, attribute)
    # Rows of today all have today's date: one key takes every write.
    if all(subject.volumes.kind(ref) in ("date", "datetime", "time") for ref in refs):
        return 1.0
    skew = subject.volumes.skew(entity.source, [ref.column for ref in refs])
    return skew.top_share if skew else 0.0
