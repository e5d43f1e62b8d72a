"""Drafts the attributes of each type of item, with origins and names, before its keys are known."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from partita.foundation.service_limits import ITEM_BYTES_MAX
from partita_migrate.designing.attribute_naming import of_table, role, styled
from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.column_sources import attribute_type, column_source
from partita_migrate.designing.proposals.roles.table_roles import CollectedChild
from partita_migrate.designing.proposals.workload import PatternRead
from partita_migrate.model.design import ItemAttribute
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import is_derived
from partita_migrate.understanding.schema.join_paths import ForeignKeyLink
from partita_migrate.understanding.schema.name_words import name_parts, singular


@dataclass(frozen=True)
class ItemDraft:
    """The attributes of one type of item."""

    attributes: dict[ColumnRef, ItemAttribute] = field(default_factory=dict)
    others: list[ItemAttribute] = field(default_factory=list)
    """Attributes that are not a single column of the entity: sets, lists, expiry, second
    references."""
    left_out: dict[ColumnRef, str] = field(default_factory=dict)

    def names(self) -> set[str]:
        return {one.name for one in [*self.attributes.values(), *self.others]}


@dataclass(frozen=True)
class ItemDrafts:
    """The drafts by entity."""

    each: dict[str, ItemDraft]
    """The item that every row becomes."""
    latest: dict[str, ItemDraft]
    """For entities with versions: the item that copies the latest version."""

    def fullest(self, entity: str) -> ItemDraft:
        """Returns the draft with the most attributes of all items of the entity."""
        return self.latest.get(entity) or self.each[entity]


@dataclass(frozen=True)
class ReadTogether:
    """The tables whose items a read finds in the same collection, so that no columns need
    copying."""

    tables: Collection[str] = ()
    but_not_by: Collection[str] = ()
    """Patterns that read an index, where those items are not beside each other."""

    def has(self, table: str, read: PatternRead) -> bool:
        return table in self.tables and read.pattern.name not in self.but_not_by


def draft_items(plan: ItemPlan, collections: dict[str, ReadTogether] | None = None) -> ItemDrafts:
    """Drafts all items. `collections` says, by entity, what lies beside it in a shared table."""
    beside = collections or {}
    return ItemDrafts(
        each={
            name: _draft(plan, name, is_latest=False, beside=beside.get(name, ReadTogether()))
            for name in plan.entities
        },
        latest={
            name: _draft(plan, name, is_latest=True, beside=ReadTogether())
            for name in plan.roles.versions
        },
    )


def _draft(plan: ItemPlan, entity: str, *, is_latest: bool, beside: ReadTogether) -> ItemDraft:
    draft = ItemDraft()
    version = plan.roles.versions.get(entity)
    if version is not None:
        # The parent's key comes first and its other columns last, so that both kinds of items get
        # the same names.
        _add_above(plan, draft, entity, version.parent, _version_key(plan, entity))
    _add_own(plan, draft, entity)
    if version is not None:
        columns = None if is_latest else _columns_of_every_version(plan, entity)
        _add_above(plan, draft, entity, version.parent, columns)
    for table in _folded_into(plan, entity):
        _add_above(plan, draft, entity, table, None)
    for read in plan.workload.reads_of(entity):
        for table in read.tables:
            if table not in _own_tables(plan, entity) and not beside.has(table, read):
                _add_wanted(plan, draft, entity, table, read)
    for child, link in plan.roles.merged.items():
        if link.parent in _own_tables(plan, entity):
            _add_merged(plan, draft, entity, child)
    _add_collected(plan, draft, entity, is_all=is_latest or version is None)
    _add_expiry(plan.inputs, draft, entity)
    _add_unused(plan, draft, entity)
    return draft


def _own_tables(plan: ItemPlan, entity: str) -> set[str]:
    version = plan.roles.versions.get(entity)
    return {entity, version.parent} if version else {entity}


def _folded_into(plan: ItemPlan, entity: str) -> list[str]:
    tables: list[str] = []
    for table, link in plan.roles.folded.items():
        if link.child == entity:
            tables += [table, *_folded_into(plan, table)]
    return tables


# Columns of the row itself, and of rows that it belongs to.


def _add_own(plan: ItemPlan, draft: ItemDraft, entity: str) -> None:
    for column in plan.inputs.schema.table(entity).columns:
        ref = ColumnRef(entity, column.name)
        reason = _reason_to_leave_out(plan, ref)
        if reason:
            draft.left_out[ref] = reason
        else:
            _add(plan, draft, entity, ref)


def _add_unused(plan: ItemPlan, draft: ItemDraft, entity: str) -> None:
    """Adds the row's remaining columns, without which it could not be restored from its items."""
    columns_held = {
        attribute.column for attribute in draft.attributes.values() if not attribute.through
    }
    for column in plan.inputs.schema.table(entity).columns:
        ref = ColumnRef(entity, column.name)
        if str(ref) in columns_held or _reason_to_lose(plan, ref):
            continue
        draft.left_out.pop(ref, None)
        draft.others.append(
            ItemAttribute(
                name=_free_name(plan, draft, entity, ref),
                type=attribute_type(plan.inputs.volumes, ref),
                column=str(ref),
            )
        )


def _add_above(
    plan: ItemPlan, draft: ItemDraft, entity: str, table: str, only: set[str] | None
) -> None:
    """Copies columns of a table that the entity's row belongs to."""
    schema = plan.inputs.schema
    own_keys = {
        schema.canonical(ColumnRef(entity, column.name)) for column in schema.table(entity).columns
    }
    is_own = table in _own_tables(plan, entity)
    for column in schema.table(table).columns:
        ref = ColumnRef(table, column.name)
        is_known = schema.canonical(ref) in own_keys and not is_own
        if is_known or (only is not None and column.name not in only):
            continue
        reason = _reason_to_leave_out(plan, ref)
        if reason:
            draft.left_out.setdefault(ref, reason)
        else:
            _add(plan, draft, entity, ref)


def _add(plan: ItemPlan, draft: ItemDraft, entity: str, ref: ColumnRef) -> None:
    column, through = column_source(plan.inputs, entity, ref)
    is_own = ref.table in _own_tables(plan, entity)
    canonical = plan.inputs.schema.canonical(ref) if is_own else ref
    key = ref if canonical == ref or through == [] else canonical
    if _is_repeated(plan, draft, entity, ref, column):
        draft.left_out.setdefault(ref, f"{column}, which it refers to, is kept in its place")
        return
    if column != ref and ref.table == entity:
        draft.left_out.setdefault(ref, f"{column}, which it refers to, is kept in its place")
    if key in draft.attributes:
        return
    draft.attributes[key] = ItemAttribute(
        name=_free_name(plan, draft, entity, ref, column),
        type=attribute_type(plan.inputs.volumes, column),
        column=str(column),
        through=through,
    )


def _is_repeated(
    plan: ItemPlan, draft: ItemDraft, entity: str, ref: ColumnRef, column: ColumnRef
) -> bool:
    """True for a foreign key to the parent whose version the item is."""
    version = plan.roles.versions.get(entity)
    is_link = version is not None and ref.column in version.link.key.columns
    columns_held = {attribute.column for attribute in draft.attributes.values()}
    return is_link and ref.table == entity and str(column) in columns_held


def _reason_to_leave_out(plan: ItemPlan, ref: ColumnRef) -> str:
    inputs = plan.inputs
    natural = inputs.schema.natural.get(ref)
    if natural is not None:
        return (
            f"a surrogate key that no pattern looks up by; {natural.column} identifies the row and"
            " replaces it wherever it is referred to"
        )
    link = inputs.schema.link_of(ref)
    if link is not None and link.parent in plan.roles.bypassed:
        return f"{link.parent}, which it refers to, only connects other tables"
    if inputs.settings.natural_keys.get(ref.table) and _is_surrogate(inputs, ref):
        return "a generated number that no pattern looks up by; the stated natural key is used"
    return _reason_to_lose(plan, ref)


def _reason_to_lose(plan: ItemPlan, ref: ColumnRef) -> str:
    """Returns why no item holds a column, or an empty text."""
    inputs = plan.inputs
    column = inputs.schema.column(ref)
    if column is not None and is_derived(column):
        return "the source computes it from other columns, and the application can do the same"
    measured = inputs.volumes.column(ref)
    if measured is not None and measured.bytes_max > ITEM_BYTES_MAX:
        return (
            f"its largest value has {measured.bytes_max:,} bytes, more than an item may have;"
            " keep it in an object store"
        )
    return ""


def _is_surrogate(inputs: DesignInputs, ref: ColumnRef) -> bool:
    table = inputs.schema.table(ref.table)
    column = inputs.schema.column(ref)
    return table.primary_key == [ref.column] and column is not None and column.is_auto_increment


# Columns that are read with an item.


def _add_wanted(
    plan: ItemPlan, draft: ItemDraft, entity: str, table: str, read: PatternRead
) -> None:
    if table in plan.roles.bypassed or table in plan.roles.collected:
        return
    path = plan.inputs.schema.path_up(entity, table)
    if not path:
        return
    pattern = read.pattern
    named = [*pattern.columns, *pattern.range, *pattern.filters] if pattern.columns else []
    listed = [ColumnRef.parse(name) for name in named]
    # A pattern that names no columns may want any of them, so all are repeated.
    only = {ref.column for ref in listed if ref.table == table} if listed else None
    for link in plan.inputs.schema.parents(entity):
        is_named = bool(set(link.columns) & set(pattern.through))
        # A table can be referenced twice (billing and delivery address): the pattern names the
        # foreign key.
        if link.parent == table and is_named and [link] != path:
            _add_other_row(plan, draft, link, only)
            return
    _add_above(plan, draft, entity, table, only)


def _add_other_row(
    plan: ItemPlan, draft: ItemDraft, link: ForeignKeyLink, only: set[str] | None
) -> None:
    """Adds columns of a second row of a table that the entity refers to twice."""
    inputs = plan.inputs
    for column in inputs.schema.table(link.parent).columns:
        ref = ColumnRef(link.parent, column.name)
        is_key = column.name in link.key.referenced_columns
        is_wanted = only is None or column.name in only
        if is_key or not is_wanted or _reason_to_leave_out(plan, ref):
            continue
        name = styled(f"{role(link.key.columns[0])}_{column.name}", inputs.settings.names)
        attribute = ItemAttribute(
            name=name,
            type=attribute_type(inputs.volumes, ref),
            column=str(ref),
            through=[link.upwards()],
        )
        if name not in draft.names():
            draft.others.append(attribute)


def _version_key(plan: ItemPlan, entity: str) -> set[str]:
    version = plan.roles.versions[entity]
    schema = plan.inputs.schema
    key = [schema.canonical(ColumnRef(entity, name)) for name in version.link.key.columns]
    return {ref.column for ref in key if ref.table == version.parent}


def _columns_of_every_version(plan: ItemPlan, entity: str) -> set[str] | None:
    """Returns the parent's columns that are read with every version; None for all of them."""
    parent = plan.roles.versions[entity].parent
    columns: set[str] = set()
    for read in plan.workload.reads_of(entity):
        if not read.is_latest and parent in read.tables:
            listed = [ColumnRef.parse(name) for name in read.pattern.columns]
            if not listed:
                return None
            columns |= {ref.column for ref in listed if ref.table == parent}
    return columns


# Rows of other tables that are a part of an item, and expiry.


def _add_merged(plan: ItemPlan, draft: ItemDraft, entity: str, child: str) -> None:
    link = plan.roles.merged[child]
    schema = plan.inputs.schema
    above = schema.path_up(entity, link.parent) or []
    for column in schema.table(child).columns:
        if column.name not in link.key.columns:
            ref = ColumnRef(child, column.name)
            draft.attributes[ref] = ItemAttribute(
                name=_free_name(plan, draft, entity, ref),
                type=attribute_type(plan.inputs.volumes, ref),
                column=str(ref),
                through=[*(join.upwards() for join in above), link.downwards()],
            )


def _add_collected(plan: ItemPlan, draft: ItemDraft, entity: str, *, is_all: bool) -> None:
    for table, child in plan.roles.collected.items():
        if child.owner not in _own_tables(plan, entity):
            continue
        if is_all or _is_read_with_versions(plan, entity, table, child):
            above = plan.inputs.schema.path_up(entity, child.owner) or []
            draft.others.append(
                ItemAttribute(
                    name=styled(child.name, plan.inputs.settings.names),
                    type=child.type,
                    collect=[str(ref) for ref in child.columns],
                    through=[*(link.upwards() for link in above), *child.through],
                    why=child.why,
                )
            )


def _is_read_with_versions(plan: ItemPlan, entity: str, table: str, child: CollectedChild) -> bool:
    named = {table, *(ref.table for ref in child.columns)}
    reads = plan.workload.reads_of(entity)
    return any(named & set(read.pattern.joins) for read in reads if not read.is_latest)


def _add_expiry(inputs: DesignInputs, draft: ItemDraft, entity: str) -> None:
    for name, seconds in inputs.settings.expire.items():
        if ColumnRef.parse(name).table == entity:
            draft.others.append(
                ItemAttribute(
                    name=inputs.settings.expire_name,
                    type="N",
                    expires=name,
                    after_seconds=seconds,
                    why="TTL deletes the item some time after this second, at no cost.",
                )
            )


# Names.


def _free_name(
    plan: ItemPlan, draft: ItemDraft, entity: str, ref: ColumnRef, column: ColumnRef | None = None
) -> str:
    settings = plan.inputs.settings
    chosen = settings.rename.get(str(ref))
    if chosen:
        return chosen
    name = styled(_plain_name(plan, entity, ref, column), settings.names)
    if name in draft.names():
        name = styled(of_table(ref.table, ref.column), settings.names)
    number = 2
    while name in draft.names():
        name = f"{name}{number}"
        number += 1
    return name


def _plain_name(plan: ItemPlan, entity: str, ref: ColumnRef, column: ColumnRef | None) -> str:
    """Returns the column's own name; for a replaced foreign key, the name of what it refers to."""
    if column is not None and column != ref and ref.table == entity:
        link = plan.inputs.schema.link_of(ref)
        named = role(ref.column)
        is_plain = link is not None and name_parts(named) == name_parts(singular(link.parent))
        return of_table(column.table, column.column) if is_plain else named
    if ref.table not in _own_tables(plan, entity):
        return of_table(ref.table, ref.column)
    return ref.column
