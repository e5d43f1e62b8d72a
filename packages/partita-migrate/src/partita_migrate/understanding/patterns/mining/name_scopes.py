"""Resolves the names in a statement: aliases, subqueries, and the columns that these pass on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from partita_migrate.understanding.patterns.mining.schema_lookup import (
    SchemaLookup,
    spelled_in_digests,
)
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable


class NotUnderstood(Exception):
    """Raised for a statement that cannot become a pattern. The text says why."""


class NotAnAccess(Exception):
    """Raised for a statement that does not access the data. The text says what it is."""


@dataclass(eq=False)
class TableOccurrence:
    """A table at one place of a statement; the same table can occur several times."""

    table: SourceTable


class ColumnReference(NamedTuple):
    occurrence: TableOccurrence
    column: str

    def __str__(self) -> str:
        return str(ColumnRef(self.occurrence.table.name, self.column))


@dataclass
class DerivedTable:
    """A subquery, or a function that returns rows: its outputs with the columns behind them."""

    outputs: dict[str, ColumnReference | None] = field(default_factory=dict)
    is_open: bool = False
    """True if any name may be an output, without a column of a table behind it."""

    def reference(self, name: str) -> ColumnReference | None:
        return self.outputs.get(name.lower())

    def has(self, name: str) -> bool:
        return self.is_open or name.lower() in self.outputs


class SelectScope:
    """The sources of one SELECT, inside those of the SELECT around it."""

    def __init__(self, schema: SchemaLookup, outer: SelectScope | None = None) -> None:
        self.schema = schema
        self.outer = outer
        self.sources: dict[str, TableOccurrence | DerivedTable] = {}
        self.ctes: dict[str, DerivedTable] = {}

    def cte(self, name: str) -> DerivedTable | None:
        if name.lower() in self.ctes:
            return self.ctes[name.lower()]
        return self.outer.cte(name) if self.outer else None

    def source(self, name: str) -> TableOccurrence | DerivedTable | None:
        for spelling in (name.lower(), spelled_in_digests(name)):
            if spelling in self.sources:
                return self.sources[spelling]
        return self.outer.source(name) if self.outer else None

    def resolve(self, column: exp.Column) -> ColumnReference | None:
        """Returns the column of a table, or None if the name stands for something computed."""
        source = self._source_of(column)
        if isinstance(source, DerivedTable):
            return source.reference(column.name)
        definition = self.schema.column(source.table, column.name)
        if definition is None:
            raise NotUnderstood(f"{source.table.name} has no column {column.name}")
        return ColumnReference(source, definition.name)

    def _source_of(self, column: exp.Column) -> TableOccurrence | DerivedTable:
        if column.table:
            source = self.source(column.table)
            if source is None:
                raise NotUnderstood(f"{column.table} is not one of its tables")
            return source
        scope: SelectScope | None = self
        while scope is not None:
            for source in scope.sources.values():
                if scope._has(source, column.name):
                    return source
            scope = scope.outer
        if self.source(column.name) is not None:
            # In PostgreSQL, a table's name can stand for its whole row.
            return DerivedTable(is_open=True)
        raise NotUnderstood(f"no table that it names has a column {column.name}")

    def _has(self, source: TableOccurrence | DerivedTable, column: str) -> bool:
        if isinstance(source, DerivedTable):
            return source.has(column)
        return self.schema.column(source.table, column) is not None
