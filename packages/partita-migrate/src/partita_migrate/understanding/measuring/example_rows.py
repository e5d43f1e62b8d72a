"""Keeps a few rows of each table that belong together, so that drawings of a model show real items.

The first and the last row of a table by its key, others with the same parent, and all their parents
are read. Every row is found through an index, never by scanning a table. Texts can be personal:
unless the settings say otherwise, each is replaced by one that its column's name suggests. The same
text gets the same replacement everywhere, so that rows still belong together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from partita.database.item.attribute_values import AttributeValue, Item
from partita.database.item.item_sizes import value_size
from partita_migrate.understanding.measuring.made_up_texts import made_up
from partita_migrate.understanding.measuring.table_figures import SHOWN_KINDS
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.foreign_key_graph import SchemaGraph
from partita_migrate.understanding.schema.inventory import (
    ColumnKind,
    ForeignKey,
    Inventory,
    SourceTable,
)
from partita_migrate.understanding.sources.column_reading import ColumnReading, readings
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

Examples = Literal["masked", "whole", "none"]
"""Texts replaced, texts as they are, or no rows at all."""

ROWS_MAX = 4
"""The number of rows of each table."""
SIBLINGS_MAX = 3
TEXT_CHARS_MAX = 80
DOCUMENT_BYTES_MAX = 200
STATEMENT_SECONDS_MAX = 5
SMALL_ROWS = 1000
"""A table with so few rows is scanned even without an index."""
ALIAS = "partita_example"

_MOMENT = re.compile(r"[0-9T:.+/Z -]*")

_PLACEHOLDERS: dict[str, AttributeValue] = {
    "B": {"B": ""},
    "M": {"M": {}},
    "L": {"L": []},
    "SS": {"SS": ["…"]},
}
"""Shown in place of values that must not be shown."""

Row = dict[str, Any]


def example_rows(
    source: SourceDatabase, inventory: Inventory, how: Examples
) -> dict[str, list[Item]]:
    """Returns the rows by table, in the order of the inventory. Each row has the form of an
    item."""
    if how == "none":
        return {}
    gathering = _Gathering(source, inventory)
    with source.limit(STATEMENT_SECONDS_MAX):
        gathering.gather()
    shown = _Shown(inventory, how)
    return {
        table.name: [shown.item(table, row, gathering.readings(table)) for row in rows]
        for table in inventory.tables
        if (rows := gathering.rows.get(table.name))
    }


class _Gathering:
    def __init__(self, source: SourceDatabase, inventory: Inventory) -> None:
        self.source = source
        self.tables = {table.name: table for table in inventory.tables if table.is_readable}
        self.rows: dict[str, list[Row]] = {}
        self._readings: dict[str, list[ColumnReading]] = {}

    def gather(self) -> None:
        """Starts from tables that no other table refers to, whose rows lead to all others."""
        referenced = {
            key.referenced_table
            for table in self.tables.values()
            for key in table.foreign_keys
            if key.referenced_table != table.name
        }
        for table in sorted(self.tables.values(), key=lambda table: table.name in referenced):
            if not self.rows.get(table.name):
                self._begin(table)

    def _begin(self, table: SourceTable) -> None:
        for direction in ("", " DESC"):
            for row in self._select(table, {}, 1, direction):
                self._keep(table, row)
                if not direction:
                    for sibling in self._siblings(table, row):
                        self._keep(table, sibling)

    def _siblings(self, table: SourceTable, row: Row) -> Sequence[Row]:
        for key in table.foreign_keys:
            values = {name: row.get(name) for name in key.columns}
            if _is_found_by_index(table, key.columns) and None not in values.values():
                return self._select(table, values, SIBLINGS_MAX)
        return []

    def _keep(self, table: SourceTable, row: Row) -> None:
        kept = self.rows.setdefault(table.name, [])
        if row in kept or len(kept) == ROWS_MAX:
            return
        kept.append(row)
        for key in table.foreign_keys:
            self._keep_parent(key, row)

    def _keep_parent(self, key: ForeignKey, row: Row) -> None:
        parent = self.tables.get(key.referenced_table)
        if parent is None or len(self.rows.get(parent.name, [])) == ROWS_MAX:
            return
        # SQLite allows foreign keys that do not match; they lead nowhere.
        values = {
            name: row.get(own)
            for name, own in zip(key.referenced_columns, key.columns, strict=False)
        }
        if None not in values.values() and _is_found_by_index(parent, key.referenced_columns):
            for parent_row in self._select(parent, values, 1):
                self._keep(parent, parent_row)

    def readings(self, table: SourceTable) -> list[ColumnReading]:
        if table.name not in self._readings:
            keys = {name for key in table.foreign_keys for name in key.columns}
            table_readings = readings(self.source, table, {*keys, *table.primary_key})
            self._readings[table.name] = [self._shortened(reading) for reading in table_readings]
        return self._readings[table.name]

    def _shortened(self, reading: ColumnReading) -> ColumnReading:
        """Reads the beginning of a text, in place of its size, as far as it may be shown."""
        if reading.convert is not None or reading.column.kind != "string":
            return reading
        beginning = f"LEFT({self.source.quote(reading.column.name)}, {TEXT_CHARS_MAX + 1})"
        return reading._replace(sql=beginning, convert=lambda text: {"S": text})

    def _select(
        self, table: SourceTable, values: Row, limit: int, direction: str | None = None
    ) -> Sequence[Row]:
        """Returns no rows if the source refuses. Only a source that is gone is an error."""
        table_readings = self.readings(table)
        quote = self.source.quote
        statement = (
            f"SELECT {', '.join(reading.sql for reading in table_readings)}"
            f" FROM {self.source.relation(table)} AS {ALIAS}"
        )
        if values:
            conditions = (f"{quote(name)} = :v{n}" for n, name in enumerate(values))
            statement += f" WHERE {' AND '.join(conditions)}"
        if direction is not None and table.primary_key:
            order = (f"{quote(name)}{direction}" for name in table.primary_key)
            statement += f" ORDER BY {', '.join(order)}"
        try:
            rows = self.source.rows(
                f"{statement} LIMIT {limit}", **{f"v{n}": v for n, v in enumerate(values.values())}
            )
        except SourceError:
            if self.source.is_lost:
                raise
            return []
        names = [reading.column.name for reading in table_readings]
        # Sorted, because the order of a server's answer may differ from run to run.
        return sorted((dict(zip(names, row, strict=True)) for row in rows), key=repr)


def _is_found_by_index(table: SourceTable, columns: Sequence[str]) -> bool:
    """True when rows with these values are found without scanning the table."""
    if table.is_row_count_exact and table.row_count <= SMALL_ROWS:
        return True
    indexes = [index.columns for index in table.indexes if index.where is None]
    return any(
        set(index[: len(columns)]) == set(columns) for index in (table.primary_key, *indexes)
    )


class _Shown:
    """Decides what of a row may be shown."""

    def __init__(self, inventory: Inventory, how: Examples) -> None:
        self.how = how
        self.schema = SchemaGraph(inventory)
        self._numbers: dict[ColumnRef, dict[str, int]] = {}

    def item(self, table: SourceTable, row: Row, row_readings: Sequence[ColumnReading]) -> Item:
        return dict(self._attributes(table, row, row_readings))

    def _attributes(
        self, table: SourceTable, row: Row, row_readings: Sequence[ColumnReading]
    ) -> Iterator[tuple[str, AttributeValue]]:
        for reading in row_readings:
            name = reading.column.name
            value = None if row[name] is None else self._value(table, reading, row[name])
            if value is not None:
                yield name, value

    def _value(
        self, table: SourceTable, reading: ColumnReading, value: Any
    ) -> AttributeValue | None:
        ref = ColumnRef(table.name, reading.column.name)
        if reading.convert is None:
            return _PLACEHOLDERS["B"]
        converted = reading.convert(value)
        if converted is None:
            return None
        if self.how == "masked" and not _is_telling(reading.column.kind, converted):
            return self._masked(ref, converted)
        if "S" in converted:
            return {"S": _cut(converted["S"])}
        (kind,) = converted
        return converted if value_size(converted) <= DOCUMENT_BYTES_MAX else _PLACEHOLDERS.get(kind)

    def _masked(self, ref: ColumnRef, value: AttributeValue) -> AttributeValue | None:
        (kind,) = value
        if kind != "S":
            return _PLACEHOLDERS.get(kind)
        text = value["S"]
        origin = self.schema.origin(ref)
        numbers = self._numbers.setdefault(origin, {})
        return {"S": made_up(origin.column, numbers.setdefault(text, len(numbers) + 1))}


def _is_telling(kind: ColumnKind, value: AttributeValue) -> bool:
    """True for values that may be shown. SQLite stores any text in any column, whatever kind it was
    declared as."""
    if kind not in SHOWN_KINDS:
        return False
    return kind == "enum" or _MOMENT.fullmatch(value.get("S", "")) is not None


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}…"
