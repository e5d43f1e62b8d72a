"""The overloaded single table: root items, and what belongs to them in the same collection.

PK and SK hold keys of all types of items, told apart by prefixes. An index attribute that only one
type of item has makes a sparse index of these; when several types need an index in the same place
they share one, under attributes of its own name.
"""

from __future__ import annotations

from msgspec.structs import replace

from partita.migrate.designing.naming import database_name, table_name
from partita.migrate.designing.proposals.drafts import Draft
from partita.migrate.designing.proposals.groundwork import Groundwork
from partita.migrate.designing.proposals.keys import IndexPlan, Served, match
from partita.migrate.designing.proposals.needs import Need
from partita.migrate.designing.proposals.overloaded_keys import (
    PK,
    ROOT,
    SK,
    OverloadedKeys,
    Slot,
    prefix_of,
)
from partita.migrate.designing.proposals.parts import (
    LARGE,
    LargeParts,
    guard_entity,
    latest_entity,
    whole,
)
from partita.migrate.designing.proposals.rendering import RenderedKey, Renderer
from partita.migrate.designing.settings import ModelSettings
from partita.migrate.model.design import (
    Access,
    Attribute,
    Condition,
    Design,
    Entity,
    KeyAttribute,
    SecondaryIndex,
    TableDesign,
    columns_of,
)
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref

GUARD = "U"


def single_table(
    volumes: Volumes, patterns: list[AccessPattern], settings: ModelSettings
) -> Design:
    return _SingleTable(Groundwork(volumes, patterns, settings, "single-table")).design()


class _SingleTable:
    def __init__(self, ground: Groundwork) -> None:
        self.ground = ground
        self.renderer = Renderer(ground)
        self.drafts = {name: self._draft(name) for name in ground.entities}
        self.latest = {
            name: ground.drafter.draft(name, is_latest=True) for name in ground.roles.versions
        }
        self.large = LargeParts(ground, filter(self._is_root_alone, ground.entities))
        self.unique = ground.unique()
        self.keys = OverloadedKeys(ground, self.renderer, self.drafts, self.latest)
        self.access: list[Access] = []
        self.name = table_name(ground.settings.table_name or database_name(ground.schema.database))

    def design(self) -> Design:
        entities = [one for entity in self.ground.entities for one in self._entities(entity)]
        root = Attribute(name=SK, type="S", constant=ROOT)
        entities += [
            guard_entity(one, PK, prefix=GUARD, more=[root])
            for one in self.unique
            if one.kept_by == "item"
        ]
        expiry = [one.name for draft in self.drafts.values() for one in draft.extras if one.expires]
        table = TableDesign(
            name=self.name,
            partition_key=KeyAttribute(name=PK, type="S"),
            sort_key=KeyAttribute(name=SK, type="S"),
            ttl=expiry[0] if expiry else None,
            why="One table for all types of items: what is read together lies together.",
            indexes=[self._index(slot, entities) for slot in self.keys.slots],
            entities=entities,
        )
        for entity in self.ground.entities:
            self._note_access(entity)
        drafts = [*self.latest.values(), *self.drafts.values()]
        return whole(self.ground, "single-table", [table], self.access, self.unique, drafts)

    def _draft(self, entity: str) -> Draft:
        """Without what is wanted from a root item in the same collection."""
        served = self.ground.plans[entity].served
        return self.ground.drafter.draft(
            entity,
            together=self._in_collection(entity),
            by_index=[one.need.pattern.name for one in served if one.index],
        )

    def _index(self, slot: Slot, entities: list[Entity]) -> SecondaryIndex:
        entity, plan = slot.users[0]
        merged = IndexPlan(
            name=plan.name,
            kind=plan.kind,
            key=plan.key,
            needs=[need for _, one in slot.users for need in one.needs],
            why=" ".join(dict.fromkeys(one.why for _, one in slot.users)),
        )
        rendered = self.keys.index_key(slot, entity, plan)
        users = [user for user, _ in slot.users]
        inside = [one for one in entities if one.source in users]
        found = self.renderer.index(merged, rendered, inside, {PK, SK})
        if len(self.ground.entities) > len(users):
            return replace(found, why=f"{found.why} Sparse: only {', '.join(users)} have its key.")
        return found

    # Items.

    def _entities(self, entity: str) -> list[Entity]:
        rendered = self.keys.index_keys(entity)
        indexes = list(rendered.values())
        only = self.ground.latest_only(entity)
        of_each = [one for name, one in rendered.items() if name not in only]
        found = []
        if entity in self.ground.roles.versions:
            key = self.keys.base(entity, entity)
            attributes = self._attributes(entity, self.latest[entity], key, indexes)
            why = "The root item: version 0, a copy of the latest."
            found.append(latest_entity(self.ground, entity, attributes, key, why))
        for source in self.ground.sources(entity):
            key = self.keys.base(entity, source)
            attributes = self._attributes(entity, self.drafts[entity], key, of_each)
            attributes, large = self.large.split(entity, attributes)
            if large:
                beside = Attribute(name=SK, type="S", constant=LARGE)
                found.append(self.large.entity_of(entity, [key.partition, beside], large))
            found.append(
                Entity(
                    name=source,
                    source=source,
                    attributes=[
                        self.renderer.for_source(one, entity, source) for one in attributes
                    ],
                    why=self._entity_why(entity, key),
                )
            )
        return found

    def _entity_why(self, entity: str, key: RenderedKey) -> str:
        owner = key.key.partition[0].table
        if not key.key.sort:
            return f"The root item of one of {entity}."
        if owner in self._in_collection(entity):
            return f"In the collection of its {owner}: one query reads both."
        return ""

    def _attributes(
        self, entity: str, draft: Draft, key: RenderedKey, indexes: list[RenderedKey]
    ) -> list[Attribute]:
        """Keys first; what PK and SK spell out is not repeated, unless an index needs it."""
        bare = Entity(name="", source=entity, attributes=[])
        spelled = {ref for one in key.attributes for ref in columns_of(bare, one)}
        used = [one for rendered in indexes for one in rendered.attributes]
        rest = []
        for one in draft.attributes.values():
            named = [other for other in used if other.name == one.name]
            if named:
                rest.append(named[0])
            elif not (one.column and Ref.parse(one.column) in spelled):
                rest.append(one)
        ordered = [*key.attributes, *rest, *draft.extras, *used]
        return list({one.name: one for one in ordered}.values())

    # Requests.

    def _note_access(self, entity: str) -> None:
        plan = self.ground.plans[entity]
        indexes = self.keys.index_keys(entity)
        sources = self.ground.sources(entity)
        version = self.ground.roles.versions.get(entity)
        for served in plan.served:
            if self._is_read_with_root(served):
                continue
            pattern = served.need.pattern
            source = pattern.table if pattern.table in sources else entity
            rendered = indexes[served.index] if served.index else self.keys.base(entity, source)
            item = version.parent if version and served.need.is_latest else source
            start = self._start(entity, served)
            found = self.renderer.read(
                served, self.name, rendered, item, self.drafts[entity], start
            )
            self._note(entity, pattern, self._with_collection(served, found))
        for write in self.ground.needs.writes_of(entity):
            source = write.pattern.table if write.pattern.table in sources else entity
            copies = self.renderer.copies(write, self.drafts)
            base = self.keys.base(entity, source)
            access = self.renderer.write(write, self.name, base, source, self.unique, copies)
            self._note(entity, write.pattern, access)
        self.access += self.ground.expiring(self.name, entity)

    def _note(self, entity: str, pattern: AccessPattern, access: Access) -> None:
        key = [*access.key[:1], Condition(attribute=SK, value=LARGE)]
        beside = replace(access, entity=self.large.name_of(entity), key=key)
        self.access += self.large.serve(entity, pattern, access, beside)

    def _is_root_alone(self, entity: str) -> bool:
        """Whether an item has room beside it, and nobody reads all of its collection."""
        needs = self.ground.needs.of(entity)
        return not self.ground.plans[entity].base.sort and not any(map(self._together, needs))

    def _together(self, need: Need) -> list[str]:
        """Of what a pattern reads beside an entity, that which lies in its collection."""
        base = self.ground.plans[need.entity].base
        return [
            other
            for other in need.beside
            if self.ground.plans[other].base.partition == base.partition
            and match(base, need) is not None
        ]

    def _with_collection(self, served: Served, found: Access) -> Access:
        """The whole collection instead of its root, when the pattern wants what lies there."""
        together = self._together(served.need) if served.index is None else []
        if not together:
            return found
        return replace(
            found,
            request="Query",
            key=found.key[:1],
            why=f"One query reads it with its {' and '.join(together)}.",
        )

    def _is_read_with_root(self, served: Served) -> bool:
        need = served.need
        if not need.is_beside:
            return False
        roots = [
            other
            for other in self.ground.needs.reads
            if other.pattern is need.pattern and need.entity in other.beside
        ]
        return any(need.entity in self._together(root) and self._is_by_base(root) for root in roots)

    def _is_by_base(self, need: Need) -> bool:
        plan = self.ground.plans[need.entity]
        return any(one.need.pattern is need.pattern and one.index is None for one in plan.served)

    def _start(self, entity: str, served: Served) -> str:
        """How a type's sort keys begin, where other items lie in the same collection.

        A root item may come along, unless it would be among the first ones.
        """
        key, pattern = self.ground.plans[entity].base, served.need.pattern
        if served.index is not None:
            return self.keys.index_start(entity, served.index)
        if not key.sort:
            return ""
        if entity in self.ground.roles.versions:
            sort = self.keys.base(entity, entity).sort
            return (sort.template or "").partition("{")[0] if sort else ""
        is_root_allowed = not (pattern.order_by or pattern.limit)
        beside = [
            other
            for other in self._in_collection(entity)
            if self.ground.plans[other].base.sort
            or not is_root_allowed
            or self.large.columns.get(other)
        ]
        if not beside:
            return ""
        return prefix_of(self.keys.base(entity, entity).sort)

    def _in_collection(self, entity: str) -> list[str]:
        """The other types of items with the same partition key."""
        plans = self.ground.plans
        partition = plans[entity].base.partition
        return [
            other
            for other in self.ground.entities
            if other != entity and plans[other].base.partition == partition
        ]
