"""Answers statements with EXISTS or IN (SELECT ...) by the requests of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from partita_migrate.designing.requests import exists_subqueries
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.model.design import PatternAccess
from partita_migrate.proving.read_proofs.answer_rows import (
    RequestNotPossible,
    Row,
    Values,
    count_of,
)
from partita_migrate.proving.read_proofs.pattern_answer import PatternAnswer
from partita_migrate.understanding.statements.resolved_statements import ResolvedQuery

MakeAnswer = Callable[[ResolvedQuery, Sequence[PatternAccess]], PatternAnswer]
"""Makes the answer of a statement without EXISTS."""


class ExistsFilter:
    """Reads rows and keeps those for which the subquery's rows exist, each once."""

    def __init__(
        self,
        planner: ReadPlanner,
        question: ResolvedQuery,
        accesses: Sequence[PatternAccess],
        make_answer: MakeAnswer,
    ) -> None:
        checks = [access for access in accesses if access.keeps]
        others = [access for access in accesses if not access.keeps]
        self.question = question
        self.is_cut = True
        self.checks: list[tuple[ResolvedQuery, PatternAnswer, bool]] = []
        if checks:
            self._add_checks(checks, make_answer)
            self.plain_question = exists_subqueries.plain(question)
        elif exists_subqueries.repeats(planner, question):
            self.plain_question = exists_subqueries.distinct(planner, question)
        else:
            self.plain_question = exists_subqueries.joined(question)
            self.is_cut = False
        self.answering = make_answer(self.plain_question, others)

    def _add_checks(self, checks: list[PatternAccess], make_answer: MakeAnswer) -> None:
        if len(checks) != len(self.question.existences):
            raise RequestNotPossible(
                f"the statement has {len(self.question.existences)} SELECTs inside it, and the"
                f" model checks {len(checks)}"
            )
        for existence, access in zip(self.question.existences, checks, strict=True):
            subquestion = exists_subqueries.check(existence)
            self.checks.append(
                (subquestion, make_answer(subquestion, [access]), access.keeps == "none")
            )

    def rows(self, values: Values, *, page_items: int | None = None) -> list[Row]:
        rows = self.answering.rows(values, page_items=page_items)
        if not self.is_cut:
            return rows
        kept: dict[str, Row] = {}
        for number, row in enumerate(rows):
            if all(self._passes(check, row, values) for check in self.checks):
                kept.setdefault(str(number) if self.checks else repr(row), row)
        skips = count_of(self.question.offset, values) or 0
        first = count_of(self.question.limit, values)
        cut = list(kept.values())[skips : None if first is None else first + skips]
        places = [self.plain_question.columns.index(ref) for ref in self.question.columns]
        return [tuple(row[place] for place in places) for row in cut]

    def _passes(
        self, check: tuple[ResolvedQuery, PatternAnswer, bool], row: Row, values: Values
    ) -> bool:
        subquestion, answering, is_negated = check
        outer_values = {
            parameter.name: row[self.plain_question.columns.index(parameter.outer)]
            for parameter in subquestion.parameters()
            if parameter.outer is not None
        }
        return bool(answering.rows({**values, **outer_values})) != is_negated


def answer_of(
    planner: ReadPlanner,
    question: ResolvedQuery,
    accesses: Sequence[PatternAccess],
    make_answer: MakeAnswer,
) -> PatternAnswer | ExistsFilter:
    """Returns what answers a statement with the model's requests."""
    if not question.existences:
        return make_answer(question, accesses)
    return ExistsFilter(planner, question, accesses, make_answer)
