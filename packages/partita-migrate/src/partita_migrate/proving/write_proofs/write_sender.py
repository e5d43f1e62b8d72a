"""Sends what an application sends for a write: the items of changed rows, all or nothing.

The items are made by the same function as in every other stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.designing.requests.write_planner import written_with
from partita_migrate.model.design import READS, Entity, PatternAccess
from partita_migrate.proving.parameter_sets.parameter_draw import ParameterSet
from partita_migrate.proving.read_proofs.answer_rows import RequestNotPossible
from partita_migrate.proving.write_proofs.row_finder import passed_column
from partita_migrate.proving.write_proofs.write_sides import Key, WriteSides, key_text
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.sources.value_mapping import attribute_value
from partita_migrate.understanding.statements.literal_values import literal_value
from partita_migrate.understanding.statements.resolved_statements import (
    Constant,
    Insertion,
    Modification,
    Parameter,
    Value,
)

TRANSACTION_ITEMS = 100


class WriteSender:
    """Sends the application's requests for a write."""

    def __init__(self, sides: WriteSides, reads: ReadPlanner) -> None:
        self.sides = sides
        self.reads = reads
        self.design = sides.design
        self.inventory = sides.inventory
        self.staging = sides.staging
        self.maker = sides.maker

    def written(self, accesses: Sequence[PatternAccess]) -> set[str]:
        """Returns the types of items that the model's requests write."""
        writes = [access for access in accesses if access.request not in (*READS, "TTL", "none")]
        beside = (
            entity.name for access in writes for _, entity in written_with(self.design, access)
        )
        return {*(access.entity for access in writes), *beside}

    def strange_keys(
        self, accesses: Sequence[PatternAccess], source: str, rows: Sequence[Item]
    ) -> list[str]:
        """Returns what is wrong with a request that names a key which none of the row's items
        has."""
        for access in accesses:
            home = self.design.table(access.table)
            entity = home.entity(access.entity) if home is not None else None
            is_write = access.request not in (*READS, "TTL", "none")
            if home is None or entity is None or not is_write or entity.source != source:
                continue
            for row in rows:
                item = self.maker.item(entity, row)
                named = self._named_key(access, entity, row)
                if item is not None and any(item.get(name) != key for name, key in named.items()):
                    return [
                        "the request names another item than the row's",
                        f"named: {named}",
                        f"the row's: {key_text(home, item)}",
                    ]
        return []

    def _named_key(self, access: PatternAccess, entity: Entity, row: Item) -> Item:
        made = {}
        for condition in access.key:
            attribute = entity.attribute(condition.attribute)
            if attribute is None:
                raise RequestNotPossible(f"{entity.name} has no attribute {condition.attribute!r}")
            is_plain = attribute.template is None and attribute.constant is None
            column = passed_column(attribute, condition.value) if is_plain else None
            key_attribute = replace(
                attribute,
                column=str(ColumnRef(entity.source, column)) if column else None,
                constant=None,
                template=None if is_plain else condition.value,
            )
            value = self.maker.value(entity, key_attribute, row)
            made[condition.attribute] = value if value is not None else {"S": condition.value}
        return made

    def modify(
        self,
        statement: Modification,
        parameter_set: ParameterSet,
        rows: list[Item],
        dependents: list[tuple[str, Item]],
        written: set[str],
    ) -> None:
        changed = [self._changed(statement, row, parameter_set) for row in rows]
        self.write(rows, changed, statement.table, written)
        for source, row in dependents:
            table = self.inventory.table(source)
            key = table.primary_key if table is not None and table.primary_key else list(row)
            after = self.staging.matching(source, key, [row[name] for name in key])
            names = {parameter_set.name for _, parameter_set in self.sides.entities(source)}
            self.write([row], list(after), source, names, is_copy=True)

    def _changed(self, statement: Modification, row: Item, parameter_set: ParameterSet) -> Item:
        """Returns the changed row; empty for a deleted one."""
        if not statement.changes:
            return {}
        changed = dict(row)
        for change in statement.changes:
            value = self._value(change.ref, change.value, parameter_set)
            if change.sign:
                before = row.get(change.ref.column)
                is_float = self._is_float(change.ref)
                value = _sum(before, value, change.sign, is_float=is_float)
            if value is None:
                changed.pop(change.ref.column, None)
            else:
                changed[change.ref.column] = value
        return changed

    def _is_float(self, ref: ColumnRef) -> bool:
        """True when the source counts in floating point, as SQLite does with every fraction."""
        column = self.reads.column(ref)
        is_whole = column is not None and column.kind == "integer"
        is_float = column is not None and column.kind == "float"
        return is_float or (self.inventory.dialect == "sqlite" and not is_whole)

    def row(self, statement: Insertion, parameter_set: ParameterSet) -> Item:
        row: Item = {}
        for ref, value in zip(statement.columns, statement.values, strict=True):
            cell = self._value(ref, value, parameter_set) if value is not None else None
            if cell is not None:
                row[ref.column] = cell
        return row

    def _value(
        self, ref: ColumnRef, value: Value, parameter_set: ParameterSet
    ) -> AttributeValue | None:
        if isinstance(value, Parameter):
            return parameter_set.values.get(value.name)
        assert isinstance(value, Constant)
        column = self.reads.column(ref)
        assert column is not None
        return literal_value(column, value.value, self.inventory.dialect)

    def write(
        self,
        before: list[Item],
        after: list[Item],
        source: str,
        written: set[str],
        *,
        is_copy: bool = False,
    ) -> None:
        """Writes what became of rows as puts and deletes, all or nothing.

        `written` has the types of items that are written.
        """
        gone: dict[Key, Item] = {}
        new: dict[Key, Item] = {}
        for row in before:
            gone |= self.sides.items(source, row, written)
        for row in after:
            if row:
                new |= self.sides.items(source, row, written)
        calls: list[dict[str, Any]] = []
        for key, item in gone.items():
            if key not in new:
                calls.append({"Delete": self._target(key, item)})
        for key, item in new.items():
            put: dict[str, Any] = {"TableName": f"{self.sides.prefix}{key[0]}", "Item": item}
            if key not in gone and not is_copy and not self._is_latest(key[0], item):
                put["ConditionExpression"] = "attribute_not_exists(#k)"
                put["ExpressionAttributeNames"] = {"#k": self.sides.home(key[0]).partition_key.name}
            calls.append({"Put": put})
        # All or nothing as far as DynamoDB allows it: a transaction has at most 100 items.
        for start in range(0, len(calls), TRANSACTION_ITEMS):
            self.sides.server.call(
                "TransactWriteItems", TransactItems=calls[start : start + TRANSACTION_ITEMS]
            )

    def _is_latest(self, table: str, item: Item) -> bool:
        """True for the item of the newest row, which each newer row replaces."""
        latest = [
            attribute for attribute in self.sides.home(table).entities if attribute.rows == "latest"
        ]
        return any(
            all(
                item.get(attribute.name) == {attribute.type: attribute.constant}
                for attribute in entity.attributes
                if attribute.constant is not None
            )
            for entity in latest
        )

    def _target(self, key: Key, item: Item) -> dict[str, Any]:
        home = self.sides.home(key[0])
        names = [key_attribute.name for key_attribute in home.keys]
        return {
            "TableName": f"{self.sides.prefix}{key[0]}",
            "Key": {name: item[name] for name in names},
        }


def _sum(
    before: AttributeValue | None, value: AttributeValue | None, sign: int, *, is_float: bool
) -> AttributeValue | None:
    if before is None or value is None or "N" not in before or "N" not in value:
        return None
    if is_float:
        return attribute_value("float", float(before["N"]) + sign * float(value["N"]))
    total = Decimal(before["N"]) + sign * Decimal(value["N"])
    return {"N": format(total.normalize(), "f") if total else "0"}
