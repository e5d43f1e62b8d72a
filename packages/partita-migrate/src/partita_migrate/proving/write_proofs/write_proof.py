"""The proof of a write: the statement runs on a private copy, the requests on separate tables.

Both begin with the same rows. After every call, the copy's rows, made into items, must equal the
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from partita.client.client_errors import ClientError
from partita.database.item.attribute_values import Item
from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.designing.requests.write_planner import WritePlanner
from partita_migrate.model.design import Design, PatternAccess
from partita_migrate.model.keys.key_formats import NotEncodable
from partita_migrate.proving.parameter_sets.parameter_draw import ParameterSet
from partita_migrate.proving.proof_run.proof_results import AnswerDifference, PatternProof
from partita_migrate.proving.read_proofs.answer_rows import RequestNotPossible
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient
from partita_migrate.proving.write_proofs.row_finder import RowFinder
from partita_migrate.proving.write_proofs.write_cases import WriteCases
from partita_migrate.proving.write_proofs.write_sender import WriteSender
from partita_migrate.proving.write_proofs.write_sides import PREFIX, WriteSides
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.source_connection import SourceDatabase
from partita_migrate.understanding.statements.resolved_statements import Insertion, Modification

SHOWN_ITEMS = 4


class _SourceRefused(Exception):
    """Raised for values that the source itself refuses: there is nothing to compare with."""


class WriteProof:
    """Proves the write statements of a design."""

    def __init__(
        self,
        design: Design,
        inventory: Inventory,
        copy: SourceDatabase,
        server: DynamoDBClient,
        space: Path,
        prefix: str = PREFIX,
    ) -> None:
        self.sides = WriteSides(design, inventory, copy, server, space, prefix)
        self.staging = self.sides.staging
        self.reads = ReadPlanner(design, inventory)
        self.planner = WritePlanner(design, self.reads)
        self.finding = RowFinder(self.sides, self.planner)
        self.sending = WriteSender(self.sides, self.reads)
        self.cases = WriteCases(self.staging, inventory, self.planner)

    def close(self) -> None:
        self.sides.close()

    def of(
        self,
        pattern: AccessPattern,
        statement: Insertion | Modification,
        accesses: list[PatternAccess],
        line: str,
    ) -> PatternProof:
        shown = statement.tree.sql() if statement.tree is not None else ""
        try:
            self.sides.begin()
            sets = self.cases.of(statement)
        except NotServed as reason:
            return PatternProof(
                pattern=pattern.name,
                operation=pattern.operation,
                verdict="unserved",
                why=str(reason),
                statement=shown,
            )
        before = self.sides.server.calls
        differences: list[AnswerDifference] = []
        cases: list[str] = []
        refused = ""
        rows = 0
        for parameter_set in sets:
            self.sides.begin()
            try:
                count, what = self._run(statement, parameter_set, accesses)
            except _SourceRefused as reason:
                refused = str(reason)
                continue
            rows += count
            cases.append(f"{parameter_set.case}: {count} rows")
            if what:
                self.sides.drop()
                differences.append(self._difference(parameter_set, what, line))
        is_shown = rows > 0
        return PatternProof(
            pattern=pattern.name,
            operation=pattern.operation,
            verdict="differs" if differences else ("proven" if is_shown else "unproven"),
            why="" if is_shown else refused or _nothing_shown(cases),
            statement=shown,
            cases=cases,
            rows=rows,
            requests=self.sides.server.calls - before,
            differences=differences,
        )

    def _difference(
        self, parameter_set: ParameterSet, what: list[str], line: str
    ) -> AnswerDifference:
        return AnswerDifference(
            case=parameter_set.case,
            parameters={
                name: "NULL" if value is None else str(next(iter(value.values())))
                for name, value in parameter_set.values.items()
            },
            what=what[0],
            items=what[1 : SHOWN_ITEMS + 1],
            line=line,
        )

    def _run(
        self,
        statement: Insertion | Modification,
        parameter_set: ParameterSet,
        accesses: Sequence[PatternAccess],
    ) -> tuple[int, list[str]]:
        """Runs one call on both sides; returns how many rows it changed, and what differs
        afterwards."""
        assert statement.tree is not None
        old = {repr(row): row for row in self.staging.rows(statement.table)}
        sql, bound = self._sql(statement, parameter_set)
        try:
            # What the application reads before it writes.
            change = self._change(statement)
            rows = self.finding.find_rows(change, parameter_set, accesses)
            dependents = self.finding.dependents(change, rows, accesses)
            forbidden = self.finding.forbidden(change, rows, accesses)
        except (ClientError, NotEncodable, RequestNotPossible, NotServed) as error:
            return 0, [f"the rows were not found: {error}"]
        try:
            count = self.sides.copy.connection.execute(text(sql), bound).rowcount
        except IntegrityError as error:
            reason = " ".join(str(error.orig).split())
            return 0, self._refused(statement, parameter_set, reason, rows, forbidden, accesses)
        except SQLAlchemyError as error:
            reason = " ".join(str(error.__cause__ or error).split())[:200]
            raise _SourceRefused(f"the source refused the statement: {reason}") from error
        if forbidden:
            return count, [f"the requests refuse what the source accepts: {forbidden}"]
        self.sides.stage()
        new = [row for row in self.staging.rows(statement.table) if repr(row) not in old]
        try:
            strange = self._send(statement, parameter_set, (rows, dependents, new), accesses)
        except (ClientError, NotEncodable, RequestNotPossible, NotServed) as error:
            return count, [f"the requests were refused: {error}"]
        return count, strange or self.sides.differences()

    def _sql(
        self, statement: Insertion | Modification, parameter_set: ParameterSet
    ) -> tuple[str, dict[str, Any]]:
        assert statement.tree is not None
        tree = statement.tree.copy()
        is_replace = isinstance(statement, Insertion) and statement.on_conflict == "replace"
        if is_replace:
            tree.set("alternative", None)
        columns = {
            parameter.name: column
            for parameter in statement.parameters()
            if parameter.ref and (column := self.reads.column(parameter.ref)) is not None
        }
        sql, bound = self.sides.snapshot.bound(tree, parameter_set.values, columns)
        return (f"REPLACE{sql.removeprefix('INSERT')}" if is_replace else sql), bound

    def _change(self, statement: Insertion | Modification) -> Modification | None:
        """Returns the change that a statement makes to existing rows; None for an insert that only
        adds."""
        if isinstance(statement, Modification):
            return statement
        is_changing = statement.on_conflict in ("update", "replace")
        return self.planner.existing(statement) if is_changing else None

    def _send(
        self,
        statement: Insertion | Modification,
        parameter_set: ParameterSet,
        rows: tuple[list[Item], list[tuple[str, Item]], list[Item]],
        accesses: Sequence[PatternAccess],
    ) -> list[str]:
        """Sends the application's requests; returns what is wrong with the keys that they name.

        `rows` are the rows that were found, their dependents, and the rows that are new in the
        copy.
        """
        rows_found, dependents, new = rows
        written = self.sending.written(accesses)
        if isinstance(statement, Modification):
            strange = self.sending.strange_keys(accesses, statement.table, rows_found)
            self.sending.modify(statement, parameter_set, rows_found, dependents, written)
            return strange
        change = self._change(statement)
        if change is not None and statement.on_conflict == "update" and rows_found:
            self.sending.modify(change, parameter_set, rows_found, dependents, written)
            return self.sending.strange_keys(accesses, statement.table, rows_found)
        strange = self.sending.strange_keys(accesses, statement.table, new)
        if statement.on_conflict == "nothing" and not new:
            return self._refusal(statement, parameter_set, "the row is there already", written)
        # A row that was replaced by an equal one is written again too.
        again = [row for row in self.staging.rows(statement.table) if row in rows_found]
        self.sending.write(rows_found, [*new, *again], statement.table, written)
        return strange

    def _refused(
        self,
        statement: Insertion | Modification,
        parameter_set: ParameterSet,
        reason: str,
        rows_found: list[Item],
        forbidden: str,
        accesses: Sequence[PatternAccess],
    ) -> list[str]:
        """Checks that the design's conditions also refuse what the source has refused."""
        is_repeated = "UNIQUE" in reason.upper().replace("DUPLICATE", "UNIQUE")
        if isinstance(statement, Insertion):
            written = self.sending.written(accesses)
            return self._refusal(statement, parameter_set, reason, written) if is_repeated else []
        accepted_anyway = [f"the source refused it ({reason}), but the requests were accepted"]
        if any(access.forbids for access in accesses):
            is_lost = self.finding.is_referred_to(self._change(statement), rows_found, accesses)
            return [] if forbidden or is_lost else accepted_anyway
        lost = [unique for unique in self.sides.design.unique if unique.kept_by == "application"]
        if not is_repeated or any(unique.table == statement.table for unique in lost):
            return []
        try:
            self.sending.modify(
                statement, parameter_set, rows_found, [], self.sending.written(accesses)
            )
        except ClientError:
            return self.sides.differences()
        return accepted_anyway

    def _refusal(
        self, statement: Insertion, parameter_set: ParameterSet, reason: str, written: set[str]
    ) -> list[str]:
        row = self.sending.row(statement, parameter_set)
        try:
            self.sending.write([], [row], statement.table, written)
        except ClientError:
            return self.sides.differences()
        return [f"the source refused it ({reason}), but the requests were accepted"]


def _nothing_shown(cases: list[str]) -> str:
    return f"none of {len(cases)} calls wrote a row" if cases else "no row to try it with"
