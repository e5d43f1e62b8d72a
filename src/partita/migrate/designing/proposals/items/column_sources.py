"""Columns as they are seen from a row of an entity: its own, or those that joins lead to."""

from __future__ import annotations

from typing import NamedTuple

from partita.migrate.designing.proposals.design_inputs import DesignInputs
from partita.migrate.model.design import AttributeType
from partita.migrate.model.templates import PATH, ROOT
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.inventory import ColumnKind
from partita.migrate.understanding.schema.join_paths import self_reference

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
"""The usual one of `values.MAPPING`."""

NUMBERS = ("integer", "decimal")


class ColumnSource(NamedTuple):
    column: Ref
    """The column to read."""
    through: list[str]
    """The joins that lead to it from the entity's row."""


def column_source(inputs: DesignInputs, entity: str, ref: Ref) -> ColumnSource:
    schema = inputs.schema
    if ref.table == entity:
        link = schema.link_of(ref)
        if link is not None:
            target = Ref(link.parent, link.key.referenced_columns[0])
            if target in schema.natural:
                return ColumnSource(schema.natural[target], [link.upwards()])
        return ColumnSource(ref, [])
    if ref not in schema.natural.values():
        for column in schema.table(entity).columns:
            if schema.canonical(Ref(entity, column.name)) == ref:
                return ColumnSource(Ref(entity, column.name), [])
    path = schema.path_up(entity, ref.table) or []
    return ColumnSource(ref, [link.upwards() for link in path])


def attribute_type(volumes: Volumes, ref: Ref) -> AttributeType:
    return TYPES[volumes.kind(ref)]


class TemplateSource(NamedTuple):
    field: str
    """As a template writes it, in braces."""
    through: list[str]


def template_source(
    inputs: DesignInputs, entity: str, ref: Ref, *, is_ordered: bool = False
) -> TemplateSource:
    """A template's field for a column, and the joins that lead to it."""
    part, _, of_tree = ref.column.rpartition(":")
    table = inputs.schema.table(entity)
    link = self_reference(table, part) if of_tree in (PATH, ROOT) else None
    if link is not None:
        key = Ref("", link.key.referenced_columns[0])
        return TemplateSource(f"{{{key}:{of_tree}}}", [link.upwards()])
    column, through = column_source(inputs, entity, ref)
    name = str(Ref("", column.column) if column.table == entity else column)
    formats = inputs.settings.formats
    shape = formats.get(str(ref)) or formats.get(str(column)) or ""
    if is_ordered and not shape and inputs.volumes.kind(column) in NUMBERS:
        shape = f"0{inputs.volumes.padding(column)}"
    return TemplateSource(f"{{{name}:{shape}}}" if shape else f"{{{name}}}", through)
