"""Finds how tables belong together, from keys, unique indexes and shapes alone.

Each foreign key is one relationship, with the cardinality of its child side. Two foreign keys
together can form another one: a many-to-many relationship, or the closure of a hierarchy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import combinations

from partita_migrate.understanding.schema.inventory import (
    ForeignKey,
    Relationship,
    RelationshipKind,
    SourceColumn,
    SourceIndex,
    SourceTable,
)
from partita_migrate.understanding.schema.name_words import words

LOOKUP_COLUMNS_MAX = 3
"""The maximum of columns of a lookup table: a key and its meaning. Dates of change do not count."""
LOOKUP_ROWS_MAX = 1000
LOOKUP_ROWS_PER_ENTRY_MIN = 10
EAV_COLUMNS_MAX = 7
"""The maximum of columns of an EAV table beside its values, of which it can have one per type."""

ATTRIBUTE_WORDS = {"attribute", "attr", "key", "property", "field", "param", "parameter", "option"}
ATTRIBUTE_NAMES = {"name", "code"}
"""These words mean an attribute only if they are the whole name: `customer_name` is an ordinary
value."""
VALUE_WORDS = {"value", "val"}
ANCESTOR_WORDS = {"ancestor", "descendant", "descendent"}
DEPTH_WORDS = {"depth", "distance", "level", "length", "hops"}
CHANGE_WORDS = {"created", "updated", "modified", "update", "last", "timestamp", "deleted"}


def relate(tables: list[SourceTable]) -> list[Relationship]:
    """Returns all relationships, in the order of their tables."""
    graph = _Graph(tables)
    relationships = [graph.of_foreign_key(table, key) for table, key in graph.foreign_keys()]
    relationships += [pair for table in tables for pair in graph.of_intersection(table)]
    return sorted(
        relationships,
        key=lambda relationship: (
            relationship.parent,
            relationship.child,
            relationship.through or "",
            relationship.kind,
            relationship.child_columns,
        ),
    )


class _Graph:
    def __init__(self, tables: list[SourceTable]) -> None:
        self.tables = {table.name: table for table in tables}
        self.children: dict[str, list[tuple[SourceTable, ForeignKey]]] = defaultdict(list)
        for table, key in self.foreign_keys():
            self.children[key.referenced_table].append((table, key))
        self.intersections = {
            table.name: pairs for table in tables if (pairs := self._pairs(table))
        }
        self.sides = {
            key.referenced_table
            for pairs in self.intersections.values()
            for pair in pairs
            for key in pair
        }

    def foreign_keys(self) -> Iterator[tuple[SourceTable, ForeignKey]]:
        """Yields the foreign keys whose two tables are in the inventory."""
        for table in self.tables.values():
            for key in table.foreign_keys:
                if key.referenced_table in self.tables:
                    yield table, key

    def of_foreign_key(self, table: SourceTable, key: ForeignKey) -> Relationship:
        return Relationship(
            kind=self._kind(table, key),
            parent=key.referenced_table,
            child=table.name,
            parent_columns=key.referenced_columns,
            child_columns=key.columns,
            is_optional=is_nullable(table, key.columns),
        )

    def _kind(self, table: SourceTable, key: ForeignKey) -> RelationshipKind:
        parent = self.tables[key.referenced_table]
        if parent is table:
            return "hierarchy"
        if is_unique(table, key.columns):
            return "one-to-one"
        attribute = eav_attribute(table)
        if attribute is not None and attribute not in key.columns:
            return "entity-attribute-value"
        if self._is_lookup(parent):
            return "lookup"
        return "one-to-many"

    def of_intersection(self, table: SourceTable) -> Iterator[Relationship]:
        for first, second in self.intersections.get(table.name, []):
            yield Relationship(
                kind="hierarchy" if _is_closure(table, first, second) else "many-to-many",
                parent=first.referenced_table,
                child=second.referenced_table,
                parent_columns=first.columns,
                child_columns=second.columns,
                through=table.name,
            )

    def _pairs(self, table: SourceTable) -> list[tuple[ForeignKey, ForeignKey]]:
        """Returns the pairs of foreign keys of a table that exists to connect their two sides."""
        keys = [key for key in table.foreign_keys if key.referenced_table in self.tables]
        inside = _pairs_within(keys, table.primary_key)
        if inside or self._is_referenced(table):
            return inside
        # A table with a generated number as its key connects them if another unique key has both,
        # or if it has nothing else.
        for index in table.indexes:
            if is_plainly_unique(index) and (inside := _pairs_within(keys, index.columns)):
                return inside
        is_bare = len(keys) == 2 and not _payload(table) and len(table.primary_key) < 2
        named = [name for key in keys for name in key.columns]
        return _pairs_within(keys, named) if is_bare else []

    def _is_referenced(self, table: SourceTable) -> bool:
        return bool(self.children[table.name])

    def _is_lookup(self, table: SourceTable) -> bool:
        """True for a few short rows that many other rows refer to: statuses, languages,
        countries."""
        if table.name in self.sides or len(table.primary_key) != 1:
            return False
        if any(key.referenced_table != table.name for key in table.foreign_keys):
            return False
        # Dates of change are in tables of every kind.
        kept = [column for column in table.columns if not is_date_of_change(column)]
        if len(kept) > LOOKUP_COLUMNS_MAX or table.row_count > LOOKUP_ROWS_MAX:
            return False
        pointing = self.children[table.name]
        rows = sum(child.row_count for child, _ in pointing)
        # A single referring table with few rows could as well be a detail of this one.
        return len(pointing) >= 2 or rows >= LOOKUP_ROWS_PER_ENTRY_MIN * max(table.row_count, 1)


def is_nullable(table: SourceTable, columns: list[str]) -> bool:
    return any(column.is_nullable for column in table.columns if column.name in columns)


def is_unique(table: SourceTable, columns: Collection[str]) -> bool:
    """True when no two rows can have the same values in these columns."""
    keys = [
        table.primary_key,
        *(index.columns for index in table.indexes if is_plainly_unique(index)),
    ]
    return any(key and set(key) <= set(columns) for key in keys)


def is_plainly_unique(index: SourceIndex) -> bool:
    """True for a unique index without conditions and expressions."""
    return index.is_unique and index.where is None and not index.expressions


def is_date_of_change(column: SourceColumn) -> bool:
    return column.kind in ("datetime", "date") and bool(CHANGE_WORDS & set(words(column.name)))


def eav_attribute(table: SourceTable) -> str | None:
    """Returns the attribute's column, if the rows are attributes of something else (EAV)."""
    columns = [column for column in table.columns if not is_date_of_change(column)]
    values = [column.name for column in columns if VALUE_WORDS & set(words(column.name))]
    attributes = [
        column.name
        for column in columns
        if column.name not in values and _names_attribute(column.name)
    ]
    if len(columns) - len(values) > EAV_COLUMNS_MAX or not values or len(attributes) != 1:
        return None
    (attribute,) = attributes
    entities = [key.columns for key in table.foreign_keys if attribute not in key.columns]
    entities += [
        [column.name]
        for column in columns
        if column.name != attribute
        and words(column.name)[-1:] == ["id"]
        and [column.name] != table.primary_key
    ]
    return attribute if entities else None


def _names_attribute(name: str) -> bool:
    return name.lower() in ATTRIBUTE_NAMES or bool(ATTRIBUTE_WORDS & set(words(name)))


def _pairs_within(
    keys: list[ForeignKey], columns: list[str]
) -> list[tuple[ForeignKey, ForeignKey]]:
    inside = [key for key in keys if set(key.columns) <= set(columns)]
    return [pair for pair in combinations(inside, 2) if _are_apart(*pair)]


def _are_apart(first: ForeignKey, second: ForeignKey) -> bool:
    return not set(first.columns) & set(second.columns)


def _payload(table: SourceTable) -> list[SourceColumn]:
    """Returns the columns beside keys and dates of change."""
    keys = {name for key in table.foreign_keys for name in key.columns} | set(table.primary_key)
    return [
        column
        for column in table.columns
        if column.name not in keys and not is_date_of_change(column)
    ]


def _is_closure(table: SourceTable, first: ForeignKey, second: ForeignKey) -> bool:
    """True for a table with each ancestor, each descendant, and the distance between them."""
    if first.referenced_table != second.referenced_table:
        return False
    ends = {word for name in (*first.columns, *second.columns) for word in words(name)}
    depth = {word for column in _payload(table) for word in words(column.name)}
    return bool(ends & ANCESTOR_WORDS or depth & DEPTH_WORDS)
