"""Keys of the single table: prefixes, root items, and indexes that types of items share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec.structs import replace as replaced

from partita_migrate.designing.attribute_naming import prefixes
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.item_drafts import ItemDrafts
from partita_migrate.designing.proposals.keys.identities import identities
from partita_migrate.designing.proposals.keys.key_plan import IndexPlan
from partita_migrate.designing.proposals.layouts.rendered_keys import (
    RenderedKey,
    composed_attribute,
    constants,
    joined_name,
    may_be_empty,
    plain_attribute,
)
from partita_migrate.designing.proposals.layouts.write_sharding import shards
from partita_migrate.model.design import ItemAttribute, template_shape
from partita_migrate.model.keys.key_templates import SEPARATOR
from partita_migrate.understanding.schema.column_refs import ColumnRef

PK = "PK"
SK = "SK"
ROOT_SORT_KEY = "root"
VERSION_PREFIX = "V"
VERSION_DIGITS = 10


@dataclass(frozen=True)
class SharedIndex:
    """An index of the single table with the entities that use it, each for a key of its own."""

    name: str
    kind: str
    users: list[tuple[str, IndexPlan]]


@dataclass(frozen=True)
class OverloadedKeys:
    base: dict[tuple[str, str], RenderedKey]
    """The table's key, by entity and source table."""
    indexes: list[SharedIndex]
    index_keys: dict[tuple[str, str], RenderedKey]
    """The index keys, by entity and index name."""

    def of_indexes(self, entity: str) -> dict[str, RenderedKey]:
        """Returns an entity's keys by index name."""
        return {
            index.name: self.index_keys[entity, index.name]
            for index in self.indexes
            if (entity, index.name) in self.index_keys
        }


def overloaded_keys(plan: ItemPlan, drafts: ItemDrafts) -> OverloadedKeys:
    names = _prefixes(plan)
    base = _base_keys(plan, names)
    indexes = _shared_indexes(plan)
    taken = {entity: _attribute_names(drafts, entity) for entity in plan.entities}
    index_keys = {
        (entity, index.name): _index_key(plan, drafts, names, base, taken, index, entity, own)
        for index in indexes
        for entity, own in index.users
    }
    return OverloadedKeys(base, indexes, index_keys)


# Prefixes.


def _prefixes(plan: ItemPlan) -> dict[str, str]:
    """Returns the key prefix of every table."""
    titles = [plan.title(entity) for entity in plan.entities]
    return prefixes(dict.fromkeys([*titles, *plan.inputs.schema.tables]))


def _prefix_of_column(plan: ItemPlan, names: dict[str, str], entity: str, ref: ColumnRef) -> str:
    """Returns the prefix of the table whose row a column identifies."""
    link = plan.inputs.schema.link_of(ref)
    if link is not None:
        return names[link.parent]
    return names[ref.table if ref.table in names else entity]


def _is_identity(plan: ItemPlan, ref: ColumnRef) -> bool:
    """True when a column identifies a row of its own table or of another one."""
    if plan.inputs.schema.link_of(ref) is not None:
        return True
    return ref.table in plan.keys and [ref] in identities(plan.inputs, ref.table)


def _with_prefixes(
    plan: ItemPlan, names: dict[str, str], entity: str, refs: tuple[ColumnRef, ...]
) -> list[str | ColumnRef]:
    """Puts prefixes before columns: of the identified table, or of the entity for a first column
    that identifies nothing."""
    parts: list[str | ColumnRef] = []
    for position, ref in enumerate(refs):
        if _is_identity(plan, ref):
            parts.append(_prefix_of_column(plan, names, entity, ref))
        elif not position:
            parts.append(names[plan.title(entity)])
        parts.append(ref)
    return parts


def first_prefix(sort: ItemAttribute | None) -> str:
    """Returns the text before the first field of a sort key."""
    lead, separator, _ = (sort.template or "").partition(SEPARATOR) if sort else ("", "", "")
    return "" if "{" in lead else f"{lead}{separator}"


# The table's own key.


def _base_keys(plan: ItemPlan, names: dict[str, str]) -> dict[tuple[str, str], RenderedKey]:
    """Returns the keys of all items. Owners of a partition key come first; items whose key shape is
    taken get their table's prefix in the sort key."""
    ordered = sorted(
        plan.entities, key=lambda entity: plan.keys[entity].base.partition[0].table != entity
    )
    base_keys: dict[tuple[str, str], RenderedKey] = {}
    taken: set[tuple[str, str]] = set()
    for entity in ordered:
        for source in plan.sources(entity):
            rendered = _base_key(plan, names, entity, source)
            if _shape(rendered) in taken:
                rendered = _behind(rendered, names[plan.title(entity)])
            taken.add(_shape(rendered))
            base_keys[entity, source] = rendered
    return base_keys


def _base_key(plan: ItemPlan, names: dict[str, str], entity: str, source: str) -> RenderedKey:
    key = plan.keys[entity].base
    count, why = shards(plan, entity, key.partition)
    first, *rest = _with_prefixes(plan, names, entity, key.partition)
    parts: list[str | ColumnRef] = [first, *constants(plan, entity, source), *rest]
    partition = composed_attribute(plan, entity, PK, parts, shards=count)
    version = plan.roles.versions.get(entity)
    latest = ROOT_SORT_KEY
    if version is not None:
        lead = f"{VERSION_PREFIX}{SEPARATOR}"
        latest = lead + "0" * VERSION_DIGITS
        number = f"{{{ColumnRef('', version.column)}:0{VERSION_DIGITS}}}"
        sort = ItemAttribute(name=SK, type="S", template=f"{lead}{number}")
    elif key.sort:
        parts = _with_prefixes(plan, names, entity, key.sort)
        sort = composed_attribute(plan, entity, SK, parts, is_sort=True)
    else:
        sort = ItemAttribute(name=SK, type="S", constant=ROOT_SORT_KEY)
    return RenderedKey(key=key, partition=partition, sort=sort, latest=latest, why=why)


def _shape(rendered: RenderedKey) -> tuple[str, str]:
    assert rendered.sort is not None
    return template_shape(rendered.partition), template_shape(rendered.sort)


def _behind(rendered: RenderedKey, prefix: str) -> RenderedKey:
    """Puts a prefix before the sort key."""
    sort = rendered.sort
    assert sort is not None
    if sort.template is None:
        sort = replaced(sort, constant=f"{prefix}{SEPARATOR}{sort.constant}")
    else:
        sort = replaced(sort, template=f"{prefix}{SEPARATOR}{sort.template}")
    return replace(rendered, sort=sort, latest=f"{prefix}{SEPARATOR}{rendered.latest}")


# Indexes are shared by position: the first index of every entity is GSI1.


def _shared_indexes(plan: ItemPlan) -> list[SharedIndex]:
    indexes: dict[str, SharedIndex] = {}
    for entity in plan.entities:
        for index in plan.keys[entity].indexes:
            shared = indexes.setdefault(index.name, SharedIndex(index.name, index.kind, []))
            shared.users.append((entity, index))
    return [indexes[name] for name in sorted(indexes, key=lambda name: (name[0], int(name[3:])))]


def _attribute_names(drafts: ItemDrafts, entity: str) -> set[str]:
    """Returns the attribute names of all items of an entity."""
    existing = [draft for draft in (drafts.each[entity], drafts.latest.get(entity)) if draft]
    return {
        attribute.name
        for draft in existing
        for attribute in [*draft.attributes.values(), *draft.others]
    }


def _index_key(
    plan: ItemPlan,
    drafts: ItemDrafts,
    names: dict[str, str],
    base: dict[tuple[str, str], RenderedKey],
    taken: dict[str, set[str]],
    shared: SharedIndex,
    entity: str,
    index: IndexPlan,
) -> RenderedKey:
    """Renders an index key: as generic attributes (GSI1PK, GSI1SK) where types of items share the
    index, else as plain columns."""
    is_shared = len(shared.users) > 1 or _is_taken(plan, drafts, taken, entity, index)
    count, why = shards(plan, entity, index.key.partition)
    own = base[entity, entity]
    return RenderedKey(
        key=index.key,
        partition=_index_partition(plan, drafts, names, own, entity, index, count, is_shared),
        sort=_index_sort(plan, drafts, names, own, entity, index, is_shared),
        why=why,
    )


def _index_partition(
    plan: ItemPlan,
    drafts: ItemDrafts,
    names: dict[str, str],
    own: RenderedKey,
    entity: str,
    index: IndexPlan,
    count: int,
    is_shared: bool,
) -> ItemAttribute:
    if index.kind != "global":
        return own.partition
    refs = index.key.partition
    plain = _plain(plan, drafts, entity, refs)
    if plain is not None and not is_shared and count == 1:
        return plain
    parts = _with_prefixes(plan, names, entity, refs)
    return composed_attribute(plan, entity, f"{index.name}{PK}", parts, shards=count)


def _index_sort(
    plan: ItemPlan,
    drafts: ItemDrafts,
    names: dict[str, str],
    own: RenderedKey,
    entity: str,
    index: IndexPlan,
    is_shared: bool,
) -> ItemAttribute | None:
    refs = index.key.sort
    parts: list[str | ColumnRef] = (
        _with_prefixes(plan, names, entity, refs) if refs else [ROOT_SORT_KEY]
    )
    if is_shared:
        return composed_attribute(plan, entity, f"{index.name}{SK}", parts, is_sort=True)
    if not refs:
        return None
    if refs == own.key.partition:
        return own.partition
    plain = _plain(plan, drafts, entity, refs)
    if plain is not None:
        return plain
    return composed_attribute(plan, entity, f"{index.name}{SK}", parts, is_sort=True)


def _plain(
    plan: ItemPlan, drafts: ItemDrafts, entity: str, refs: tuple[ColumnRef, ...]
) -> ItemAttribute | None:
    """Returns a column as its own key attribute, where an index of one type of items needs no
    prefix."""
    if len(refs) > 1 or _is_identity(plan, refs[0]) or may_be_empty(plan, entity, refs[0]):
        return None
    return plain_attribute(plan, drafts.fullest(entity), entity, refs[0])


def _is_taken(
    plan: ItemPlan, drafts: ItemDrafts, taken: dict[str, set[str]], entity: str, index: IndexPlan
) -> bool:
    """True when other items have an attribute of that name, which would put them into the index as
    well."""
    if entity in drafts.latest and index.name in plan.latest_only(entity):
        return True
    draft = drafts.fullest(entity)
    names = {
        joined_name(plan, draft, entity, refs) for refs in (index.key.partition, index.key.sort)
    }
    return any(names & found for other, found in taken.items() if other != entity)


def index_start(keys: OverloadedKeys, entity: str, name: str) -> str:
    """Returns the beginning of a type's sort keys in an index, where other types share its
    partition keys."""
    own = keys.index_keys[entity, name]
    is_shared = any(
        rendered.partition == own.partition
        for (user, index), rendered in keys.index_keys.items()
        if index == name and user != entity
    )
    return first_prefix(own.sort) if is_shared else ""
