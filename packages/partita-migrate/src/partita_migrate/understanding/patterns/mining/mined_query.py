"""Collects what a SELECT and everything inside it reads, before it becomes a TableAccess."""

from __future__ import annotations

from dataclasses import dataclass, field

from partita_migrate.understanding.patterns.mining.name_scopes import (
    ColumnReference,
    TableOccurrence,
)
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup


@dataclass
class MinedQuery:
    """Tables, conditions and output of a SELECT; subqueries are added to the enclosing query."""

    schema: SchemaLookup
    occurrences: list[TableOccurrence] = field(default_factory=list)
    narrowing: list[TableOccurrence] = field(default_factory=list)
    """Tables of subqueries in WHERE; their columns are not part of the result."""
    equality: list[ColumnReference] = field(default_factory=list)
    forms: dict[ColumnReference, str] = field(default_factory=dict)
    """Columns of `equality` that are compared through a function, such as lower()."""
    range: list[ColumnReference] = field(default_factory=list)
    filters: list[ColumnReference] = field(default_factory=list)
    links: list[tuple[ColumnReference, ColumnReference]] = field(default_factory=list)
    output: dict[TableOccurrence, set[str]] = field(default_factory=dict)
    order: list[tuple[ColumnReference, bool]] = field(default_factory=list)
    hierarchy: ColumnReference | None = None
    """The column by which a recursive query walks down a hierarchy."""
    limit: int | None = None
    is_among: bool = False
    """True when a column of `equality` is compared with a list of values."""
    is_aggregate: bool = False
    is_locking: bool = False
    remarks: list[str] = field(default_factory=list)

    def read_column(self, reference: ColumnReference) -> None:
        self.output.setdefault(reference.occurrence, set()).add(reference.column)

    def read_all(self, occurrence: TableOccurrence) -> None:
        columns = self.output.setdefault(occurrence, set())
        columns.update(column.name for column in occurrence.table.columns)

    def absorb(self, inner: MinedQuery) -> None:
        """Adds a subquery's tables and conditions; an order or limit of the outer query takes
        precedence."""
        self.occurrences += inner.occurrences
        self.narrowing += inner.narrowing
        self.equality += inner.equality
        self.forms |= inner.forms
        self.range += inner.range
        self.filters += inner.filters
        self.links += inner.links
        self.remarks += inner.remarks
        self.hierarchy = self.hierarchy or inner.hierarchy
        self.is_among = self.is_among or inner.is_among
        self.is_aggregate = self.is_aggregate or inner.is_aggregate
        self.order = self.order or inner.order
        self.limit = self.limit if self.limit is not None else inner.limit
