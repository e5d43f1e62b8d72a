"""Final touches to every table: each item says what it is, and each attribute name has one type."""

from __future__ import annotations

from msgspec.structs import replace

from partita.foundation.service_limits import (
    PROJECTED_ATTRIBUTES_MAX,
    PROJECTED_ATTRIBUTES_PER_INDEX_MAX,
)
from partita_migrate.designing.attribute_naming import Style, of_table, styled
from partita_migrate.model.design import (
    AttributeType,
    Design,
    Entity,
    ItemAttribute,
    KeyAttribute,
    PatternAccess,
    SecondaryIndex,
    TableDesign,
)

TYPE = "entity_type"


def with_types(tables: list[TableDesign], style: Style) -> list[TableDesign]:
    """Adds an attribute with the entity's name to every item, and to every index of several
    types."""
    taken = {
        attribute.name
        for table in tables
        for entity in table.entities
        for attribute in entity.attributes
    }
    name = styled(TYPE, style)
    while name in taken:
        name += "_"
    return [_typed(table, name) for table in tables]


def _typed(table: TableDesign, name: str) -> TableDesign:
    keys = {key.name for key in table.keys}
    entities = []
    for entity in table.entities:
        type_attribute = ItemAttribute(name=name, type="S", constant=entity.name)
        first = [attribute for attribute in entity.attributes if attribute.name in keys]
        rest = [attribute for attribute in entity.attributes if attribute.name not in keys]
        entities.append(replace(entity, attributes=[*first, type_attribute, *rest]))
    indexes = [_projecting(table, index, name) for index in table.indexes]
    return replace(table, entities=entities, indexes=indexes)


def _projecting(table: TableDesign, index: SecondaryIndex, name: str) -> SecondaryIndex:
    inside = [
        entity
        for entity in table.entities
        if all(entity.attribute(key.name) is not None for key in index.keys)
    ]
    if index.projection == "ALL" or len(inside) < 2:
        return index
    return replace(index, projection="INCLUDE", include=sorted({*index.include, name}))


def with_whole_projections(design: Design) -> Design:
    """Projects all attributes into indexes that would name more of them than DynamoDB allows."""
    return replace(design, tables=[_within_limits(table) for table in design.tables])


def _within_limits(table: TableDesign) -> TableDesign:
    named = sorted(table.indexes, key=lambda index: -len(index.include))
    total = sum(len(index.include) for index in named)
    whole = set()
    for index in named:
        most = PROJECTED_ATTRIBUTES_PER_INDEX_MAX
        if len(index.include) > most or total > PROJECTED_ATTRIBUTES_MAX:
            whole.add(index.name)
            total -= len(index.include)
    indexes = [
        replace(index, projection="ALL", include=[]) if index.name in whole else index
        for index in table.indexes
    ]
    return replace(table, indexes=indexes)


def with_one_type_a_name(
    tables: list[TableDesign], requests: list[PatternAccess], style: Style
) -> tuple[list[TableDesign], list[PatternAccess]]:
    """Puts the table's name before attribute names that have different types in different items."""
    types: dict[str, list[AttributeType]] = {}
    for table in tables:
        for entity in table.entities:
            for attribute in entity.attributes:
                types_of_name = types.setdefault(attribute.name, [])
                if attribute.type not in types_of_name:
                    types_of_name.append(attribute.type)
    ambiguous = {name for name, types_of_name in types.items() if len(types_of_name) > 1}
    if not ambiguous:
        return tables, requests
    renamed = {table.name: _renamed(table, ambiguous, style) for table in tables}
    finished = [_with_names(table, renamed[table.name]) for table in tables]
    return finished, [_request(access, renamed.get(access.table, {})) for access in requests]


Names = dict[tuple[str, str], str]
"""(entity, attribute) to the new name."""


def _renamed(table: TableDesign, ambiguous: set[str], style: Style) -> Names:
    """Returns the new names. A key attribute has one name in all entities of its table."""
    homes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
    keys = {key.name for home in homes for key in home.keys}
    renamed: Names = {}
    for entity in table.entities:
        taken = {attribute.name for attribute in entity.attributes}
        for attribute in entity.attributes:
            if attribute.name not in ambiguous:
                continue
            # DynamoDB declares the type of a key attribute once per table.
            owner = table.entities[0].source if attribute.name in keys else entity.source
            name = styled(of_table(owner, attribute.name), style)
            if name == attribute.name or (name in taken and name != attribute.name):
                name = f"{owner}_{attribute.name}"
            renamed[entity.name, attribute.name] = name
    return renamed


def _with_names(table: TableDesign, names: Names) -> TableDesign:
    def key(key: KeyAttribute) -> KeyAttribute:
        return replace(key, name=_any(names, key.name))

    def index(index: SecondaryIndex) -> SecondaryIndex:
        include = {
            names.get((entity.name, name), name)
            for name in index.include
            for entity in table.entities
            if entity.attribute(name) is not None
        }
        return replace(
            index,
            partition_key=key(index.partition_key),
            sort_key=key(index.sort_key) if index.sort_key else None,
            include=sorted(include),
        )

    return replace(
        table,
        partition_key=key(table.partition_key),
        sort_key=key(table.sort_key) if table.sort_key else None,
        ttl=_any(names, table.ttl) if table.ttl else None,
        indexes=[index(one) for one in table.indexes],
        entities=[_entity(entity, names) for entity in table.entities],
    )


def _entity(entity: Entity, names: Names) -> Entity:
    return replace(
        entity,
        attributes=[
            replace(attribute, name=names.get((entity.name, attribute.name), attribute.name))
            for attribute in entity.attributes
        ],
    )


def _any(names: Names, name: str) -> str:
    return next((new for (_, old), new in names.items() if old == name), name)


def _request(access: PatternAccess, names: Names) -> PatternAccess:
    return replace(
        access,
        key=[replace(one, attribute=_any(names, one.attribute)) for one in access.key],
        filter=[replace(one, attribute=_any(names, one.attribute)) for one in access.filter],
    )
