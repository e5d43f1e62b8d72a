"""An access path: one way to the rows of a query, with its requests, their order and their
number."""

from __future__ import annotations

from dataclasses import dataclass

from partita_migrate.designing.requests.key_segments import KeyField, is_sharded, segments
from partita_migrate.designing.requests.request_filters import RequestFilters
from partita_migrate.model.design import AccessCondition, PatternAccess
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.resolved_statements import Sorting


@dataclass(frozen=True)
class PlannedRequests:
    requests: list[PatternAccess]
    rank: tuple[float, ...]


class AccessPath(RequestFilters):
    """The access path of one query by way of one location."""

    def planned(self, pattern: str) -> PlannedRequests:
        conditions = [self._partition()]
        sort, following = self._sort()
        conditions += sort
        self._keep_types_apart(conditions)
        if self.home.index is not None:
            self._refuse_absent_rows()
        self._add_joined_rows()
        for test in self.left:
            self._filter(test)
        lookups = self._lookups(pattern)
        return self._request(pattern, conditions, following, lookups)

    def scanned(self, pattern: str) -> PlannedRequests:
        """Reads the whole of a small table."""
        if len(self.home.table.entities) > 1:
            self._keep_types_apart([])
        self._add_joined_rows()
        for test in self.left:
            self._filter(test)
        return self._request(pattern, [], [], self._lookups(pattern))

    def _request(
        self,
        pattern: str,
        conditions: list[AccessCondition],
        following: list[KeyField],
        lookups: list[PatternAccess],
    ) -> PlannedRequests:
        query, home = self.query, self.home
        order = self._wanted_order()
        is_sorted = self._is_sorted(order, following) and self.requests == 1
        is_whole = bool(self.filters or self.tested)
        is_counted = query.limit is not None or query.offset is not None
        if order and not is_sorted:
            for sorting in order:
                self._refuse_collation(sorting.ref)
                self._refuse_declared_order(sorting.ref)
                self._held(sorting.ref)
        is_scan = not conditions
        # GetItem needs the whole key. It has no filter, and an index or a sharded key rules it out.
        is_get = (
            home.index is None
            and not is_whole
            and all(condition.comparison == "=" for condition in conditions)
            and len(conditions) == len(home.keys)
            and not any(is_sharded(segments(self.entity, key)) for key in self.keys)
        )
        limit = query.limit if isinstance(query.limit, int) else None
        skips = query.offset if isinstance(query.offset, int) else 0
        # DynamoDB applies Limit before filters. With a filter, a sort or several requests, the
        # application has to read on and cut the result itself.
        is_direct = not is_whole and (is_sorted or not order) and self.requests == 1 and not skips
        access = PatternAccess(
            pattern=pattern,
            request="Scan" if is_scan else "GetItem" if is_get else "Query",
            table=home.table.name,
            index=home.index.name if home.index else None,
            entity=self.entity.name,
            key=conditions,
            filter=self.filters,
            tested=self.tested,
            is_descending=bool(order) and order[0].is_descending and is_sorted and not is_get,
            limit=limit if is_direct and not is_get else None,
            first=limit if not is_direct and not is_get else None,
            skips=skips,
            sorts=[] if is_sorted or (is_get and self.requests == 1) else self._sorts(order),
            requests=self.requests * self._buckets_read(),
            why=self._why(order, is_sorted=is_sorted, is_get=is_get, is_scan=is_scan),
        )
        # The best path is the smallest tuple. Order of preference: no Scan, few lookups, GetItem,
        # little read in vain, few requests, sorted by DynamoDB, the table rather than an index.
        rank = (
            is_scan,
            len(lookups),
            not is_get,
            is_counted and bool(order) and not is_sorted,
            len([condition for condition in self.filters if condition.value != self.entity.name]),
            len(self.tested),
            self.requests,
            bool(order) and not is_sorted,
            len(self.filters),
            home.index is not None,
            -len(conditions),
        )
        return PlannedRequests([access, *lookups], tuple(map(float, rank)))

    def _wanted_order(self) -> list[Sorting]:
        """Returns the query's order without columns that have one value in the whole answer."""
        fixed = {
            ref for test in self.query.tests if test.is_fixing for ref in self.query.same(test.ref)
        }
        order = [sorting for sorting in self.query.order if sorting.ref not in fixed]
        fixed_columns = {ref.column for ref in fixed if ref.table == self.query.table}
        return [] if self.planner.is_unique(self.query.table, fixed_columns) else order

    def _is_sorted(self, order: list[Sorting], following: list[KeyField]) -> bool:
        if not order:
            return True
        if len({sorting.is_descending for sorting in order}) > 1 or len(order) > len(following):
            return False
        attribute = self.keys[1]
        parts = segments(self.entity, attribute)
        return all(
            sorting.ref in self.query.same(field.ref)
            and self._keeps_order(attribute, parts, field)
            and (field.ref.table == self.entity.source or self._is_followed(attribute))
            and self._nulls_are_in_place(field.ref)
            for sorting, field in zip(order, following, strict=False)
        )

    def _nulls_are_in_place(self, ref: ColumnRef) -> bool:
        """True when NULLs sort in keys as in the source. Keys have them first; PostgreSQL has them
        last."""
        column = self.planner.column(ref)
        if column is None or not column.is_nullable or ref in self.planner.never_null:
            return True
        tested = {other for test in self.query.tests if test.operator != "is null" for other in
                  self.query.same(test.ref)}  # fmt: skip
        return ref in tested or self.planner.inventory.dialect != "postgresql"

    def _sorts(self, order: list[Sorting]) -> list[str]:
        return [
            f"{self._held(sorting.ref).name}{' desc' if sorting.is_descending else ''}"
            for sorting in order
        ]

    def _buckets_read(self) -> int:
        """Returns the number of buckets to read: with a limit the newest, and the one before it if
        that has too few rows."""
        is_limited = self.query.limit is not None and not (self.filters or self.tested)
        return min(self.buckets, 2) if is_limited else self.buckets

    def _why(self, order: list[Sorting], *, is_sorted: bool, is_get: bool, is_scan: bool) -> str:
        whys = []
        if is_scan:
            whys.append(f"{self.home.name} is small: a Scan reads all of it.")
        if self.buckets > 1:
            whys.append("One request for each bucket, in order, until there are enough rows.")
        if self.requests > 1:
            whys.append(f"One request for each {' and each '.join(self.each)}, at the same time.")
        named = [
            condition.attribute for condition in self.filters if condition.value != self.entity.name
        ]
        if named:
            whys.append(f"Filtered by {' and '.join(named)} after reading.")
        if self.tested:
            names = " and ".join(condition.attribute for condition in self.tested)
            whys.append(f"The application tests {names} itself.")
        if order and not is_sorted and not is_get:
            names = " and ".join(sorting.ref.column for sorting in order)
            whys.append(f"The application sorts by {names} once it has all of them.")
        if self.query.finish:
            whys.append(f"The application {self.query.finish}.")
        return " ".join(whys)
