"""What the source keeps: every column, and every unique constraint."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.model.design import columns_of
from partita_migrate.model.findings import Finding, Subject, error, warning
from partita_migrate.understanding.schema.column_refs import Ref


def check_completeness(subject: Subject) -> Iterator[Finding]:
    yield from _columns_are_placed(subject)
    yield from _unique_is_kept(subject)


def _columns_are_placed(subject: Subject) -> Iterator[Finding]:
    placed = {
        ref
        for _, entity in subject.design.entities()
        for attribute in entity.attributes
        for ref in columns_of(entity, attribute)
    }
    placed |= {subject.schema.origin(ref) for ref in placed}
    left_out = {Ref.parse(one.column) for one in subject.design.left_out}
    for table in subject.volumes.inventory.tables:
        if Ref(table.name, "*") in left_out:
            continue
        for column in table.columns:
            ref = Ref(table.name, column.name)
            if (
                not {ref, subject.schema.origin(ref)} & placed
                and ref not in left_out
                and not column.is_generated
            ):
                yield error(
                    "left_out",
                    f"{ref} is in no item; place it, or name it in left_out with the reason",
                )


def _unique_is_kept(subject: Subject) -> Iterator[Finding]:
    stated = {(one.table, tuple(sorted(one.columns))): one for one in subject.design.unique}
    sources = dict.fromkeys(entity.source for _, entity in subject.design.entities())
    for name in sources:
        for key in subject.schema.unique_keys(name):
            one = stated.get((name, tuple(sorted(key))))
            place = f"unique {name}({', '.join(key)})"
            if one is None:
                yield error(place, "the model does not say what keeps it")
            elif one.kept_by == "item" and not _has_guard(subject, name, key):
                yield error(place, "no entity with is_guard has these columns in its key")
            elif one.kept_by == "application":
                yield warning(place, "only the application keeps it")


def _has_guard(subject: Subject, table: str, key: list[str]) -> bool:
    for home, entity in subject.design.entities():
        attribute = entity.attribute(home.partition_key.name)
        if entity.is_guard and entity.source == table and attribute is not None:
            if {ref.column for ref in columns_of(entity, attribute)} == set(key):
                return True
    return False
