"""Locations where items can be read (a table or an index), and the source's columns behind them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from partita_migrate.model.design import Design, Entity, ItemAttribute, SecondaryIndex, TableDesign
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn, SourceTable
from partita_migrate.understanding.statements.literal_values import fold_of


class NotServed(Exception):
    """Raised when no request of a design answers a query. Its text says why."""


@dataclass(frozen=True)
class ItemLocation:
    """A place to read the items of an entity: their table, or one of its indexes."""

    table: TableDesign
    index: SecondaryIndex | None
    entity: Entity

    @property
    def keys(self) -> list[str]:
        return [key.name for key in (self.index or self.table).keys]

    @property
    def name(self) -> str:
        return self.index.name if self.index else self.table.name

    def has(self, attribute: ItemAttribute) -> bool:
        """True when an item read here has the attribute, because the index projects it."""
        if self.index is None or self.index.projection == "ALL":
            return True
        always = {key.name for key in [*self.table.keys, *self.index.keys]}
        return attribute.name in always | set(self.index.include)


class DesignedSource:
    """A source database with a design of it."""

    def __init__(
        self, design: Design, inventory: Inventory, never_null: Collection[ColumnRef] = ()
    ) -> None:
        """`never_null` has columns that could be NULL by their type, but were not in any sampled
        row."""
        self.design = design
        self.inventory = inventory
        self.never_null = never_null
        self.columns = {
            ColumnRef(table.name, column.name): column
            for table in inventory.tables
            for column in table.columns
        }

    def is_unique(self, name: str, columns: set[str]) -> bool:
        table = self.inventory.table(name)
        if table is None:
            return False
        keys = [set(table.primary_key)] if table.primary_key else []
        keys += [
            set(index.columns)
            for index in table.indexes
            if index.is_unique and not index.where and not index.expressions and index.columns
        ]
        return any(key <= columns for key in keys)

    def table(self, name: str) -> SourceTable | None:
        return self.inventory.table(name)

    def column(self, ref: ColumnRef) -> SourceColumn | None:
        return self.columns.get(ref)

    def columns_of(self, name: str) -> list[SourceColumn]:
        table = self.inventory.table(name)
        return table.columns if table is not None else []

    def fold(self, ref: ColumnRef) -> str:
        column = self.column(ref)
        return fold_of(column, self.inventory.dialect) if column is not None else ""


def path_pairs(entity: Entity, table: str) -> dict[str, tuple[tuple[ColumnRef, ColumnRef], ...]]:
    """Returns the joins by which an entity's items hold a table's columns, by the table they lead
    to."""
    for attribute in entity.attributes:
        if (
            attribute.column
            and ColumnRef.parse(attribute.column).table == table
            and attribute.through
        ):
            joins = [parse_join(text) for text in attribute.through]
            return {
                join.after[0].table: tuple(zip(join.before, join.after, strict=True))
                for join in joins
                if join is not None
            }
    return {}


def own_attributes(entity: Entity) -> dict[ColumnRef, str]:
    """Returns the attributes that hold columns of the entity's own rows, by column."""
    attributes: dict[ColumnRef, str] = {}
    for attribute in entity.attributes:
        ref = ColumnRef.parse(attribute.column or "")
        if ref.table == entity.source and not attribute.through:
            attributes[ref] = attribute.name
    return attributes
