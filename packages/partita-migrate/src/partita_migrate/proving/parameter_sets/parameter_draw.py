"""Parameter sets that are drawn from the data: the usual, and what breaks designs."""

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
"""For a LIMIT that the caller passes."""


@dataclass(frozen=True)
class ParameterSet:
    case: str
    values: dict[str, AttributeValue | None]


class ParameterDraw:
    """Parameter sets for the questions about one staged source."""

    def __init__(self, staging: StagedRows, inventory: Inventory) -> None:
        self.staging = staging
        self.inventory = inventory

    def sets(self, question: ResolvedQuery, finest: str) -> list[ParameterSet]:
        """Each tells what it is; the same values are tried once."""
        alternatives = question.alternatives
        question = _whole(question)
        found: dict[str, ParameterSet] = {}
        for one in self._sets(question, finest):
            found.setdefault(repr(sorted(one.values.items(), key=lambda pair: pair[0])), one)
        return [*found.values(), *_mixed(list(found.values()), alternatives)]

    def usual(self, question: ResolvedQuery, finest: str, count: int) -> Iterator[ParameterSet]:
        """Values of rows from all over the data, as often as rows have them."""
        question = _whole(question)
        for row in self.staging.spread(finest, count):
            chain = self._chain(question, finest, row)
            if chain is not None:
                yield self._of_chain(question, chain, "typical")

    def of_row(self, question: ResolvedQuery, finest: str, row: Item, case: str) -> ParameterSet:
        return self._of_chain(question, {finest: row}, case)

    def _sets(self, question: ResolvedQuery, finest: str) -> Iterator[ParameterSet]:
        parameters = [one for one in question.parameters() if one.ref is not None]
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
            one = self._of_chain(question, chain, case)
            usual = usual or one
            yield one
            yield from self._ranges(question, chain, case, one)
        if usual is None:
            usual = ParameterSet(
                "no rows", {one.name: self._made_up(one.ref) for one in question.parameters()}
            )
            yield usual
        for parameter in parameters:
            yield from self._odd(usual, parameter)
        if any(isinstance(one, Parameter) for one in (question.limit, question.offset)):
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
                known = [row for row in spread if sorting.ref.column in row]
                known.sort(key=lambda row: order(row[sorting.ref.column]))
                if known and sorting.ref.table == finest:
                    yield "first of the order", known[0]
                    yield "last of the order", known[-1]
        yield from self._telling(question, finest, spread)

    def _telling(
        self, question: ResolvedQuery | Modification, finest: str, spread: list[Item]
    ) -> Iterator[tuple[str, Item]]:
        """Rows with values that are easily mistaken."""
        for test in question.tests:
            if test.ref.table != finest:
                continue
            known = [row for row in spread if test.ref.column in row]
            texts = [row for row in known if not str(row[test.ref.column].get("S", "")).isascii()]
            yield from (("not ASCII", row) for row in texts[:1])
            marks = [row for row in known if set("#% '&") & set(row[test.ref.column].get("S", ""))]
            yield from (("with marks", row) for row in marks[:1])
            blanks = self.staging.ending_in_blanks(finest, test.ref.column)
            yield from (("with a blank at the end", row) for row in blanks[:1])
            numbers = [row for row in known if "N" in row[test.ref.column]]
            if numbers:
                size = [len(row[test.ref.column]["N"]) for row in numbers]
                yield "shortest number", numbers[size.index(min(size))]
                yield "longest number", numbers[size.index(max(size))]

    def _chain(self, question: ResolvedQuery, finest: str, row: Item) -> dict[str, Item] | None:
        """A row with those that the joins of a question lead to."""
        chain = {finest: row}
        waiting = list(question.joins)
        for _ in range(len(waiting) + 1):
            for join in waiting:
                for turned in (join.pairs, tuple((b, a) for a, b in join.pairs)):
                    before = {left.table for left, _ in turned}
                    after = {right.table for _, right in turned}
                    if not before <= chain.keys() or len(after) != 1 or after <= chain.keys():
                        continue
                    values = [chain[left.table].get(left.column) for left, _ in turned]
                    known = [value for value in values if value is not None]
                    columns = [right.column for _, right in turned]
                    rows: list[Item] = []
                    if len(known) == len(values):
                        rows = list(self.staging.matching(min(after), columns, known))
                    chain[min(after)] = rows[0] if rows else {}
        return chain

    def _of_chain(self, question: ResolvedQuery, chain: dict[str, Item], case: str) -> ParameterSet:
        values: dict[str, AttributeValue | None] = self._counts(question, LIMITS[0])
        for test in question.tests:
            held = chain.get(test.ref.table, {}).get(test.ref.column)
            for position, value in enumerate(test.values):
                if isinstance(value, Parameter):
                    values[value.name] = _in_form(self._drawn(test, held, position), test.form)
        return ParameterSet(case, values)

    def _drawn(
        self, test: ColumnTest, held: AttributeValue | None, position: int
    ) -> AttributeValue | None:
        if held is None:
            rows = self.staging.spread(test.ref.table, SPREAD_ROWS)
            held = next((row[test.ref.column] for row in rows if test.ref.column in row), None)
        if held is None:
            return self._made_up(test.ref)
        if position and test.operator in ("in", "not in"):
            rows = self.staging.spread(test.ref.table, SPREAD_ROWS)
            others = [row[test.ref.column] for row in rows if test.ref.column in row]
            return others[(position * 7) % len(others)] if others else held
        return held

    def _ranges(
        self, question: ResolvedQuery, chain: dict[str, Item], case: str, usual: ParameterSet
    ) -> Iterator[ParameterSet]:
        """Ranges around the row: everything, up to it, from it on."""
        for ref in dict.fromkeys(
            test.ref
            for test in question.tests
            if test.operator in ("<", "<=", ">", ">=", "between")
        ):
            held = chain.get(ref.table, {}).get(ref.column)
            rows = self.staging.spread(ref.table, SPREAD_ROWS)
            known = sorted((row[ref.column] for row in rows if ref.column in row), key=order)
            if held is None or not known:
                continue
            for name, low, high in (
                ("whole range", known[0], known[-1]),
                ("up to the row", known[0], held),
                ("from the row on", held, known[-1]),
                ("around a boundary", moved(held, -1), moved(held, 1)),
            ):
                yield ParameterSet(
                    f"{case}, {name}",
                    {**usual.values, **self._bounds(question, ref, low, high)},
                )

    def _bounds(
        self, question: ResolvedQuery, ref: ColumnRef, low: AttributeValue, high: AttributeValue
    ) -> dict[str, AttributeValue | None]:
        found: dict[str, AttributeValue | None] = {}
        for test in question.tests:
            if test.ref != ref:
                continue
            for position, value in enumerate(test.values):
                if isinstance(value, Parameter):
                    is_high = test.operator in ("<", "<=") or position == 1
                    found[value.name] = high if is_high else low
        return found

    # Values that are not in the data.

    def _odd(self, usual: ParameterSet, parameter: Parameter) -> Iterator[ParameterSet]:
        held = usual.values.get(parameter.name)
        name = parameter.name
        yield ParameterSet(f"NULL for {name}", {**usual.values, name: None})
        if held is None:
            return
        column = self._column(parameter.ref)
        if column != "enum":
            # A server refuses to look for what an enumeration does not have.
            yield ParameterSet(f"absent {name}", {**usual.values, name: _absent(held)})
        text = held.get("S")
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
        """What a collation may take for the text of a row, each kind of it once."""
        name, ref = parameter.name, parameter.ref
        folding = FOLDINGS.get(self._collation(ref))
        if ref is None or folding is None:
            return
        rows = self.staging.spread(ref.table, SPREAD_ROWS)
        texts = [text, *(str(row[ref.column].get("S", "")) for row in rows if ref.column in row)]
        found: dict[str, str] = {}
        for one in texts:
            for case, other in variants(folding, one):
                found.setdefault(case, other)
        for case, other in found.items():
            yield ParameterSet(f"{case} in {name}", {**usual.values, name: {"S": other}})

    def _blanks(
        self, usual: ParameterSet, parameter: Parameter, text: str
    ) -> Iterator[ParameterSet]:
        """PAD SPACE: with a blank more at the end, and without those that a row has."""
        name, ref = parameter.name, parameter.ref
        yield ParameterSet(f"a blank behind {name}", {**usual.values, name: {"S": f"{text} "}})
        rows = self.staging.ending_in_blanks(ref.table, ref.column) if ref is not None else []
        held = [text, *(str(row[ref.column]["S"]) for row in rows[:1] if ref is not None)]
        for one in dict.fromkeys(held):
            if one != one.rstrip(" "):
                bare = {**usual.values, name: {"S": one.rstrip(" ")}}
                yield ParameterSet(f"no blank behind {name}", bare)

    def _made_up(self, ref: ColumnRef | None) -> AttributeValue:
        """Of the type of a column that has no rows."""
        kind = self._column(ref)
        if ref is None or kind in ("integer", "decimal", "float"):
            return {"N": "1"}
        return {"BOOL": True} if kind == "boolean" else _absent({"S": "x"})

    def _column(self, ref: ColumnRef | None) -> str:
        found = self._inventoried(ref)
        return found.kind if found is not None else "other"

    def _collation(self, ref: ColumnRef | None) -> str:
        found = self._inventoried(ref)
        return found.collation if found is not None else ""

    def _inventoried(self, ref: ColumnRef | None) -> SourceColumn | None:
        table = self.inventory.table(ref.table) if ref is not None else None
        columns = table.columns if table is not None else []
        return next((one for one in columns if ref and one.name == ref.column), None)

    def _counts(self, question: ResolvedQuery, limit: int) -> dict[str, AttributeValue | None]:
        found: dict[str, AttributeValue | None] = {}
        if isinstance(question.limit, Parameter):
            found[question.limit.name] = {"N": str(limit)}
        if isinstance(question.offset, Parameter):
            found[question.offset.name] = {"N": "1"}
        return found


def _whole(question: ResolvedQuery) -> ResolvedQuery:
    """With the tests of all alternatives, and those inside it, joined to its rows."""
    joins, tests = list(question.joins), list(question.all_tests)
    for one in question.existences:
        inner = one.query
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


def _mixed(
    sets: list[ParameterSet], alternatives: tuple[tuple[ColumnTest, ...], ...]
) -> Iterator[ParameterSet]:
    """Each alternative with the values of another row, so that all of them find some."""
    if not alternatives or len(sets) < len(alternatives):
        return
    values = dict(sets[0].values)
    for group, one in zip(alternatives, sets, strict=False):
        names = [v.name for test in group for v in test.values if isinstance(v, Parameter)]
        values |= {name: one.values[name] for name in names}
    yield ParameterSet("alternatives of several rows", values)


def _in_form(value: AttributeValue | None, form: str) -> AttributeValue | None:
    """As a statement compares it, in lower or upper case."""
    if not form or value is None or "S" not in value:
        return value
    return {"S": FORMS[form](value["S"])}


def _absent(value: AttributeValue) -> AttributeValue:
    """Of the same type, and of no row."""
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


def moved(value: AttributeValue, sign: int) -> AttributeValue:
    """A little before or after."""
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
