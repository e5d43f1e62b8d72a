"""The overloaded single table: root items, and what belongs to them in the same collection.

PK and SK hold keys of all types of items, told apart by prefixes. An index attribute that only one
type of item has makes a sparse index of these; when several types need an index in the same place
they share one, under attributes of its own name.
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
    """By entity, the types of items that a read of its collection finds too."""
    return {
        entity: ReadTogether(
            tables=_in_collection(plan, entity),
            but_not_by=[one.read.pattern.name for one in plan.keys[entity].served if one.index],
        )
        for entity in plan.entities
    }


def root_entities(plan: ItemPlan) -> list[str]:
    """Those whose items have room beside them, because nobody reads all of their collection."""
    return [
        entity
        for entity in plan.entities
        if not plan.keys[entity].base.sort
        and not any(_children_in_collection(plan, read) for read in plan.workload.reads_of(entity))
    ]


def _in_collection(plan: ItemPlan, entity: str) -> list[str]:
    """The other types of items with the same partition key."""
    partition = plan.keys[entity].base.partition
    return [
        other
        for other in plan.entities
        if other != entity and plan.keys[other].base.partition == partition
    ]


def _children_in_collection(plan: ItemPlan, read: PatternRead) -> list[str]:
    """Of what a pattern reads beside an entity, that which lies in its collection."""
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
        why="One table for all types of items: what is read together lies together.",
        indexes=[_index(plan, keys, shared, entities) for shared in keys.indexes],
        entities=entities,
    )


def _index(
    plan: ItemPlan, keys: OverloadedKeys, shared: SharedIndex, entities: list[Entity]
) -> SecondaryIndex:
    first, index = shared.users[0]
    merged = replace(
        index,
        reads=[read for _, one in shared.users for read in one.reads],
        why=" ".join(dict.fromkeys(one.why for _, one in shared.users)),
    )
    users = [user for user, _ in shared.users]
    inside = [entity for entity in entities if entity.source in users]
    found = secondary_index(plan, merged, keys.index_keys[first, shared.name], inside, {PK, SK})
    if len(plan.entities) > len(users):
        return replaced(found, why=f"{found.why} Sparse: only {', '.join(users)} have its key.")
    return found


def _items(items: DraftedItems, keys: OverloadedKeys, entity: str) -> list[Entity]:
    plan, drafts = items.plan, items.drafts
    rendered = keys.of_indexes(entity)
    only = plan.latest_only(entity)
    of_each = [one for name, one in rendered.items() if name not in only]
    found = []
    if entity in plan.roles.versions:
        key = keys.base[entity, entity]
        attributes = _attributes(drafts.latest[entity], key, list(rendered.values()))
        why = "The root item: version 0, a copy of the latest."
        found.append(latest_item(plan, entity, attributes, key, why))
    for source in plan.sources(entity):
        key = keys.base[entity, source]
        attributes = _attributes(drafts.each[entity], key, of_each)
        split = split_item(items.large, entity, attributes)
        if split.large:
            beside = ItemAttribute(name=SK, type="S", constant=LARGE)
            found.append(large_item(entity, [key.partition, beside], split.large))
        found.append(
            Entity(
                name=source,
                source=source,
                attributes=[attribute_of_twin(plan, one, entity, source) for one in split.kept],
                why=_item_why(plan, entity, key),
            )
        )
    return found


def _item_why(plan: ItemPlan, entity: str, key: RenderedKey) -> str:
    owner = key.key.partition[0].table
    if not key.key.sort:
        return f"The root item of one of {entity}."
    if owner in _in_collection(plan, entity):
        return f"In the collection of its {owner}: one query reads both."
    return ""


def _attributes(
    draft: ItemDraft, key: RenderedKey, indexes: list[RenderedKey]
) -> list[ItemAttribute]:
    """Keys first."""
    used = [attribute for rendered in indexes for attribute in rendered.attributes]
    ordered = [*key.attributes, *draft.attributes.values(), *draft.others, *used]
    return list({one.name: one for one in ordered}.values())


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
    found: list[tuple[AccessPattern, PatternAccess]] = []
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
        found.append((pattern, _with_collection(plan, served, access)))
    for write in plan.workload.writes_of(entity):
        pattern = write.pattern
        source = pattern.table if pattern.table in sources else entity
        key = keys.base[entity, source]
        found.append((pattern, write_request(items, write, table, key, source)))
    requests = []
    for pattern, access in found:
        conditions = [*access.key[:1], AccessCondition(attribute=SK, value=LARGE)]
        beside = replaced(access, entity=large_item_name(entity), key=conditions)
        requests += requests_with_large_items(plan, items.large, entity, pattern, access, beside)
    return [*requests, *expiry_requests(plan, table, entity)]


def _with_collection(plan: ItemPlan, served: ServedRead, found: PatternAccess) -> PatternAccess:
    """The whole collection instead of its root, when the pattern wants what lies there."""
    children = _children_in_collection(plan, served.read) if served.index is None else []
    if not children:
        return found
    return replaced(
        found,
        request="Query",
        key=found.key[:1],
        why=f"One query reads it with its {' and '.join(children)}.",
    )


def _is_read_with_root(plan: ItemPlan, served: ServedRead) -> bool:
    """Whether the read of a root item, which takes its collection along, brings these items."""
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
    return any(one.read.pattern is read.pattern and one.index is None for one in served)


def _sort_start(items: DraftedItems, keys: OverloadedKeys, entity: str, served: ServedRead) -> str:
    """How a type's sort keys begin, where other items lie in the same collection.

    A root item may come along, unless it would be among the first ones.
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
