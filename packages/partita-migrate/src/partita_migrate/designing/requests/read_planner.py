"""Plans the requests that answer a query: a key that leads to its rows, and the tests that are
left.

Every table and index of the design is tried with every type of item that has the rows. An access
path is taken only if its answer lacks nothing and has nothing too much. Tests that no key makes
become filters if the index has the attribute, else tests in the application. A limit goes into the
request only when nothing is filtered and the key gives the order.
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
    """Raised when requests would call two different values by the same name, whatever the
    design."""


@dataclass(frozen=True)
class ColumnsOfRequests:
    """The attributes in which the requests of a pattern return the columns of its query."""

    asked: ResolvedQuery
    """The query as the first request's items are asked."""
    attributes: list[dict[ColumnRef, str]]
    """For each request, the attributes that return columns."""
    held: dict[ColumnRef, str]
    """All columns that the items of the first request hold."""


class ReadPlanner(DesignedSource):
    def plan(
        self, query: ResolvedQuery, pattern: str, *, is_consistent: bool = False
    ) -> list[PatternAccess]:
        """Returns the requests. Raises NotServed with the reason when nothing answers the query."""
        if query.existences:
            return self._narrowed(query, pattern, is_consistent)
        if not query.alternatives:
            return self._plan(query, pattern, is_consistent)
        return self._merged(query, pattern, is_consistent)

    def _narrowed(
        self, query: ResolvedQuery, pattern: str, is_consistent: bool
    ) -> list[PatternAccess]:
        """Plans EXISTS and IN: as a join if possible, else as a request for each row."""
        try:
            if not exists_subqueries.repeats(self, query):
                return self.plan(
                    exists_subqueries.joined(query), pattern, is_consistent=is_consistent
                )
            requests = self.plan(
                exists_subqueries.distinct(self, query), pattern, is_consistent=is_consistent
            )
            reason_to_drop = "The application drops duplicate rows."
            first = structs.replace(_cut(requests[0], query), is_distinct=True)
            return [_because(first, reason_to_drop), *requests[1:]]
        except NotServed as reason:
            no_join = reason
        outer = exists_subqueries.plain(query)
        try:
            requests = self.plan(outer, pattern, is_consistent=is_consistent)
            checks = [
                self._check(existence, pattern, is_consistent) for existence in query.existences
            ]
        except NotServed as reason:
            raise NotServed(str(no_join if not outer.tests else reason)) from reason
        return [_cut(requests[0], query), *requests[1:], *checks]

    def _check(self, existence: Existence, pattern: str, is_consistent: bool) -> PatternAccess:
        """Returns the request that tests for one row whether related rows exist."""
        requests = self.plan(
            exists_subqueries.check(existence), pattern, is_consistent=is_consistent
        )
        if len(requests) > 1:
            raise NotServed("the existence test takes several requests for each row")
        purpose = f"For each row: whether {existence.query.table} has a related row."
        keeps = "none" if existence.is_negated else "some"
        return _because(structs.replace(requests[0], for_each=True, keeps=keeps), purpose)

    def _merged(
        self, query: ResolvedQuery, pattern: str, is_consistent: bool
    ) -> list[PatternAccess]:
        """Plans the alternatives of an OR separately; the application merges their rows."""
        _refuse_shared_names(query)
        requests: list[PatternAccess] = []
        homes = set()
        for number, branch in enumerate(branches(query), 1):
            first, *others = self._plan(branch, pattern, is_consistent)
            homes.add((first.table, first.entity))
            requests += [
                structs.replace(request, alternative=number) for request in (first, *others)
            ]
        if len(homes) > 1:
            raise NotServed("its alternatives (OR) are requests in items of different types")
        return requests

    def _plan(self, query: ResolvedQuery, pattern: str, is_consistent: bool) -> list[PatternAccess]:
        reasons: list[str] = []
        plans: list[PlannedRequests] = []
        for home, rebased_query in self._homes(query):
            # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.ReadConsistency.html
            if is_consistent and home.index is not None and home.index.kind == "global":
                reasons.append(f"{home.name} does not support consistent reads")
                continue
            try:
                plans.append(AccessPath(self, rebased_query, home).planned(pattern))
            except NotServed as reason:
                reasons.append(str(reason))
            if home.index is None and home.table.is_scanned:
                try:
                    plans.append(AccessPath(self, rebased_query, home).scanned(pattern))
                except NotServed as reason:
                    reasons.append(str(reason))
        if plans:
            return min(plans, key=lambda plan: plan.rank).requests
        raise NotServed(_most_telling(reasons, query))

    def brought(self, query: ResolvedQuery, accesses: Sequence[PatternAccess]) -> ColumnsOfRequests:
        first, *others = accesses
        for home, rebased_query in self._homes(query):
            is_home = (home.table.name, home.entity.name) == (first.table, first.entity)
            if not is_home or first.index != (home.index.name if home.index else None):
                continue
            way = AccessPath(self, rebased_query, home)
            attributes_by_column = {ref: way.brought(ref) for ref in self.columns}
            held = {
                ref: attribute.name
                for ref, attribute in attributes_by_column.items()
                if attribute is not None
            }
            attributes = [{ref: held[ref] for ref in query.columns if ref in held}]
            for access in others:
                table = self.design.table(access.table)
                entity = table.entity(access.entity) if table is not None else None
                attributes.append(own_attributes(entity) if entity is not None else {})
            return ColumnsOfRequests(rebased_query, attributes, held)
        return ColumnsOfRequests(query, [{} for _ in accesses], {})

    def types_met(self, access: PatternAccess) -> list[str]:
        """Returns other types of items in the range that a request reads and does not filter."""
        table = self.design.table(access.table)
        entity = table.entity(access.entity) if table is not None else None
        if table is None or entity is None or access.request != "Query":
            return []
        index = table.index(access.index) if access.index else None
        way = AccessPath(
            self, ResolvedQuery(table=entity.source), ItemLocation(table, index, entity)
        )
        name = type_attribute(table)
        if any(
            condition.attribute == name and condition.value == entity.name
            for condition in access.filter
        ):
            return []
        return way.types_met(access.key)

    def _homes(self, query: ResolvedQuery) -> Iterator[tuple[ItemLocation, ResolvedQuery]]:
        finest = self.finest(query)
        for table, entity in self.design.entities():
            if entity.is_guard:
                continue
            for rebased_query in self._asked_of(entity, query, finest):
                for index in (None, *table.indexes):
                    yield ItemLocation(table, index, entity), rebased_query

    def _asked_of(
        self, entity: Entity, query: ResolvedQuery, finest: str
    ) -> Iterator[ResolvedQuery]:
        if entity.source == finest and entity.rows == "each":
            yield rebased(query, finest)
        if entity.rows == "latest" and entity.source == finest:
            latest = self._latest(entity, query)
            if latest is not None:
                yield latest
        if query.joins or finest == entity.source:
            return
        if entity.rows == "latest" and self._is_per(entity, query.table):
            pairs = path_pairs(entity, query.table)
            joins = tuple(JoinedTable(table, own) for table, own in pairs.items())
            yield replace(query, table=entity.source, joins=joins)
            return
        # If the query names a single row, any item that repeats the row's columns can answer.
        pairs = path_pairs(entity, query.table)
        if pairs and self._names_one_row(query):
            joins = tuple(JoinedTable(table, own) for table, own in pairs.items())
            yield replace(query, table=entity.source, joins=joins, order=(), limit=1)

    def _is_per(self, entity: Entity, table: str) -> bool:
        """True when the entity has one item for each row of a table."""
        pairs = path_pairs(entity, table).get(table, ())
        per = {ColumnRef.parse(name) for name in entity.per}
        return bool(pairs) and {left for left, _ in pairs} == per

    def _latest(self, entity: Entity, query: ResolvedQuery) -> ResolvedQuery | None:
        """Returns the query for the latest row of one parent, as the item of that row answers
        it."""
        by = ColumnRef.parse(entity.latest_by or "")
        newest = [Sorting(by, is_descending=True)]
        per = {ColumnRef.parse(name) for name in entity.per}
        fixed = {ref for test in query.tests if test.is_fixing for ref in
                 query.same(test.ref)}  # fmt: skip
        tested = {test.ref for test in query.tests if not test.is_fixing}
        # Any other test could rule out the newest row, and the answer would be an older one.
        if list(query.order[:1]) != newest or query.limit != 1 or tested:
            return None
        others = {test.ref for test in query.tests} - {
            ref for column in per for ref in query.same(column)
        }
        return replace(query, order=()) if per <= fixed and not others else None

    def finest(self, query: ResolvedQuery) -> str:
        """Returns the table that has one row for each row of the answer. Joins lead up from it to
        the others."""
        tables = query.tables
        for table in tables:
            if all(self._leads_up(query, table, other) for other in tables if other != table):
                return table
        raise NotServed(
            f"the statement combines rows of {' and '.join(tables)}, and no item holds such a"
            " combination"
        )

    def _leads_up(self, query: ResolvedQuery, table: str, other: str) -> bool:
        """True when the query joins each row of one table to at most one row of another."""
        reached = {table}
        steps = [pairs for join in query.joins for pairs in [join.pairs]]
        changed = True
        # Joins are in the order of the statement; one may become usable only after a later one.
        while changed:
            changed = False
            for pairs in steps:
                for turned in (pairs, tuple((right, left) for left, right in pairs)):
                    before = {left.table for left, _ in turned}
                    after = {right.table for _, right in turned}
                    if not before <= reached or len(after) != 1 or after <= reached:
                        continue
                    (target,) = after
                    # Only a join to unique columns keeps the number of rows.
                    if self.is_unique(target, {right.column for _, right in turned}):
                        reached.add(target)
                        changed = True
        return other in reached

    def _names_one_row(self, query: ResolvedQuery) -> bool:
        fixed = {test.ref.column for test in query.tests if test.is_fixing}
        return self.is_unique(query.table, fixed)


def _cut(access: PatternAccess, query: ResolvedQuery) -> PatternAccess:
    """Moves limit and offset to the application, which applies them after it has dropped rows."""
    limit = query.limit if isinstance(query.limit, int) else None
    skips = query.offset if isinstance(query.offset, int) else 0
    return structs.replace(access, limit=None, first=limit, skips=skips)


def _because(access: PatternAccess, reason: str) -> PatternAccess:
    return structs.replace(access, why=f"{access.why} {reason}".strip())


def branches(query: ResolvedQuery) -> list[ResolvedQuery]:
    """Returns a query for each alternative. With an offset, each reads all of its rows."""
    queries = query.branches() or [query]
    if len(queries) > 1 and query.offset is not None:
        queries = [replace(branch, limit=None, offset=None) for branch in queries]
    return queries


def _refuse_shared_names(query: ResolvedQuery) -> None:
    """Refuses an OR whose alternatives compare joined columns with different values.

    A request may name such a value after either column, so the names would collide.
    """
    value_names: dict[str, str] = {}
    for test in query.all_tests:
        for value in test.values:
            if not isinstance(value, Parameter):
                continue
            for ref in query.same(test.ref):
                name = f"{ref}{test.suffix(value)}"
                if value_names.setdefault(name, value.name) != value.name:
                    raise ParameterNameClash(
                        f"its alternatives (OR) compare {value_names[name]} and {value.name},"
                        " which its joins make equal: requests cannot tell these values apart"
                    )


def rebased(query: ResolvedQuery, finest: str) -> ResolvedQuery:
    """Returns the same query on the table with one row for each row of the answer."""
    if query.table == finest:
        return query
    outer = [join.table for join in query.joins if join.is_outer]
    if outer:
        raise NotServed(
            f"the answer includes rows of {query.table} without a row of {outer[0]},"
            f" and {finest} has no items for them"
        )
    joins = tuple(_led_up(finest, query.joins))
    return replace(query, table=finest, joins=joins)


def _led_up(first: str, joins: Sequence[JoinedTable]) -> Iterator[JoinedTable]:
    """Yields the joins in an order in which each starts at a table that is already reached."""
    reached, waiting = {first}, [join.pairs for join in joins]
    while waiting:
        for pairs in waiting:
            turned = tuple((right, left) for left, right in pairs)
            for direction in (pairs, turned):
                before, after = (
                    {left.table for left, _ in direction},
                    {right.table for _, right in direction},
                )
                if before <= reached and len(after) == 1:
                    break
            else:
                continue
            yield JoinedTable(min(after), direction)
            reached |= after
            waiting.remove(pairs)
            break
        else:
            raise NotServed("its joins do not lead from one table to the next")


def _most_telling(reasons: Sequence[str], query: ResolvedQuery) -> str:
    """Returns the reason of the access path that came closest."""
    if not query.tests:
        return "it passes no value of any column: it is a scan"
    first = [reason for reason in reasons if "no key leads" not in reason]
    return (first or list(reasons) or [f"{query.table} has no items of its own"])[0]
