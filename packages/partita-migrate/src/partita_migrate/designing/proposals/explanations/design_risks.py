"""Lists the risks of a design, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from partita.foundation.service_limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.column_sources import column_source
from partita_migrate.designing.proposals.keys.identities import is_identified
from partita_migrate.model.design import Design, SecondaryIndex, TableDesign, columns_of
from partita_migrate.understanding.patterns.access_patterns import KEY_MUST_HOLD
from partita_migrate.understanding.schema.column_refs import ColumnRef

FEW_VALUES = 3


def risks(plan: ItemPlan) -> list[str]:
    looks = (_rows_without_items, _identities, _null_keys, _reads)
    return [sentence for look in looks for sentence in look(plan)]


def few_values(design: Design, inputs: DesignInputs) -> Iterator[str]:
    """Yields partition keys with so few values that they gather a table of any size in a few
    partitions."""
    for table, entity in design.entities():
        homes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
        for home in homes:
            attribute = entity.attribute(home.partition_key.name)
            refs = columns_of(entity, attribute) if attribute is not None else []
            if attribute is None or not refs or attribute.when or attribute.shards > 1:
                continue
            # The analysis counts the values of columns per table, not across a join.
            if any(ref.table != entity.source for ref in refs):
                continue
            names = [ref.column for ref in refs]
            skew = inputs.volumes.skew(entity.source, names)
            if skew is None or skew.distinct > FEW_VALUES or skew.is_unique:
                continue
            yield (
                f"{' and '.join(names)} has {skew.distinct} values: {home.name} holds all of"
                f" {entity.name} under as many partition keys, each with"
                f" {PARTITION_WRITE_UNITS:,} write and"
                f" {PARTITION_READ_UNITS:,} read units a second; put a column with"
                " more values in front of it to spread them."
            )


def _rows_without_items(plan: ItemPlan) -> Iterator[str]:
    for table, link in plan.roles.folded.items():
        yield (
            f"A row of {table} that no row of {link.child} refers to has no item, and a change"
            " to a row must be written to every item that holds it."
        )
    for table in plan.roles.embedded:
        yield f"A row of {table} that nothing refers to is not migrated."


def _identities(plan: ItemPlan) -> Iterator[str]:
    for entity in plan.entities:
        if not is_identified(plan.inputs, entity):
            yield (
                f"{entity} has no primary key: all its columns together are the key, and equal"
                " rows become one item; name a key in [model.natural_keys], or add one."
            )
        yield from _versions(plan, entity)


def _versions(plan: ItemPlan, entity: str) -> Iterator[str]:
    version = plan.roles.versions.get(entity)
    if version is None:
        return
    yield f"A row of {version.parent} without a version has no item."
    number = ColumnRef(entity, version.column)
    measured = plan.inputs.volumes.column(number)
    if measured is not None and (measured.least or "1").startswith(("0", "-")):
        yield (
            f"{number} begins at {measured.least}: version 0 is"
            " where the copy of the latest lies; renumber the versions from 1 first."
        )


def _null_keys(plan: ItemPlan) -> Iterator[str]:
    for entity, keys in plan.keys.items():
        for key in (keys.base.partition, keys.base.sort):
            refs = [column_source(plan.inputs, entity, ref).column for ref in key]
            # A NULL beside other values is a part of the key like any other.
            if refs and all(plan.inputs.schema.is_nullable(ref) for ref in refs):
                yield (
                    f"{', '.join(map(str, refs))} may be NULL in the source, and a key of"
                    f" {entity} is made of {'it' if len(refs) == 1 else 'them alone'}: a row"
                    f" without {'it' if len(refs) == 1 else 'any'} has no item."
                )


def _reads(plan: ItemPlan) -> Iterator[str]:
    for served in (read for keys in plan.keys.values() for read in keys.served):
        pattern = served.read.pattern
        for remark in pattern.description.split("; "):
            if remark.startswith(KEY_MUST_HOLD):
                yield (
                    f"{pattern.name!r} finds items only if the application writes keys in this"
                    f" form: {remark}."
                )
        if pattern.is_consistent and served.index and served.index[0] == "G":
            yield (
                f"{pattern.name!r} asks for consistent reads, which a global index"
                f" ({served.index}) does not support."
            )
