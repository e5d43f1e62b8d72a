"""Turns tests of a query into conditions on keys, filter conditions, or tests in the
application."""

from __future__ import annotations

from partita.database.item.attribute_values import AttributeValue
from partita_migrate.designing.requests.item_columns import ItemColumns
from partita_migrate.designing.requests.item_locations import (
    DesignedSource,
    ItemLocation,
    NotServed,
)
from partita_migrate.designing.requests.key_segments import KeyField, segments
from partita_migrate.model.design import AccessCondition, Comparison, ItemAttribute
from partita_migrate.model.keys.key_formats import NotEncodable, field_text
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceColumn
from partita_migrate.understanding.statements.literal_values import literal_value, sorts_otherwise
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    ResolvedQuery,
    Value,
)

_DECLARED = ("enum", "set", "json", "array")
"""Kinds whose values do not sort as their texts."""


class RequestConditions(ItemColumns):
    """The conditions so far, and the tests that are still left."""

    def __init__(self, planner: DesignedSource, query: ResolvedQuery, home: ItemLocation) -> None:
        super().__init__(planner, query, home)
        self.left = list(query.tests)
        self.filters: list[AccessCondition] = []
        self.tested: list[AccessCondition] = []

    def _literal(self, ref: ColumnRef, value: Value, shape: str, *, is_plain: bool) -> str:
        assert isinstance(value, Constant)
        converted = self._converted(ref, value)
        if is_plain:
            return str(next(iter(converted.values())))
        try:
            text = field_text(shape, converted)
        except NotEncodable as error:
            raise NotServed(str(error).rstrip(".")) from error
        if "{" in text or "}" in text:
            raise NotServed(f"{ref} is compared with a text that a model file cannot hold")
        return text

    def _converted(self, ref: ColumnRef, value: Constant) -> AttributeValue:
        column = self.planner.column(ref)
        dialect = self.planner.inventory.dialect
        converted = literal_value(column, value.value, dialect) if column is not None else None
        if converted is None:
            raise NotServed(f"{ref} is compared with NULL, which is never true")
        text = str(next(iter(converted.values())))
        if any(mark in text for mark in ("{", "}", " and ", " or ")):
            raise NotServed(f"{ref} is compared with a text that a model file cannot hold")
        return converted

    def _refuse_collation(self, ref: ColumnRef) -> None:
        """Refuses a collation that sorts by a language's rules: keys and filters sort by bytes."""
        column = self.planner.column(ref)
        if column is not None and sorts_otherwise(column):
            raise NotServed(
                f"{ref} is sorted by the collation {column.collation}; keys are sorted by bytes"
            )

    def _refuse_declared_order(self, ref: ColumnRef) -> None:
        """Refuses an order that the type declares, as of an enumeration: texts do not sort like
        that."""
        column = self.planner.column(ref)
        if column is not None and self._has_own_order(column):
            raise NotServed(
                f"{ref} is sorted in the order that its type declares, and texts are not"
            )

    def _has_own_order(self, column: SourceColumn) -> bool:
        dialect = self.planner.inventory.dialect
        if column.kind == "other":
            return dialect == "postgresql"
        return column.kind in _DECLARED and dialect != "sqlite"

    def _add_condition(self, attribute: ItemAttribute, comparison: Comparison, value: str) -> None:
        condition = AccessCondition(attribute=attribute.name, comparison=comparison, value=value)
        if attribute.name in self.home.keys:
            if comparison == "not_exists":
                raise NotServed(f"{self.home.name} has only items with {attribute.name}")
            return
        if condition not in self.filters:
            self.filters.append(condition)

    def _test_by_application(self, test: ColumnTest) -> None:
        attribute = self._held(test.ref)
        self.tested.append(self._condition(attribute, test))

    def _condition(self, attribute: ItemAttribute, test: ColumnTest) -> AccessCondition:
        parts = segments(self.entity, attribute)
        field = parts.fields[0]
        texts = [self._operand(field, test, value) for value in test.values]
        comparison: Comparison = test.operator  # type: ignore[assignment]
        joint = " and " if test.operator == "between" else " or "
        return AccessCondition(
            attribute=attribute.name, comparison=comparison, value=joint.join(texts)
        )

    def _operand(self, field: KeyField, test: ColumnTest, value: Value) -> str:
        if isinstance(value, Constant):
            return self._literal(test.ref, value, "", is_plain=True)
        return field.written(test.suffix(value))
