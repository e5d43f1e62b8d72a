"""The proof of a read: the statement runs on the source, the design's requests run on the
tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as replaced

from partita.client.client_errors import ClientError
from partita_migrate.designing.requests import exists_subqueries
from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.model.design import Design, PatternAccess
from partita_migrate.model.keys.key_formats import NotEncodable
from partita_migrate.proving.parameter_sets.parameter_draw import ParameterDraw, ParameterSet
from partita_migrate.proving.proof_run.proof_results import AnswerDifference, PatternProof
from partita_migrate.proving.read_proofs.answer_comparison import (
    SHOWN_ROWS,
    difference,
    format_row,
    plain,
)
from partita_migrate.proving.read_proofs.answer_rows import RequestNotPossible, Row
from partita_migrate.proving.read_proofs.exists_filter import ExistsFilter, answer_of
from partita_migrate.proving.read_proofs.pattern_answer import PatternAnswer
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient
from partita_migrate.proving.sandbox.source_snapshot import SourceSnapshot
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.source_connection import SourceError
from partita_migrate.understanding.statements.resolved_statements import Parameter, ResolvedQuery

DIFFERENCES_MAX = 5
PAGE_ITEMS = 2


class ReadProof:
    """Proves the read statements of a design."""

    def __init__(
        self,
        design: Design,
        inventory: Inventory,
        snapshot: SourceSnapshot,
        server: DynamoDBClient,
        draw: ParameterDraw,
        prefix: str,
    ) -> None:
        self.design = design
        self.inventory = inventory
        self.snapshot = snapshot
        self.server = server
        self.draw = draw
        self.prefix = prefix
        self.planner = ReadPlanner(design, inventory)

    def _finish(self, question: ResolvedQuery) -> str:
        is_folded = any(self.planner.fold(ref) for ref in question.columns)
        note = ", comparing texts as their collation does" if question.finish and is_folded else ""
        return question.finish + note

    def of(
        self,
        pattern: AccessPattern,
        question: ResolvedQuery,
        accesses: Sequence[PatternAccess],
        line: str,
    ) -> PatternProof:
        try:
            finest = self.planner.finest(exists_subqueries.plain(question))
            sets = self.draw.sets(question, finest)
            answering = answer_of(self.planner, question, accesses, self._answering)
        except (NotServed, RequestNotPossible) as reason:
            return self._unproven(pattern, question, str(reason))
        before = self.server.calls
        differences: list[AnswerDifference] = []
        cases: list[str] = []
        total = 0
        for position, parameter_set in enumerate(sets):
            try:
                rows, differs = self._compare(
                    question, parameter_set, answering, is_paged=not position
                )
            except SourceError as error:
                if self.snapshot.source.is_lost:
                    raise
                if not position:
                    return self._unproven(
                        pattern, question, f"the source refused the statement: {error}"
                    )
                # There is nothing to compare with for values that the source does not accept.
                cases.append(f"{parameter_set.case}: refused by the source")
                continue
            cases.append(f"{parameter_set.case}: {rows} rows")
            total += rows
            if differs is not None and len(differences) < DIFFERENCES_MAX:
                differences.append(replaced(differs, line=line))
        return PatternProof(
            pattern=pattern.name,
            operation=pattern.operation,
            verdict="differs" if differences else "proven",
            why="" if total or differences else "every answer was empty, which proves little",
            statement=self._statement(question),
            cases=cases,
            rows=total,
            requests=self.server.calls - before,
            finish=self._finish(question),
            differences=differences,
        )

    def _answering(
        self, question: ResolvedQuery, accesses: Sequence[PatternAccess]
    ) -> PatternAnswer:
        return PatternAnswer(
            self.server,
            self.inventory,
            self.design,
            self.planner,
            question,
            accesses,
            self.prefix,
        )

    def _unproven(self, pattern: AccessPattern, question: ResolvedQuery, why: str) -> PatternProof:
        return PatternProof(
            pattern=pattern.name,
            operation=pattern.operation,
            verdict="unproven",
            why=why,
            statement=self._statement(question),
        )

    def _statement(self, question: ResolvedQuery) -> str:
        return question.tree.sql() if question.tree is not None else ""

    def _compare(
        self,
        question: ResolvedQuery,
        parameter_set: ParameterSet,
        answering: PatternAnswer | ExistsFilter,
        *,
        is_paged: bool,
    ) -> tuple[int, AnswerDifference | None]:
        sql = self.snapshot.answer(question, parameter_set.values)
        columns = [str(ref) for ref in question.columns]
        try:
            rows = answering.rows(parameter_set.values)
            what = self._difference(question, parameter_set, sql, rows)
            # A request that is right in one page may be wrong in several, when a limit or a filter
            # is applied to each of them.
            if not what and is_paged:
                paged = answering.rows(parameter_set.values, page_items=PAGE_ITEMS)
                what = self._difference(question, parameter_set, sql, paged)
                what = f"read in pages of {PAGE_ITEMS}: {what}" if what else ""
        except (ClientError, NotEncodable, RequestNotPossible) as error:
            return len(sql), self._differs(
                parameter_set, f"the request was refused: {error}", sql, [], columns
            )
        return len(sql), self._differs(parameter_set, what, sql, rows, columns) if what else None

    def _difference(
        self, question: ResolvedQuery, parameter_set: ParameterSet, sql: list[Row], items: list[Row]
    ) -> str:
        limit = question.limit
        if isinstance(limit, Parameter):
            value = parameter_set.values.get(limit.name)
            limit = int(value["N"]) if value is not None else None
        is_cut = (limit is not None and len(sql) >= limit) or question.offset is not None
        folds = {ref: self.planner.fold(ref) for ref in question.columns}
        what = difference(question, sql, items, is_cut=is_cut, folds=folds)
        if not what and is_cut and items:
            what = self._are_among_all(question, parameter_set, items)
        return what

    def _are_among_all(
        self, question: ResolvedQuery, parameter_set: ParameterSet, items: list[Row]
    ) -> str:
        """Checks rows that tie where the limit cuts: each must be in the statement's answer without
        its limit."""
        assert question.tree is not None
        tree = question.tree.copy()
        tree.set("limit", None)
        tree.set("offset", None)
        whole = replace(question, limit=None, offset=None, tree=tree)
        rows = self.snapshot.answer(whole, parameter_set.values)
        all_rows = {repr(_normal(row)) for row in rows}
        strange = [row for row in items if repr(_normal(row)) not in all_rows]
        return f"{len(strange)} rows are not in the answer without its limit" if strange else ""

    def _differs(
        self,
        parameter_set: ParameterSet,
        what: str,
        sql: list[Row],
        items: list[Row],
        columns: list[str],
    ) -> AnswerDifference:
        return AnswerDifference(
            case=parameter_set.case,
            parameters={
                name: "NULL" if value is None else str(next(iter(value.values())))
                for name, value in parameter_set.values.items()
            },
            what=what,
            sql=[format_row(row, columns) for row in sql[:SHOWN_ROWS]],
            items=[format_row(row, columns) for row in items[:SHOWN_ROWS]],
        )


def _normal(row: Row) -> list[str]:
    return [plain(value) for value in row]
