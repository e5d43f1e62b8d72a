"""The single-table design: root items, and the items that belong to them in one collection.

PK and SK hold the keys of all types of items, which prefixes distinguish. An index attribute that
only one type of item has makes a sparse index. When several types need an index in the same
position, they share it under generic attributes named after the index, such as GSI1PK.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as replaced

from partita_migrate.designing.attribute_naming import database_name, table_name
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.drafted_items import DraftedItems
from partita_migrate.designing.proposals.items.item_drafts import ItemDraft, ReadTogether
from partita_migrate.designing.proposals.items.large_columns import (
    LARGE,
    large_item,
    large_item_name,
    requests_with_large_items,
    split_item,
)
from partita_migrate.designing.proposals.items.unique_values import guard_item
from partita_migrate.designing.proposals.keys.key_plan import ServedRead, match
from partita_migrate.designing.proposals.layouts.drafted_requests import (
    expiry_requests,
    read_request,
    write_request,
)
from partita_migrate.designing.proposals.layouts.latest_version import latest_item
from partita_migrate.designing.proposals.layouts.overloaded_keys import (
    PK,
    ROOT_SORT_KEY,
    SK,
    OverloadedKeys,
    SharedIndex,
    first_prefix,
    index_start,
)
from partita_migrate.designing.proposals.layouts.rendered_keys import (
    RenderedKey,
    attribute_of_twin,
)
from partita_migrate.designing.proposals.layouts.secondary_indexes import secondary_index
from partita_migrate.designing.proposals.workload import PatternRead
from partita_migrate.model.design import (
    AccessCondition,
    Entity,
    ItemAttribute,
    KeyAttribute,
    PatternAccess,
    SecondaryIndex,
    TableDesign,
)
from partita_migrate.understanding.patterns.access_patterns import AccessPattern

GUARD = "U"


# Collections.


def item_collections(plan: ItemPlan) -> dict[str, ReadTogether]:
    """Returns, by entity, the other types of items that a read of its collection finds."""
    return {
        entity: ReadTogether(
            tables=_in_collection(plan, entity),
            but_not_by=[read.read.pattern.name for read in plan.keys[entity].served if read.index],
        )
        for entity in plan.entities
    }


def root_entities(plan: ItemPlan) -> list[str]:
    """Returns the entities that can have a second item in their collection, because no pattern
    reads the whole collection."""
    return [
        entity
        for entity in plan.entities
        if not plan.keys[entity].base.sort
        and not any(_children_in_collection(plan, read) for read in plan.workload.reads_of(entity))
    ]


def _in_collection(plan: ItemPlan, entity: str) -> list[str]:
    """Returns the other types of items with the same partition key."""
    partition = plan.keys[entity].base.partition
    return [
        other
        for other in plan.entities
        if other != entity and plan.keys[other].base.partition == partition
    ]


def _children_in_collection(plan: ItemPlan, read: PatternRead) -> list[str]:
    """Returns the child entities of a read that lie in its entity's collection."""
    base = plan.keys[read.entity].base
    return [
        child
        for child in read.children
        if plan.keys[child].base.partition == base.partition and match(base, read) is not None
    ]


# The table and its items.


def overloaded_table(items: DraftedItems, keys: OverloadedKeys) -> TableDesign:
    plan = items.plan
    entities = [item for entity in plan.entities for item in _items(items, keys, entity)]
    # The table has a sort key, so guard items need one too.
    root = ItemAttribute(name=SK, type="S", constant=ROOT_SORT_KEY)
    entities += [
        guard_item(items.plan, guard, PK, prefix=GUARD, more=[root]) for guard in items.guards
    ]
    drafts = items.drafts.each.values()
    expiry = [other.name for draft in drafts for other in draft.others if other.expires]
    return TableDesign(
        name=table_name(
            plan.inputs.settings.table_name or database_name(plan.inputs.schema.database)
        ),
        partition_key=KeyAttribute(name=PK, type="S"),
        sort_key=KeyAttribute(name=SK, type="S"),
        ttl=expiry[0] if expiry else None,
        why="One table for all types of items: items that are read together share a partition key.",
        indexes=[_index(plan, keys, shared, entities) for shared in keys.indexes],
        entities=entities,
    )


def _index(
    plan: ItemPlan, keys: OverloadedKeys, shared: SharedIndex, entities: list[Entity]
) -> SecondaryIndex:
    first, index = shared.users[0]
    merged = replace(
        index,
        reads=[read for _, user_index in shared.users for read in user_index.reads],
        why=" ".join(dict.fromkeys(user_index.why for _, user_index in shared.users)),
    )
    users = [user for user, _ in shared.users]
    inside = [entity for entity in entities if entity.source in users]
    secondary = secondary_index(plan, merged, keys.index_keys[first, shared.name], inside, {PK, SK})
    if len(plan.entities) > len(users):
        return replaced(
            secondary, why=f"{secondary.why} Sparse: only {', '.join(users)} have its key."
        )
    return secondary


def _items(items: DraftedItems, keys: OverloadedKeys, entity: str) -> list[Entity]:
    plan, drafts = items.plan, items.drafts
    rendered = keys.of_indexes(entity)
    only = plan.latest_only(entity)
    of_each = [key for name, key in rendered.items() if name not in only]
    entities = []
    if entity in plan.roles.versions:
        key = keys.base[entity, entity]
        attributes = _attributes(drafts.latest[entity], key, list(rendered.values()))
        why = "The root item: version 0, a copy of the latest."
        entities.append(latest_item(plan, entity, attributes, key, why))
    for source in plan.sources(entity):
        key = keys.base[entity, source]
        attributes = _attributes(drafts.each[entity], key, of_each)
        split = split_item(items.large, entity, attributes)
        if split.large:
            beside = ItemAttribute(name=SK, type="S", constant=LARGE)
            entities.append(large_item(entity, [key.partition, beside], split.large))
        entities.append(
            Entity(
                name=source,
                source=source,
                attributes=[
                    attribute_of_twin(plan, attribute, entity, source) for attribute in split.kept
                ],
                why=_item_why(plan, entity, key),
            )
        )
    return entities


def _item_why(plan: ItemPlan, entity: str, key: RenderedKey) -> str:
    owner = key.key.partition[0].table
    if not key.key.sort:
        return f"The root item of a row of {entity}."
    if owner in _in_collection(plan, entity):
        return f"In the collection of its {owner}: one query reads both."
    return ""


def _attributes(
    draft: ItemDraft, key: RenderedKey, indexes: list[RenderedKey]
) -> list[ItemAttribute]:
    """Returns the attributes of an item, its keys first."""
    used = [attribute for rendered in indexes for attribute in rendered.attributes]
    ordered = [*key.attributes, *draft.attributes.values(), *draft.others, *used]
    return list({attribute.name: attribute for attribute in ordered}.values())


# Requests.


def overloaded_requests(
    items: DraftedItems, keys: OverloadedKeys, table: str
) -> list[PatternAccess]:
    return [
        access
        for entity in items.plan.entities
        for access in _entity_requests(items, keys, table, entity)
    ]


def _entity_requests(
    items: DraftedItems, keys: OverloadedKeys, table: str, entity: str
) -> list[PatternAccess]:
    plan = items.plan
    sources = plan.sources(entity)
    version = plan.roles.versions.get(entity)
    draft = items.drafts.each[entity]
    planned: list[tuple[AccessPattern, PatternAccess]] = []
    for served in plan.keys[entity].served:
        if _is_read_with_root(plan, served):
            continue
        pattern = served.read.pattern
        source = pattern.table if pattern.table in sources else entity
        rendered = (
            keys.index_keys[entity, served.index] if served.index else keys.base[entity, source]
        )
        item = version.parent if version and served.read.is_latest else source
        start = _sort_start(items, keys, entity, served)
        access = read_request(plan, served, table, rendered, item, draft, start)
        planned.append((pattern, _with_collection(plan, served, access)))
    for write in plan.workload.writes_of(entity):
        pattern = write.pattern
        source = pattern.table if pattern.table in sources else entity
        key = keys.base[entity, source]
        planned.append((pattern, write_request(items, write, table, key, source)))
    requests = []
    for pattern, access in planned:
        conditions = [*access.key[:1], AccessCondition(attribute=SK, value=LARGE)]
        beside = replaced(access, entity=large_item_name(entity), key=conditions)
        requests += requests_with_large_items(plan, items.large, entity, pattern, access, beside)
    return [*requests, *expiry_requests(plan, table, entity)]


def _with_collection(plan: ItemPlan, served: ServedRead, access: PatternAccess) -> PatternAccess:
    """Reads the whole collection in place of its root item, when the pattern also reads the
    children in it."""
    children = _children_in_collection(plan, served.read) if served.index is None else []
    if not children:
        return access
    return replaced(
        access,
        request="Query",
        key=access.key[:1],
        why=f"One query reads it with its {' and '.join(children)}.",
    )


def _is_read_with_root(plan: ItemPlan, served: ServedRead) -> bool:
    """True when the read of a root item's collection already brings these items."""
    read = served.read
    if not read.is_further:
        return False
    roots = [
        other
        for other in plan.workload.reads
        if other.pattern is read.pattern and read.entity in other.children
    ]
    return any(
        read.entity in _children_in_collection(plan, root) and _is_by_base(plan, root)
        for root in roots
    )


def _is_by_base(plan: ItemPlan, read: PatternRead) -> bool:
    served = plan.keys[read.entity].served
    return any(other.read.pattern is read.pattern and other.index is None for other in served)


def _sort_start(items: DraftedItems, keys: OverloadedKeys, entity: str, served: ServedRead) -> str:
    """Returns the beginning of a type's sort keys, where other items share its collections.

    A root item may be read along, unless an order or a limit would put it among the first items.
    """
    plan, pattern = items.plan, served.read.pattern
    if served.index is not None:
        return index_start(keys, entity, served.index)
    if not plan.keys[entity].base.sort:
        return ""
    sort = keys.base[entity, entity].sort
    if entity in plan.roles.versions:
        return (sort.template or "").partition("{")[0] if sort else ""
    is_root_allowed = not (pattern.order_by or pattern.limit)
    is_shared = any(
        plan.keys[other].base.sort or not is_root_allowed or items.large.get(other)
        for other in _in_collection(plan, entity)
    )
    return first_prefix(sort) if is_shared else ""
