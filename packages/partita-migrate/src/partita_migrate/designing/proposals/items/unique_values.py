"""How unique constraints are kept, and the guard items for values that must not repeat."""

from __future__ import annotations

from collections.abc import Iterable

from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.column_sources import fold
from partita_migrate.designing.settings import unique_name
from partita_migrate.model.design import Attribute, Entity, Unique
from partita_migrate.model.templates import SEPARATOR
from partita_migrate.understanding.schema.column_refs import Ref


def keep_unique(plan: ItemPlan) -> list[Unique]:
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
            parent = base - {Ref(entity, version.column)}
            keys = schema.unique_keys(version.parent)
            outcomes += [_unique(plan, version.parent, key, parent) for key in keys]
    return outcomes


def _unique(plan: ItemPlan, source: str, key: list[str], base: set[Ref]) -> Unique:
    schema = plan.inputs.schema
    refs = {plan.roles.of_first_twin(schema.canonical(Ref(source, name))) for name in key}
    columns = [schema.column(Ref(source, name)) for name in key]
    is_generated = any(column is not None and column.is_auto_increment for column in columns)
    if refs >= base:
        return Unique(
            table=source,
            columns=key,
            kept_by="key",
            why="A put with attribute_not_exists on the key refuses a duplicate.",
        )
    if is_generated:
        return Unique(
            table=source,
            columns=key,
            kept_by="generated",
            why="The source generated the number; give new items an identifier that cannot repeat.",
        )
    if unique_name(source, key) in plan.inputs.settings.unique_by_application:
        return Unique(
            table=source,
            columns=key,
            kept_by="application",
            why="unique_by_application in [model] lists it.",
        )
    return Unique(
        table=source,
        columns=key,
        kept_by="item",
        why=(
            "A guard item with the value as its key is put in the same transaction, on condition"
            " that"
            " it does not exist; that is one more write, and the transaction doubles the units of"
            " both."
        ),
    )


def guard_item(
    plan: ItemPlan, guard: Unique, name: str, *, prefix: str = "", more: Iterable[Attribute] = ()
) -> Entity:
    """Returns the guard entity of a unique constraint, under the key attribute `name`."""
    title = f"{guard.table}.{'.'.join(guard.columns)}"
    fields = [_field(plan, Ref(guard.table, column)) for column in guard.columns]
    template = SEPARATOR.join([*([prefix] if prefix else []), title, *fields])
    return Entity(
        name=title,
        source=guard.table,
        is_guard=True,
        attributes=[Attribute(name=name, type="S", template=template), *more],
        why="One item for each value that must not occur twice.",
    )


def _field(plan: ItemPlan, ref: Ref) -> str:
    """Returns a template's field in which values that the source treats as equal are the same
    text."""
    shape = fold(plan.inputs, ref)
    name = str(Ref("", ref.column))
    return f"{{{name}:{shape}}}" if shape else f"{{{name}}}"
