"""Vertical partitioning: large columns that are rarely wanted lie in an item of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from partita.limits import KB
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.model.design import Access, Attribute, Entity
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import Ref

LARGE = "large"

LARGE_BYTES = 4 * KB
"""A column of this size costs every reader of the item one more read unit."""

RARELY = 0.1
"""Of the reads and updates of an item, those that may want what lies beside it."""

LargeColumns = dict[str, set[Ref]]
"""By entity, the columns that lie in an item of their own."""


@dataclass(frozen=True)
class SplitItem:
    kept: list[Attribute]
    large: list[Attribute]


def find_large_columns(plan: ItemPlan, entities: Iterable[str]) -> LargeColumns:
    """Of the entities that have room for an item beside theirs."""
    return {entity: _large_columns(plan, entity) for entity in entities}


def _large_columns(plan: ItemPlan, entity: str) -> set[Ref]:
    if entity in plan.roles.versions or len(plan.sources(entity)) > 1:
        return set()
    keys = plan.keys[entity]
    used = {*keys.base.columns, *(ref for index in keys.indexes for ref in index.key.columns)}
    own = (Ref(entity, column.name) for column in plan.inputs.schema.table(entity).columns)
    return {
        ref
        for ref in own
        if ref not in used
        and plan.inputs.volumes.value_bytes(ref) >= LARGE_BYTES
        and _is_rarely_wanted(plan, entity, ref)
    }


def _is_rarely_wanted(plan: ItemPlan, entity: str, ref: Ref) -> bool:
    """And never through an index, which would lead to one request for each item."""
    served = plan.keys[entity].served
    if any(one.index and _wants(one.read.pattern, {ref}) for one in served):
        return False
    asking = [read.pattern for read in plan.workload.reads_of(entity)]
    asking += [
        write.pattern
        for write in plan.workload.writes_of(entity)
        if write.pattern.operation == "update"
    ]
    total = sum(pattern.calls_per_second for pattern in asking)
    wanting = sum(one.calls_per_second for one in asking if _wants(one, {ref}))
    return total > 0 and wanting <= total * RARELY


def split_item(large: LargeColumns, entity: str, attributes: list[Attribute]) -> SplitItem:
    """The attributes of the item itself, and those that lie beside it."""
    columns = large.get(entity, ())
    beside = [attribute for attribute in attributes if Ref.parse(attribute.column or "") in columns]
    return SplitItem([attribute for attribute in attributes if attribute not in beside], beside)


def large_item(entity: str, keys: list[Attribute], large: list[Attribute]) -> Entity:
    names = " and ".join(one.name for one in large)
    return Entity(
        name=large_item_name(entity),
        source=entity,
        attributes=[*keys, *large],
        why=f"Vertical partitioning: {names}, large and rarely wanted, beside the rest.",
    )


def large_item_name(entity: str) -> str:
    return f"{entity} {LARGE}"


def requests_with_large_items(
    plan: ItemPlan,
    large: LargeColumns,
    entity: str,
    pattern: AccessPattern,
    access: Access,
    beside: Access,
) -> list[Access]:
    """The requests of a pattern: for the item, for its large part, or for both."""
    columns = large.get(entity, set())
    if not columns or not _wants(pattern, columns):
        return [access]
    if access.request not in ("GetItem", "Query"):
        is_whole = pattern.operation != "update" or not pattern.columns
        count = access.requests + (1 if is_whole else 0)
        why = f"{access.why} The large part of the row is written beside it.".strip()
        return [replace(access, requests=count, why=why)]
    keys = set(plan.keys[entity].base.columns)
    only = bool(pattern.columns) and set(map(Ref.parse, pattern.columns)) <= columns | keys
    found = replace(beside, why="The large part of the row lies beside it.")
    return [found] if only else [access, found]


def _wants(pattern: AccessPattern, refs: set[Ref]) -> bool:
    return not pattern.columns or bool(refs & set(map(Ref.parse, pattern.columns)))
