"""The denormalized design: one table for each type of item, with everything that is read with it.

The module makes the keys first, then the tables with their items, then the requests.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from partita_migrate.designing.attribute_naming import table_name
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.drafted_items import DraftedItems
from partita_migrate.designing.proposals.items.item_drafts import ItemDraft
from partita_migrate.designing.proposals.items.large_columns import (
    LARGE,
    large_item,
    large_item_name,
    requests_with_large_items,
    split_item,
)
from partita_migrate.designing.proposals.items.unique_values import guard_item
from partita_migrate.designing.proposals.keys.key_plan import PlannedKey
from partita_migrate.designing.proposals.layouts.drafted_requests import (
    expiry_requests,
    read_request,
    write_request,
)
from partita_migrate.designing.proposals.layouts.latest_version import latest_item
from partita_migrate.designing.proposals.layouts.rendered_keys import (
    LATEST,
    RenderedKey,
    attribute_of_twin,
    common_start,
    composed_attribute,
    constants,
    joined_name,
    key_attribute,
    may_be_empty,
    plain_attribute,
)
from partita_migrate.designing.proposals.layouts.secondary_indexes import secondary_index
from partita_migrate.designing.proposals.layouts.write_sharding import shards
from partita_migrate.model.design import (
    Entity,
    ItemAttribute,
    KeyAttribute,
    PatternAccess,
    TableDesign,
)
from partita_migrate.model.keys.key_templates import SEPARATOR, SHARD
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef

GUARDS = "UniqueValues"


@dataclass(frozen=True)
class EntityKeys:
    """The rendered keys of one entity."""

    base: dict[str, RenderedKey]
    """The table's own key for the rows of each source, which differ when several tables have one
    shape."""
    indexes: dict[str, RenderedKey]


@dataclass(frozen=True)
class EntityTable:
    """The table of an entity, and a second one for its large, rarely read columns."""

    entity: str
    keys: EntityKeys
    table: TableDesign
    large: TableDesign | None


# Keys.


def denormalized_keys(items: DraftedItems) -> dict[str, EntityKeys]:
    """Returns the rendered keys by entity."""
    return {entity: _entity_keys(items, entity) for entity in items.plan.entities}


def _entity_keys(items: DraftedItems, entity: str) -> EntityKeys:
    plan, drafts = items.plan, items.drafts
    key_plan = plan.keys[entity]
    only = plan.latest_only(entity) if entity in drafts.latest else set()
    return EntityKeys(
        base={
            source: _key(plan, entity, drafts.each[entity], key_plan.base, source)
            for source in plan.sources(entity)
        },
        indexes={
            index.name: _key(
                plan,
                entity,
                drafts.fullest(entity),
                index.key,
                None,
                is_apart=index.name in only and index.kind == "global",
            )
            for index in key_plan.indexes
        },
    )


def _key(
    plan: ItemPlan,
    entity: str,
    draft: ItemDraft,
    key: PlannedKey,
    source: str | None,
    *,
    is_apart: bool = False,
) -> RenderedKey:
    """Renders a key. `source` is given for the table's own key, where tables of one shape are told
    apart by it; it is None for an index. With `is_apart` the key gets an attribute of its own,
    which only some of the items have."""
    stated = constants(plan, entity, source) if source else []
    count, why = shards(plan, entity, key.partition)
    names = plan.inputs.settings.key_names if source else []
    parts: list[str | ColumnRef] = [*stated, *key.partition]
    partition = _half(plan, entity, draft, parts, count, names[:1], is_apart=is_apart)
    sort = None
    if key.sort:
        sort = _half(plan, entity, draft, list(key.sort), 1, names[1:2], is_sort=True)
    return RenderedKey(key=key, partition=partition, sort=sort, why=why)


def _half(
    plan: ItemPlan,
    entity: str,
    draft: ItemDraft,
    parts: list[str | ColumnRef],
    count: int,
    names: list[str],
    *,
    is_apart: bool = False,
    is_sort: bool = False,
) -> ItemAttribute:
    """Returns the attribute of a partition or sort key: a column as it is, or a template."""
    refs = tuple(part for part in parts if isinstance(part, ColumnRef))
    if len(parts) == 1 and count == 1 and not is_apart:
        plain = plain_attribute(plan, draft, entity, refs[0])
        if plain is not None and not may_be_empty(plan, entity, refs[0]):
            return plain
        if may_be_empty(plan, entity, refs[0]) or plain is None:
            # A key attribute must not be empty, but a text can be: a leading separator keeps it
            # non-empty.
            parts = ["", *parts]
    # An index on the same columns may be without shards, so the sharded attribute needs another
    # name.
    shard = f"{SEPARATOR}{SHARD}" if count > 1 else ""
    name = names[0] if names else joined_name(plan, draft, entity, refs) + shard
    if name in draft.names():
        name = f"{name}{SEPARATOR}key"
    return composed_attribute(plan, entity, name, parts, shards=count, is_sort=is_sort)


# Tables and items.


def denormalized_tables(
    items: DraftedItems, keys: dict[str, EntityKeys]
) -> tuple[list[EntityTable], list[TableDesign]]:
    """Returns the tables of the entities, and all tables of the design."""
    names: list[str] = []
    entity_tables = [
        _entity_table(items, entity, keys[entity], names) for entity in items.plan.entities
    ]
    tables = [
        table
        for group in entity_tables
        for table in (group.table, group.large)
        if table is not None
    ]
    if items.guards:
        tables.append(_guards(items, names))
    return entity_tables, tables


def _entity_table(
    items: DraftedItems, entity: str, keys: EntityKeys, names: list[str]
) -> EntityTable:
    """Makes an entity's table. Its name is added to `names`, the names so far."""
    plan, base = items.plan, keys.base[entity]
    name = table_name(_title(plan, entity), names)
    names.append(name)
    entities = _items(items, entity, keys)
    split = split_item(items.large, entity, entities[-1].attributes)
    large = None
    if split.large:
        entities[-1] = replace(entities[-1], attributes=split.kept)
        large = _large_table(entity, name, base, split.large, names)
    expiry = [other.name for other in items.drafts.each[entity].others if other.expires]
    own = {attribute.name for attribute in base.attributes}
    table = TableDesign(
        name=name,
        partition_key=key_attribute(base.partition),
        sort_key=key_attribute(base.sort) if base.sort else None,
        ttl=expiry[0] if expiry else None,
        why=" ".join(filter(None, [plan.keys[entity].why, base.why])),
        indexes=[
            secondary_index(plan, index, keys.indexes[index.name], entities, own)
            for index in plan.keys[entity].indexes
        ],
        entities=entities,
    )
    return EntityTable(entity, keys, table, large)


def _large_table(
    entity: str, name: str, base: RenderedKey, large: list[ItemAttribute], names: list[str]
) -> TableDesign:
    """Makes the table for the large columns of an entity, with the same keys."""
    names.append(table_name(f"{name}_{LARGE}", names))
    return TableDesign(
        name=names[-1],
        partition_key=key_attribute(base.partition),
        sort_key=key_attribute(base.sort) if base.sort else None,
        why=f"The large and rarely read columns of {name}, with the same keys.",
        entities=[large_item(entity, base.attributes, large)],
    )


def _title(plan: ItemPlan, entity: str) -> str:
    """Names a table after what its partition key refers to, if that has no table of its own."""
    sources = plan.sources(entity)
    if len(sources) > 1:
        return common_start(sources).strip("_") or entity
    first = plan.keys[entity].base.partition[0]
    if first.table in plan.roles.folded:
        return first.table
    return plan.title(entity)


def _items(items: DraftedItems, entity: str, keys: EntityKeys) -> list[Entity]:
    plan, drafts = items.plan, items.drafts
    entities = []
    only = plan.latest_only(entity)
    of_each = [rendered for name, rendered in keys.indexes.items() if name not in only]
    if entity in plan.roles.versions:
        key = keys.base[entity]
        attributes = _attributes(drafts.latest[entity], key, list(keys.indexes.values()))
        why = f"Version {LATEST}: a copy of the latest version, with the columns of its parent."
        entities.append(latest_item(plan, entity, attributes, key, why))
    for source, key in keys.base.items():
        attributes = _attributes(drafts.each[entity], key, of_each)
        entities.append(
            Entity(
                name=source,
                source=source,
                attributes=[
                    attribute_of_twin(plan, attribute, entity, source) for attribute in attributes
                ],
                why=_item_why(items, entity),
            )
        )
    return entities


def _item_why(items: DraftedItems, entity: str) -> str:
    own = (entity, items.plan.title(entity))
    copied = {ref.table for ref in items.drafts.each[entity].attributes if ref.table not in own}
    if not copied:
        return ""
    return (
        f"Each item repeats the columns that are read with it from {', '.join(sorted(copied))},"
        " so that one request answers."
    )


def _attributes(
    draft: ItemDraft, key: RenderedKey, indexes: list[RenderedKey]
) -> list[ItemAttribute]:
    """Returns the attributes of an item, its keys first."""
    ordered = [*key.attributes, *draft.attributes.values(), *draft.others]
    for rendered in indexes:
        ordered += [attribute for attribute in rendered.attributes if attribute.template]
    return list({attribute.name: attribute for attribute in ordered}.values())


def _guards(items: DraftedItems, names: list[str]) -> TableDesign:
    return TableDesign(
        name=table_name(GUARDS, names),
        partition_key=KeyAttribute(name="value", type="S"),
        why="One item for each value that must not occur twice.",
        entities=[guard_item(items.plan, guard, "value") for guard in items.guards],
    )


# Requests.


def denormalized_requests(items: DraftedItems, tables: list[EntityTable]) -> list[PatternAccess]:
    return [access for table in tables for access in _entity_requests(items, table)]


def _entity_requests(items: DraftedItems, entity_table: EntityTable) -> list[PatternAccess]:
    plan, entity, table = items.plan, entity_table.entity, entity_table.table.name
    version = plan.roles.versions.get(entity)
    draft = items.drafts.each[entity]
    planned: list[tuple[AccessPattern, PatternAccess]] = []
    for served in plan.keys[entity].served:
        pattern = served.read.pattern
        source = pattern.table if pattern.table in entity_table.keys.base else entity
        rendered = (
            entity_table.keys.indexes[served.index]
            if served.index
            else entity_table.keys.base[source]
        )
        item = version.parent if version and served.read.is_latest else source
        planned.append((pattern, read_request(plan, served, table, rendered, item, draft)))
    for write in plan.workload.writes_of(entity):
        pattern = write.pattern
        source = pattern.table if pattern.table in entity_table.keys.base else entity
        key = entity_table.keys.base[source]
        planned.append((pattern, write_request(items, write, table, key, source)))
    requests = []
    for pattern, access in planned:
        beside = replace(
            access,
            table=entity_table.large.name if entity_table.large else table,
            entity=large_item_name(entity),
        )
        requests += requests_with_large_items(plan, items.large, entity, pattern, access, beside)
    return [*requests, *expiry_requests(plan, table, entity)]
