"""Vertical partitioning: large columns that are rarely read get an item of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from partita.foundation.service_limits import KB
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.model.design import Entity, ItemAttribute, PatternAccess
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef

LARGE = "large"

LARGE_BYTES = 4 * KB
"""A column of this size costs every reader of the item one more read unit."""

RARELY = 0.1
"""The share of reads and updates up to which a column counts as rarely wanted."""

LargeColumns = dict[str, set[ColumnRef]]
"""By entity, the columns that go into an item of their own."""


@dataclass(frozen=True)
class SplitItem:
    """An entity's attributes, divided between its two items."""

    kept: list[ItemAttribute]
    large: list[ItemAttribute]


def find_large_columns(plan: ItemPlan, entities: Iterable[str]) -> LargeColumns:
    """Finds large columns of entities whose collections have room for a second item."""
    return {entity: _large_columns(plan, entity) for entity in entities}


def _large_columns(plan: ItemPlan, entity: str) -> set[ColumnRef]:
    if entity in plan.roles.versions or len(plan.sources(entity)) > 1:
        return set()
    keys = plan.keys[entity]
    used = {*keys.base.columns, *(ref for index in keys.indexes for ref in index.key.columns)}
    own = (ColumnRef(entity, column.name) for column in plan.inputs.schema.table(entity).columns)
    return {
        ref
        for ref in own
        if ref not in used
        and plan.inputs.volumes.value_bytes(ref) >= LARGE_BYTES
        and _is_rarely_wanted(plan, entity, ref)
    }


def _is_rarely_wanted(plan: ItemPlan, entity: str, ref: ColumnRef) -> bool:
    """True when few patterns want the column and none of them reads an index, which would need a
    separate request for each item."""
    served = plan.keys[entity].served
    if any(read.index and _wants(read.read.pattern, {ref}) for read in served):
        return False
    patterns = [read.pattern for read in plan.workload.reads_of(entity)]
    patterns += [
        write.pattern
        for write in plan.workload.writes_of(entity)
        if write.pattern.operation == "update"
    ]
    total = sum(pattern.calls_per_second for pattern in patterns)
    wanting = sum(pattern.calls_per_second for pattern in patterns if _wants(pattern, {ref}))
    return total > 0 and wanting <= total * RARELY


def split_item(large: LargeColumns, entity: str, attributes: list[ItemAttribute]) -> SplitItem:
    """Divides the attributes between the item itself and the one beside it."""
    columns = large.get(entity, ())
    beside = [
        attribute for attribute in attributes if ColumnRef.parse(attribute.column or "") in columns
    ]
    return SplitItem([attribute for attribute in attributes if attribute not in beside], beside)


def large_item(entity: str, keys: list[ItemAttribute], large: list[ItemAttribute]) -> Entity:
    names = " and ".join(attribute.name for attribute in large)
    return Entity(
        name=large_item_name(entity),
        source=entity,
        attributes=[*keys, *large],
        why=f"Vertical partitioning: {names}: large and rarely read, so in an item of its own.",
    )


def large_item_name(entity: str) -> str:
    return f"{entity} {LARGE}"


def requests_with_large_items(
    plan: ItemPlan,
    large: LargeColumns,
    entity: str,
    pattern: AccessPattern,
    access: PatternAccess,
    beside: PatternAccess,
) -> list[PatternAccess]:
    """Returns the requests of a pattern: for the item, for its large part, or for both."""
    columns = large.get(entity, set())
    if not columns or not _wants(pattern, columns):
        return [access]
    if access.request not in ("GetItem", "Query"):
        is_whole = pattern.operation != "update" or not pattern.columns
        count = access.requests + (1 if is_whole else 0)
        why = f"{access.why} The large part of the row is written as a second item.".strip()
        return [replace(access, requests=count, why=why)]
    keys = set(plan.keys[entity].base.columns)
    only = bool(pattern.columns) and set(map(ColumnRef.parse, pattern.columns)) <= columns | keys
    large_part = replace(beside, why="The large part of the row is a second item.")
    return [large_part] if only else [access, large_part]


def _wants(pattern: AccessPattern, refs: set[ColumnRef]) -> bool:
    return not pattern.columns or bool(refs & set(map(ColumnRef.parse, pattern.columns)))
