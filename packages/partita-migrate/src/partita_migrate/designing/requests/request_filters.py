"""Adds filters for what a range of keys has too much: items of other types, and rows that tests
leave out. Refuses ranges that lack rows of the answer."""

from __future__ import annotations

from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.key_conditions import KeyConditions
from partita_migrate.designing.requests.key_segments import may_be_equal, may_begin_with, segments
from partita_migrate.model.design import (
    AccessCondition,
    Comparison,
    Entity,
    ItemAttribute,
    columns_of,
    type_attribute,
)
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join
from partita_migrate.understanding.schema.text_folds import function_of
from partita_migrate.understanding.statements.resolved_statements import ColumnTest

SCALARS = ("S", "N", "B", "BOOL")
_FILTERS: dict[str, Comparison] = {"is null": "not_exists", "is not null": "exists"}


class RequestFilters(KeyConditions):
    """Tests that no key condition makes."""

    def _keep_types_apart(self, conditions: list[AccessCondition]) -> None:
        """Filters out items of other types in the same range, by their entity type."""
        meets = self.types_met(conditions)
        if not meets:
            return
        name = type_attribute(self.home.table)
        type_name = self.entity.attribute(name) if name else None
        if type_name is None or not self.home.has(type_name):
            raise NotServed(
                f"items of {meets[0]} lie among those of {self.entity.name} in {self.home.name},"
                " and no attribute distinguishes them"
            )
        if type_name.name in self.home.keys:
            return
        self.filters.append(AccessCondition(attribute=type_name.name, value=self.entity.name))

    def types_met(self, conditions: list[AccessCondition]) -> list[str]:
        return [
            other.name
            for other in self.home.table.entities
            if other is not self.entity and (not conditions or self._may_meet(other, conditions))
        ]

    def _may_meet(self, other: Entity, conditions: list[AccessCondition]) -> bool:
        keys = [other.attribute(name) for name in self.home.keys]
        # An item without one of the keys is not in the index, so it cannot be read along.
        if any(key is None for key in keys):
            return False
        theirs = [segments(other, key) for key in keys if key is not None]
        if not may_be_equal(segments(self.entity, self.keys[0]), theirs[0]):
            return False
        for condition in conditions[1:]:
            ours = segments(self.entity, self.keys[1])
            if condition.comparison == "=":
                return may_be_equal(ours, theirs[1])
            if condition.comparison == "begins_with":
                return may_begin_with(theirs[1], condition.value)
            if condition.comparison == "between" and not ours.is_plain:
                return may_begin_with(theirs[1], ours.texts[0])
        return True

    def _refuse_absent_rows(self) -> None:
        """Refuses an index that lacks rows of the answer, because they have NULL in one of its
        keys."""
        implied = {
            ref
            for test in self.query.tests
            if test.operator != "is null"
            for ref in self.query.same(test.ref)
        }
        for key in self.keys:
            # A constant is in every item, so it leaves no row out.
            if key.constant is not None:
                continue
            refs = columns_of(self.entity, key)
            if not any(ref in implied or not self._may_be_null(key, ref) for ref in refs):
                raise NotServed(
                    f"rows without {' and '.join(ref.column for ref in refs)} are not in"
                    f" {self.home.name}"
                )

    def _may_be_null(self, key: ItemAttribute, ref: ColumnRef) -> bool:
        column = self.planner.column(ref)
        table = self.planner.table(ref.table)
        # SQLite allows NULL in a primary key. Such a row has no item, which `test` reports.
        is_key = table is not None and ref.column in table.primary_key
        if column is None or (column.is_nullable and not is_key):
            return True
        # A column of another row is missing when that row is missing, and an inner join drops that
        # case anyway.
        joins = [join for text in key.through if (join := parse_join(text)) is not None]
        if self._is_followed(key) and not any(
            self._is_outer(join.after[0].table) for join in joins
        ):
            return False
        return any(
            (own := self.planner.column(before)) is None or own.is_nullable
            for join in joins
            for before in join.before
        )

    def _add_joined_rows(self) -> None:
        """Adds a filter for rows that an inner join drops, because they refer to nothing."""
        implied = {
            ref
            for test in self.query.tests
            if test.operator != "is null"
            for ref in self.query.same(test.ref)
        }
        # A test on a column of the joined table already drops them: NULL passes no test.
        tested = {ref.table for ref in implied}
        for join in self.query.joins:
            if join.is_outer or join.table in tested:
                continue
            for left, right in join.pairs:
                own, other = (right, left) if left.table == join.table else (left, right)
                if left in implied or right in implied or self._is_always_joined(own, other):
                    continue
                attribute = self._existence(own, other)
                if attribute is None or not self.home.has(attribute):
                    raise NotServed(
                        f"rows whose {own} refers to no row of {other.table} are not in the answer,"
                        " and no attribute tells which rows these are"
                    )
                self._add_condition(attribute, "exists", "")

    def _is_always_joined(self, own: ColumnRef, other: ColumnRef) -> bool:
        column = self.planner.column(own)
        return column is not None and not column.is_nullable and self._is_enforced(own, other)

    def _existence(self, own: ColumnRef, other: ColumnRef) -> ItemAttribute | None:
        """Returns an attribute that exists only if the joined row does."""
        holder = self.holder(own) if self._is_enforced(own, other) else None
        if holder is not None:
            return holder
        for attribute in self.entity.attributes:
            ref = ColumnRef.parse(attribute.column or "")
            column = self.planner.column(ref)
            if ref.table == other.table and attribute.through and column is not None:
                if not column.is_nullable:
                    return attribute
        return None

    def _filter(self, test: ColumnTest) -> None:
        attribute = self.holder(test.ref)
        if attribute is None or not self.home.has(attribute):
            where = f"{self.home.name} does not project" if attribute else "no item holds"
            raise NotServed(f"{where} {test.ref.column}, which is tested")
        if test.form:
            raise NotServed(f"no key holds {function_of(test.form)}({test.ref.column})")
        if test.operator in _FILTERS:
            self._add_condition(attribute, _FILTERS[test.operator], "")
            return
        column = self.planner.column(test.ref)
        is_ordered = test.operator in ("<", "<=", ">", ">=", "between")
        if attribute.type not in SCALARS or column is None:
            raise NotServed(f"{test.ref} is not a single value, but is compared with one")
        if is_ordered:
            self._refuse_collation(test.ref)
        is_unordered = column.kind in ("enum", "boolean", "time") or self._has_own_order(column)
        if is_ordered and is_unordered:
            raise NotServed(f"{test.ref} is compared in an order that its values do not have")
        if test.operator == "contains":
            raise NotServed(f"the statement searches inside {test.ref}")
        # DynamoDB compares texts by bytes only, and refuses filters on key attributes of the table
        # or index.
        if self.planner.fold(test.ref) or attribute.name in self.home.keys:
            self._test_by_application(test)
            return
        self.filters.append(self._condition(attribute, test))
