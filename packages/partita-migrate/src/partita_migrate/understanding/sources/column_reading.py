"""The SQL expression that reads each column, so that no value loses anything on the way.

Drivers lose some values: psycopg has no infinite dates and no months in its intervals, MySQL shows
six digits of a FLOAT. Such columns are read through a cast. Long texts and binaries whose content
is not needed are measured on the server instead of being carried over the network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from partita.database.item.attribute_values import AttributeValue
from partita.database.item.item_sizes import value_size
from partita_migrate.understanding.schema.inventory import ColumnKind, SourceColumn, SourceTable
from partita_migrate.understanding.sources.source_connection import SourceDatabase
from partita_migrate.understanding.sources.value_mapping import (
    UTC_OFFSET,
    converter,
    iso_8601,
    single_float,
)

LONG_TEXT_CHARS = 2000
"""Columns that may hold longer texts are only measured, unless they are part of a key."""

Convert = Callable[[Any], AttributeValue | None]


class ColumnReading(NamedTuple):
    column: SourceColumn
    sql: str
    convert: Convert | None
    """Makes the attribute value; None when `sql` returns a size in bytes instead of the value."""

    def measure(self, value: Any) -> tuple[int, Any]:
        """Returns the size of a value that is not NULL, and its content, or None if only
        measured."""
        if self.convert is None:
            return int(value), None
        converted = self.convert(value)
        if converted is None:
            return 0, None
        return value_size(converted), next(iter(converted.values()))


def readings(
    source: SourceDatabase, table: SourceTable, keys: Collection[str] = ()
) -> list[ColumnReading]:
    """Returns a reading for each column. The columns in `keys` are read whole whatever their
    length."""
    return [_reading(source, column, column.name in keys) for column in table.columns]


def _reading(source: SourceDatabase, column: SourceColumn, is_key: bool) -> ColumnReading:
    name = source.quote(column.name)
    family = "mysql" if source.dialect == "mariadb" else source.dialect
    if not is_key:
        measure = _MEASURED.get((family, column.kind))
        if measure and (column.kind == "binary" or _may_be_long(column)):
            return ColumnReading(column, measure.format(name), None)
    form, convert = _FORMS.get((family, column.kind), ("{}", _convert_by_kind))
    if family == "postgresql" and column.type.lower() == "money":
        form = "CAST({} AS numeric)"
    return ColumnReading(column, form.format(name), convert(column))


def _may_be_long(column: SourceColumn) -> bool:
    return column.length_max is None or column.length_max > LONG_TEXT_CHARS


def _convert_by_kind(column: SourceColumn) -> Convert:
    return converter(column.kind)


def _iso(column: SourceColumn) -> Convert:
    return lambda value: None if value is None else {"S": iso_8601(value)}


def _mysql_datetime(column: SourceColumn) -> Convert:
    """Adds the offset to a TIMESTAMP, which is an instant in the session's UTC. A DATETIME has no
    time zone and stays without."""
    plainly = _convert_by_kind(column)
    if not column.type.upper().startswith("TIMESTAMP"):
        return plainly

    def convert(value: Any) -> AttributeValue | None:
        converted = plainly(value)
        if converted is None or isinstance(value, str):
            return converted
        return {"S": converted["S"] + UTC_OFFSET}

    return convert


def _mysql_float(column: SourceColumn) -> Convert:
    plainly = _convert_by_kind(column)
    if not column.type.upper().startswith("FLOAT"):
        return plainly
    return lambda value: plainly(None if value is None else single_float(float(value)))


_TEXT = ("CAST({} AS text)", _convert_by_kind)

_FORMS: dict[tuple[str, ColumnKind], tuple[str, Callable[[SourceColumn], Convert]]] = {
    ("postgresql", "date"): _TEXT,
    ("postgresql", "time"): _TEXT,
    ("postgresql", "datetime"): ("CAST({} AS text)", _iso),
    ("postgresql", "json"): _TEXT,
    ("postgresql", "array"): ("CAST(to_jsonb({}) AS text)", _convert_by_kind),
    ("postgresql", "geometry"): _TEXT,
    ("postgresql", "other"): _TEXT,
    ("mysql", "datetime"): ("{}", _mysql_datetime),
    # The addition makes MySQL send a double with all digits of the FLOAT, not the rounded six.
    ("mysql", "float"): ("{} + 0e0", _mysql_float),
}

_MEASURED: dict[tuple[str, ColumnKind], str] = {
    ("postgresql", "binary"): "octet_length({})",
    ("postgresql", "string"): "octet_length(convert_to(CAST({} AS text), 'UTF8'))",
    ("mysql", "binary"): "OCTET_LENGTH({})",
    ("mysql", "string"): "OCTET_LENGTH(CONVERT({} USING utf8mb4))",
}
