"""What both designs make in the same way: latest versions, guards, large parts, and the whole."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from partita.migrate.designing.naming import database_name, styled
from partita.migrate.designing.proposals.drafts import Draft
from partita.migrate.designing.proposals.groundwork import Groundwork
from partita.migrate.designing.proposals.rendering import RenderedKey
from partita.migrate.model.design import (
    Access,
    Attribute,
    Design,
    DesignKind,
    Entity,
    TableDesign,
    Unique,
    columns_of,
)
from partita.migrate.model.templates import SEPARATOR
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref

LARGE = "large"

LARGE_BYTES = 4 * 1024
"""A column of this size costs every reader of the item one more read unit."""

RARELY = 0.1
"""Of the reads and updates of an item, those that may want what lies beside it."""


def whole(
    ground: Groundwork,
    kind: DesignKind,
    tables: list[TableDesign],
    access: list[Access],
    unique: list[Unique],
    drafts: Iterable[Draft],
) -> Design:
    placed = {
        ref
        for table in tables
        for entity in table.entities
        for attribute in entity.attributes
        for ref in columns_of(entity, attribute)
    }
    order = {pattern.name: place for place, pattern in enumerate(ground.patterns)}
    return Design(
        name=database_name(ground.schema.database),
        kind=kind,
        choices=ground.choices(),
        risks=ground.risks(),
        tables=tables,
        access=sorted(access, key=lambda one: order[one.pattern]),
        unique=unique,
        left_out=ground.left_out(list(drafts), placed),
    )


def latest_entity(
    ground: Groundwork, entity: str, attributes: list[Attribute], key: RenderedKey, why: str
) -> Entity:
    """The item that copies the newest version, under the version that no row has."""
    version = ground.roles.versions[entity]
    number = str(Ref(entity, version.column))
    counted = styled(f"latest_{version.column}", ground.settings.names)
    return Entity(
        name=version.parent,
        source=entity,
        rows="latest",
        latest_by=number,
        per=[str(Ref(entity, name)) for name in version.link.key.columns],
        attributes=[
            *(
                Attribute(name=one.name, type=one.type, constant=key.latest)
                if key.sort is not None and one.name == key.sort.name
                else one
                for one in attributes
            ),
            Attribute(name=counted, type="N", column=number),
        ],
        why=why,
    )


def guard_entity(
    guard: Unique, name: str, *, prefix: str = "", more: Iterable[Attribute] = ()
) -> Entity:
    """One item for each value that must not occur twice, under the key attribute `name`."""
    title = f"{guard.table}.{'.'.join(guard.columns)}"
    fields = [f"{{{Ref('', column)}}}" for column in guard.columns]
    template = SEPARATOR.join([*([prefix] if prefix else []), title, *fields])
    return Entity(
        name=title,
        source=guard.table,
        is_guard=True,
        attributes=[Attribute(name=name, type="S", template=template), *more],
        why="One item for each value that must not occur twice.",
    )


class LargeParts:
    """Vertical partitioning: large columns that are rarely wanted lie in an item of their own."""

    def __init__(self, ground: Groundwork, entities: Iterable[str]) -> None:
        self.ground = ground
        self.columns = {entity: self._columns(entity) for entity in entities}

    def _columns(self, entity: str) -> set[Ref]:
        if entity in self.ground.roles.versions or len(self.ground.sources(entity)) > 1:
            return set()
        plan = self.ground.plans[entity]
        keys = {*plan.base.columns, *(ref for index in plan.indexes for ref in index.key.columns)}
        own = (Ref(entity, column.name) for column in self.ground.schema.table(entity).columns)
        return {
            ref
            for ref in own
            if ref not in keys
            and self.ground.volumes.value_bytes(ref) >= LARGE_BYTES
            and self._is_rarely_wanted(entity, ref)
        }

    def _is_rarely_wanted(self, entity: str, ref: Ref) -> bool:
        """And never through an index, which would lead to one request for each item."""
        served = self.ground.plans[entity].served
        if any(one.index and _wants(one.need.pattern, {ref}) for one in served):
            return False
        asking = [need.pattern for need in self.ground.needs.of(entity)]
        asking += [
            write.pattern
            for write in self.ground.needs.writes_of(entity)
            if write.pattern.operation == "update"
        ]
        total = sum(pattern.calls_per_second for pattern in asking)
        wanting = sum(one.calls_per_second for one in asking if _wants(one, {ref}))
        return total > 0 and wanting <= total * RARELY

    def split(
        self, entity: str, attributes: list[Attribute]
    ) -> tuple[list[Attribute], list[Attribute]]:
        """The attributes of the item itself, and those that lie beside it."""
        large = [
            one for one in attributes if Ref.parse(one.column or "") in self.columns.get(entity, ())
        ]
        return [one for one in attributes if one not in large], large

    def entity_of(self, entity: str, keys: list[Attribute], large: list[Attribute]) -> Entity:
        names = " and ".join(one.name for one in large)
        return Entity(
            name=self.name_of(entity),
            source=entity,
            attributes=[*keys, *large],
            why=f"Vertical partitioning: {names}, large and rarely wanted, beside the rest.",
        )

    def name_of(self, entity: str) -> str:
        return f"{entity} {LARGE}"

    def serve(
        self, entity: str, pattern: AccessPattern, access: Access, beside: Access
    ) -> list[Access]:
        """The requests of a pattern: for the item, for its large part, or for both."""
        large = self.columns.get(entity, set())
        if not large or not _wants(pattern, large):
            return [access]
        if access.request not in ("GetItem", "Query"):
            is_whole = pattern.operation != "update" or not pattern.columns
            count = access.requests + (1 if is_whole else 0)
            why = f"{access.why} The large part of the row is written beside it.".strip()
            return [replace(access, requests=count, why=why)]
        keys = set(self.ground.plans[entity].base.columns)
        only = bool(pattern.columns) and set(map(Ref.parse, pattern.columns)) <= large | keys
        found = replace(beside, why="The large part of the row lies beside it.")
        return [found] if only else [access, found]


def _wants(pattern: AccessPattern, refs: set[Ref]) -> bool:
    return not pattern.columns or bool(refs & set(map(Ref.parse, pattern.columns)))
