"""The request that answers a question: a key that leads to its rows, and what is left to test.

Every table and index of the design is tried with every type of item that has the rows. A way is
taken only if nothing is missing from its answer and nothing is too much in it: tests that no key
makes are filters, where the index has the attribute, else the application's; a limit is the
request's own only when nothing is filtered and the order is the key's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from partita_migrate.designing.requests import exists_subqueries
from partita_migrate.designing.requests.access_paths import AccessPath, PlannedRequests
from partita_migrate.designing.requests.item_locations import (
    DesignedSource,
    ItemLocation,
    NotServed,
    own_attributes,
    path_pairs,
)
from partita_migrate.model.design import Entity, PatternAccess, type_attribute
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.resolved_statements import (
    Existence,
    JoinedTable,
    Parameter,
    ResolvedQuery,
    Sorting,
)


class ParameterNameClash(NotServed):
    """Requests would call two values by one name, whatever the design."""


@dataclass(frozen=True)
class ColumnsOfRequests:
    """How the columns of a question come with the requests of a pattern."""

    asked: ResolvedQuery
    """The question as it is asked of the items of the first request."""
    attributes: list[dict[ColumnRef, str]]
    """By request: the attributes that bring columns."""
    held: dict[ColumnRef, str]
    """All columns that the items of the first request hold."""


class ReadPlanner(DesignedSource):
    def plan(
        self, question: ResolvedQuery, pattern: str, *, is_consistent: bool = False
    ) -> list[PatternAccess]:
        """NotServed with the reason when nothing answers."""
        if question.existences:
            return self._narrowed(question, pattern, is_consistent)
        if not question.alternatives:
            return self._plan(question, pattern, is_consistent)
        return self._merged(question, pattern, is_consistent)

    def _narrowed(
        self, question: ResolvedQuery, pattern: str, is_consistent: bool
    ) -> list[PatternAccess]:
        """EXISTS and IN: a join where there is one, else a request for each row."""
        try:
            if not exists_subqueries.repeats(self, question):
                return self.plan(
                    exists_subqueries.joined(question), pattern, is_consistent=is_consistent
                )
            found = self.plan(
                exists_subqueries.distinct(self, question), pattern, is_consistent=is_consistent
            )
            said = "The application keeps one of the rows that come several times."
            first = structs.replace(_cut(found[0], question), is_distinct=True)
            return [_because(first, said), *found[1:]]
        except NotServed as reason:
            no_join = reason
        asked = exists_subqueries.plain(question)
        try:
            found = self.plan(asked, pattern, is_consistent=is_consistent)
            checks = [
                self._check(existence, pattern, is_consistent) for existence in question.existences
            ]
        except NotServed as reason:
            raise NotServed(str(no_join if not asked.tests else reason)) from reason
        return [_cut(found[0], question), *found[1:], *checks]

    def _check(self, existence: Existence, pattern: str, is_consistent: bool) -> PatternAccess:
        """Whether rows are there, for one row."""
        found = self.plan(exists_subqueries.check(existence), pattern, is_consistent=is_consistent)
        if len(found) > 1:
            raise NotServed("whether rows are there takes several requests for each row")
        said = f"For each row, whether {existence.question.table} has one."
        keeps = "none" if existence.is_negated else "some"
        return _because(structs.replace(found[0], for_each=True, keeps=keeps), said)

    def _merged(
        self, question: ResolvedQuery, pattern: str, is_consistent: bool
    ) -> list[PatternAccess]:
        """The requests of each alternative; the application puts their rows together."""
        _refuse_shared_names(question)
        found: list[PatternAccess] = []
        homes = set()
        for number, branch in enumerate(branches(question), 1):
            first, *others = self._plan(branch, pattern, is_consistent)
            homes.add((first.table, first.entity))
            found += [structs.replace(one, alternative=number) for one in (first, *others)]
        if len(homes) > 1:
            raise NotServed("its alternatives (OR) are found in items of different types")
        return found

    def _plan(
        self, question: ResolvedQuery, pattern: str, is_consistent: bool
    ) -> list[PatternAccess]:
        reasons: list[str] = []
        found: list[PlannedRequests] = []
        for home, asked in self._homes(question):
            if is_consistent and home.index is not None and home.index.kind == "global":
                reasons.append(f"{home.name} has no consistent reads")
                continue
            try:
                found.append(AccessPath(self, asked, home).planned(pattern))
            except NotServed as reason:
                reasons.append(str(reason))
            if home.index is None and home.table.is_scanned:
                try:
                    found.append(AccessPath(self, asked, home).scanned(pattern))
                except NotServed as reason:
                    reasons.append(str(reason))
        if found:
            return min(found, key=lambda one: one.rank).requests
        raise NotServed(_most_telling(reasons, question))

    def brought(
        self, question: ResolvedQuery, accesses: Sequence[PatternAccess]
    ) -> ColumnsOfRequests:
        first, *others = accesses
        for home, asked in self._homes(question):
            is_home = (home.table.name, home.entity.name) == (first.table, first.entity)
            if not is_home or first.index != (home.index.name if home.index else None):
                continue
            way = AccessPath(self, asked, home)
            known = {ref: way.brought(ref) for ref in self.columns}
            held = {ref: one.name for ref, one in known.items() if one is not None}
            attributes = [{ref: held[ref] for ref in question.columns if ref in held}]
            for access in others:
                table = self.design.table(access.table)
                entity = table.entity(access.entity) if table is not None else None
                attributes.append(own_attributes(entity) if entity is not None else {})
            return ColumnsOfRequests(asked, attributes, held)
        return ColumnsOfRequests(question, [{} for _ in accesses], {})

    def types_met(self, access: PatternAccess) -> list[str]:
        """Other types of items that lie in the range a request reads, and are not filtered out."""
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        if table is None or entity is None or access.request != "Query":
            return []
        index = table.index(access.index) if access.index else None
        way = AccessPath(
            self, ResolvedQuery(table=entity.source), ItemLocation(table, index, entity)
        )
        name = type_attribute(table)
        if any(one.attribute == name and one.value == entity.name for one in access.filter):
            return []
        return way.types_met(access.key)

    def _homes(self, question: ResolvedQuery) -> Iterator[tuple[ItemLocation, ResolvedQuery]]:
        finest = self.finest(question)
        for table, entity in self.design.entities():
            if entity.is_guard:
                continue
            for asked in self._asked_of(entity, question, finest):
                for index in (None, *table.indexes):
                    yield ItemLocation(table, index, entity), asked

    def _asked_of(
        self, entity: Entity, question: ResolvedQuery, finest: str
    ) -> Iterator[ResolvedQuery]:
        if entity.source == finest and entity.rows == "each":
            yield rebased(question, finest)
        if entity.rows == "latest" and entity.source == finest:
            latest = self._latest(entity, question)
            if latest is not None:
                yield latest
        if question.joins or finest == entity.source:
            return
        if entity.rows == "latest" and self._is_per(entity, question.table):
            pairs = path_pairs(entity, question.table)
            joins = tuple(JoinedTable(table, own) for table, own in pairs.items())
            yield replace(question, table=entity.source, joins=joins)
            return
        # One of the items that hold a row's columns is enough, where one row is asked for.
        pairs = path_pairs(entity, question.table)
        if pairs and self._names_one_row(question):
            joins = tuple(JoinedTable(table, own) for table, own in pairs.items())
            yield replace(question, table=entity.source, joins=joins, order=(), limit=1)

    def _is_per(self, entity: Entity, table: str) -> bool:
        """Whether an entity has one item for each row of a table."""
        pairs = path_pairs(entity, table).get(table, ())
        per = {ColumnRef.parse(name) for name in entity.per}
        return bool(pairs) and {left for left, _ in pairs} == per

    def _latest(self, entity: Entity, question: ResolvedQuery) -> ResolvedQuery | None:
        """The newest row of one parent, as its item answers for it."""
        by = ColumnRef.parse(entity.latest_by or "")
        newest = [Sorting(by, is_descending=True)]
        per = {ColumnRef.parse(name) for name in entity.per}
        given = {ref for test in question.tests if test.is_fixing for ref in
                 question.same(test.ref)}  # fmt: skip
        tested = {test.ref for test in question.tests if not test.is_fixing}
        if list(question.order[:1]) != newest or question.limit != 1 or tested:
            return None
        others = {test.ref for test in question.tests} - {
            ref for one in per for ref in question.same(one)
        }
        return replace(question, order=()) if per <= given and not others else None

    def finest(self, question: ResolvedQuery) -> str:
        """The table of which each row of the answer has one; the others are reached upwards."""
        tables = question.tables
        for table in tables:
            if all(self._leads_up(question, table, other) for other in tables if other != table):
                return table
        raise NotServed(
            f"the rows of {' and '.join(tables)} are combined, and no item holds such a pair"
        )

    def _leads_up(self, question: ResolvedQuery, table: str, other: str) -> bool:
        """Whether a row of one table is joined to at most one of another."""
        reached = {table}
        steps = [pairs for join in question.joins for pairs in [join.pairs]]
        changed = True
        while changed:
            changed = False
            for pairs in steps:
                for turned in (pairs, tuple((right, left) for left, right in pairs)):
                    before = {left.table for left, _ in turned}
                    after = {right.table for _, right in turned}
                    if not before <= reached or len(after) != 1 or after <= reached:
                        continue
                    (target,) = after
                    if self.is_unique(target, {right.column for _, right in turned}):
                        reached.add(target)
                        changed = True
        return other in reached

    def _names_one_row(self, question: ResolvedQuery) -> bool:
        given = {test.ref.column for test in question.tests if test.is_fixing}
        return self.is_unique(question.table, given)


def _cut(access: PatternAccess, question: ResolvedQuery) -> PatternAccess:
    """Rows are taken once it is known which stay."""
    limit = question.limit if isinstance(question.limit, int) else None
    skips = question.offset if isinstance(question.offset, int) else 0
    return structs.replace(access, limit=None, first=limit, skips=skips)


def _because(access: PatternAccess, said: str) -> PatternAccess:
    return structs.replace(access, why=f"{access.why} {said}".strip())


def branches(question: ResolvedQuery) -> list[ResolvedQuery]:
    """A question for each alternative; with rows to skip, each is asked for all that it has."""
    found = question.branches() or [question]
    if len(found) > 1 and question.offset is not None:
        found = [replace(one, limit=None, offset=None) for one in found]
    return found


def _refuse_shared_names(question: ResolvedQuery) -> None:
    """Joins make columns equal: a request may name either, for values that are not the same."""
    known: dict[str, str] = {}
    for test in question.all_tests:
        for value in test.values:
            if not isinstance(value, Parameter):
                continue
            for ref in question.same(test.ref):
                name = f"{ref}{test.suffix(value)}"
                if known.setdefault(name, value.name) != value.name:
                    raise ParameterNameClash(
                        f"its alternatives (OR) compare {known[name]} and {value.name}, which its"
                        " joins make equal: requests cannot tell these values apart"
                    )


def rebased(question: ResolvedQuery, finest: str) -> ResolvedQuery:
    """The same question, asked of the table whose rows the answer has; joins lead up from it."""
    if question.table == finest:
        return question
    outer = [join.table for join in question.joins if join.is_outer]
    if outer:
        raise NotServed(
            f"rows of {question.table} without a row of {outer[0]} belong to the answer too,"
            f" and {finest}'s items have none for them"
        )
    joins = tuple(_led_up(finest, question.joins))
    return replace(question, table=finest, joins=joins)


def _led_up(first: str, joins: Sequence[JoinedTable]) -> Iterator[JoinedTable]:
    """The same joins, each from a table that is reached already to the next."""
    reached, waiting = {first}, [join.pairs for join in joins]
    while waiting:
        for pairs in waiting:
            turned = tuple((right, left) for left, right in pairs)
            for one in (pairs, turned):
                before, after = {left.table for left, _ in one}, {right.table for _, right in one}
                if before <= reached and len(after) == 1:
                    break
            else:
                continue
            yield JoinedTable(min(after), one)
            reached |= after
            waiting.remove(pairs)
            break
        else:
            raise NotServed("its joins do not lead from one table to the next")


def _most_telling(reasons: Sequence[str], question: ResolvedQuery) -> str:
    """The reason of the way that came nearest."""
    if not question.tests:
        return "it asks for no value of any column: it is a scan"
    first = [reason for reason in reasons if "no key leads" not in reason]
    return (first or list(reasons) or [f"{question.table} has no items of its own"])[0]
