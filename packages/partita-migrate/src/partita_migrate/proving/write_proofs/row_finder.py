"""The rows that a write is about, and others with them: as the requests of the model find them."""

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
    def __init__(self, sides: WriteSides, planner: WritePlanner) -> None:
        self.sides = sides
        self.planner = planner
        self.reads = planner.reads
        self.staging = sides.staging

    def found(
        self, statement: Modification | None, one: ParameterSet, accesses: Sequence[PatternAccess]
    ) -> list[Item]:
        """Rows that the requests of the model find, as the copy has them."""
        if statement is None:
            return []
        question = self.planner.rows_query(statement)
        return self._rows_by(question, one.values, self._finding(statement.table, accesses))

    def dependents(
        self, statement: Modification | None, found: list[Item], accesses: Sequence[PatternAccess]
    ) -> list[tuple[str, Item]]:
        """(table, row) of what repeats or refers to the rows, as the model's requests find it."""
        if statement is None:
            return []
        known: dict[str, tuple[str, Item]] = {}
        requests = self._reads_of_others(statement.table, accesses, forbids=False)
        for copies in self.planner.copies(statement):
            access = _next(requests, copies.entity.name)
            if access is None:
                raise RequestNotPossible(
                    f"no request finds the items of {copies.entity.name} that change too"
                )
            for row in found:
                values = self._values_of(copies.query, copies.entity, row, statement)
                for other in self._rows_by(copies.query, values, access):
                    known[repr((copies.entity.source, other))] = (copies.entity.source, other)
        return list(known.values())

    def forbidden(
        self, statement: Modification | None, found: list[Item], accesses: Sequence[PatternAccess]
    ) -> str:
        """The row that keeps others from being deleted, if a request of the model finds one."""
        if statement is None or statement.changes:
            return ""
        requests = self._reads_of_others(statement.table, accesses, forbids=True)
        for question in self.planner.restricting(statement.table):
            names = [one.name for _, one in self.sides.entities(question.table)]
            access = next((one for name in names if (one := _next(requests, name))), None)
            if access is None:
                continue
            for row in found:
                values = self._values_of(question, self._entity(access), row, statement)
                for other in self._rows_by(question, values, access):
                    if other != row:
                        return f"{question.table} {other}"
        return ""

    def is_referred_to(
        self, statement: Modification | None, found: list[Item], accesses: Sequence[PatternAccess]
    ) -> bool:
        """Whether rows refer to these that no request of the model looks for: a named loss."""
        if statement is None:
            return False
        asked = {self._entity(one).source for one in accesses if one.forbids}
        return any(
            is_referred_to(self.staging, question, row)
            for question in self.planner.restricting(statement.table)
            if question.table not in asked
            for row in found
        )

    def _finding(self, table: str, accesses: Sequence[PatternAccess]) -> PatternAccess:
        """The request that finds the rows: one before the write, else the key of the write."""
        for access in accesses:
            entity = self._entity(access)
            if access.forbids or entity.source != table:
                continue
            if access.request in READS:
                return access
            plain = {one.name: one for one in entity.attributes if one.column}
            key = [
                replace(one, value=f"{{{passed_column(plain[one.attribute], one.value)}}}")
                if one.attribute in plain
                else one
                for one in access.key
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
                f"the items of {access.entity} do not tell the rows of {question.table}"
            )
        asking = ReadRequests(
            self.sides.server, self.sides.inventory, table, access, brought.asked, self.sides.prefix
        )
        found: list[Item] = []
        for item in asking.items(values):
            known = {
                ref.column: cell
                for ref in question.columns
                if (cell := item.get(names[ref])) is not None
            }
            found += self.staging.matching(question.table, list(known), list(known.values()))
        return found

    def _reads_of_others(
        self, table: str, accesses: Sequence[PatternAccess], *, forbids: bool
    ) -> dict[str, list[PatternAccess]]:
        """Those of the table itself are behind the write, or forbid it."""
        found: dict[str, list[PatternAccess]] = {}
        is_behind = False
        for access in accesses:
            is_read = access.request in READS
            is_behind = is_behind or not is_read
            is_other = is_behind or access.forbids or self._entity(access).source != table
            if is_read and is_other and access.forbids == forbids:
                found.setdefault(access.entity, []).append(access)
        return found

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
        """What the copies are found by: a column of the row, under the name of their own."""
        if ref.table == statement.table:
            return row.get(ref.column)
        for attribute in entity.attributes:
            for join in self.planner.joins(attribute):
                for before, after in zip(join.before, join.after, strict=True):
                    if before == ref and after.table == statement.table:
                        return row.get(after.column)
        return None


def passed_column(attribute: ItemAttribute, value: str) -> str:
    """The column whose value a request passes for a key that is a column: its own, under the name
    of the attribute, or the one that the model says."""
    own = ColumnRef.parse(attribute.column or "").column
    fields = template_fields(value)
    return own if not fields or fields[0].name == attribute.name else fields[0].name


def _next(requests: dict[str, list[PatternAccess]], entity: str) -> PatternAccess | None:
    """The next request for a type of items; the last one is for all that are left."""
    own = requests.get(entity, [])
    return own.pop(0) if len(own) > 1 else next(iter(own), None)


def is_referred_to(staging: StagedRows, question: ResolvedQuery, row: Item) -> bool:
    """Whether another row refers to one, by the columns that a question for such rows tests."""
    columns = [test.ref.column for test in question.tests]
    passed = (value for test in question.tests for value in test.values)
    refs = [one.ref for one in passed if isinstance(one, Parameter) and one.ref is not None]
    cells = [row[ref.column] for ref in refs if ref.column in row]
    if len(cells) < len(columns):
        return False
    return any(one != row for one in staging.matching(question.table, columns, cells))
