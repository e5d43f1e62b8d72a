"""Parameter sets for writes: rows that are new, rows that are there, rows that go."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.designing.requests.write_planner import WritePlanner
from partita_migrate.proving.parameter_sets.matching_rows import own_tests, passes
from partita_migrate.proving.parameter_sets.parameter_draw import ParameterDraw, ParameterSet, moved
from partita_migrate.proving.read_proofs.answer_comparison import plain
from partita_migrate.proving.write_proofs.row_finder import is_referred_to
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.understanding.statements.resolved_statements import (
    Insertion,
    Modification,
    Parameter,
    ResolvedQuery,
)

SETS_MAX = 6
NEW_ROWS = 3


class WriteCases:
    """For the statements on one staged copy."""

    def __init__(self, staging: StagedRows, inventory: Inventory, planner: WritePlanner) -> None:
        self.staging = staging
        self.inventory = inventory
        self.planner = planner

    def of(self, statement: Insertion | Modification) -> list[ParameterSet]:
        table = self.inventory.table(statement.table)
        if table is None:
            return []
        if isinstance(statement, Insertion):
            return list(self._insertions(statement, table))[:SETS_MAX]
        return list(self._modifications(statement, table))[:SETS_MAX]

    def _insertions(self, statement: Insertion, table: SourceTable) -> Iterator[ParameterSet]:
        rows = self.staging.spread(table.name, NEW_ROWS)
        for number, row in enumerate(rows[:NEW_ROWS], 1):
            values: dict[str, AttributeValue | None] = {}
            for ref, value in zip(statement.columns, statement.values, strict=True):
                if isinstance(value, Parameter):
                    values[value.name] = self._new_value(table, ref, row, number)
            yield ParameterSet("a new row", values)
        if rows:
            values = {}
            for ref, value in zip(statement.columns, statement.values, strict=True):
                if isinstance(value, Parameter):
                    values[value.name] = rows[0].get(ref.column)
            if statement.on_conflict:
                self._with_other_values(statement, values, rows[-1])
            yield ParameterSet("a row that is there already", values)
            yield from self._padded_keys(statement, table, rows[0])

    def _padded_keys(
        self, statement: Insertion, table: SourceTable, row: Item
    ) -> Iterator[ParameterSet]:
        """New rows with a key that is there, but for a blank at its end."""
        lengths = {one.name: one.length_max for one in table.columns if one.kind == "string"}
        for columns in _unique(table):
            texts = [name for name in columns if name in lengths and "S" in row.get(name, {})]
            if not texts:
                continue
            padded = f"{row[texts[-1]]['S']} "
            if len(padded) > (lengths[texts[-1]] or len(padded)):
                continue  # A server cuts blanks that do not fit.
            values: dict[str, AttributeValue | None] = {}
            for ref, value in zip(statement.columns, statement.values, strict=True):
                if not isinstance(value, Parameter):
                    continue
                values[value.name] = row.get(ref.column)
                if ref.column not in columns:
                    values[value.name] = self._new_value(table, ref, row, NEW_ROWS + 1)
                elif ref.column == texts[-1]:
                    values[value.name] = {"S": padded}
            yield ParameterSet(f"a blank behind {texts[-1]} that is there", values)

    def _with_other_values(
        self, statement: Insertion, values: dict[str, AttributeValue | None], other: Item
    ) -> None:
        """What is not a part of a key comes from another row, so that something changes."""
        table = self.inventory.table(statement.table)
        assert table is not None
        keys = {name for columns in _unique(table) for name in columns}
        for ref, value in zip(statement.columns, statement.values, strict=True):
            if isinstance(value, Parameter) and ref.column not in keys:
                values[value.name] = other.get(ref.column)

    def _new_value(
        self, table: SourceTable, ref: ColumnRef, row: Item, number: int
    ) -> AttributeValue | None:
        """Keys are new, references lead to rows that are there, the rest is as it was."""
        column = self.planner.reads.column(ref)
        held = row.get(ref.column)
        refers = [key for key in table.foreign_keys if ref.column in key.columns]
        is_key = any(ref.column in columns for columns in _unique(table))
        if not is_key:
            return held
        if refers:
            return self._other_reference(table, ref, row, number)
        if held is None or column is None:
            return held
        if "N" in held:
            values = [one[ref.column] for one in self.staging.rows(table.name) if ref.column in one]
            most = max(Decimal(value["N"]) for value in values if "N" in value)
            return {"N": format(most + number, "f")}
        if "S" in held and column.kind in ("string", "other"):
            return {"S": _other_text(str(held["S"]), number, column.length_max or 60)}
        if "S" in held and column.kind in ("date", "datetime"):
            return moved(held, number)
        if "S" in held and column.kind == "uuid":
            return {"S": f"00000000-0000-4000-8000-{number:012}"}
        return held

    def _other_reference(
        self, table: SourceTable, ref: ColumnRef, row: Item, number: int
    ) -> AttributeValue | None:
        """Of a key that is made of references: a pair that is not there yet."""
        key = next(one for one in table.foreign_keys if ref.column in one.columns)
        target = key.referenced_columns[key.columns.index(ref.column)]
        columns = next(one for one in _unique(table) if ref.column in one)
        if len(key.columns) == 1 and ref.column != columns[-1]:
            return row.get(ref.column)
        # What one reference is made of is taken from one row; the rest of the key stays.
        pairs = dict(zip(key.columns, key.referenced_columns, strict=True))
        varied = [name for name in columns if name in pairs]
        fixed = [name for name in columns if name not in pairs]
        taken = {
            tuple(plain(one.get(name)) for name in varied)
            for one in self.staging.rows(table.name)
            if all(plain(one.get(name)) == plain(row.get(name)) for name in fixed)
        }
        free = [
            one[target]
            for one in self.staging.rows(key.referenced_table)
            if target in one and tuple(plain(one.get(pairs[name])) for name in varied) not in taken
        ]
        return free[min(number, len(free)) - 1] if free else row.get(ref.column)

    def _modifications(self, statement: Modification, table: SourceTable) -> Iterator[ParameterSet]:
        draw = ParameterDraw(self.staging, self.inventory)
        question = self.planner.rows_query(statement)
        sets = draw.sets(question, table.name)
        if not statement.changes:
            sets = [*self._free(draw, question, table), *sets]
        keys = {name for columns in _unique(table) for name in columns}
        taken = [change for change in statement.changes if change.ref.column in keys]
        first = sets[: SETS_MAX - 2 - bool(taken)]
        blanks = [one for one in sets if "blank" in one.case and one not in first]
        for number, one in enumerate([*first, *blanks[:1]], 1):
            yield ParameterSet(one.case, self._changed(statement, table, one, number))
        if sets and any(isinstance(change.value, Parameter) for change in taken):
            yield ParameterSet("a value that is taken", self._changed(statement, table, sets[0], 0))

    def _free(
        self, draw: ParameterDraw, question: ResolvedQuery, table: SourceTable
    ) -> Iterator[ParameterSet]:
        """A row that may be deleted, where others keep rows from that."""
        restricting = self.planner.restricting(table.name)
        if not restricting:
            return
        own = own_tests(question.tests, table.name)
        for row in self.staging.rows(table.name):
            if passes(self.inventory, own, row) and not any(
                is_referred_to(self.staging, one, row) for one in restricting
            ):
                yield draw.of_row(question, table.name, row, "nothing refers to it")
                return

    def _changed(
        self, statement: Modification, table: SourceTable, one: ParameterSet, number: int
    ) -> dict[str, AttributeValue | None]:
        """With values of other rows; where they must be unique, new ones unless `number` is 0."""
        values = dict(one.values)
        others = self.staging.spread(table.name, 7)
        keys = {name for columns in _unique(table) for name in columns}
        for place, change in enumerate(statement.changes):
            if not isinstance(change.value, Parameter):
                continue
            donors = [row for row in others if change.ref.column in row]
            donor = donors[(place + 1) % len(donors)] if donors else {}
            value = donor.get(change.ref.column)
            if number and change.ref.column in keys:
                value = self._new_value(table, change.ref, donor, number)
            values[change.value.name] = value
        return values


def _other_text(text: str, number: int, length_max: int) -> str:
    mark = f"~{number}"
    return (text[: max(length_max - len(mark), 0)] + mark)[-length_max:]


def _unique(table: SourceTable) -> list[list[str]]:
    return [table.primary_key, *(one.columns for one in table.indexes if one.is_unique)]
