"""Checks that a design keeps every column and every unique constraint of the source."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.model.design import columns_of
from partita_migrate.model.design_findings import CheckedDesign, DesignFinding, error, warning
from partita_migrate.understanding.schema.column_refs import ColumnRef


def check_completeness(subject: CheckedDesign) -> Iterator[DesignFinding]:
    yield from _columns_are_placed(subject)
    yield from _unique_is_kept(subject)


def _columns_are_placed(subject: CheckedDesign) -> Iterator[DesignFinding]:
    placed = {
        ref
        for _, entity in subject.design.entities()
        for attribute in entity.attributes
        for ref in columns_of(entity, attribute)
    }
    placed |= {subject.schema.origin(ref) for ref in placed}
    left_out = {ColumnRef.parse(column.column) for column in subject.design.left_out}
    for table in subject.volumes.inventory.tables:
        if ColumnRef(table.name, "*") in left_out:
            continue
        for column in table.columns:
            ref = ColumnRef(table.name, column.name)
            if (
                not {ref, subject.schema.origin(ref)} & placed
                and ref not in left_out
                and not column.is_generated
            ):
                yield error(
                    "left_out",
                    f"{ref} is not in any item; add an attribute for it, or list it in left_out"
                    " with the reason",
                )


def _unique_is_kept(subject: CheckedDesign) -> Iterator[DesignFinding]:
    stated = {
        (unique.table, tuple(sorted(unique.columns))): unique for unique in subject.design.unique
    }
    sources = dict.fromkeys(entity.source for _, entity in subject.design.entities())
    for name in sources:
        for key in subject.schema.unique_keys(name):
            outcome = stated.get((name, tuple(sorted(key))))
            place = f"unique {name}({', '.join(key)})"
            if outcome is None:
                yield error(place, "the model does not say how it is kept")
            elif outcome.kept_by == "item" and not _has_guard(subject, name, key):
                yield error(place, "no entity with is_guard has these columns in its key")
            elif outcome.kept_by == "application":
                yield warning(place, "only the application keeps it")


def _has_guard(subject: CheckedDesign, table: str, key: list[str]) -> bool:
    for home, entity in subject.design.entities():
        attribute = entity.attribute(home.partition_key.name)
        if entity.is_guard and entity.source == table and attribute is not None:
            if {ref.column for ref in columns_of(entity, attribute)} == set(key):
                return True
    return False
