"""The fully denormalised design: a table for each type of item, with all that is read with it."""

from __future__ import annotations

from msgspec.structs import replace

from partita.migrate.designing.naming import table_name
from partita.migrate.designing.proposals.drafts import Draft
from partita.migrate.designing.proposals.groundwork import Groundwork
from partita.migrate.designing.proposals.keys import Key
from partita.migrate.designing.proposals.parts import (
    LARGE,
    LargeParts,
    guard_entity,
    latest_entity,
    whole,
)
from partita.migrate.designing.proposals.rendering import (
    LATEST,
    RenderedKey,
    Renderer,
    common_start,
    key_attribute,
)
from partita.migrate.designing.settings import ModelSettings
from partita.migrate.model.design import (
    Access,
    Attribute,
    Design,
    Entity,
    KeyAttribute,
    TableDesign,
    Unique,
    columns_of,
)
from partita.migrate.model.templates import SEPARATOR, SHARD
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref

GUARDS = "UniqueValues"


def denormalized(
    volumes: Volumes, patterns: list[AccessPattern], settings: ModelSettings
) -> Design:
    return _Denormalized(Groundwork(volumes, patterns, settings, "denormalized")).design()


class _Denormalized:
    def __init__(self, ground: Groundwork) -> None:
        self.ground = ground
        self.renderer = Renderer(ground)
        self.drafts = {name: ground.drafter.draft(name) for name in ground.entities}
        self.latest = {
            name: ground.drafter.draft(name, is_latest=True) for name in ground.roles.versions
        }
        self.large = LargeParts(ground, ground.entities)
        self.unique = ground.unique()
        self.access: list[Access] = []
        self.names: list[str] = []

    def design(self) -> Design:
        tables = [one for entity in self.ground.entities for one in self._tables(entity)]
        guards = [one for one in self.unique if one.kept_by == "item"]
        if guards:
            tables.append(self._guards(guards))
        drafts = [*self.latest.values(), *self.drafts.values()]
        return whole(self.ground, "denormalized", tables, self.access, self.unique, drafts)

    def _tables(self, entity: str) -> list[TableDesign]:
        """The table of an entity, and one for what is large and rarely wanted."""
        plan = self.ground.plans[entity]
        draft = self.drafts[entity]
        name = table_name(self._title(entity), self.names)
        self.names.append(name)
        keys = {
            source: self._key(entity, draft, plan.base, source)
            for source in self.ground.sources(entity)
        }
        base = keys[entity]
        fullest = self.latest.get(entity, draft)
        only = self.ground.latest_only(entity) if entity in self.latest else set()
        indexes = {
            index.name: self._key(
                entity,
                fullest,
                index.key,
                None,
                is_apart=index.name in only and index.kind == "global",
            )
            for index in plan.indexes
        }
        entities = self._entities(entity, keys, indexes)
        large = self._large_table(entity, name, base, entities)
        rendered = [
            self.renderer.index(
                index, indexes[index.name], entities, {one.name for one in base.attributes}
            )
            for index in plan.indexes
        ]
        self._note_access(entity, name, keys, indexes, large)
        self.access += self.ground.expiring(name, entity)
        expiry = [one.name for one in draft.extras if one.expires]
        own = TableDesign(
            name=name,
            partition_key=key_attribute(base.partition),
            sort_key=key_attribute(base.sort) if base.sort else None,
            ttl=expiry[0] if expiry else None,
            why=" ".join(filter(None, [plan.why, base.why])),
            indexes=rendered,
            entities=entities,
        )
        return [own, large] if large else [own]

    def _large_table(
        self, entity: str, name: str, base: RenderedKey, entities: list[Entity]
    ) -> TableDesign | None:
        """Takes the large columns out of the items, into a table with the same keys."""
        kept, large = self.large.split(entity, entities[-1].attributes)
        if not large:
            return None
        entities[-1] = replace(entities[-1], attributes=kept)
        self.names.append(table_name(f"{name}_{LARGE}", self.names))
        return TableDesign(
            name=self.names[-1],
            partition_key=key_attribute(base.partition),
            sort_key=key_attribute(base.sort) if base.sort else None,
            why=f"What is large and rarely wanted of {name}, under the same keys.",
            entities=[self.large.entity_of(entity, base.attributes, large)],
        )

    def _title(self, entity: str) -> str:
        """After what its partition key names, when that has no table of its own."""
        sources = self.ground.sources(entity)
        if len(sources) > 1:
            return common_start(sources).strip("_") or entity
        first = self.ground.plans[entity].base.partition[0]
        if first.table in self.ground.roles.folded:
            return first.table
        return self.ground.title(entity)

    # Keys.

    def _key(
        self,
        entity: str,
        draft: Draft,
        key: Key,
        source: str | None,
        *,
        is_apart: bool = False,
    ) -> RenderedKey:
        """`source` for the table's own key, which tells twins apart; None for an index. A key that
        `is_apart` has an attribute of its own, which only some of the items have."""
        constants = self.renderer.constants(entity, source) if source else []
        shards, why = self.ground.shards(entity, key.partition)
        names = self.ground.settings.key_names if source else []
        parts: list[str | Ref] = [*constants, *key.partition]
        partition = self._part(entity, draft, parts, shards, names[:1], is_apart=is_apart)
        sort = None
        if key.sort:
            sort = self._part(entity, draft, list(key.sort), 1, names[1:2])
        return RenderedKey(key=key, partition=partition, sort=sort, why=why)

    def _part(
        self,
        entity: str,
        draft: Draft,
        parts: list[str | Ref],
        shards: int,
        names: list[str],
        *,
        is_apart: bool = False,
    ) -> Attribute:
        refs = [part for part in parts if isinstance(part, Ref)]
        if len(parts) == 1 and shards == 1 and not is_apart:
            plain = self.renderer.plain(draft, entity, refs[0])
            if plain is not None:
                return plain
        joined = SEPARATOR.join(self.renderer.attribute_name(draft, entity, ref) for ref in refs)
        # An index may have the same columns, and no shards.
        name = names[0] if names else joined + (f"{SEPARATOR}{SHARD}" if shards > 1 else "")
        if name in draft.names():
            name = f"{name}{SEPARATOR}key"
        return self.renderer.composed(entity, name, parts, shards=shards)

    # Items.

    def _entities(
        self, entity: str, keys: dict[str, RenderedKey], indexes: dict[str, RenderedKey]
    ) -> list[Entity]:
        found = []
        only = self.ground.latest_only(entity)
        of_each = [rendered for name, rendered in indexes.items() if name not in only]
        version = self.ground.roles.versions.get(entity)
        if version is not None:
            attributes = self._attributes(
                entity, self.latest[entity], keys[entity], list(indexes.values())
            )
            why = f"Version {LATEST}: a copy of the latest, with what belongs to all versions."
            found.append(latest_entity(self.ground, entity, attributes, keys[entity], why))
        for source, key in keys.items():
            attributes = self._attributes(entity, self.drafts[entity], key, of_each)
            found.append(
                Entity(
                    name=source,
                    source=source,
                    attributes=[
                        self.renderer.for_source(one, entity, source) for one in attributes
                    ],
                    why=self._entity_why(entity),
                )
            )
        return found

    def _entity_why(self, entity: str) -> str:
        copied = {
            ref.table
            for ref in self.drafts[entity].attributes
            if ref.table not in (entity, self.ground.title(entity))
        }
        if not copied:
            return ""
        return (
            f"Each item also holds what is read with it from {', '.join(sorted(copied))}, so that"
            " one request answers."
        )

    def _attributes(
        self, entity: str, draft: Draft, key: RenderedKey, indexes: list[RenderedKey]
    ) -> list[Attribute]:
        """Keys first; a column that a composed table key spells out is not repeated."""
        composed = [one for one in key.attributes if one.template]
        spelled = {
            ref
            for one in composed
            for ref in columns_of(Entity(name="", source=entity, attributes=[]), one)
        }
        used = {one.name for rendered in [key, *indexes] for one in rendered.attributes}
        rest = [
            one
            for one in draft.attributes.values()
            if one.name in used or not (one.column and Ref.parse(one.column) in spelled)
        ]
        ordered = [*key.attributes, *rest, *draft.extras]
        for rendered in indexes:
            ordered += [one for one in rendered.attributes if one.template]
        return list({one.name: one for one in ordered}.values())

    def _guards(self, guards: list[Unique]) -> TableDesign:
        return TableDesign(
            name=table_name(GUARDS, self.names),
            partition_key=KeyAttribute(name="value", type="S"),
            why="One item for each value that must not occur twice.",
            entities=[guard_entity(one, "value") for one in guards],
        )

    # Requests.

    def _note_access(
        self,
        entity: str,
        table: str,
        keys: dict[str, RenderedKey],
        indexes: dict[str, RenderedKey],
        large: TableDesign | None,
    ) -> None:
        plan = self.ground.plans[entity]
        found: list[tuple[AccessPattern, Access]] = []
        for served in plan.served:
            pattern = served.need.pattern
            source = pattern.table if pattern.table in keys else entity
            rendered = indexes[served.index] if served.index else keys[source]
            version = self.ground.roles.versions.get(entity)
            item = version.parent if version and served.need.is_latest else source
            access = self.renderer.read(served, table, rendered, item, self.drafts[entity])
            found.append((pattern, access))
        for write in self.ground.needs.writes_of(entity):
            source = write.pattern.table if write.pattern.table in keys else entity
            copies = self.renderer.copies(write, self.drafts)
            access = self.renderer.write(write, table, keys[source], source, self.unique, copies)
            found.append((write.pattern, access))
        name = self.large.name_of(entity)
        for pattern, access in found:
            beside = replace(access, table=large.name if large else table, entity=name)
            self.access += self.large.serve(entity, pattern, access, beside)
