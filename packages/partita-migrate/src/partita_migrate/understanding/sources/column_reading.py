"""The expression by which each column is read, so that its values arrive without loss.

Drivers lose some values: psycopg has no infinite dates and no months in intervals, and MySQL shows
six digits of a FLOAT. Such columns are read in another form. Long texts and binaries whose content
is not needed are measured by the server, so that they do not travel over the network.
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
"""A text that can be longer than this is measured by the server, unless it is part of a key."""

Convert = Callable[[Any], AttributeValue | None]


class ColumnReading(NamedTuple):
    column: SourceColumn
    sql: str
    convert: Convert | None
    """Converts an answer to the attribute value. None if `sql` returns the size in bytes."""

    def measure(self, value: Any) -> tuple[int, Any]:
        """Returns the size of an answer that is not NULL, and its content, or None if that was not
        read."""
        if self.convert is None:
            return int(value), None
        converted = self.convert(value)
        if converted is None:
            return 0, None
        return value_size(converted), next(iter(converted.values()))


def readings(
    source: SourceDatabase, table: SourceTable, keys: Collection[str] = ()
) -> list[ColumnReading]:
    """Returns the reading of each column. Columns of `keys` are read as a whole, whatever their
    length."""
    return [_reading(source, column, column.name in keys) for column in table.columns]


def _reading(source: SourceDatabase, column: SourceColumn, is_key: bool) -> ColumnReading:
    name = source.quote(column.name)
    family = "mysql" if source.dialect == "mariadb" else source.dialect
    if not is_key:
        measure = _MEASURED.get((family, column.kind))
        if measure and (column.kind == "binary" or _may_be_long(column)):
            return ColumnReading(column, measure.format(name), None)
    form, convert = _FORMS.get((family, column.kind), ("{}", _plainly))
    if family == "postgresql" and column.type.lower() == "money":
        # money is sent as text in the server's locale, with a currency sign.
        form = "CAST({} AS numeric)"
    return ColumnReading(column, form.format(name), convert(column))


def _may_be_long(column: SourceColumn) -> bool:
    return column.length_max is None or column.length_max > LONG_TEXT_CHARS


def _plainly(column: SourceColumn) -> Convert:
    return converter(column.kind)


def _iso(column: SourceColumn) -> Convert:
    return lambda value: None if value is None else {"S": iso_8601(value)}


def _mysql_datetime(column: SourceColumn) -> Convert:
    """Converts TIMESTAMP and DATETIME. A TIMESTAMP is an instant, shown in the session's UTC; a
    DATETIME has no time zone."""
    plainly = _plainly(column)
    if not column.type.upper().startswith("TIMESTAMP"):
        return plainly

    def convert(value: Any) -> AttributeValue | None:
        converted = plainly(value)
        if converted is None or isinstance(value, str):
            return converted
        return {"S": converted["S"] + UTC_OFFSET}

    return convert


def _mysql_float(column: SourceColumn) -> Convert:
    plainly = _plainly(column)
    if not column.type.upper().startswith("FLOAT"):
        return plainly
    return lambda value: plainly(None if value is None else single_float(float(value)))


_TEXT = ("CAST({} AS text)", _plainly)

_FORMS: dict[tuple[str, ColumnKind], tuple[str, Callable[[SourceColumn], Convert]]] = {
    ("postgresql", "date"): _TEXT,
    ("postgresql", "time"): _TEXT,
    ("postgresql", "datetime"): ("CAST({} AS text)", _iso),
    ("postgresql", "json"): _TEXT,
    ("postgresql", "array"): ("CAST(to_jsonb({}) AS text)", _plainly),
    ("postgresql", "geometry"): _TEXT,
    ("postgresql", "other"): _TEXT,
    ("mysql", "datetime"): ("{}", _mysql_datetime),
    # An addition is done in double precision, so that all digits of the FLOAT are shown.
    ("mysql", "float"): ("{} + 0e0", _mysql_float),
}

_MEASURED: dict[tuple[str, ColumnKind], str] = {
    ("postgresql", "binary"): "octet_length({})",
    ("postgresql", "string"): "octet_length(convert_to(CAST({} AS text), 'UTF8'))",
    ("mysql", "binary"): "OCTET_LENGTH({})",
    ("mysql", "string"): "OCTET_LENGTH(CONVERT({} USING utf8mb4))",
}
