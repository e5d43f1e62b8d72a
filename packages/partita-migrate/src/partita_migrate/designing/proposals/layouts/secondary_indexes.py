"""Secondary indexes as a model file has them: keys, projection, and the reason."""

from __future__ import annotations

from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.keys.key_plan import IndexPlan
from partita_migrate.designing.proposals.layouts.rendered_keys import RenderedKey, key_attribute
from partita_migrate.model.design import Entity, SecondaryIndex, columns_of
from partita_migrate.understanding.schema.column_refs import ColumnRef

SPARSE_SHARE = 0.5
"""The share of rows without a key value from which on an index is called sparse."""


def secondary_index(
    plan: ItemPlan, index: IndexPlan, rendered: RenderedKey, entities: list[Entity], keys: set[str]
) -> SecondaryIndex:
    """Makes an index. `keys` are the table's key attributes, which every index contains."""
    include = _projected(
        index, entities, keys | {attribute.name for attribute in rendered.attributes}
    )
    why = " ".join(filter(None, [index.why, rendered.why, _sparse(plan, entities, rendered)]))
    return SecondaryIndex(
        name=index.name,
        kind=index.kind,
        partition_key=key_attribute(rendered.partition),
        sort_key=key_attribute(rendered.sort) if rendered.sort else None,
        projection="ALL" if include is None else ("INCLUDE" if include else "KEYS_ONLY"),
        include=include or [],
        why=why,
    )


def _projected(index: IndexPlan, entities: list[Entity], keys: set[str]) -> list[str] | None:
    """Returns the attributes that are read or tested through the index, or None for all of them,
    such as when a pattern does not say what it reads."""
    if not index.reads or not all(read.pattern.columns for read in index.reads):
        return None
    columns = {
        ColumnRef.parse(name)
        for pattern in (read.pattern for read in index.reads)
        for names in (
            pattern.columns, pattern.equality, pattern.range, pattern.filters, pattern.order_by,
        )
        for name in names
    }  # fmt: skip
    include = {
        attribute.name
        for entity in entities
        for attribute in entity.attributes
        if set(columns_of(entity, attribute)) & columns
    }
    names = {attribute.name for entity in entities for attribute in entity.attributes}
    # Keys are always projected, so INCLUDE does not name them.
    return None if names <= include | keys else sorted(include - keys)


def _sparse(plan: ItemPlan, entities: list[Entity], rendered: RenderedKey) -> str:
    shares = [
        plan.inputs.volumes.absent_share(entity, attribute)
        for entity in entities[:1]
        for attribute in rendered.attributes
    ]
    share = max(shares, default=0.0)
    if share < SPARSE_SHARE:
        return ""
    return f"A sparse index: {share:.0%} of the rows have no value and are not in it."
