"""The item that copies the newest version, under the version that no row has."""

from __future__ import annotations

from partita_migrate.designing.naming import styled
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.layouts.rendered_keys import RenderedKey
from partita_migrate.model.design import Attribute, Entity
from partita_migrate.understanding.schema.column_refs import Ref


def latest_item(
    plan: ItemPlan, entity: str, attributes: list[Attribute], key: RenderedKey, why: str
) -> Entity:
    version = plan.roles.versions[entity]
    number = str(Ref(entity, version.column))
    counted = styled(f"latest_{version.column}", plan.inputs.settings.names)
    return Entity(
        name=version.parent,
        source=entity,
        rows="latest",
        latest_by=number,
        per=[str(Ref(entity, name)) for name in version.link.key.columns],
        attributes=[
            *(
                Attribute(name=attribute.name, type=attribute.type, constant=key.latest)
                if key.sort is not None and attribute.name == key.sort.name
                else attribute
                for attribute in attributes
            ),
            Attribute(name=counted, type="N", column=number),
        ],
        why=why,
    )
