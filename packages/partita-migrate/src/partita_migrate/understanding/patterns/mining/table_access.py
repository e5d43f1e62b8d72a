"""What one statement asks of one table: the facts that patterns are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from partita_migrate.understanding.patterns.access_patterns import (
    AccessPattern,
    Category,
    Operation,
)
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.schema.relationships import is_unique


@dataclass
class TableAccess:
    """How a statement accesses a table. Columns are "table.column".

    It is filled while the statement is read, and does not change after `settle`.
    """

    operation: Operation
    table: SourceTable
    joins: list[str] = field(default_factory=list)
    through: list[str] = field(default_factory=list)
    equality: list[str] = field(default_factory=list)
    forms: dict[str, str] = field(default_factory=dict)
    """Maps columns of `equality` to the function whose result is compared, such as lower."""
    range: list[str] = field(default_factory=list)
    filters: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    is_descending: bool = False
    is_among: bool = False
    """True when a column of `equality` is compared with a list of values."""
    hierarchy: str = ""
    limit: int | None = None
    columns: list[str] = field(default_factory=list)
    is_consistent: bool = False
    remarks: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    """Joins that look like foreign keys that the schema does not declare."""

    @property
    def is_by_distinct_value(self) -> bool:
        refs = map(ColumnRef.parse, self.equality)
        return is_unique(self.table, {ref.column for ref in refs if ref.table == self.table.name})

    @property
    def category(self) -> Category:
        if self.operation in ("insert", "update", "delete"):
            return "write only"
        if self.operation == "read" and self.is_by_distinct_value:
            return "by distinct value"
        return "range of items"

    def pattern(self, items: float) -> AccessPattern:
        """Makes a pattern; its name and rate are not known from a single statement."""
        return AccessPattern(
            name="",
            description="; ".join(self.remarks),
            category=self.category,
            operation=self.operation,
            table=self.table.name,
            joins=self.joins,
            through=self.through,
            equality=self.equality,
            range=self.range,
            order_by=self.order_by,
            is_descending=self.is_descending,
            hierarchy=self.hierarchy,
            limit=self.limit,
            filters=self.filters,
            columns=self.columns,
            items=items,
            calls_per_second=0.0,
            is_consistent=self.is_consistent,
        )

    def settle(self) -> TableAccess:
        """Normalizes the access so that equal ones compare as equal: an order without effect is
        dropped."""
        self.equality = list(dict.fromkeys(self.equality))
        self.range = [name for name in dict.fromkeys(self.range) if name not in self.equality]
        keys = {*self.equality, *self.range}
        self.filters = sorted({name for name in self.filters if name not in keys})
        self.order_by = [name for name in dict.fromkeys(self.order_by) if name not in self.equality]
        if self.is_by_distinct_value and self.operation == "read":
            self.order_by, self.limit = [], None
        if not self.order_by:
            self.is_descending = False
        self.remarks = list(dict.fromkeys(self.remarks))
        return self
