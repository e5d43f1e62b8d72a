"""Builds the key conditions that lead to the rows of a query."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.requests.item_locations import (
    DesignedSource,
    ItemLocation,
    NotServed,
)
from partita_migrate.designing.requests.key_segments import KeyField, KeySegments, segments
from partita_migrate.designing.requests.request_conditions import RequestConditions
from partita_migrate.model.design import LATEST, AccessCondition, Comparison, ItemAttribute
from partita_migrate.model.items.row_conditions import RowCondition, parse_condition
from partita_migrate.model.keys.date_buckets import BUCKET, BUCKETS, bucket_count
from partita_migrate.model.keys.key_formats import is_order_preserving, plain_text
from partita_migrate.model.keys.key_templates import (
    AFTER_SEPARATOR,
    PATH,
    ROOT,
    SHARD,
    escaped,
)
from partita_migrate.understanding.schema.collations import FOLDINGS, HIGH, CollationFolding
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.text_folds import FORMS, is_fold, value_format
from partita_migrate.understanding.statements.literal_values import sorts_otherwise
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    Parameter,
    ResolvedQuery,
    Value,
)


class KeyConditions(RequestConditions):
    """Takes the tests that key conditions can make from the tests that are left."""

    def __init__(self, planner: DesignedSource, query: ResolvedQuery, home: ItemLocation) -> None:
        super().__init__(planner, query, home)
        self.requests = 1
        self.buckets = 1
        self.each: list[str] = []
        """What separate requests are sent for, such as "shard" or the values of an IN."""
        keys = [self.entity.attribute(name) for name in home.keys]
        if any(key is None for key in keys):
            raise NotServed(f"no key leads to {self.entity.name} in {home.name}")
        self.keys = [key for key in keys if key is not None]

    def _test_of(self, attribute: ItemAttribute, field: KeyField) -> ColumnTest | None:
        """Returns the equality test for a field, if the key's format treats the same values as
        equal."""
        if field.format in (PATH, ROOT):
            return None
        if field.ref.table != self.entity.source and not self._is_followed(attribute):
            return None
        same = self.query.same(field.ref)
        form = field.format if field.format in FORMS else ""
        fits = (test for test in self.left if test.is_equality and test.form == form)
        test = next((fit for fit in fits if fit.ref in same), None)
        if form:
            return test
        if test is None or field.format == (fold := self.planner.fold(field.ref)):
            return test
        # Folded and unfolded texts differ in what they treat as equal; other kinds have only one
        # form.
        is_text = fold or self.planner.fold(test.ref)
        return None if is_text else test

    def _partition(self) -> AccessCondition:
        attribute = self.keys[0]
        self._meet_condition(attribute)
        parts = segments(self.entity, attribute)
        text = parts.texts[0]
        for field, after in zip(parts.fields, parts.texts[1:], strict=True):
            if field.name == SHARD:
                text += field.written() + after
                self.requests *= attribute.shards
                self.each.append("shard")
                continue
            test = self._test_of(attribute, field)
            if test is None and field.format in BUCKETS and attribute.first:
                text += field.written(BUCKET) + after
                self.buckets = bucket_count(field.format, attribute.first, attribute.last)
                continue
            if test is None:
                raise NotServed(f"no key leads from the given values to the items of"
                                f" {self.entity.name} in {self.home.name}")  # fmt: skip
            text += self._given(field, test, parts) + after
            self._consume(test)
        return AccessCondition(attribute=attribute.name, value=text)

    def _meet_condition(self, attribute: ItemAttribute) -> None:
        """Takes out the test that an index of some rows makes by itself. Refuses the index if the
        query does not ask for those rows only."""
        if attribute.when == LATEST:
            raise NotServed(f"{self.home.name} has only the latest rows")
        condition = parse_condition(attribute.when)
        if condition is None:
            return
        ref = ColumnRef(self.entity.source, condition.column)
        for test in self.left:
            if test.ref == ref and self._says(test, condition):
                self.left.remove(test)
                return
        raise NotServed(f"{self.home.name} has only rows with {attribute.when}")

    def _says(self, test: ColumnTest, condition: RowCondition) -> bool:
        if condition.test != "=":
            return test.operator == condition.test
        if not test.is_fixing or not isinstance(test.values[0], Constant):
            return False
        return condition.is_value(self._converted(test.ref, test.values[0]))

    def _consume(self, test: ColumnTest) -> None:
        self.left.remove(test)
        self.requests *= len(test.values)
        if len(test.values) > 1:
            listed = ", ".join(_shown(test, value) for value in test.values)
            self.each.append(f"value of {test.ref.column} ({listed})")

    def _given(self, field: KeyField, test: ColumnTest, parts: KeySegments) -> str:
        """Returns a test's value inside a key. Several values need a request each."""
        (value, *others) = test.values
        if others or isinstance(value, Parameter):
            shown = replace(field, format=value_format(test.form)) if test.form else field
            return shown.written(test.first_suffix)
        shape = value_format(test.form) if test.form else field.format
        return self._literal(test.ref, value, shape, is_plain=parts.is_plain)

    def _sort(self) -> tuple[list[AccessCondition], list[KeyField]]:
        """Returns the condition on the sort key, and the fields by which the items are then
        sorted."""
        if len(self.keys) < 2:
            return [], []
        attribute = self.keys[1]
        parts = segments(self.entity, attribute)
        text = parts.texts[0]
        for position, field in enumerate(parts.fields):
            test = self._test_of(attribute, field)
            if test is None:
                following = list(parts.fields[position:])
                is_last = position == len(parts.fields) - 1 and not parts.texts[-1]
                condition = self._range(attribute, parts, text, field, is_last)
                if condition is None and text:
                    condition = AccessCondition(
                        attribute=attribute.name, comparison="begins_with", value=text
                    )
                return ([condition] if condition is not None else []), following
            text += self._given(field, test, parts) + parts.texts[position + 1]
            self._consume(test)
        return [AccessCondition(attribute=attribute.name, value=text)], []

    def _range(
        self,
        attribute: ItemAttribute,
        parts: KeySegments,
        lead: str,
        field: KeyField,
        is_last: bool,
    ) -> AccessCondition | None:
        """Turns range tests into a condition, as far as the key's texts sort as the source does."""
        if not self._keeps_order(attribute, parts, field):
            return None
        if field.ref.table != self.entity.source and not self._is_followed(attribute):
            return None
        same = self.query.same(field.ref)
        tests = [test for test in self.left if test.ref in same]
        for test in tests:
            if test.operator == "begins_with":
                return self._beginning(attribute, parts, lead, field, test)
        low = next((test for test in tests if test.operator in (">", ">=", "between")), None)
        high = next((test for test in tests if test.operator in ("<", "<=", "between")), None)
        if low is None and high is None:
            return None
        if parts.is_plain:
            return self._plain_range(attribute, field, low, high)
        # BETWEEN includes both ends. Where more fields follow in the key, AFTER_SEPARATOR sorts
        # right after all keys that begin with the limit: added to the lower end it excludes them,
        # to the upper end it includes them.
        first = f"{lead}{self._bound(field, low, 0)}" if low is not None else lead
        if low is not None and low.operator == ">":
            first += AFTER_SEPARATOR if not is_last else ""
        last = f"{lead}{self._bound(field, high, -1)}" if high is not None else f"{lead}{HIGH}"
        if high is not None and high.operator in ("<=", "between") and not is_last:
            last += AFTER_SEPARATOR
        # In the last field, > and < are not exact, because BETWEEN includes the limits: the
        # application repeats these tests.
        self._drop_ranges(low, high, is_exact=not is_last)
        if low is None:
            # Without a lower limit the range begins with the keys of NULLs, which no comparison
            # matches.
            self._leave_out_nulls(field.ref)
        comparison: Comparison = "between"
        value = f"{first} and {last}"
        if not first:
            comparison, value = "<=", last
        elif not lead and high is None:
            comparison, value = ">=", first
        return AccessCondition(attribute=attribute.name, comparison=comparison, value=value)

    def _leave_out_nulls(self, ref: ColumnRef) -> None:
        """Filters out NULLs, which sort before all values in a key but pass no comparison."""
        column = self.planner.column(ref)
        if column is not None and column.is_nullable:
            self._add_condition(self._held(ref), "exists", "")

    def _plain_range(
        self,
        attribute: ItemAttribute,
        field: KeyField,
        low: ColumnTest | None,
        high: ColumnTest | None,
    ) -> AccessCondition:
        """Returns the condition on a sort key that is a column: one comparison, or both ends."""
        if low is not None and high is not None:
            self._drop_ranges(low, high, is_exact=False)
            return AccessCondition(
                attribute=attribute.name,
                comparison="between",
                value=" and ".join(
                    self._bound(field, test, place, is_plain=True)
                    for test, place in ((low, 0), (high, -1))
                ),
            )
        test = low or high
        assert test is not None
        self.left.remove(test)
        comparison: Comparison = test.operator  # type: ignore[assignment]
        return AccessCondition(
            attribute=attribute.name,
            comparison=comparison,
            value=self._bound(field, test, 0, is_plain=True),
        )

    def _drop_ranges(
        self, low: ColumnTest | None, high: ColumnTest | None, *, is_exact: bool
    ) -> None:
        """Removes the tests that the range makes. An exclusive end that the range includes is
        tested again by the application."""
        for test in dict.fromkeys(end for end in (low, high) if end is not None):
            self.left.remove(test)
            if test.operator in ("<", ">") and not is_exact:
                self._test_by_application(test)

    def _bound(
        self, field: KeyField, test: ColumnTest, position: int, *, is_plain: bool = False
    ) -> str:
        value = test.values[position]
        if isinstance(value, Constant):
            return self._literal(test.ref, value, field.format, is_plain=is_plain)
        return field.written(test.suffix(value))

    def _beginning(
        self,
        attribute: ItemAttribute,
        parts: KeySegments,
        lead: str,
        field: KeyField,
        test: ColumnTest,
    ) -> AccessCondition | None:
        (value,) = test.values
        if not isinstance(value, Constant) or str(value.value).endswith(" "):
            return None
        folding = FOLDINGS.get(field.format)
        if folding is not None:
            return self._folded_beginning(attribute, lead, test, value, folding)
        self.left.remove(test)
        text = self._literal(test.ref, value, field.format, is_plain=parts.is_plain)
        return AccessCondition(
            attribute=attribute.name, comparison="begins_with", value=lead + text
        )

    def _folded_beginning(
        self,
        attribute: ItemAttribute,
        lead: str,
        test: ColumnTest,
        value: Constant,
        folding: CollationFolding,
    ) -> AccessCondition | None:
        """Returns the range for a LIKE. LIKE compares character by character and a collation key by
        letters, so the range has a few rows too many, which the application tests again."""
        ends = folding.ends_of_beginning(plain_text(self._converted(test.ref, value)))
        if ends is None:
            return None
        self.left.remove(test)
        self._test_by_application(test)
        first, last = (lead + escaped(end) for end in ends)
        return AccessCondition(
            attribute=attribute.name, comparison="between", value=f"{first} and {last}"
        )

    def _keeps_order(self, attribute: ItemAttribute, parts: KeySegments, field: KeyField) -> bool:
        """True when items come in the order in which the source sorts the field's values."""
        column = self.planner.column(field.ref)
        if (
            column is None
            or sorts_otherwise(column)
            or self._has_own_order(column)
            or column.kind in ("enum", "set", "json", "array", "boolean", "time")
        ):
            return False
        fold = self.planner.fold(field.ref)
        if parts.is_plain:
            return not fold and attribute.type in ("S", "N", "B")
        if fold or is_fold(field.format):
            return field.format == fold
        kind = "N" if column.kind in ("integer", "decimal", "float") else "S"
        return is_order_preserving(field.format, kind)


def _shown(test: ColumnTest, value: Value) -> str:
    """Returns the statement's literal, or the name of a parameter."""
    if isinstance(value, Constant):
        return str(value.value)
    return f"{{{test.ref.column}{test.suffix(value)}}}"
