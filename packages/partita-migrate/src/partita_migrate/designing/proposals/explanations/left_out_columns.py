"""The columns that no item holds, each with its reason."""

from __future__ import annotations

from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.item_drafts import ItemDrafts
from partita_migrate.model.design import LeftOutColumn, TableDesign, columns_of
from partita_migrate.understanding.schema.column_refs import ColumnRef


def left_out(plan: ItemPlan, drafts: ItemDrafts, tables: list[TableDesign]) -> list[LeftOutColumn]:
    schema = plan.inputs.schema
    reasons = _reasons(drafts)
    placed = _placed(tables)
    same = {schema.origin(ref) for ref in placed}
    result = []
    for table in plan.inputs.volumes.inventory.tables:
        if table.name not in schema.tables:
            why = "excluded in [model]" if table.columns else "it has no columns"
            result.append(LeftOutColumn(column=f"{table.name}.*", why=why))
            continue
        for column in table.columns:
            ref = ColumnRef(table.name, column.name)
            if ref in placed or schema.origin(ref) in same:
                continue
            twin = plan.roles.of_first_twin(ref)
            why = reasons.get(ref) or reasons.get(twin) or _reason(plan, ref)
            result.append(LeftOutColumn(column=str(ref), why=why))
    return result


def _reasons(drafts: ItemDrafts) -> dict[ColumnRef, str]:
    """Returns the reasons that were found while the items were drafted."""
    reasons: dict[ColumnRef, str] = {}
    for draft in [*drafts.latest.values(), *drafts.each.values()]:
        for ref, why in draft.left_out.items():
            reasons.setdefault(ref, why)
    return reasons


def _placed(tables: list[TableDesign]) -> set[ColumnRef]:
    return {
        ref
        for table in tables
        for entity in table.entities
        for attribute in entity.attributes
        for ref in columns_of(entity, attribute)
    }


def _reason(plan: ItemPlan, ref: ColumnRef) -> str:
    schema, roles = plan.inputs.schema, plan.roles
    if ref.table in roles.bypassed:
        key = schema.table(ref.table).primary_key
        gone = "its key is no longer needed" if ref.column in key else "no pattern reads it"
        return f"{ref.table} only connects other tables, and {gone}"
    natural = schema.natural.get(ref)
    if natural is not None:
        return f"a surrogate key; {natural.column} stands for it"
    link = schema.link_of(ref)
    if link is not None:
        target = ColumnRef(link.parent, link.key.referenced_columns[0])
        if target in schema.natural:
            return f"{schema.natural[target]}, which it refers to, is kept in its place"
        return f"the item's place in the collection of {link.parent} stands for it"
    if ref.table in roles.collected:
        owner = roles.collected[ref.table].owner
        return f"the generated number of a row that is a member of {owner}'s item"
    if ref.table in roles.embedded:
        return f"no pattern reads it, and {ref.table} has no items of its own"
    return "no item holds it"
