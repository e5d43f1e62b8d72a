"""Keys of the overloaded table: prefixes, root items, and the indexes that types of items share."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from partita.migrate.designing.naming import prefixes
from partita.migrate.designing.proposals.drafts import Draft
from partita.migrate.designing.proposals.groundwork import Groundwork
from partita.migrate.designing.proposals.keys import IndexPlan
from partita.migrate.designing.proposals.rendering import RenderedKey, Renderer
from partita.migrate.model.design import Attribute, Entity, columns_of, template_shape
from partita.migrate.model.templates import SEPARATOR
from partita.migrate.understanding.schema.column_refs import Ref

PK = "PK"
SK = "SK"
ROOT = "root"
VERSION_PREFIX = "V"
VERSION_DIGITS = 10


class Slot(Struct):
    """The same place among the indexes of several entities."""

    name: str
    kind: str
    users: list[tuple[str, IndexPlan]] = field(default_factory=list)


class OverloadedKeys:
    def __init__(
        self,
        ground: Groundwork,
        renderer: Renderer,
        drafts: dict[str, Draft],
        latest: dict[str, Draft],
    ) -> None:
        self.ground = ground
        self.renderer = renderer
        self.drafts = drafts
        self.latest = latest
        titles = [ground.title(entity) for entity in ground.entities]
        self.prefixes = prefixes(dict.fromkeys([*titles, *ground.schema.tables]))
        self.kept: dict[str, set[str]] = {}
        self.bases = self._bases()
        self.slots = self._slots()

    # The table's own key.

    def _prefix(self, entity: str, ref: Ref) -> str:
        """Of the table whose row a column names."""
        link = self.ground.schema.link_of(ref)
        if link is not None:
            return self.prefixes[link.parent]
        return self.prefixes[ref.table if ref.table in self.prefixes else entity]

    def _is_identity(self, ref: Ref) -> bool:
        """Whether a column names a row: its own table's, or another's."""
        if self.ground.schema.link_of(ref) is not None:
            return True
        keys = self.ground.identities(ref.table) if ref.table in self.ground.plans else []
        return [ref] in keys

    def _parts(self, entity: str, refs: tuple[Ref, ...]) -> list[str | Ref]:
        """Each column after the prefix of what it names; others under the entity's own."""
        parts: list[str | Ref] = []
        for position, ref in enumerate(refs):
            if self._is_identity(ref):
                parts.append(self._prefix(entity, ref))
            elif not position:
                parts.append(self.prefixes[self.ground.title(entity)])
            parts.append(ref)
        return parts

    def _bases(self) -> dict[tuple[str, str], RenderedKey]:
        """The keys of all items, those of owners first; who comes later to a key that is taken
        stands behind the prefix of its own table."""
        ground = self.ground
        ordered = sorted(
            ground.entities, key=lambda one: ground.plans[one].base.partition[0].table != one
        )
        found: dict[tuple[str, str], RenderedKey] = {}
        taken: set[tuple[str, str]] = set()
        for entity in ordered:
            for source in ground.sources(entity):
                rendered = self._rendered(entity, source)
                if _shape(rendered) in taken:
                    rendered = _behind(rendered, self.prefixes[ground.title(entity)])
                taken.add(_shape(rendered))
                found[entity, source] = rendered
        return found

    def base(self, entity: str, source: str) -> RenderedKey:
        return self.bases[entity, source]

    def _rendered(self, entity: str, source: str) -> RenderedKey:
        key = self.ground.plans[entity].base
        shards, why = self.ground.shards(entity, key.partition)
        constants = self.renderer.constants(entity, source)
        partition = self.renderer.composed(
            entity,
            PK,
            [
                *self._parts(entity, key.partition)[:1],
                *constants,
                *self._parts(entity, key.partition)[1:],
            ],
            shards=shards,
        )
        version = self.ground.roles.versions.get(entity)
        latest = ROOT
        if version is not None:
            lead = f"{VERSION_PREFIX}{SEPARATOR}"
            latest = lead + "0" * VERSION_DIGITS
            sort = Attribute(
                name=SK, type="S", template=f"{lead}{{{Ref('', version.column)}:0{VERSION_DIGITS}}}"
            )
        elif key.sort:
            sort = self.renderer.composed(entity, SK, self._parts(entity, key.sort))
        else:
            sort = Attribute(name=SK, type="S", constant=ROOT)
        return RenderedKey(key=key, partition=partition, sort=sort, latest=latest, why=why)

    # Indexes, by their place among those of each entity.

    def _slots(self) -> list[Slot]:
        slots: dict[str, Slot] = {}
        for entity in self.ground.entities:
            for index in self.ground.plans[entity].indexes:
                slot = slots.setdefault(index.name, Slot(index.name, index.kind))
                slot.users.append((entity, index))
        return [slots[name] for name in sorted(slots, key=lambda name: (name[0], int(name[3:])))]

    def index_key(self, slot: Slot, entity: str, index: IndexPlan) -> RenderedKey:
        is_shared = len(slot.users) > 1 or self._is_taken(entity, index)
        draft = self._whole(entity)
        shards, why = self.ground.shards(entity, index.key.partition)
        base = self.base(entity, entity)
        partition = base.partition
        plain = self._plain(entity, index.key.partition)
        if index.kind == "global" and plain is not None and not is_shared and shards == 1:
            partition = plain
        elif index.kind == "global":
            partition = self.renderer.composed(
                entity,
                f"{slot.name}{PK}"
                if is_shared
                else self._named(draft, entity, index.key.partition)
                + (f"{SEPARATOR}shard" if shards > 1 else ""),
                self._parts(entity, index.key.partition),
                shards=shards,
            )
        return RenderedKey(
            key=index.key,
            partition=partition,
            sort=self._index_sort(slot, entity, index, is_shared),
            why=why,
        )

    def _plain(self, entity: str, refs: tuple[Ref, ...]) -> Attribute | None:
        """A column that names no row needs no prefix, in an index of one type of items."""
        if len(refs) > 1 or self._is_identity(refs[0]):
            return None
        return self.renderer.plain(self._whole(entity), entity, refs[0])

    def _whole(self, entity: str) -> Draft:
        """With all that any item of the entity holds."""
        return self.latest.get(entity) or self.drafts[entity]

    def _is_taken(self, entity: str, index: IndexPlan) -> bool:
        """Whether other items have an attribute of that name: the index would hold them too."""
        if entity in self.latest and index.name in self.ground.latest_only(entity):
            return True
        names = {
            self._named(self._whole(entity), entity, refs)
            for refs in (index.key.partition, index.key.sort)
        }
        return any(names & self._kept(other) for other in self.drafts if other != entity)

    def _kept(self, entity: str) -> set[str]:
        """Names of the attributes that are not merely a part of PK and SK."""
        if entity in self.kept:
            return self.kept[entity]
        bare = Entity(name="", source=entity, attributes=[])
        base = self.base(entity, entity)
        spelled = {ref for one in base.attributes for ref in columns_of(bare, one)}
        drafts = [one for one in (self.drafts[entity], self.latest.get(entity)) if one]
        self.kept[entity] = {
            one.name
            for draft in drafts
            for one in [*draft.attributes.values(), *draft.extras]
            if Ref.parse(one.column or "") not in spelled
        }
        return self.kept[entity]

    def _index_sort(
        self, slot: Slot, entity: str, index: IndexPlan, is_shared: bool
    ) -> Attribute | None:
        draft, refs = self._whole(entity), index.key.sort
        if is_shared:
            parts: list[str | Ref] = self._parts(entity, refs) if refs else [ROOT]
            return self.renderer.composed(entity, f"{slot.name}{SK}", parts)
        if not refs:
            return None
        base = self.base(entity, entity)
        if refs == base.key.partition:
            return base.partition
        plain = self._plain(entity, refs)
        if plain is not None:
            return plain
        return self.renderer.composed(
            entity, self._named(draft, entity, refs), self._parts(entity, refs)
        )

    def _named(self, draft: Draft, entity: str, refs: tuple[Ref, ...]) -> str:
        return SEPARATOR.join(self.renderer.attribute_name(draft, entity, ref) for ref in refs)

    def index_start(self, entity: str, name: str) -> str:
        """How a type's sort keys in an index begin, where others share its partition keys."""
        keys = {
            user: self.index_key(slot, user, index)
            for slot in self.slots
            if slot.name == name
            for user, index in slot.users
        }
        own = keys.pop(entity)
        shared = (one for one in keys.values() if one.partition == own.partition)
        return prefix_of(own.sort) if any(shared) else ""

    def index_keys(self, entity: str) -> dict[str, RenderedKey]:
        return {
            slot.name: self.index_key(slot, user, index)
            for slot in self.slots
            for user, index in slot.users
            if user == entity
        }


def prefix_of(sort: Attribute | None) -> str:
    """The text before the first field of a sort key."""
    lead, separator, _ = (sort.template or "").partition(SEPARATOR) if sort else ("", "", "")
    return "" if "{" in lead else f"{lead}{separator}"


def _shape(rendered: RenderedKey) -> tuple[str, str]:
    assert rendered.sort is not None
    return template_shape(rendered.partition), template_shape(rendered.sort)


def _behind(rendered: RenderedKey, prefix: str) -> RenderedKey:
    """The same key, with a prefix before its sort key."""
    sort = rendered.sort
    assert sort is not None
    if sort.template is None:
        sort = replace(sort, constant=f"{prefix}{SEPARATOR}{sort.constant}")
    else:
        sort = replace(sort, template=f"{prefix}{SEPARATOR}{sort.template}")
    return replace(rendered, sort=sort, latest=f"{prefix}{SEPARATOR}{rendered.latest}")
