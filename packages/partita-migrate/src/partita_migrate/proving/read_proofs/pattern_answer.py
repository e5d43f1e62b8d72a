"""Merges the rows of all requests of a pattern, including those of its alternatives (OR)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from partita.database.item.attribute_values import Item
from partita_migrate.designing.requests.read_planner import ReadPlanner, branches
from partita_migrate.model.design import READS, Design, PatternAccess
from partita_migrate.proving.read_proofs.answer_rows import (
    RequestNotPossible,
    Row,
    Values,
    comparable,
    count_of,
    nulls_before,
)
from partita_migrate.proving.read_proofs.read_requests import ReadRequests
from partita_migrate.proving.read_proofs.row_combiner import FetchedItems, RowCombiner
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.statements.resolved_statements import ResolvedQuery


class PatternAnswer:
    """Sends the requests of one pattern and makes rows of their items."""

    def __init__(
        self,
        server: DynamoDBClient,
        inventory: Inventory,
        design: Design,
        planner: ReadPlanner,
        question: ResolvedQuery,
        accesses: Sequence[PatternAccess],
        prefix: str = "",
    ) -> None:
        """Raises NotServed or RequestNotPossible when the accesses do not answer the statement."""
        self.question = question
        self.planner = planner
        self.dialect = inventory.dialect
        self.parts: list[tuple[ReadRequests, RowCombiner]] = []
        for branch, own in zip(
            branches(question), _group_by_alternative(accesses, question), strict=True
        ):
            first, *others = own
            table = design.table(first.table)
            if first.request not in READS or table is None:
                raise RequestNotPossible(f"{first.request} is not a read")
            brought = planner.brought(branch, own)
            self.parts.append(
                (
                    ReadRequests(server, inventory, table, first, brought.asked, prefix),
                    RowCombiner(server, design, branch, brought, others, prefix),
                )
            )

    def rows(self, values: Values, *, page_items: int | None = None) -> list[Row]:
        """Returns the rows; `page_items` reads in pages of that size."""
        if len(self.parts) == 1:
            ((asking, combining),) = self.parts
            return combining.rows(asking.items(values, page_items=page_items))
        rows_by_item: dict[str, Row] = {}
        fetched: FetchedItems = {}
        for asking, combining in self.parts:
            for item in asking.items(values, page_items=page_items):
                for row in combining.rows([item], fetched):
                    rows_by_item.setdefault(_identity(asking, item), row)
        rows = sorted(rows_by_item.values(), key=cmp_to_key(self._compared))
        skips = count_of(self.question.offset, values) or 0
        first = count_of(self.question.limit, values)
        return rows[skips : None if first is None else first + skips]

    def _compared(self, left: Row, right: Row) -> int:
        """Compares rows in the statement's order, as the source sorts."""
        places = {ref: place for place, ref in enumerate(self.question.columns)}
        for sorting in self.question.order:
            sign = -1 if sorting.is_descending else 1
            value, other_value = left[places[sorting.ref]], right[places[sorting.ref]]
            if value is None or other_value is None:
                if value is not other_value:
                    return sign * nulls_before(self.dialect) * (1 if value is None else -1)
                continue
            fold = self.planner.fold(sorting.ref)
            ours, theirs = comparable(value, fold), comparable(other_value, fold)
            if ours != theirs:
                return sign * (-1 if ours < theirs else 1)
        return 0


def _group_by_alternative(
    accesses: Sequence[PatternAccess], question: ResolvedQuery
) -> list[list[PatternAccess]]:
    """Groups accesses by alternative; each group begins with the request that finds its items."""
    groups: dict[int, list[PatternAccess]] = {}
    for access in accesses:
        groups.setdefault(access.alternative, []).append(access)
    alternatives = [groups[number] for number in sorted(groups)]
    if any(not access.for_each for own in alternatives for access in own[1:]):
        raise RequestNotPossible("it takes several requests, whose rows an application combines")
    if len(alternatives) != max(len(question.alternatives), 1):
        raise RequestNotPossible(
            f"the statement has {max(len(question.alternatives), 1)} alternatives, and the model"
            f" requests for {len(alternatives)}"
        )
    return alternatives


def _identity(asking: ReadRequests, item: Item) -> str:
    return repr([item.get(key.name) for key in asking.table.keys])
