"""Finds entities of which no two items can have the same key, from the design alone.

For all other entities the load records each key that it writes, so that no row overwrites another
row's item. Keys made of unique values are distinct at any one time; but rows that were read at
different positions may share one, when its value moved from one row to the other in between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from partita_migrate.model.design import Design, Entity, ItemAttribute, TableDesign, columns_of
from partita_migrate.model.keys.key_templates import SEPARATOR, SHARD, template_parts
from partita_migrate.understanding.schema.column_refs import ColumnRef, qualified
from partita_migrate.understanding.schema.inventory import (
    Inventory,
    SourceColumn,
    SourceIndex,
    SourceTable,
)

_NUMBERS = ("integer", "decimal")
_OF_NUMBERS = re.compile(r"n\d+\.\d+|0\d+")


def entities_with_own_keys(design: Design, inventory: Inventory) -> set[int]:
    """Returns the numbers of the entities whose keys are proven distinct by the design."""
    # SQLite keeps any type in any column: the number 1 and the text "1" make the same key.
    if inventory.dialect == "sqlite":
        return set()
    numbers: set[int] = set()
    for number, (table, entity) in enumerate(design.entities()):
        source = inventory.table(entity.source)
        if source is not None and _is_by_row(table, entity, source):
            others = [other for other in table.entities if other is not entity]
            if all(_is_apart(table, entity, other) for other in others):
                numbers.add(number)
    return numbers


def entities_by_value(
    entities: Sequence[tuple[TableDesign, Entity]], inventory: Inventory
) -> set[int]:
    """Returns the entities in whose keys one row may follow another: guards and natural keys."""
    numbers: set[int] = set()
    for number, (table, entity) in enumerate(entities):
        keys = [
            key
            for key_attribute in table.keys
            if (key := entity.attribute(key_attribute.name)) is not None
        ]
        refs = {ref for key in keys for ref in columns_of(entity, key)}
        source = inventory.table(entity.source)
        own = {ColumnRef(source.name, name) for name in source.primary_key} if source else set()
        if entity.rows == "each" and not own <= refs:
            numbers.add(number)
    return numbers


def _is_by_row(table: TableDesign, entity: Entity, source: SourceTable) -> bool:
    """True when the key contains all columns of a unique index, so that different rows have
    different keys."""
    key_columns: set[str] = set()
    columns = {column.name: column for column in source.columns}
    for key in table.keys:
        attribute = entity.attribute(key.name)
        if attribute is not None and not attribute.through:
            key_columns |= _readable_columns(entity, attribute, columns)
    nullable = {name for name, column in columns.items() if column.is_nullable}
    unique = [index.columns for index in source.indexes if _is_whole(index)]
    by_guard = [names for names in unique if entity.is_guard or not nullable & set(names)]
    return any(names and set(names) <= key_columns for names in [source.primary_key, *by_guard])


def _is_whole(index: SourceIndex) -> bool:
    """True for an index that is unique over all rows, without expressions or conditions."""
    return index.is_unique and not index.expressions and index.where is None


def _readable_columns(
    entity: Entity, attribute: ItemAttribute, columns: dict[str, SourceColumn]
) -> set[str]:
    """Returns the columns whose values can be read back from the text of a key."""
    if attribute.column is not None:
        ref = ColumnRef.parse(attribute.column)
        return {ref.column} if ref.table == entity.source else set()
    literals, fields = template_parts(attribute.template or "")
    if any(SEPARATOR not in literal for literal in literals[1:-1]):
        return set()
    readable = set()
    for part in fields:
        ref = qualified(entity.source, part.name)
        column = columns.get(ref.column)
        if part.name == SHARD or ref.table != entity.source or column is None:
            continue
        is_number = column.kind in _NUMBERS
        if part.format.startswith("0") and not is_number:
            return set()
        if not part.format or (is_number and _OF_NUMBERS.fullmatch(part.format)):
            readable.add(ref.column)
    return readable


def _is_apart(table: TableDesign, one_entity: Entity, other: Entity) -> bool:
    """True when the keys of two entities begin with different words, so that they never meet."""
    for key in table.keys:
        words = [_first_word(entity.attribute(key.name)) for entity in (one_entity, other)]
        if None not in words and words[0] != words[1]:
            return True
    return False


def _first_word(attribute: ItemAttribute | None) -> str | None:
    """Returns the text up to the first separator, with which every value of an attribute begins."""
    if attribute is None:
        return None
    if attribute.constant is not None:
        return attribute.constant.partition(SEPARATOR)[0]
    if attribute.template is None:
        return None
    first = template_parts(attribute.template)[0][0]
    word, separator, _ = first.partition(SEPARATOR)
    return word if separator else None
