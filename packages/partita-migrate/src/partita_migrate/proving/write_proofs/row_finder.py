"""Finds the rows that a write changes, and rows that change with them, by the requests of the
model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.designing.requests.write_planner import WritePlanner
from partita_migrate.model.design import READS, Entity, ItemAttribute, PatternAccess
from partita_migrate.model.keys.key_templates import template_fields
from partita_migrate.proving.parameter_sets.parameter_draw import ParameterSet
from partita_migrate.proving.read_proofs.answer_rows import RequestNotPossible
from partita_migrate.proving.read_proofs.read_requests import ReadRequests
from partita_migrate.proving.write_proofs.write_sides import WriteSides
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.resolved_statements import (
    Modification,
    Parameter,
    ResolvedQuery,
)


class RowFinder:
    """Finds rows by the model's requests."""

    def __init__(self, sides: WriteSides, planner: WritePlanner) -> None:
        self.sides = sides
        self.planner = planner
        self.reads = planner.reads
        self.staging = sides.staging

    def find_rows(
        self,
        statement: Modification | None,
        parameter_set: ParameterSet,
        accesses: Sequence[PatternAccess],
    ) -> list[Item]:
        """Returns the rows that the model's requests find, as the copy has them."""
        if statement is None:
            return []
        question = self.planner.rows_query(statement)
        return self._rows_by(
            question, parameter_set.values, self._finding_request(statement.table, accesses)
        )

    def dependents(
        self, statement: Modification | None, rows: list[Item], accesses: Sequence[PatternAccess]
    ) -> list[tuple[str, Item]]:
        """Returns (table, row) pairs whose items repeat or refer to these rows, as the model's
        requests find them."""
        if statement is None:
            return []
        dependent_rows: dict[str, tuple[str, Item]] = {}
        requests = self._reads_of_others(statement.table, accesses, forbids=False)
        for copies in self.planner.copies(statement):
            access = _next_request(requests, copies.entity.name)
            if access is None:
                raise RequestNotPossible(
                    f"no request finds the items of {copies.entity.name} that change too"
                )
            for row in rows:
                values = self._values_of(copies.query, copies.entity, row, statement)
                for other in self._rows_by(copies.query, values, access):
                    dependent_rows[repr((copies.entity.source, other))] = (
                        copies.entity.source,
                        other,
                    )
        return list(dependent_rows.values())

    def forbidden(
        self, statement: Modification | None, rows: list[Item], accesses: Sequence[PatternAccess]
    ) -> str:
        """Returns the row that keeps these from being deleted, when a request of the model finds
        one."""
        if statement is None or statement.changes:
            return ""
        requests = self._reads_of_others(statement.table, accesses, forbids=True)
        for question in self.planner.restricting(statement.table):
            names = [request.name for _, request in self.sides.entities(question.table)]
            access = next(
                (request for name in names if (request := _next_request(requests, name))), None
            )
            if access is None:
                continue
            for row in rows:
                values = self._values_of(question, self._entity(access), row, statement)
                for other in self._rows_by(question, values, access):
                    if other != row:
                        return f"{question.table} {other}"
        return ""

    def is_referred_to(
        self, statement: Modification | None, rows: list[Item], accesses: Sequence[PatternAccess]
    ) -> bool:
        """True when rows refer to these that no request of the model looks for: a stated loss of
        the design."""
        if statement is None:
            return False
        checked_tables = {self._entity(access).source for access in accesses if access.forbids}
        return any(
            is_referred_to(self.staging, question, row)
            for question in self.planner.restricting(statement.table)
            if question.table not in checked_tables
            for row in rows
        )

    def _finding_request(self, table: str, accesses: Sequence[PatternAccess]) -> PatternAccess:
        """Returns the request that finds the rows: one before the write, otherwise the key of the
        write."""
        for access in accesses:
            entity = self._entity(access)
            if access.forbids or entity.source != table:
                continue
            if access.request in READS:
                return access
            plain = {
                condition.name: condition for condition in entity.attributes if condition.column
            }
            key = [
                replace(
                    condition,
                    value=f"{{{passed_column(plain[condition.attribute], condition.value)}}}",
                )
                if condition.attribute in plain
                else condition
                for condition in access.key
            ]
            return replace(access, request="GetItem", key=key)
        raise RequestNotPossible(f"the model has no request for the items of {table}")

    def _entity(self, access: PatternAccess) -> Entity:
        home = self.sides.design.table(access.table)
        entity = home.entity(access.entity) if home is not None else None
        if entity is None:
            raise RequestNotPossible(f"the model has no {access.entity!r}")
        return entity

    def _rows_by(
        self,
        question: ResolvedQuery,
        values: Mapping[str, AttributeValue | None],
        access: PatternAccess,
    ) -> list[Item]:
        table = self.sides.design.table(access.table)
        assert table is not None
        brought = self.reads.brought(question, [access])
        names = brought.attributes[0]
        if not set(question.columns) <= names.keys():
            raise RequestNotPossible(
                f"items of {access.entity} do not identify the rows of {question.table}"
            )
        asking = ReadRequests(
            self.sides.server, self.sides.inventory, table, access, brought.asked, self.sides.prefix
        )
        rows: list[Item] = []
        for item in asking.items(values):
            cells = {
                ref.column: cell
                for ref in question.columns
                if (cell := item.get(names[ref])) is not None
            }
            rows += self.staging.matching(question.table, list(cells), list(cells.values()))
        return rows

    def _reads_of_others(
        self, table: str, accesses: Sequence[PatternAccess], *, forbids: bool
    ) -> dict[str, list[PatternAccess]]:
        """Returns the reads of dependent rows: those after the write, of other tables, or that
        forbid the write."""
        reads: dict[str, list[PatternAccess]] = {}
        is_behind = False
        for access in accesses:
            is_read = access.request in READS
            is_behind = is_behind or not is_read
            is_other = is_behind or access.forbids or self._entity(access).source != table
            if is_read and is_other and access.forbids == forbids:
                reads.setdefault(access.entity, []).append(access)
        return reads

    def _values_of(
        self, question: ResolvedQuery, entity: Entity, row: Item, statement: Modification
    ) -> dict[str, AttributeValue | None]:
        values: dict[str, AttributeValue | None] = {}
        for test in question.tests:
            (value,) = test.values
            assert isinstance(value, Parameter)
            ref = value.ref or test.ref
            values[value.name] = self._joined_value(entity, ref, row, statement)
        return values

    def _joined_value(
        self, entity: Entity, ref: ColumnRef, row: Item, statement: Modification
    ) -> AttributeValue | None:
        """Returns the row's column by which copies are found, which they know by a column of their
        own."""
        if ref.table == statement.table:
            return row.get(ref.column)
        for attribute in entity.attributes:
            for join in self.planner.joins(attribute):
                for before, after in zip(join.before, join.after, strict=True):
                    if before == ref and after.table == statement.table:
                        return row.get(after.column)
        return None


def passed_column(attribute: ItemAttribute, value: str) -> str:
    """Returns the column that a request passes for a key attribute that is a column.

    It is the attribute's own column, unless the model names another.
    """
    own = ColumnRef.parse(attribute.column or "").column
    fields = template_fields(value)
    return own if not fields or fields[0].name == attribute.name else fields[0].name


def _next_request(requests: dict[str, list[PatternAccess]], entity: str) -> PatternAccess | None:
    """Takes the next request for a type of items; the last one serves all that are left."""
    own = requests.get(entity, [])
    return own.pop(0) if len(own) > 1 else next(iter(own), None)


def is_referred_to(staging: StagedRows, question: ResolvedQuery, row: Item) -> bool:
    """True when another row refers to this one, by the columns that the question for such rows
    tests."""
    columns = [test.ref.column for test in question.tests]
    passed = (value for test in question.tests for value in test.values)
    refs = [other.ref for other in passed if isinstance(other, Parameter) and other.ref is not None]
    cells = [row[ref.column] for ref in refs if ref.column in row]
    if len(cells) < len(columns):
        return False
    return any(other != row for other in staging.matching(question.table, columns, cells))
