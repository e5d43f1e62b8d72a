"""An index whose partition key is a list: of all rows, of some, or of those of one time.

Types of items of one table share such an index, under attributes of its own name.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from partita.foundation.service_limits import GLOBAL_INDEXES_PER_TABLE_MAX
from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.items.column_sources import fold, number_format
from partita_migrate.model.design import (
    Design,
    Entity,
    ItemAttribute,
    KeyAttribute,
    SecondaryIndex,
    TableDesign,
    type_attribute,
)
from partita_migrate.model.items.row_conditions import RowCondition
from partita_migrate.model.keys.key_templates import SEPARATOR
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.resolved_statements import ResolvedQuery

PARTITION = "PK"
SORT = "SK"


@dataclass(frozen=True)
class ListKey:
    """What a list holds, and in which order."""

    order: tuple[ColumnRef, ...] = ()
    condition: RowCondition | None = None
    """Of its rows; without one, it has all of them."""
    bucket: str = ""
    """A part of the date that it is in order of: a list for each."""
    first: str = ""
    last: str = ""
    values: tuple[tuple[ColumnRef, str], ...] = ()
    """Columns whose values make a list each, with the form in which its key holds them."""


def with_list_index(
    design: Design, inputs: DesignInputs, table: TableDesign, entity: Entity, key: ListKey,
    question: ResolvedQuery, why: str,
) -> tuple[Design, SecondaryIndex] | None:  # fmt: skip
    """The design with such an index; None when the table has no room for one."""
    index = _free_index(table, entity)
    if index is None:
        return None
    partition = _partition(inputs, entity, key, f"{index.name}{PARTITION}")
    sort = ItemAttribute(
        name=f"{index.name}{SORT}", type="S", template=_sort_template(inputs, entity, key)
    )
    index = _projecting(table, entity, index, question, why)
    own = replace(entity, attributes=[*entity.attributes, partition, sort])
    changed = replace(
        table,
        entities=[own if one is entity else one for one in table.entities],
        indexes=[*(one for one in table.indexes if one.name != index.name), index],
    )
    tables = [changed if one is table else one for one in design.tables]
    return replace(design, tables=tables), index


def _free_index(table: TableDesign, entity: Entity) -> SecondaryIndex | None:
    """One that other types of items have for their lists, or a new one."""
    for index in table.indexes:
        is_list = index.partition_key.name == f"{index.name}{PARTITION}"
        is_of_lists = is_list and all(
            attribute.constant is not None or attribute.first
            for one in table.entities
            if (attribute := one.attribute(index.partition_key.name)) is not None
        )
        if is_of_lists and entity.attribute(index.partition_key.name) is None:
            return index
    taken = {index.name for index in table.indexes}
    if sum(index.kind == "global" for index in table.indexes) >= GLOBAL_INDEXES_PER_TABLE_MAX:
        return None
    number = next(one for one in range(1, 100) if f"GSI{one}" not in taken)
    return SecondaryIndex(
        name=f"GSI{number}",
        partition_key=KeyAttribute(name=f"GSI{number}{PARTITION}", type="S"),
        sort_key=KeyAttribute(name=f"GSI{number}{SORT}", type="S"),
        projection="INCLUDE",
    )


def _partition(inputs: DesignInputs, entity: Entity, key: ListKey, name: str) -> ItemAttribute:
    if key.values:
        fields = (_field(inputs, ref, form) for ref, form in key.values)
        return ItemAttribute(name=name, type="S", template=SEPARATOR.join([entity.name, *fields]))
    if key.bucket:
        column = ColumnRef("", key.order[0].column)
        return ItemAttribute(
            name=name,
            type="S",
            template=f"{entity.name}{SEPARATOR}{{{column}:{key.bucket}}}",
            first=key.first,
            last=key.last,
        )
    if key.condition is None:
        return ItemAttribute(name=name, type="S", constant=entity.name)
    said = f"{entity.name}{SEPARATOR}{key.condition.column}"
    return ItemAttribute(name=name, type="S", constant=said, when=str(key.condition))


def _sort_template(inputs: DesignInputs, entity: Entity, key: ListKey) -> str:
    """What is sorted by, and what tells rows apart."""
    own = inputs.schema.table(entity.source)
    identity = own.primary_key or [column.name for column in own.columns]
    refs = dict.fromkeys([*key.order, *(ColumnRef(entity.source, name) for name in identity)])
    return SEPARATOR.join(_field(inputs, ref) for ref in refs)


def _field(inputs: DesignInputs, ref: ColumnRef, form: str = "") -> str:
    shape = form or fold(inputs, ref) or number_format(inputs, ref)
    name = ColumnRef("", ref.column)
    return f"{{{name}:{shape}}}" if shape else f"{{{name}}}"


def _projecting(
    table: TableDesign, entity: Entity, index: SecondaryIndex, question: ResolvedQuery, why: str
) -> SecondaryIndex:
    """Only what is read or tested, unless that is nearly everything."""
    said = " ".join(dict.fromkeys(filter(None, [index.why, why])))
    wanted = {*question.columns, *(test.ref for test in question.tests)}
    wanted |= {sorting.ref for sorting in question.order}
    wanted |= {ref for join in question.joins for pair in join.pairs for ref in pair}
    wanted |= {ref for existence in question.existences for ref in existence.outer_columns}
    keys = {key.name for key in [*table.keys, *index.keys]}
    held = [
        attribute
        for attribute in entity.attributes
        if attribute.column and attribute.name not in keys
    ]
    names = {one.name for one in held if ColumnRef.parse(one.column or "") in wanted}
    if index.projection == "ALL" or len(names) > len(held) / 2:
        return replace(index, projection="ALL", include=[], why=said)
    kind = type_attribute(table)
    include = sorted({*index.include, *names, *([kind] if kind else [])})
    return replace(index, projection="INCLUDE", include=include, why=said)
