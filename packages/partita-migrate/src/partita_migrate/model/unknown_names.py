"""Names in a model that exist neither in the source nor in the model itself.

They are checked first: other checks would fail on them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from partita.errors import PartitaError
from partita_migrate.model.design import (
    LATEST,
    Entity,
    ItemAttribute,
    KeyAttribute,
    TableDesign,
    columns_of,
)
from partita_migrate.model.design_findings import CheckedDesign, DesignFinding, error
from partita_migrate.model.items.row_conditions import parse_condition
from partita_migrate.model.keys.key_templates import PATH, ROOT, template_fields
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join


def refuse_unknown_names(file: str, subject: CheckedDesign) -> None:
    """Fails on the first unknown name, which has no size, no price and no items."""
    for finding in find_unknown_names(subject):
        raise PartitaError(
            f"{file}, {finding.place}: {finding.message.rstrip('.')}; `partita migrate model"
            f" --check --file {file}` finds everything that is wrong."
        )


def find_unknown_names(subject: CheckedDesign) -> Iterator[DesignFinding]:
    yield from _origins(subject)
    yield from _keys_are_attributes(subject)
    yield from _accesses_exist(subject)
    yield from _left_out_exists(subject)


def _origins(subject: CheckedDesign) -> Iterator[DesignFinding]:
    for table, entity in subject.design.entities():
        place = f"{table.name}, {entity.name}"
        if subject.volumes.inventory.table(entity.source) is None:
            yield error(place, f"the source has no table {entity.source!r}")
            continue
        if entity.tells_latest and not (entity.latest_by and entity.per):
            yield error(place, "latest needs latest_by and per, which decide the latest row")
        named = [name for name in (entity.latest_by, *entity.per) if name]
        yield from _columns_exist(subject, place, [ColumnRef.parse(name) for name in named])
        for way in entity.unless:
            yield from _way(subject, place, "unless", entity, way)
        for attribute in entity.attributes:
            yield from _origin(subject, f"{place}, {attribute.name}", entity, attribute)


def _origin(
    subject: CheckedDesign, place: str, entity: Entity, attribute: ItemAttribute
) -> Iterator[DesignFinding]:
    origins = (attribute.column, attribute.constant, attribute.template, attribute.expires)
    count = sum(origin is not None for origin in origins) + bool(attribute.collect)
    if count != 1:
        yield error(
            place,
            "give exactly one of column, constant, template, collect and expires"
            f" (there are {count})",
        )
    members = [ColumnRef.parse(name).column for name in attribute.collect]
    for name in sorted({member for member in members if members.count(member) > 1}):
        yield error(place, f"collect has two columns named {name}; a map can hold only one of them")
    reached = yield from _way(subject, place, "through", entity, attribute.through)
    if reached is None:
        return
    if attribute.when not in ("", LATEST) and parse_condition(attribute.when) is None:
        yield error(
            place,
            f'when has {attribute.when!r}; write "column is null", "column = value" or "latest"',
        )
    refs = columns_of(entity, attribute)
    yield from _columns_exist(subject, place, refs)
    is_of_itself = bool(attribute.through) and set(reached) == {entity.source}
    for part in template_fields(attribute.template or ""):
        if part.format in (PATH, ROOT) and not is_of_itself:
            yield error(
                place,
                f"{part.format} needs the foreign key of {entity.source} to itself in through",
            )
    for ref in refs:
        if ref.table not in reached and subject.volumes.inventory.table(ref.table):
            yield error(
                place,
                f"{ref} belongs to another table; give the foreign keys that lead to it in through",
            )


def _way(
    subject: CheckedDesign, place: str, word: str, entity: Entity, way: Sequence[str]
) -> Generator[DesignFinding, None, list[str] | None]:
    """Checks a list of foreign keys.

    Returns the tables that it leads to, or None if it cannot be parsed.
    """
    reached = [entity.source]
    for text in way:
        join = parse_join(text)
        if join is None:
            yield error(place, f'{word} has {text!r}; write "table.column = table.column"')
            return None
        yield from _columns_exist(subject, place, [*join.before, *join.after])
        if join.before[0].table not in reached:
            yield error(
                place, f"{word} {text!r} does not start at {', '.join(dict.fromkeys(reached))}"
            )
        reached.append(join.after[0].table)
    return reached


def _columns_exist(
    subject: CheckedDesign, place: str, refs: list[ColumnRef]
) -> Iterator[DesignFinding]:
    for ref in refs:
        table = subject.volumes.inventory.table(ref.table)
        if table is None:
            yield error(place, f"the source has no table {ref.table!r}")
        elif all(column.name != ref.column for column in table.columns):
            yield error(place, f"the source has no column {str(ref)!r}")


def _keys_are_attributes(subject: CheckedDesign) -> Iterator[DesignFinding]:
    for table in subject.design.tables:
        for entity in table.entities:
            for key in table.keys:
                yield from _key_attribute(table, entity, key, is_required=True)
            for index in table.indexes:
                for key in index.keys:
                    yield from _key_attribute(table, entity, key, is_required=False)
        for index in table.indexes:
            names = {attribute.name for entity in table.entities for attribute in entity.attributes}
            for name in [key.name for key in index.keys] + index.include:
                if name not in names:
                    yield error(
                        f"{table.name}, {index.name}", f"no item has the attribute {name!r}"
                    )


def _key_attribute(
    table: TableDesign, entity: Entity, key: KeyAttribute, *, is_required: bool
) -> Iterator[DesignFinding]:
    place = f"{table.name}, {entity.name}"
    attribute = entity.attribute(key.name)
    if attribute is None:
        if is_required:
            yield error(place, f"the key {key.name!r} is not among its attributes")
    elif attribute.type != key.type:
        yield error(
            place,
            f"{key.name!r} is {attribute.type}, but the key of {table.name} says {key.type}",
        )


def _accesses_exist(subject: CheckedDesign) -> Iterator[DesignFinding]:
    for access in subject.design.access:
        place = f"access {access.pattern!r}"
        table = subject.design.table(access.table)
        if table is None:
            yield error(place, f"the model has no table {access.table!r}")
        elif access.index and table.index(access.index) is None:
            yield error(place, f"{table.name} has no index {access.index!r}")
        elif table.entity(access.entity) is None:
            yield error(place, f"{table.name} has no entity {access.entity!r}")


def _left_out_exists(subject: CheckedDesign) -> Iterator[DesignFinding]:
    for column in subject.design.left_out:
        ref = ColumnRef.parse(column.column)
        table = subject.volumes.inventory.table(ref.table)
        is_known = table is not None and (
            ref.column == "*" or any(column.name == ref.column for column in table.columns)
        )
        if not is_known:
            yield error("left_out", f"the source has no column {column.column!r}")
        if not column.why.strip():
            yield error("left_out", f"{column.column} is left out without a reason")
