"""Draws parameter sets from the data: usual values, and those that break designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.items.item_maker import order
from partita_migrate.proving.parameter_sets.collation_variants import variants
from partita_migrate.proving.parameter_sets.matching_rows import own_tests, passes
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.schema.collations import FOLDINGS
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn
from partita_migrate.understanding.schema.text_folds import FORMS
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    JoinedTable,
    Modification,
    Parameter,
    ResolvedQuery,
)

TYPICAL_ROWS = 4
SPREAD_ROWS = 200
LIMITS = (3, 1)
"""Values for a LIMIT that the caller passes."""


@dataclass(frozen=True)
class ParameterSet:
    """The values of one call; `case` says in words what is special about them."""

    case: str
    values: dict[str, AttributeValue | None]


class ParameterDraw:
    """Draws parameter sets for statements on one staged source."""

    def __init__(self, staging: StagedRows, inventory: Inventory) -> None:
        self.staging = staging
        self.inventory = inventory

    def sets(self, question: ResolvedQuery, finest: str) -> list[ParameterSet]:
        """Returns parameter sets, each with other values."""
        alternatives = question.alternatives
        question = _flatten(question)
        unique: dict[str, ParameterSet] = {}
        for parameter_set in self._sets(question, finest):
            unique.setdefault(
                repr(sorted(parameter_set.values.items(), key=lambda pair: pair[0])), parameter_set
            )
        return [*unique.values(), *_mix_alternatives(list(unique.values()), alternatives)]

    def usual(self, question: ResolvedQuery, finest: str, count: int) -> Iterator[ParameterSet]:
        """Yields values of rows from all over the data, as often as rows have them."""
        question = _flatten(question)
        for row in self.staging.spread(finest, count):
            chain = self._chain(question, finest, row)
            if chain is not None:
                yield self._of_chain(question, chain, "typical")

    def of_row(self, question: ResolvedQuery, finest: str, row: Item, case: str) -> ParameterSet:
        return self._of_chain(question, {finest: row}, case)

    def _sets(self, question: ResolvedQuery, finest: str) -> Iterator[ParameterSet]:
        parameters = [
            parameter_set
            for parameter_set in question.parameters()
            if parameter_set.ref is not None
        ]
        chains = [
            (case, chain)
            for case, row in self._rows(question, finest)
            if (chain := self._chain(question, finest, row)) is not None
        ]
        if not parameters:
            for number in LIMITS:
                yield ParameterSet("as it is", self._counts(question, number))
            return
        usual: ParameterSet | None = None
        for case, chain in chains:
            parameter_set = self._of_chain(question, chain, case)
            usual = usual or parameter_set
            yield parameter_set
            yield from self._ranges(question, chain, case, parameter_set)
        if usual is None:
            usual = ParameterSet(
                "no rows",
                {
                    parameter_set.name: self._made_up_value(parameter_set.ref)
                    for parameter_set in question.parameters()
                },
            )
            yield usual
        for parameter in parameters:
            yield from self._unusual_values(usual, parameter)
        if any(
            isinstance(parameter_set, Parameter)
            for parameter_set in (question.limit, question.offset)
        ):
            yield ParameterSet("a limit of 1", {**usual.values, **self._counts(question, 1)})

    # Rows to ask for.

    def _rows(
        self, question: ResolvedQuery | Modification, finest: str
    ) -> Iterator[tuple[str, Item]]:
        spread = self.staging.spread(finest, SPREAD_ROWS)
        own = own_tests(question.tests, finest)
        taken = (row for row in spread if own and passes(self.inventory, own, row))
        yield from (("passes its own conditions", row) for row in islice(taken, 1))
        step = max(len(spread) // TYPICAL_ROWS, 1)
        for row in spread[step // 2 :: step][:TYPICAL_ROWS]:
            yield "typical", row
        columns = tuple(
            sorted(
                {t.ref.column for t in question.tests if t.is_equality and t.ref.table == finest}
            )
        )
        if columns:
            skewed = self.staging.most_frequent(finest, columns)
            if skewed is not None:
                yield "most frequent", skewed
        if isinstance(question, ResolvedQuery):
            for sorting in question.order[:1]:
                with_value = [row for row in spread if sorting.ref.column in row]
                with_value.sort(key=lambda row: order(row[sorting.ref.column]))
                if with_value and sorting.ref.table == finest:
                    yield "first of the order", with_value[0]
                    yield "last of the order", with_value[-1]
        yield from self._confusable_rows(question, finest, spread)

    def _confusable_rows(
        self, question: ResolvedQuery | Modification, finest: str, spread: list[Item]
    ) -> Iterator[tuple[str, Item]]:
        """Yields rows with values that are easily confused."""
        for test in question.tests:
            if test.ref.table != finest:
                continue
            with_value = [row for row in spread if test.ref.column in row]
            texts = [
                row for row in with_value if not str(row[test.ref.column].get("S", "")).isascii()
            ]
            yield from (("not ASCII", row) for row in texts[:1])
            marks = [
                row for row in with_value if set("#% '&") & set(row[test.ref.column].get("S", ""))
            ]
            yield from (("with marks", row) for row in marks[:1])
            blanks = self.staging.ending_in_blanks(finest, test.ref.column)
            yield from (("with a blank at the end", row) for row in blanks[:1])
            numbers = [row for row in with_value if "N" in row[test.ref.column]]
            if numbers:
                size = [len(row[test.ref.column]["N"]) for row in numbers]
                yield "shortest number", numbers[size.index(min(size))]
                yield "longest number", numbers[size.index(max(size))]

    def _chain(self, question: ResolvedQuery, finest: str, row: Item) -> dict[str, Item] | None:
        """Returns a row with the rows that a statement's joins lead to."""
        chain = {finest: row}
        waiting = list(question.joins)
        # Joins may be written in any order, so they are tried until none leads further.
        for _ in range(len(waiting) + 1):
            for join in waiting:
                for turned in (join.pairs, tuple((b, a) for a, b in join.pairs)):
                    before = {left.table for left, _ in turned}
                    after = {right.table for _, right in turned}
                    if not before <= chain.keys() or len(after) != 1 or after <= chain.keys():
                        continue
                    values = [chain[left.table].get(left.column) for left, _ in turned]
                    join_values = [value for value in values if value is not None]
                    columns = [right.column for _, right in turned]
                    rows: list[Item] = []
                    if len(join_values) == len(values):
                        rows = list(self.staging.matching(min(after), columns, join_values))
                    chain[min(after)] = rows[0] if rows else {}
        return chain

    def _of_chain(self, question: ResolvedQuery, chain: dict[str, Item], case: str) -> ParameterSet:
        values: dict[str, AttributeValue | None] = self._counts(question, LIMITS[0])
        for test in question.tests:
            row_value = chain.get(test.ref.table, {}).get(test.ref.column)
            for position, value in enumerate(test.values):
                if isinstance(value, Parameter):
                    values[value.name] = _in_form(
                        self._draw_value(test, row_value, position), test.form
                    )
        return ParameterSet(case, values)

    def _draw_value(
        self, test: ColumnTest, row_value: AttributeValue | None, position: int
    ) -> AttributeValue | None:
        if row_value is None:
            rows = self.staging.spread(test.ref.table, SPREAD_ROWS)
            row_value = next((row[test.ref.column] for row in rows if test.ref.column in row), None)
        if row_value is None:
            return self._made_up_value(test.ref)
        if position and test.operator in ("in", "not in"):
            rows = self.staging.spread(test.ref.table, SPREAD_ROWS)
            others = [row[test.ref.column] for row in rows if test.ref.column in row]
            return others[(position * 7) % len(others)] if others else row_value
        return row_value

    def _ranges(
        self, question: ResolvedQuery, chain: dict[str, Item], case: str, usual: ParameterSet
    ) -> Iterator[ParameterSet]:
        """Yields ranges around the row: everything, up to it, from it on, and closely around it."""
        for ref in dict.fromkeys(
            test.ref
            for test in question.tests
            if test.operator in ("<", "<=", ">", ">=", "between")
        ):
            row_value = chain.get(ref.table, {}).get(ref.column)
            rows = self.staging.spread(ref.table, SPREAD_ROWS)
            column_values = sorted(
                (row[ref.column] for row in rows if ref.column in row), key=order
            )
            if row_value is None or not column_values:
                continue
            for name, low, high in (
                ("whole range", column_values[0], column_values[-1]),
                ("up to the row", column_values[0], row_value),
                ("from the row on", row_value, column_values[-1]),
                ("around a boundary", neighbor_value(row_value, -1), neighbor_value(row_value, 1)),
            ):
                yield ParameterSet(
                    f"{case}, {name}",
                    {**usual.values, **self._bounds(question, ref, low, high)},
                )

    def _bounds(
        self, question: ResolvedQuery, ref: ColumnRef, low: AttributeValue, high: AttributeValue
    ) -> dict[str, AttributeValue | None]:
        bounds: dict[str, AttributeValue | None] = {}
        for test in question.tests:
            if test.ref != ref:
                continue
            for position, value in enumerate(test.values):
                if isinstance(value, Parameter):
                    is_high = test.operator in ("<", "<=") or position == 1
                    bounds[value.name] = high if is_high else low
        return bounds

    # Values that are not in the data.

    def _unusual_values(self, usual: ParameterSet, parameter: Parameter) -> Iterator[ParameterSet]:
        value = usual.values.get(parameter.name)
        name = parameter.name
        yield ParameterSet(f"NULL for {name}", {**usual.values, name: None})
        if value is None:
            return
        column = self._column(parameter.ref)
        if column != "enum":
            # Servers refuse to compare an enumeration with a label that it does not have.
            yield ParameterSet(f"absent {name}", {**usual.values, name: _absent_value(value)})
        text = value.get("S")
        if isinstance(text, str) and column == "string":
            other = text.swapcase()
            if other != text:
                yield ParameterSet(f"other case of {name}", {**usual.values, name: {"S": other}})
            accented = text.replace("e", "é").replace("a", "ä")
            if accented != text:
                yield ParameterSet(f"accents in {name}", {**usual.values, name: {"S": accented}})
            yield from self._blanks(usual, parameter, text)
            yield from self._collated(usual, parameter, text)

    def _collated(
        self, usual: ParameterSet, parameter: Parameter, text: str
    ) -> Iterator[ParameterSet]:
        """Yields texts that a collation may take for that of a row, one of each kind."""
        name, ref = parameter.name, parameter.ref
        folding = FOLDINGS.get(self._collation(ref))
        if ref is None or folding is None:
            return
        rows = self.staging.spread(ref.table, SPREAD_ROWS)
        texts = [text, *(str(row[ref.column].get("S", "")) for row in rows if ref.column in row)]
        by_case: dict[str, str] = {}
        for candidate in texts:
            for case, other in variants(folding, candidate):
                by_case.setdefault(case, other)
        for case, other in by_case.items():
            yield ParameterSet(f"{case} in {name}", {**usual.values, name: {"S": other}})

    def _blanks(
        self, usual: ParameterSet, parameter: Parameter, text: str
    ) -> Iterator[ParameterSet]:
        """Yields the text with one more blank at its end, and without those that a row has (PAD
        SPACE)."""
        name, ref = parameter.name, parameter.ref
        yield ParameterSet(f"a blank behind {name}", {**usual.values, name: {"S": f"{text} "}})
        rows = self.staging.ending_in_blanks(ref.table, ref.column) if ref is not None else []
        texts = [text, *(str(row[ref.column]["S"]) for row in rows[:1] if ref is not None)]
        for candidate in dict.fromkeys(texts):
            if candidate != candidate.rstrip(" "):
                bare = {**usual.values, name: {"S": candidate.rstrip(" ")}}
                yield ParameterSet(f"no blank behind {name}", bare)

    def _made_up_value(self, ref: ColumnRef | None) -> AttributeValue:
        """Returns a value of the column's type for a column without values."""
        kind = self._column(ref)
        if ref is None or kind in ("integer", "decimal", "float"):
            return {"N": "1"}
        return {"BOOL": True} if kind == "boolean" else _absent_value({"S": "x"})

    def _column(self, ref: ColumnRef | None) -> str:
        column = self._find_column(ref)
        return column.kind if column is not None else "other"

    def _collation(self, ref: ColumnRef | None) -> str:
        column = self._find_column(ref)
        return column.collation if column is not None else ""

    def _find_column(self, ref: ColumnRef | None) -> SourceColumn | None:
        table = self.inventory.table(ref.table) if ref is not None else None
        columns = table.columns if table is not None else []
        return next((column for column in columns if ref and column.name == ref.column), None)

    def _counts(self, question: ResolvedQuery, limit: int) -> dict[str, AttributeValue | None]:
        counts: dict[str, AttributeValue | None] = {}
        if isinstance(question.limit, Parameter):
            counts[question.limit.name] = {"N": str(limit)}
        if isinstance(question.offset, Parameter):
            counts[question.offset.name] = {"N": "1"}
        return counts


def _flatten(question: ResolvedQuery) -> ResolvedQuery:
    """Returns the statement with the tests of all alternatives and subqueries, joined to its
    rows."""
    joins, tests = list(question.joins), list(question.all_tests)
    for existence in question.existences:
        inner = existence.query
        own = [test for test in inner.all_tests if not any(_is_outer(v) for v in test.values)]
        pairs = [
            (value.outer, test.ref)
            for test in inner.all_tests
            for value in test.values
            if isinstance(value, Parameter) and value.outer and test.operator == "="
        ]
        if pairs and inner.table not in question.tables:
            joins += [JoinedTable(inner.table, tuple(pairs)), *inner.joins]
        tests += own
    return replace(question, joins=tuple(joins), tests=tuple(tests), alternatives=(), existences=())


def _is_outer(value: Parameter | Constant) -> bool:
    return isinstance(value, Parameter) and value.outer is not None


def _mix_alternatives(
    sets: list[ParameterSet], alternatives: tuple[tuple[ColumnTest, ...], ...]
) -> Iterator[ParameterSet]:
    """Gives each alternative the values of another row, so that each finds some rows."""
    if not alternatives or len(sets) < len(alternatives):
        return
    values = dict(sets[0].values)
    for group, parameter_set in zip(alternatives, sets, strict=False):
        names = [v.name for test in group for v in test.values if isinstance(v, Parameter)]
        values |= {name: parameter_set.values[name] for name in names}
    yield ParameterSet("alternatives of several rows", values)


def _in_form(value: AttributeValue | None, form: str) -> AttributeValue | None:
    """Returns the value in lower or upper case, as the statement compares it."""
    if not form or value is None or "S" not in value:
        return value
    return {"S": FORMS[form](value["S"])}


def _absent_value(value: AttributeValue) -> AttributeValue:
    """Returns a value of the same type that no row has."""
    if "N" in value:
        return {"N": "987654321"}
    if "BOOL" in value:
        return {"BOOL": not value["BOOL"]}
    if "B" in value:
        return {"B": "AAAA"}
    text = str(value.get("S", ""))
    moment = _moment(text)
    if moment is not None:
        return {"S": text.replace(text[:4], "1066", 1)}
    if len(text) == 36 and text.count("-") == 4:
        return {"S": "00000000-0000-4000-8000-000000000000"}
    return {"S": "~nobody" if len(text) >= 7 else "~"}


def neighbor_value(value: AttributeValue, sign: int) -> AttributeValue:
    """Returns a value just before or after this one."""
    if "N" in value:
        number = Decimal(value["N"]) + sign
        return {"N": format(number, "f")}
    moment = _moment(str(value.get("S", "")))
    if moment is None:
        return value
    text = str(value["S"])
    if len(text) == 10:
        return {"S": (moment + timedelta(days=sign)).date().isoformat()}
    moved = (moment + timedelta(seconds=sign)).isoformat()
    return {"S": moved if "T" in text else moved.replace("T", " ")}


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text[:4].isdigit() else None
    except ValueError:
        return None
