"""Checks a design against DynamoDB's limits: names, counts, sizes, and unique keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from partita.foundation.service_limits import (
    GLOBAL_INDEXES_PER_TABLE_MAX,
    ITEM_BYTES_MAX,
    ITEM_COLLECTION_BYTES_MAX,
    LOCAL_INDEXES_PER_TABLE_MAX,
    PARTITION_KEY_BYTES_MAX,
    PROJECTED_ATTRIBUTES_MAX,
    PROJECTED_ATTRIBUTES_PER_INDEX_MAX,
    SORT_KEY_BYTES_MAX,
)
from partita_migrate.model.design import (
    Entity,
    ItemAttribute,
    SecondaryIndex,
    TableDesign,
    columns_of,
    template_shape,
)
from partita_migrate.model.design_findings import CheckedDesign, DesignFinding, error
from partita_migrate.model.keys.key_templates import SEPARATOR, filled
from partita_migrate.understanding.schema.column_refs import parse_join
from partita_migrate.understanding.schema.name_words import is_dynamodb_name


def _between_fields(template: str) -> str:
    """Returns a template's fields as NULs with only the separators between them.

    Digits that are padded to a fixed length count as separated.
    """
    marks = filled(template, lambda part: SEPARATOR if part.format.startswith("0") else "\0")
    return re.sub(rf"[^\0{SEPARATOR}]", "", marks)


def check_limits(subject: CheckedDesign) -> Iterator[DesignFinding]:
    yield from _names_and_numbers(subject)
    yield from _keys_do_not_meet(subject)
    yield from _fields_are_separated(subject)
    yield from _key_sizes(subject)
    yield from _item_sizes(subject)
    yield from _collections(subject)


def _names_and_numbers(subject: CheckedDesign) -> Iterator[DesignFinding]:
    for table in subject.design.tables:
        for name in [table.name, *(index.name for index in table.indexes)]:
            if not is_dynamodb_name(name):
                yield error(
                    table.name,
                    f"{name!r} is not a valid name for a table or index: use 3 to 255 of A-Z, a-z,"
                    " 0-9, _, - and .",
                )
        counts = {
            "global": GLOBAL_INDEXES_PER_TABLE_MAX,
            "local": LOCAL_INDEXES_PER_TABLE_MAX,
        }
        for kind, most in counts.items():
            count = sum(index.kind == kind for index in table.indexes)
            if count > most:
                yield error(
                    table.name, f"{count} {kind} secondary indexes; a table may have {most}"
                )
        projected = sum(len(index.include) for index in table.indexes)
        if projected > PROJECTED_ATTRIBUTES_MAX:
            yield error(
                table.name,
                f"{projected} attributes are projected by name; all indexes of a table together"
                f" may have {PROJECTED_ATTRIBUTES_MAX}",
            )
        for index in table.indexes:
            if len(index.include) > PROJECTED_ATTRIBUTES_PER_INDEX_MAX:
                yield error(
                    f"{table.name}, {index.name}",
                    f"{len(index.include)} attributes are projected by name; an index may have"
                    f" {PROJECTED_ATTRIBUTES_PER_INDEX_MAX}: project ALL",
                )
            if index.kind == "local" and index.partition_key != table.partition_key:
                yield error(
                    f"{table.name}, {index.name}",
                    "a local index must have the partition key of its table",
                )


def _keys_do_not_meet(subject: CheckedDesign) -> Iterator[DesignFinding]:
    """Finds two types of items whose keys can be equal: their items would overwrite each other."""
    for table in subject.design.tables:
        first_with_shape: dict[tuple[str, ...], str] = {}
        for entity in table.entities:
            keys = [entity.attribute(key.name) for key in table.keys]
            shape = tuple(template_shape(key) for key in keys if key is not None)
            first = first_with_shape.setdefault(shape, entity.name)
            if first != entity.name:
                yield error(
                    f"{table.name}, {entity.name}",
                    f"its items could have the same keys as those of {first}; distinguish them"
                    " with a prefix",
                )


def _fields_are_separated(subject: CheckedDesign) -> Iterator[DesignFinding]:
    """Finds values that follow each other without a # between them, so that two rows can share a
    key."""
    for table, entity in subject.design.entities():
        for key in table.keys:
            attribute = entity.attribute(key.name)
            template = attribute.template if attribute else None
            if template and "\0\0" in _between_fields(template):
                yield error(
                    f"{table.name}, {entity.name}, {key.name}",
                    f"two values follow each other without {SEPARATOR} in {template!r}, so"
                    " that two rows could get the same key",
                )


def _key_sizes(subject: CheckedDesign) -> Iterator[DesignFinding]:
    for table, entity in subject.design.entities():
        homes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
        for keys in homes:
            limits = zip(keys.keys, (PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX), strict=False)
            for key, most in limits:
                attribute = entity.attribute(key.name)
                size = _bytes_max(subject, entity, attribute) if attribute else 0
                if size > most:
                    yield error(
                        f"{table.name}, {entity.name}, {key.name}",
                        f"its longest value has {size:,} bytes; this key may have at most {most:,}",
                    )


def _bytes_max(subject: CheckedDesign, entity: Entity, attribute: ItemAttribute) -> int:
    measured = [subject.volumes.column(ref) for ref in columns_of(entity, attribute)]
    return sum(column.bytes_max for column in measured if column is not None)


def _item_sizes(subject: CheckedDesign) -> Iterator[DesignFinding]:
    for table, entity in subject.design.entities():
        largest = sum(
            _bytes_max(subject, entity, attribute) + len(attribute.name.encode())
            for attribute in entity.attributes
            if not attribute.collect
        )
        measured = subject.volumes.analysis.table(entity.source)
        if measured is not None and measured.sampled:
            largest = min(largest, measured.item_bytes.max * 2)
        if largest > ITEM_BYTES_MAX:
            yield error(
                f"{table.name}, {entity.name}",
                f"its largest item would have {largest:,} bytes; an item may have"
                f" {ITEM_BYTES_MAX:,}",
            )
        for attribute in entity.attributes:
            if attribute.collect:
                yield from _collected_size(subject, table, entity, attribute)


def _collected_size(
    subject: CheckedDesign, table: TableDesign, entity: Entity, attribute: ItemAttribute
) -> Iterator[DesignFinding]:
    most = 1.0
    for text in attribute.through:
        join = parse_join(text)
        if join is None:
            continue
        skew = subject.volumes.skew(join.after[0].table, [ref.column for ref in join.after])
        most *= skew.rows_per_value_max if skew else 1
    each = sum(subject.volumes.value_bytes(ref) for ref in columns_of(entity, attribute))
    if most * each > ITEM_BYTES_MAX:
        yield error(
            f"{table.name}, {entity.name}, {attribute.name}",
            f"it would collect up to {most:,.0f} rows, {most * each:,.0f} bytes; an item may"
            f" have {ITEM_BYTES_MAX:,}",
        )


def _collections(subject: CheckedDesign) -> Iterator[DesignFinding]:
    """An item collection may have 10 GB when the table has a local index."""
    for table, entity in subject.design.entities():
        if not any(index.kind == "local" for index in table.indexes):
            continue
        attribute = entity.attribute(table.partition_key.name)
        refs = columns_of(entity, attribute) if attribute else []
        skew = subject.volumes.skew(entity.source, [ref.column for ref in refs])
        size = (skew.rows_per_value_max if skew else 1) * subject.volumes.item_bytes(entity)
        if size > ITEM_COLLECTION_BYTES_MAX:
            yield error(
                f"{table.name}, {entity.name}",
                f"its largest item collection would have {size:,.0f} bytes; with a local index"
                f" it may have {ITEM_COLLECTION_BYTES_MAX:,}",
            )
