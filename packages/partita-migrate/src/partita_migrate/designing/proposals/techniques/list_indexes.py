"""An index whose partition key is a list: all rows, rows that meet a condition, or rows of one
period.

Types of items in one table share such an index, under generic attributes such as GSI1PK.
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
    """The content of a list, and its order."""

    order: tuple[ColumnRef, ...] = ()
    condition: RowCondition | None = None
    """The condition that its rows meet; None for all rows."""
    bucket: str = ""
    """The format of the period that each list covers, a part of the date that it is sorted by."""
    first: str = ""
    last: str = ""
    values: tuple[tuple[ColumnRef, str], ...] = ()
    """Columns with a list for each combination of values, with the form in which the key holds
    them."""


def with_list_index(
    design: Design, inputs: DesignInputs, table: TableDesign, entity: Entity, key: ListKey,
    query: ResolvedQuery, why: str,
) -> tuple[Design, SecondaryIndex] | None:  # fmt: skip
    """Returns the design with the index, or None if the table cannot have one more."""
    index = _free_index(table, entity)
    if index is None:
        return None
    partition = _partition(inputs, entity, key, f"{index.name}{PARTITION}")
    sort = ItemAttribute(
        name=f"{index.name}{SORT}", type="S", template=_sort_template(inputs, entity, key)
    )
    index = _projecting(table, entity, index, query, why)
    own = replace(entity, attributes=[*entity.attributes, partition, sort])
    changed = replace(
        table,
        entities=[own if other is entity else other for other in table.entities],
        indexes=[*(other for other in table.indexes if other.name != index.name), index],
    )
    tables = [changed if other is table else other for other in design.tables]
    return replace(design, tables=tables), index


def _free_index(table: TableDesign, entity: Entity) -> SecondaryIndex | None:
    """Returns an index that other types of items use for their lists, or a new one."""
    for index in table.indexes:
        is_list = index.partition_key.name == f"{index.name}{PARTITION}"
        is_of_lists = is_list and all(
            attribute.constant is not None or attribute.first
            for other in table.entities
            if (attribute := other.attribute(index.partition_key.name)) is not None
        )
        if is_of_lists and entity.attribute(index.partition_key.name) is None:
            return index
    taken = {index.name for index in table.indexes}
    # CreateTable refuses a table with more indexes than the quota.
    if sum(index.kind == "global" for index in table.indexes) >= GLOBAL_INDEXES_PER_TABLE_MAX:
        return None
    number = next(number for number in range(1, 100) if f"GSI{number}" not in taken)
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
    list_name = f"{entity.name}{SEPARATOR}{key.condition.column}"
    return ItemAttribute(name=name, type="S", constant=list_name, when=str(key.condition))


def _sort_template(inputs: DesignInputs, entity: Entity, key: ListKey) -> str:
    """Returns the sort key's template: the columns of the order, then the columns that identify a
    row."""
    own = inputs.schema.table(entity.source)
    identity = own.primary_key or [column.name for column in own.columns]
    refs = dict.fromkeys([*key.order, *(ColumnRef(entity.source, name) for name in identity)])
    return SEPARATOR.join(_field(inputs, ref) for ref in refs)


def _field(inputs: DesignInputs, ref: ColumnRef, form: str = "") -> str:
    shape = form or fold(inputs, ref) or number_format(inputs, ref)
    name = ColumnRef("", ref.column)
    return f"{{{name}:{shape}}}" if shape else f"{{{name}}}"


def _projecting(
    table: TableDesign, entity: Entity, index: SecondaryIndex, query: ResolvedQuery, why: str
) -> SecondaryIndex:
    """Projects what the query reads or tests, or everything if that is more than half."""
    reasons = " ".join(dict.fromkeys(filter(None, [index.why, why])))
    columns = {*query.columns, *(test.ref for test in query.tests)}
    columns |= {sorting.ref for sorting in query.order}
    columns |= {ref for join in query.joins for pair in join.pairs for ref in pair}
    columns |= {ref for existence in query.existences for ref in existence.taken}
    keys = {key.name for key in [*table.keys, *index.keys]}
    plain_attributes = [
        attribute
        for attribute in entity.attributes
        if attribute.column and attribute.name not in keys
    ]
    names = {one.name for one in plain_attributes if ColumnRef.parse(one.column or "") in columns}
    # Beyond half of the attributes ALL costs little more, and later queries need no new index.
    if index.projection == "ALL" or len(names) > len(plain_attributes) / 2:
        return replace(index, projection="ALL", include=[], why=reasons)
    kind = type_attribute(table)
    include = sorted({*index.include, *names, *([kind] if kind else [])})
    return replace(index, projection="INCLUDE", include=include, why=reasons)
