"""Renders keys as attributes: a column as it is, or a template of several columns."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from partita_migrate.designing.attribute_naming import of_table, styled
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.column_sources import (
    column_source,
    fold,
    template_source,
)
from partita_migrate.designing.proposals.items.item_drafts import ItemDraft
from partita_migrate.designing.proposals.keys.key_plan import PlannedKey
from partita_migrate.model.design import ItemAttribute, KeyAttribute, KeyType
from partita_migrate.model.keys.key_templates import SEPARATOR, SHARD
from partita_migrate.understanding.schema.column_refs import ColumnRef

LATEST = "0"
"""The version number that no row has: it belongs to the copy of the latest version."""
KEY_TYPES = ("S", "N", "B")


@dataclass(frozen=True)
class RenderedKey:
    """A key with the attributes that hold it."""

    key: PlannedKey
    partition: ItemAttribute
    sort: ItemAttribute | None = None
    latest: str = LATEST
    """The sort key of the item that copies the latest version."""
    why: str = ""

    @property
    def attributes(self) -> list[ItemAttribute]:
        return [self.partition, *([self.sort] if self.sort else [])]


def key_attribute(attribute: ItemAttribute) -> KeyAttribute:
    kind: KeyType = attribute.type if attribute.type in KEY_TYPES else "S"  # type: ignore[assignment]
    return KeyAttribute(name=attribute.name, type=kind)


def plain_attribute(
    plan: ItemPlan, draft: ItemDraft, entity: str, ref: ColumnRef
) -> ItemAttribute | None:
    """Returns the attribute that already holds a column, if it can be a key attribute as it is: it
    needs a key type, and a column that is compared byte by byte."""
    column, through = column_source(plan.inputs, entity, ref)
    if fold(plan.inputs, column):
        return None
    for attribute in draft.attributes.values():
        is_same = attribute.column == str(column) and attribute.through == through
        if is_same and attribute.type in KEY_TYPES:
            return attribute
    return None


def may_be_empty(plan: ItemPlan, entity: str, ref: ColumnRef) -> bool:
    """True for a text or binary column that does not identify a row: the source may have empty
    values."""
    schema = plan.inputs.schema
    column, _ = column_source(plan.inputs, entity, ref)
    definition = schema.column(column)
    is_tellable = definition is not None and definition.kind in ("string", "binary", "other")
    if not is_tellable or column.table not in schema.tables:
        return False
    telling = {name for key in schema.unique_keys(column.table) for name in key}
    referring = {name for link in schema.parents(column.table) for name in link.key.columns}
    stated = plan.inputs.settings.natural_keys.get(column.table, [])
    return column.column not in telling | referring | set(stated)


def composed_attribute(
    plan: ItemPlan,
    entity: str,
    name: str,
    parts: list[str | ColumnRef],
    *,
    shards: int = 1,
    is_sort: bool = False,
) -> ItemAttribute:
    """Joins texts and columns with separators. In a sort key, numbers are written so that they
    sort."""
    texts: list[str] = []
    through: list[str] = []
    for part in parts:
        if isinstance(part, ColumnRef):
            source = template_source(plan.inputs, entity, part, is_sort=is_sort)
            texts.append(source.field)
            through += [join for join in source.through if join not in through]
        else:
            texts.append(part)
    if shards > 1:
        texts.append(f"{{{SHARD}}}")
    return ItemAttribute(
        name=name, type="S", template=SEPARATOR.join(texts), through=through, shards=shards
    )


def attribute_name(plan: ItemPlan, draft: ItemDraft, entity: str, ref: ColumnRef) -> str:
    attribute = plain_attribute(plan, draft, entity, ref)
    if attribute is not None:
        return attribute.name
    own = (entity, plan.title(entity))
    ref = ColumnRef(ref.table, ref.column.replace(":", "_"))
    name = ref.column if ref.table in own else of_table(ref.table, ref.column)
    return styled(name, plan.inputs.settings.names)


def joined_name(plan: ItemPlan, draft: ItemDraft, entity: str, refs: tuple[ColumnRef, ...]) -> str:
    return SEPARATOR.join(attribute_name(plan, draft, entity, ref) for ref in refs)


# Tables of the same shape.


def constants(plan: ItemPlan, entity: str, source: str) -> list[str]:
    """Returns the texts that distinguish the rows of one source from those of other tables of its
    shape."""
    stated = plan.inputs.settings.constants.get(source)
    if stated:
        return list(stated.values())
    sources = plan.sources(entity)
    if len(sources) == 1:
        return []
    return [source[len(common_start(sources)) :].strip("_") or source]


def attribute_of_twin(
    plan: ItemPlan, attribute: ItemAttribute, entity: str, source: str
) -> ItemAttribute:
    """Returns the attribute for the rows of another table of the same shape."""
    if source == entity:
        return attribute

    def renamed(name: str | None) -> str | None:
        ref = ColumnRef.parse(name or "")
        return str(ColumnRef(source, ref.column)) if ref.table == entity else name

    expires = renamed(attribute.expires)
    seconds = plan.inputs.settings.expire.get(expires or "", attribute.after_seconds)
    return replace(
        attribute, column=renamed(attribute.column), expires=expires, after_seconds=seconds
    )


def common_start(names: list[str]) -> str:
    """Returns the words that all names begin with, spelled as in the first name."""
    shared = 0
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        shared += 1
    start = names[0][:shared]
    # Half a word does not count: page_hit_hour and page_hit_hits share page_hit_, not page_hit_h.
    return start if start.endswith("_") else start[: start.rfind("_") + 1] or start
