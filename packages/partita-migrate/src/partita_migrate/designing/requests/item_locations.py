"""Where the items of a design are read, and what is known of the columns that they come from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from partita_migrate.model.design import Design, Entity, ItemAttribute, SecondaryIndex, TableDesign
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn, SourceTable
from partita_migrate.understanding.statements.literal_values import fold_of


class NotServed(Exception):
    """No request of a design answers; the text says why."""


@dataclass(frozen=True)
class ItemLocation:
    """Where the items of an entity are read: a table, or one of its indexes."""

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
        """Whether an attribute comes along."""
        if self.index is None or self.index.projection == "ALL":
            return True
        always = {key.name for key in [*self.table.keys, *self.index.keys]}
        return attribute.name in always | set(self.index.include)


class DesignedSource:
    """A source and a design of it."""

    def __init__(
        self, design: Design, inventory: Inventory, never_null: Collection[ColumnRef] = ()
    ) -> None:
        """`never_null`: columns that may be NULL by their type, and are not in any sampled row."""
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
    """The joins by which an entity's items hold a table's columns, by the table they lead to."""
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
    """By column of an entity's own rows, the attribute that holds it."""
    found: dict[ColumnRef, str] = {}
    for attribute in entity.attributes:
        ref = ColumnRef.parse(attribute.column or "")
        if ref.table == entity.source and not attribute.through:
            found[ref] = attribute.name
    return found
