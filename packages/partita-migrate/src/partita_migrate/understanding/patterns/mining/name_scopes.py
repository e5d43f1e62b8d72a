"""Resolves names in a mined statement: aliases, subqueries and the columns that they pass on."""

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
    """Raised for a statement that no pattern can be made of; the text says why."""


class NotAnAccess(Exception):
    """Raised for a statement that does not access data; the text says what kind it is."""


@dataclass(eq=False)
class TableOccurrence:
    """One occurrence of a table in a statement; the same table may occur again."""

    table: SourceTable


class ColumnReference(NamedTuple):
    occurrence: TableOccurrence
    column: str

    def __str__(self) -> str:
        return str(ColumnRef(self.occurrence.table.name, self.column))


@dataclass
class DerivedTable:
    """The columns of a subquery, or of a function that returns rows.

    `outputs` maps a name to the table column behind it, or to None for a computed value.
    """

    outputs: dict[str, ColumnReference | None] = field(default_factory=dict)
    is_open: bool = False
    """True when it has unknown columns, none of which is a column of a table."""

    def reference(self, name: str) -> ColumnReference | None:
        return self.outputs.get(name.lower())

    def has(self, name: str) -> bool:
        return self.is_open or name.lower() in self.outputs


class SelectScope:
    """The sources of one SELECT; names that are missing there are looked up in the
    enclosing one."""

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
        """Returns the table column behind a name, or None for a computed value."""
        source = self._source_of(column)
        if isinstance(source, DerivedTable):
            return source.reference(column.name)
        source_column = self.schema.column(source.table, column.name)
        if source_column is None:
            raise NotUnderstood(f"{source.table.name} has no column {column.name}")
        return ColumnReference(source, source_column.name)

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
            # In PostgreSQL a table's name may stand for its whole row.
            return DerivedTable(is_open=True)
        raise NotUnderstood(f"no table that it names has a column {column.name}")

    def _has(self, source: TableOccurrence | DerivedTable, column: str) -> bool:
        if isinstance(source, DerivedTable):
            return source.has(column)
        return self.schema.column(source.table, column) is not None
