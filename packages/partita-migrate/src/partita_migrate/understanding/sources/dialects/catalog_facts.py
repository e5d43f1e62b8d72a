"""Facts from a source's own catalog that SQLAlchemy does not reflect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from partita_migrate.understanding.schema.collations import Pad
from partita_migrate.understanding.schema.inventory import (
    ColumnKind,
    ForeignKey,
    SkippedObject,
    SourceIndex,
)

Place = tuple[str | None, str]
"""Schema and name of a table; the schema is None for the default one."""


@dataclass(frozen=True)
class ColumnFacts:
    type: str
    kind: ColumnKind
    length_max: int | None = None
    is_auto_increment: bool = False
    is_generated: bool = False
    is_case_insensitive: bool = False
    is_letter_by_letter: bool = False
    pad: Pad = ""
    collation: str = ""


@dataclass
class TableFacts:
    columns: dict[str, ColumnFacts] = field(default_factory=dict)
    row_estimate: int | None = None
    data_bytes: int | None = None
    indexes: list[SourceIndex] | None = None
    foreign_keys: list[ForeignKey] | None = None
    """When set, `indexes` and `foreign_keys` replace the reflected ones, which are incomplete
    there."""
    index_kinds: dict[str, str] = field(default_factory=dict)
    """Access methods of the indexes that are not plain B-trees, e.g. fulltext or gin."""
    triggers: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    inherits: list[str] = field(default_factory=list)
    is_inherited: bool = False
    is_readable: bool = True


@dataclass
class CatalogFacts:
    default_schema: str | None = None
    tables: dict[Place, TableFacts] = field(default_factory=dict)
    views: list[str] = field(default_factory=list)
    analytical_views: list[str] = field(default_factory=list)
    view_queries: dict[str, str] = field(default_factory=dict)
    routines: list[str] = field(default_factory=list)
    skipped: list[SkippedObject] = field(default_factory=list)

    def name(self, schema: str | None, table: str) -> str:
        """Returns the table's name in the inventory: qualified unless it is in the default
        schema."""
        return table if schema in (None, self.default_schema) else f"{schema}.{table}"

    def place(self, schema: str, table: str) -> Place:
        return (None if schema == self.default_schema else schema, table)


_AGGREGATE = re.compile(r"\bgroup\s+by\b|\bover\s*\(|\b(sum|avg|count|min|max)\s*\(", re.IGNORECASE)


def is_analytical(definition: str | None) -> bool:
    """True when a view's definition groups or aggregates, judged by its keywords."""
    return bool(definition and _AGGREGATE.search(definition))
