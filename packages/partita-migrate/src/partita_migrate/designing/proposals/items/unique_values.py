"""Keeps unique constraints, some of them by guard items for values that must not repeat."""

from __future__ import annotations

from collections.abc import Iterable

from partita_migrate.designing.model_settings import unique_name
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.column_sources import fold
from partita_migrate.model.design import Entity, ItemAttribute, UniqueOutcome
from partita_migrate.model.keys.key_templates import SEPARATOR
from partita_migrate.understanding.schema.column_refs import ColumnRef


def keep_unique(plan: ItemPlan) -> list[UniqueOutcome]:
    """Returns how every unique constraint is kept, for all tables that have items."""
    schema = plan.inputs.schema
    outcomes = []
    for entity in plan.entities:
        base = set(plan.keys[entity].base.columns)
        for source in plan.sources(entity):
            outcomes += [_unique(plan, source, key, base) for key in schema.unique_keys(source)]
        version = plan.roles.versions.get(entity)
        if version is not None:
            # The key of version 0 consists of the parent's key alone.
            parent = base - {ColumnRef(entity, version.column)}
            keys = schema.unique_keys(version.parent)
            outcomes += [_unique(plan, version.parent, key, parent) for key in keys]
    return outcomes


def _unique(plan: ItemPlan, source: str, key: list[str], base: set[ColumnRef]) -> UniqueOutcome:
    schema = plan.inputs.schema
    refs = {plan.roles.of_first_twin(schema.canonical(ColumnRef(source, name))) for name in key}
    columns = [schema.column(ColumnRef(source, name)) for name in key]
    is_generated = any(column is not None and column.is_auto_increment for column in columns)
    if refs >= base:
        return UniqueOutcome(
            table=source,
            columns=key,
            kept_by="key",
            why="A put with attribute_not_exists on the key refuses a duplicate.",
        )
    if is_generated:
        return UniqueOutcome(
            table=source,
            columns=key,
            kept_by="generated",
            why="The source generated the number; give new items an identifier that cannot repeat.",
        )
    if unique_name(source, key) in plan.inputs.settings.unique_by_application:
        return UniqueOutcome(
            table=source,
            columns=key,
            kept_by="application",
            why="unique_by_application in [model] lists it.",
        )
    return UniqueOutcome(
        table=source,
        columns=key,
        kept_by="item",
        why=(
            "A guard item with the value as its key is put in the same transaction, on condition"
            " that it does not exist; that is one more write, and the transaction doubles the"
            " units of both."
        ),
    )


def guard_item(
    plan: ItemPlan,
    guard: UniqueOutcome,
    name: str,
    *,
    prefix: str = "",
    more: Iterable[ItemAttribute] = (),
) -> Entity:
    """Returns the guard entity of a unique constraint, under the key attribute `name`."""
    title = f"{guard.table}.{'.'.join(guard.columns)}"
    fields = [_field(plan, ColumnRef(guard.table, column)) for column in guard.columns]
    template = SEPARATOR.join([*([prefix] if prefix else []), title, *fields])
    return Entity(
        name=title,
        source=guard.table,
        is_guard=True,
        attributes=[ItemAttribute(name=name, type="S", template=template), *more],
        why="One item for each value that must not occur twice.",
    )


def _field(plan: ItemPlan, ref: ColumnRef) -> str:
    """Returns a template's field in which values that the source treats as equal are the same
    text."""
    shape = fold(plan.inputs, ref)
    name = str(ColumnRef("", ref.column))
    return f"{{{name}:{shape}}}" if shape else f"{{{name}}}"
