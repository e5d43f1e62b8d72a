"""Row counts and sizes of tables and items: measured by `analyze`, or stated in `[expect]`."""

from __future__ import annotations

import math
from copy import copy

from msgspec import Struct

from partita.errors import PartitaError
from partita.foundation.service_limits import KB
from partita_migrate.model.design import (
    LATEST,
    Entity,
    ItemAttribute,
    SecondaryIndex,
    TableDesign,
    columns_of,
)
from partita_migrate.model.items.row_conditions import RowCondition, parse_condition
from partita_migrate.model.keys.key_templates import PATH, SHARD, template_fields, template_text
from partita_migrate.understanding.analysis import Analysis, ColumnFigures, KeySkew, read_analysis
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join, qualified
from partita_migrate.understanding.schema.inventory import ColumnKind, Inventory, read_inventory
from partita_migrate.workspace.migration_folder import Folder

TYPICAL_BYTES: dict[ColumnKind, int] = {
    "string": 24,
    "integer": 4,
    "decimal": 5,
    "float": 9,
    "boolean": 1,
    "date": 10,
    "time": 8,
    "datetime": 19,
    "binary": 100,
    "json": 200,
    "enum": 8,
    "set": 16,
    "uuid": 36,
    "array": 50,
    "geometry": 50,
    "other": 24,
}
"""Assumed sizes of values that were not measured."""

EPOCH_BYTES = 6
SHARD_BYTES = 2
CONTAINER_BYTES = 3
TREE_LEVELS = 4
"""Assumed depth of a tree, for keys that hold its path."""
PADDED_DIGITS = 8
"""The minimum. The padding is at least two digits longer than the greatest value, so that it can
grow."""


class Expectation(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The section `[expect.TABLE]`: the future size of a table, in place of its size today."""

    rows: float | None = None
    item_kb: float | None = None
    """The size of the whole item at the 95th percentile, including everything that a design copies
    into it."""


class Volumes:
    """The row counts and sizes of a source, and of the items that its rows would become."""

    def __init__(
        self,
        inventory: Inventory,
        analysis: Analysis | None = None,
        expect: dict[str, Expectation] | None = None,
    ) -> None:
        self.inventory = inventory
        self.analysis = analysis or Analysis(tables=[])
        self.expect = expect or {}
        self._tables = {table.name: table for table in inventory.tables}
        self._kinds = {
            ColumnRef(table.name, column.name): column.kind
            for table in inventory.tables
            for column in table.columns
        }
        self._measured = {table.table: table for table in self.analysis.tables}
        self._figures = {
            ColumnRef(table.table, column.name): column
            for table in self.analysis.tables
            if table.sampled
            for column in table.columns
        }
        # Reversed, so that the first of several equal column sets is the one that stays.
        self._skews = {
            (table.table, frozenset(key.columns)): key
            for table in reversed(self.analysis.tables)
            for key in reversed(table.keys)
        }
        self._sizes: dict[int, tuple[Entity, float]] = {}
        """By the entity's id; the entry keeps the entity alive, so that the id is not used
        again."""
        self._rows_times: dict[str, float] = {}
        self._bytes_times: dict[str, float] = {}

    def scaled(self, table: str, *, rows: float = 1, size: float = 1) -> Volumes:
        """Returns a copy with more rows in one table, or with larger items made from it."""
        other = copy(self)
        other._rows_times = {**self._rows_times, table: rows}
        other._bytes_times = {**self._bytes_times, table: size}
        return other

    def rows(self, table: str) -> float:
        return self._rows(table) * self._rows_times.get(table, 1)

    def _rows(self, table: str) -> float:
        expected = self.expect.get(table)
        if expected is not None and expected.rows is not None:
            return expected.rows
        measured = self._measured.get(table)
        if measured is not None:
            return measured.rows
        table_found = self._tables.get(table)
        return table_found.row_count if table_found else 0

    def row_bytes(self, table: str) -> float:
        """Returns the size of a row as an item, at the 95th percentile."""
        measured = self._measured.get(table)
        if measured is not None and measured.sampled:
            return measured.item_bytes.p95
        table_found = self._tables.get(table)
        return sum(
            len(column.name.encode()) + self.value_bytes(ColumnRef(table, column.name))
            for column in (table_found.columns if table_found else [])
        )

    def value_bytes(self, ref: ColumnRef) -> float:
        """Returns the average size of a column's value, counting NULL as 0 bytes."""
        measured = self.column(ref)
        if measured is not None:
            return measured.bytes_mean * (1 - measured.null_share)
        return TYPICAL_BYTES[self.kind(ref)]

    def kind(self, ref: ColumnRef) -> ColumnKind:
        return self._kinds.get(ref, "other")

    def column(self, ref: ColumnRef) -> ColumnFigures | None:
        return self._figures.get(ref)

    def null_share(self, ref: ColumnRef) -> float:
        measured = self.column(ref)
        return measured.null_share if measured else 0.0

    def skew(self, table: str, columns: list[str]) -> KeySkew | None:
        return self._skews.get((table, frozenset(columns)))

    def rows_per_value(self, table: str, columns: list[str], parent: str | None = None) -> float:
        """Returns how many rows share a value.

        If that was not measured, the rows are divided evenly among the rows of `parent`.
        """
        skew = self.skew(table, columns)
        if skew is not None:
            return skew.rows_per_value
        parents = self.rows(parent) if parent else 0
        return self.rows(table) / parents if parents else 1.0

    def padding(self, ref: ColumnRef) -> int:
        """Returns the number of digits to pad a number to, so that its text sorts as the number
        does."""
        measured = self.column(ref)
        try:
            digits = len(str(abs(math.trunc(float(measured.most or ""))))) if measured else 0
        except (ValueError, OverflowError):
            digits = 0
        return max(PADDED_DIGITS, digits + 2)

    # Items.

    def items(self, entity: Entity) -> float:
        rows = self.rows(entity.source)
        if entity.rows == "each":
            return rows
        return self.latest_rows(entity)

    def latest_rows(self, entity: Entity) -> float:
        rows = self.rows(entity.source)
        skew = self.skew(entity.source, [ColumnRef.parse(name).column for name in entity.per])
        return skew.distinct * self._rows_times.get(entity.source, 1) if skew and rows else rows

    def item_bytes(self, entity: Entity) -> float:
        """Returns an item's size at the 95th percentile: its row, with what the design adds and
        leaves out."""
        kept = self._sizes.get(id(entity))
        if kept is None:
            kept = self._sizes[id(entity)] = (entity, self._item_bytes(entity))
        return kept[1] * self._bytes_times.get(entity.source, 1)

    def _item_bytes(self, entity: Entity) -> float:
        if entity.is_guard:
            return sum(self.attribute_bytes(entity, attribute) for attribute in entity.attributes)
        expected = self.expect.get(entity.source)
        if expected is not None and expected.item_kb is not None:
            return expected.item_kb * KB
        own: set[str] = set()
        added = 0.0
        for attribute in entity.attributes:
            column = ColumnRef.parse(attribute.column or "")
            if column.table == entity.source and column.column not in own:
                own.add(column.column)
                added += len(attribute.name.encode()) - len(column.column.encode())
            else:
                added += self.attribute_bytes(entity, attribute)
        table = self._tables.get(entity.source)
        absent = sum(
            len(column.name.encode()) + self.value_bytes(ColumnRef(entity.source, column.name))
            for column in (table.columns if table else [])
            if column.name not in own
        )
        return max(self.row_bytes(entity.source) - absent + added, 1.0)

    def attribute_bytes(self, entity: Entity, attribute: ItemAttribute) -> float:
        name = len(attribute.name.encode())
        if attribute.constant is not None:
            return name + len(attribute.constant.encode())
        if attribute.template is not None:
            return name + self._template_bytes(entity, attribute.template)
        if attribute.expires is not None:
            return name + EPOCH_BYTES
        values = sum(self.value_bytes(ref) for ref in columns_of(entity, attribute))
        if not attribute.collect:
            return name + values
        if attribute.type == "L":
            names = sum(
                len(ColumnRef.parse(column).column.encode()) + 1 for column in attribute.collect
            )
            values += names + CONTAINER_BYTES + 1
        return name + CONTAINER_BYTES + values * self.members(attribute)

    def members(self, attribute: ItemAttribute) -> float:
        """Returns how many rows an attribute collects on average: the product over its foreign
        keys."""
        count = 1.0
        for text in attribute.through:
            join = parse_join(text)
            table = self._tables.get(join.after[0].table) if join else None
            if join is None or table is None:
                continue
            columns = [ref.column for ref in join.after]
            if set(columns) != set(table.primary_key):
                count *= self.rows_per_value(table.name, columns, join.before[0].table)
        return count

    def _template_bytes(self, entity: Entity, template: str) -> float:
        size = float(len(template_text(template).encode()))
        for part in template_fields(template):
            if part.name == SHARD:
                size += SHARD_BYTES
            elif part.format.startswith("0"):
                size += int(part.format)
            else:
                ref = qualified(entity.source, part.name)
                is_number = self.kind(ref) in ("integer", "decimal")
                # A number takes half a byte per digit as type N, and a whole byte as text.
                text = self.value_bytes(ref) * 2 if is_number else self.value_bytes(ref)
                size += (text + 1) * TREE_LEVELS if part.format == PATH else text
        return size

    def index_bytes(self, table: TableDesign, index: SecondaryIndex, entity: Entity) -> float:
        """Returns the size of an item in an index: all of it, or the projected attributes."""
        if index.projection == "ALL":
            return self.item_bytes(entity)
        names = {key.name for key in [*table.keys, *index.keys]} | set(index.include)
        present = [attribute for attribute in entity.attributes if attribute.name in names]
        size = sum(self.attribute_bytes(entity, attribute) for attribute in present)
        return size * self._bytes_times.get(entity.source, 1)

    def index_share(self, index: SecondaryIndex, entity: Entity) -> float:
        """Returns the share of an entity's items that are in an index, which have all its key
        attributes."""
        share = 1.0
        for key in index.keys:
            attribute = entity.attribute(key.name)
            if attribute is None:
                return 0.0
            share *= 1 - self.absent_share(entity, attribute)
        return share

    def absent_share(self, entity: Entity, attribute: ItemAttribute) -> float:
        """Returns the share of an entity's rows that lack an attribute: its columns are all NULL,
        or its condition does not hold."""
        if attribute.when == LATEST:
            return 1 - self.latest_rows(entity) / max(self.rows(entity.source), 1)
        condition = parse_condition(attribute.when)
        if condition is not None:
            return 1 - self.condition_share(entity.source, condition)
        nulls = [self.null_share(ref) for ref in columns_of(entity, attribute)]
        return min(nulls, default=0.0)

    def condition_share(self, table: str, condition: RowCondition) -> float:
        """Returns the share of a table's rows that meet a condition.

        A value that was not counted by itself is assumed to be as frequent as the average value.
        """
        nulls = self.null_share(ColumnRef(table, condition.column))
        if condition.test != "=":
            return nulls if condition.test == "is null" else 1 - nulls
        skew = self.skew(table, [condition.column])
        if skew is None or not skew.distinct:
            return 1 - nulls
        if skew.top_value is not None and condition.is_value({"S": skew.top_value}):
            return skew.top_share * (1 - nulls)
        return (1 - nulls) / skew.distinct


def read_volumes(folder: Folder) -> Volumes:
    inventory = read_inventory(folder)
    analysis = read_analysis(folder)
    expect = folder.section("expect", dict[str, Expectation])
    for name in expect:
        if inventory.table(name) is None:
            raise PartitaError(
                f"{folder.path / 'migration.toml'}, [expect.{name}] is for a table that the"
                " source does not have."
            )
    return Volumes(inventory, analysis, expect)
