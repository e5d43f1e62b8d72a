"""Columns as seen from a row of an entity: its own columns, and those that joins lead to."""

from __future__ import annotations

import re
from typing import NamedTuple

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.model.design import AttributeType
from partita_migrate.model.keys.key_formats import fixed_point_format
from partita_migrate.model.keys.key_templates import PATH, ROOT
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import ColumnKind
from partita_migrate.understanding.schema.join_paths import self_reference
from partita_migrate.understanding.statements.literal_values import fold_of

TYPES: dict[ColumnKind, AttributeType] = {
    "string": "S",
    "integer": "N",
    "decimal": "N",
    "float": "N",
    "boolean": "BOOL",
    "date": "S",
    "time": "S",
    "datetime": "S",
    "binary": "B",
    "json": "M",
    "enum": "S",
    "set": "SS",
    "uuid": "S",
    "array": "L",
    "geometry": "B",
    "other": "S",
}
"""The most common attribute type of each column kind; `attribute_value` has exceptions."""

WHOLE_DIGITS = {
    "TINYINT": 3, "SMALLINT": 5, "SMALLSERIAL": 5, "MEDIUMINT": 8, "YEAR": 4, "INT": 10,
    "INTEGER": 10, "SERIAL": 10, "OID": 10, "BIGINT": 20, "BIGSERIAL": 20,
}  # fmt: skip
"""The number of digits that an integer type can have. SQLite's INTEGER has eight bytes."""
WHOLE_DIGITS_MAX = 20
_PRECISION = re.compile(r"\((\d+)(?:\s*,\s*(\d+))?\)")


class ColumnSource(NamedTuple):
    column: ColumnRef
    """The column to read."""
    through: list[str]
    """The joins that lead to it from the entity's row."""


def column_source(inputs: DesignInputs, entity: str, ref: ColumnRef) -> ColumnSource:
    """Returns where an entity's row finds a column: the nearest column with the value, and the
    joins to it."""
    schema = inputs.schema
    if ref.table == entity:
        link = schema.link_of(ref)
        if link is not None:
            target = ColumnRef(link.parent, link.key.referenced_columns[0])
            if target in schema.natural:
                return ColumnSource(schema.natural[target], [link.upwards()])
        return ColumnSource(ref, [])
    if ref not in schema.natural.values():
        for column in schema.table(entity).columns:
            if schema.canonical(ColumnRef(entity, column.name)) == ref:
                return ColumnSource(ColumnRef(entity, column.name), [])
    path = schema.path_up(entity, ref.table) or []
    if path and ref not in schema.natural.values():
        *before, last = path
        own_columns = dict(zip(last.key.referenced_columns, last.key.columns, strict=False))
        if ref.column in own_columns:
            # The row that refers to it already holds the value, so the last join is not needed.
            own = ColumnRef(last.child, own_columns[ref.column])
            return ColumnSource(own, [link.upwards() for link in before])
    return ColumnSource(ref, [link.upwards() for link in path])


def attribute_type(volumes: Volumes, ref: ColumnRef) -> AttributeType:
    return TYPES[volumes.kind(ref)]


class TemplateSource(NamedTuple):
    field: str
    """The field with its braces, as a template writes it."""
    through: list[str]


def template_source(
    inputs: DesignInputs, entity: str, ref: ColumnRef, *, is_sort: bool = False
) -> TemplateSource:
    """Returns a template's field for a column, and the joins that lead to it."""
    part, _, of_tree = ref.column.rpartition(":")
    table = inputs.schema.table(entity)
    link = self_reference(table, part) if of_tree in (PATH, ROOT) else None
    if link is not None:
        key = ColumnRef("", link.key.referenced_columns[0])
        return TemplateSource(f"{{{key}:{of_tree}}}", [link.upwards()])
    column, through = column_source(inputs, entity, ref)
    name = str(ColumnRef("", column.column) if column.table == entity else column)
    formats = inputs.settings.formats
    shape = formats.get(str(ref)) or formats.get(str(column)) or ""
    shape = shape or fold(inputs, column) or (number_format(inputs, column) if is_sort else "")
    return TemplateSource(f"{{{name}:{shape}}}" if shape else f"{{{name}}}", through)


def fold(inputs: DesignInputs, ref: ColumnRef) -> str:
    """Returns the format in which a key holds a text that the source compares by a collation."""
    column = inputs.schema.column(ref)
    return fold_of(column, inputs.volumes.inventory.dialect) if column is not None else ""


def number_format(inputs: DesignInputs, ref: ColumnRef) -> str:
    """Returns the fixed-point format with as many digits as the type has; empty for an unlimited
    type."""
    column = inputs.schema.column(ref)
    if column is None or column.kind not in ("integer", "decimal"):
        return ""
    name = re.split(r"[ (]", column.type.upper(), maxsplit=1)[0]
    precision = _PRECISION.search(column.type)
    if column.kind == "integer":
        is_small = inputs.volumes.inventory.dialect == "sqlite"
        digits = WHOLE_DIGITS_MAX - 1 if is_small else WHOLE_DIGITS.get(name, WHOLE_DIGITS_MAX)
        return fixed_point_format(digits, 0)
    if precision is None:
        return fixed_point_format(WHOLE_DIGITS_MAX - 1, 4) if name == "MONEY" else ""
    whole, fraction = int(precision[1]), int(precision[2] or 0)
    if inputs.volumes.inventory.dialect == "sqlite":
        return ""  # It keeps no precision.
    return fixed_point_format(max(whole - fraction, 1), fraction)
