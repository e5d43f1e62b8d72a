"""Parameter sets for writes: new rows, existing rows, and rows that can be deleted."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.designing.requests.write_planner import WritePlanner
from partita_migrate.proving.parameter_sets.matching_rows import own_tests, passes
from partita_migrate.proving.parameter_sets.parameter_draw import (
    ParameterDraw,
    ParameterSet,
    neighbor_value,
)
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
    """Draws parameter sets for the write statements on one staged copy."""

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
        """Yields new rows whose key exists but for a blank at its end."""
        lengths = {
            column.name: column.length_max for column in table.columns if column.kind == "string"
        }
        for columns in _unique(table):
            texts = [name for name in columns if name in lengths and "S" in row.get(name, {})]
            if not texts:
                continue
            padded = f"{row[texts[-1]]['S']} "
            if len(padded) > (lengths[texts[-1]] or len(padded)):
                continue  # Servers silently cut off blanks that exceed the column's length.
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
        """Takes columns outside of keys from another row, so that something changes."""
        table = self.inventory.table(statement.table)
        assert table is not None
        keys = {name for columns in _unique(table) for name in columns}
        for ref, value in zip(statement.columns, statement.values, strict=True):
            if isinstance(value, Parameter) and ref.column not in keys:
                values[value.name] = other.get(ref.column)

    def _new_value(
        self, table: SourceTable, ref: ColumnRef, row: Item, number: int
    ) -> AttributeValue | None:
        """Returns a value for a new row: keys are new, references lead to existing rows, the rest
        is kept."""
        column = self.planner.reads.column(ref)
        current = row.get(ref.column)
        refers = [key for key in table.foreign_keys if ref.column in key.columns]
        is_key = any(ref.column in columns for columns in _unique(table))
        if not is_key:
            return current
        if refers:
            return self._other_reference(table, ref, row, number)
        if current is None or column is None:
            return current
        if "N" in current:
            values = [
                other_row[ref.column]
                for other_row in self.staging.rows(table.name)
                if ref.column in other_row
            ]
            most = max(Decimal(value["N"]) for value in values if "N" in value)
            return {"N": format(most + number, "f")}
        if "S" in current and column.kind in ("string", "other"):
            return {"S": _other_text(str(current["S"]), number, column.length_max or 60)}
        if "S" in current and column.kind in ("date", "datetime"):
            return neighbor_value(current, number)
        if "S" in current and column.kind == "uuid":
            return {"S": f"00000000-0000-4000-8000-{number:012}"}
        return current

    def _other_reference(
        self, table: SourceTable, ref: ColumnRef, row: Item, number: int
    ) -> AttributeValue | None:
        """Returns a reference for a key made of references: a combination that does not exist
        yet."""
        key = next(candidate for candidate in table.foreign_keys if ref.column in candidate.columns)
        target = key.referenced_columns[key.columns.index(ref.column)]
        columns = next(candidate for candidate in _unique(table) if ref.column in candidate)
        if len(key.columns) == 1 and ref.column != columns[-1]:
            return row.get(ref.column)
        # All columns of one reference come from the same row; the rest of the key is kept.
        pairs = dict(zip(key.columns, key.referenced_columns, strict=True))
        varied = [name for name in columns if name in pairs]
        fixed = [name for name in columns if name not in pairs]
        existing_pairs = {
            tuple(plain(candidate.get(name)) for name in varied)
            for candidate in self.staging.rows(table.name)
            if all(plain(candidate.get(name)) == plain(row.get(name)) for name in fixed)
        }
        free = [
            candidate[target]
            for candidate in self.staging.rows(key.referenced_table)
            if target in candidate
            and tuple(plain(candidate.get(pairs[name])) for name in varied) not in existing_pairs
        ]
        return free[min(number, len(free)) - 1] if free else row.get(ref.column)

    def _modifications(self, statement: Modification, table: SourceTable) -> Iterator[ParameterSet]:
        draw = ParameterDraw(self.staging, self.inventory)
        question = self.planner.rows_query(statement)
        sets = draw.sets(question, table.name)
        if not statement.changes:
            sets = [*self._deletable_row(draw, question, table), *sets]
        keys = {name for columns in _unique(table) for name in columns}
        changes_of_keys = [change for change in statement.changes if change.ref.column in keys]
        first = sets[: SETS_MAX - 2 - bool(changes_of_keys)]
        blanks = [
            parameter_set
            for parameter_set in sets
            if "blank" in parameter_set.case and parameter_set not in first
        ]
        for number, parameter_set in enumerate([*first, *blanks[:1]], 1):
            yield ParameterSet(
                parameter_set.case, self._changed_values(statement, table, parameter_set, number)
            )
        if sets and any(isinstance(change.value, Parameter) for change in changes_of_keys):
            yield ParameterSet(
                "a value that is taken", self._changed_values(statement, table, sets[0], 0)
            )

    def _deletable_row(
        self, draw: ParameterDraw, question: ResolvedQuery, table: SourceTable
    ) -> Iterator[ParameterSet]:
        """Yields a row that may be deleted, where foreign keys restrict deletes."""
        restricting = self.planner.restricting(table.name)
        if not restricting:
            return
        own = own_tests(question.tests, table.name)
        for row in self.staging.rows(table.name):
            if passes(self.inventory, own, row) and not any(
                is_referred_to(self.staging, question_of_children, row)
                for question_of_children in restricting
            ):
                yield draw.of_row(question, table.name, row, "nothing refers to it")
                return

    def _changed_values(
        self, statement: Modification, table: SourceTable, parameter_set: ParameterSet, number: int
    ) -> dict[str, AttributeValue | None]:
        """Returns values of other rows; for unique columns new ones, unless `number` is 0."""
        values = dict(parameter_set.values)
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
    return [table.primary_key, *(index.columns for index in table.indexes if index.is_unique)]
