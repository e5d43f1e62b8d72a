"""The item that repeats the latest version, under the version number 0, which no row has."""

from __future__ import annotations

from partita_migrate.designing.attribute_naming import styled
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.layouts.rendered_keys import RenderedKey
from partita_migrate.model.design import Entity, ItemAttribute
from partita_migrate.understanding.schema.column_refs import ColumnRef


def latest_item(
    plan: ItemPlan, entity: str, attributes: list[ItemAttribute], key: RenderedKey, why: str
) -> Entity:
    """Makes the entity for that item. One more attribute of it holds the number of the latest
    version."""
    version = plan.roles.versions[entity]
    number = str(ColumnRef(entity, version.column))
    counted = styled(f"latest_{version.column}", plan.inputs.settings.names)
    return Entity(
        name=version.parent,
        source=entity,
        rows="latest",
        latest_by=number,
        per=[str(ColumnRef(entity, name)) for name in version.link.key.columns],
        attributes=[
            *(
                ItemAttribute(name=attribute.name, type=attribute.type, constant=key.latest)
                if key.sort is not None and attribute.name == key.sort.name
                else attribute
                for attribute in attributes
            ),
            ItemAttribute(name=counted, type="N", column=number),
        ],
        why=why,
    )
