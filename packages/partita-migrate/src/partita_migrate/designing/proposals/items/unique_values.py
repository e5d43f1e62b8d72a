"""What becomes of unique constraints, and the items that guard values which must not repeat."""

from __future__ import annotations

from collections.abc import Iterable

from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.column_sources import fold
from partita_migrate.designing.settings import unique_name
from partita_migrate.model.design import Attribute, Entity, Unique
from partita_migrate.model.templates import SEPARATOR
from partita_migrate.understanding.schema.column_refs import Ref


def keep_unique(plan: ItemPlan) -> list[Unique]:
    """What becomes of every unique constraint of the tables that have items."""
    schema = plan.inputs.schema
    found = []
    for entity in plan.entities:
        base = set(plan.keys[entity].base.columns)
        for source in plan.sources(entity):
            found += [_unique(plan, source, key, base) for key in schema.unique_keys(source)]
        version = plan.roles.versions.get(entity)
        if version is not None:
            # Version 0 has the parent's key and nothing else.
            parent = base - {Ref(entity, version.column)}
            keys = schema.unique_keys(version.parent)
            found += [_unique(plan, version.parent, key, parent) for key in keys]
    return found


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
            why="A put with attribute_not_exists on the key refuses a second one.",
        )
    if is_generated:
        return Unique(
            table=source,
            columns=key,
            kept_by="generated",
            why="The number was generated; new items take an identifier that cannot repeat.",
        )
    if unique_name(source, key) in plan.inputs.settings.unique_by_application:
        return Unique(table=source, columns=key, kept_by="application", why="[model] says so.")
    return Unique(
        table=source,
        columns=key,
        kept_by="item",
        why=(
            "An item whose key is the value is put in the same transaction, on condition that"
            " it is not there; it costs a write more, and the transaction doubles both."
        ),
    )


def guard_item(
    plan: ItemPlan, guard: Unique, name: str, *, prefix: str = "", more: Iterable[Attribute] = ()
) -> Entity:
    """One item for each value that must not occur twice, under the key attribute `name`."""
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
    """Two values that the source takes for the same have one text."""
    shape = fold(plan.inputs, ref)
    name = str(Ref("", ref.column))
    return f"{{{name}:{shape}}}" if shape else f"{{{name}}}"
