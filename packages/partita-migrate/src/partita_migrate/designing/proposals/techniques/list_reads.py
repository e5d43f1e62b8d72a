"""Serves reads that give no key value: lists of all rows, of open ones, of the latest ones.

The ways that an expert would think of are tried on the design: a Scan of a tiny table, one constant
partition for a short list, a sparse index for a status or an open end, partitions by date for the
latest rows. The cheapest one that answers the statement is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from partita.foundation.service_limits import (
    GB,
    MB,
    PARTITION_WRITE_UNITS,
    READ_UNIT_BYTES,
    WRITE_UNIT_BYTES,
)
from partita_migrate.costing.amounts import amount
from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.keys.index_plans import WRITE_UNIT_IN_READ_UNITS
from partita_migrate.designing.proposals.pattern_usage import DATES, KEY_LOAD
from partita_migrate.designing.proposals.techniques.list_indexes import ListKey, with_list_index
from partita_migrate.designing.requests.exact_requests import never_null
from partita_migrate.designing.requests.exists_subqueries import check
from partita_migrate.designing.requests.item_locations import NotServed
from partita_migrate.designing.requests.read_planner import ReadPlanner, branches
from partita_migrate.designing.requests.write_planner import WritePlanner
from partita_migrate.model.design import Design, Entity, PatternAccess, TableDesign, Technique
from partita_migrate.model.items.row_conditions import RowCondition
from partita_migrate.model.keys.date_buckets import BUCKETS, bucket_count
from partita_migrate.model.keys.key_formats import plain_text
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.statements.literal_values import fold_of, folded, literal_value
from partita_migrate.understanding.statements.pattern_statements import PatternStatements
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Constant,
    Insertion,
    Modification,
    NotExact,
    ResolvedQuery,
    Statement,
)

SCAN_BYTES_MAX = 1 * MB
"""The size of one page of a Scan."""
LIST_BYTES_MAX = 10 * MB
"""The most that one constant partition may hold: ten pages."""
ROWS_PER_BUCKET = 10
"""The desired rows per bucket, as a multiple of the limit, so that nearly always one request is
enough."""


@dataclass(frozen=True)
class ListOption:
    """One way to serve a pattern, tried on the design."""

    name: str
    design: Design
    place: str
    why: str
    limit: str
    read_units: float
    """Read units of one call."""
    write_units: float
    """Write units per second for updates of the index."""
    rate: float

    @property
    def cost(self) -> float:
        """Returns the cost in read units per second."""
        return self.rate * self.read_units + self.write_units * WRITE_UNIT_IN_READ_UNITS

    @property
    def price(self) -> str:
        text = f"{amount(self.read_units)} read units a call"
        if self.write_units:
            text += f", and {amount(self.write_units, 3)} write units a second to keep the index"
        return text


def with_lists(design: Design, inputs: DesignInputs) -> Design:
    """Returns the design with a technique for every read that no key serves, the most frequent
    reads first."""
    statements = PatternStatements(SchemaLookup(inputs.volumes.inventory))
    # Later patterns can use the indexes of earlier ones; the frequent ones decide what these look
    # like.
    for pattern in sorted(inputs.patterns, key=lambda pattern: -pattern.calls_per_second):
        try:
            statement = statements.of(pattern)
        except NotExact:
            continue
        if isinstance(statement, ResolvedQuery):
            inside = [check(existence) for existence in statement.existences]
            # Global indexes are never consistent, so they cannot serve a consistent pattern.
            for query in [*inside, *branches(statement)] if not pattern.is_consistent else ():
                design = _served(design, inputs, pattern, query)
            continue
        rows_query = _changed(design, inputs, statement)
        if rows_query is not None and any(test.is_equality for test in rows_query.tests):
            design = _served(design, inputs, pattern, rows_query, is_written=True)
        for copied in _copied(design, inputs, statement):
            design = _served(design, inputs, pattern, copied, is_written=True)
    return design


def _copied(design: Design, inputs: DesignInputs, statement: Statement) -> list[ResolvedQuery]:
    """Returns queries for rows that repeat a changed column and hold the key of the changed row."""
    if not isinstance(statement, Modification):
        return []
    planner = WritePlanner(design, ReadPlanner(design, inputs.volumes.inventory))
    try:
        return [copy.query for copy in planner.copies(statement) if not copy.query.joins]
    except NotServed:
        return []


def _changed(design: Design, inputs: DesignInputs, statement: Statement) -> ResolvedQuery | None:
    """Returns the query for the rows that a write changes."""
    planner = WritePlanner(design, ReadPlanner(design, inputs.volumes.inventory))
    if isinstance(statement, Insertion) and statement.on_conflict in ("update", "replace"):
        try:
            statement = planner.existing(statement)
        except NotServed:
            return None
    return planner.rows_query(statement) if isinstance(statement, Modification) else None


def _served(
    design: Design,
    inputs: DesignInputs,
    pattern: AccessPattern,
    query: ResolvedQuery,
    *,
    is_written: bool = False,
) -> Design:
    """Serves one query, unless a key does already. With `is_written` the rows are changed, which
    does not justify an index of all rows."""
    planner = ReadPlanner(design, inputs.volumes.inventory, never_null(inputs.volumes))
    try:
        planner.plan(query, pattern.name)
        return design
    except NotServed:
        pass
    try:
        finest = planner.finest(query)
    except NotServed:
        return design
    options = [
        option
        for table, entity in design.entities()
        if entity.source == finest and entity.rows == "each" and not entity.is_guard
        for options in [_Options(design, inputs, pattern, query, table, entity)]
        for option in (options.by_value() if is_written else options.all())
    ]
    if not options:
        return design
    best, *others = sorted(options, key=lambda option: option.cost)
    return replace(
        best.design, techniques=[*design.techniques, _as_technique(pattern, best, others)]
    )


def _as_technique(pattern: AccessPattern, best: ListOption, others: list[ListOption]) -> Technique:
    if others:
        instead = f"{others[0].name}: {others[0].price}"
    else:
        instead = "none: no other way answers the pattern within the limits"
    return Technique(
        name=best.name,
        patterns=[pattern.name],
        place=best.place,
        why=best.why,
        cost=best.price,
        limit=best.limit,
        next_best=instead,
    )


class _Options:
    """The ways to read a list of one type of items."""

    def __init__(
        self,
        design: Design,
        inputs: DesignInputs,
        pattern: AccessPattern,
        query: ResolvedQuery,
        table: TableDesign,
        entity: Entity,
    ) -> None:
        self.design = design
        self.inputs = inputs
        self.pattern = pattern
        self.query = query
        self.table = table
        self.entity = entity
        self.rows = inputs.volumes.items(entity)
        self.item_bytes = inputs.volumes.item_bytes(entity)
        self.rows_written = inputs.usage.rows_written_per_second(entity.source)
        self.order = self._order()

    def all(self) -> Iterator[ListOption]:
        yield from self._scan()
        for condition in self._conditions():
            share = self.inputs.volumes.condition_share(self.entity.source, condition)
            yield from self._list(ListKey(self.order, condition), share, "sparse index", (
                f"Only rows with {condition} are in it, about {share:.0%} of them: an item enters"
                " and leaves the index as its row changes."
            ))  # fmt: skip
        yield from self._list(
            ListKey(self.order),
            1.0,
            "one constant partition",
            f"The list of {self.entity.name} is short: one partition key holds all of it, in"
            " order.",
        )
        yield from self._buckets()
        yield from self.by_value()

    # The ways.

    def _scan(self) -> Iterator[ListOption]:
        size = self.rows * self.item_bytes
        sources = {entity.source for entity in self.table.entities}
        if sources != {self.entity.source} or size > SCAN_BYTES_MAX:
            return
        scanned = replace(self.table, is_scanned=True)
        tables = [scanned if table is self.table else table for table in self.design.tables]
        design = replace(self.design, tables=tables)
        if self._access(design) is None:
            return
        yield self._option(
            "priced Scan",
            design,
            self.table.name,
            f"{self.table.name} is tiny: reading all of it costs less than keeping an index.",
            f"{SCAN_BYTES_MAX // MB} MB, about {SCAN_BYTES_MAX / self.item_bytes:,.0f} items: one"
            f" page; there are {self.rows:,.0f}",
            size,
            0.0,
        )

    def _list(self, key: ListKey, share: float, name: str, why: str) -> Iterator[ListOption]:
        list_bytes = self.rows * share * self.item_bytes
        written = self._write_units() * share
        if list_bytes > LIST_BYTES_MAX or written > PARTITION_WRITE_UNITS * KEY_LOAD:
            return
        limit = (
            f"{LIST_BYTES_MAX // MB} MB and {PARTITION_WRITE_UNITS * KEY_LOAD:,.0f} write units a"
            f" second in one partition; today {list_bytes / MB:,.2f} MB and {written:,.2f}"
        )
        yield from self._with_index(key, share, name, why, limit)

    def _buckets(self) -> Iterator[ListOption]:
        """Yields partitions by the date that the pattern sorts by, or passes a range of."""
        ref = self.order[0] if self.order else None
        measured = self.inputs.volumes.column(ref) if ref is not None else None
        if ref is None or measured is None or not (measured.least and measured.most):
            return
        written = self._write_units()
        if self.inputs.volumes.kind(ref) not in DATES or written > PARTITION_WRITE_UNITS:
            return  # All new rows go to the newest partition, however short its period.
        bucket = self._bucket(measured.least, measured.most)
        key = ListKey(self.order, None, bucket, measured.least, measured.most)
        each = self.rows / max(bucket_count(bucket, measured.least, measured.most), 1)
        yield from self._with_index(
            key,
            1.0,
            "partitions by date",
            f"One partition for each {BUCKET_NAMES[bucket]} of {ref.column}, about {each:,.0f}"
            " rows: the latest rows are in the newest partition and the ones before it.",
            f"{PARTITION_WRITE_UNITS:,} write units a second in the newest partition, today"
            f" {written:,.2f}; a partition of {each * self.item_bytes / GB:,.3f} GB",
        )

    def by_value(self) -> Iterator[ListOption]:
        """Yields an index by given values that no key covers: one side of an OR, or a text in lower
        case."""
        tests = [
            test
            for test in self.query.tests
            if test.is_equality and test.ref.table == self.entity.source
        ]
        if not tests:
            return
        values = tuple((test.ref, test.form) for test in tests)
        names = " and ".join(ref.column for ref, _ in values)
        is_folded = any(form for _, form in values)
        why = f"An index by {names}, which no other key covers."
        if is_folded:
            why = (
                f"A key holds {names} in the form that the statement compares, beside the"
                " column itself."
            )
        yield from self._with_index(
            ListKey(self.order, values=values),
            1.0,
            "folded key" if is_folded else "index by value",
            why,
            f"{PARTITION_WRITE_UNITS:,} write units a second for one value of {names}",
            self._rows_found([ref.column for ref, _ in values]),
        )

    def _rows_found(self, columns: list[str]) -> float:
        """Returns the rows with one value of some columns. The pattern's item count is not used if
        possible: it covers all alternatives of an OR."""
        skew = self.inputs.volumes.skew(self.entity.source, columns)
        rows = skew.rows_per_call or skew.rows_per_value if skew is not None else 0.0
        return max(rows or self.pattern.items, 1.0)

    def _bucket(self, first: str, last: str) -> str:
        rows_wanted = max(self.pattern.limit or 1, 10) * ROWS_PER_BUCKET
        for bucket in reversed(BUCKETS):
            if self.rows / max(bucket_count(bucket, first, last), 1) >= rows_wanted:
                return bucket
        return BUCKETS[0]

    def _with_index(
        self,
        key: ListKey,
        share: float,
        name: str,
        why: str,
        limit: str,
        read_rows: float | None = None,
    ) -> Iterator[ListOption]:
        made = with_list_index(
            self.design, self.inputs, self.table, self.entity, key, self.query, why
        )
        access = self._access(made[0]) if made is not None else None
        if made is None or access is None or access.index != made[1].name:
            return
        design, index = made
        table = design.table(self.table.name)
        entity = table.entity(self.entity.name) if table is not None else None
        assert table is not None and entity is not None
        each = self.inputs.volumes.index_bytes(table, index, entity)
        rows = self.rows * share if read_rows is None else read_rows
        read = min(rows, access.limit) * each if access.limit else rows * each
        yield self._option(
            name,
            design,
            f"{table.name}, {index.name}",
            why,
            limit,
            read,
            self.rows_written * share * math.ceil(each / WRITE_UNIT_BYTES),
            access.requests,
        )

    def _option(
        self,
        name: str,
        design: Design,
        place: str,
        why: str,
        limit: str,
        read_bytes: float,
        write_units: float,
        requests: float = 1,
    ) -> ListOption:
        units = max(math.ceil(read_bytes / READ_UNIT_BYTES), requests) / 2
        rate = self.pattern.calls_per_second
        return ListOption(name, design, place, why, limit, units, write_units, rate)

    def _access(self, design: Design) -> PatternAccess | None:
        volumes = self.inputs.volumes
        planner = ReadPlanner(design, volumes.inventory, never_null(volumes))
        try:
            return planner.plan(self.query, self.pattern.name)[0]
        except NotServed:
            return None

    # What is asked.

    def _order(self) -> tuple[ColumnRef, ...]:
        """Returns the row's own columns that the query sorts by, or the column of its range."""
        columns = []
        for sorting in self.query.order:
            if sorting.ref.table != self.entity.source:
                break
            columns.append(sorting.ref)
        if columns:
            return tuple(columns)
        ranges = (test.ref for test in self.query.tests if _is_range(test))
        return tuple(ref for ref in ranges if ref.table == self.entity.source)[:1]

    def _conditions(self) -> Iterator[RowCondition]:
        """Yields the tests with values that are the same in every call."""
        inventory = self.inputs.volumes.inventory
        table = inventory.table(self.entity.source)
        columns = {column.name: column for column in table.columns} if table is not None else {}
        for test in self.query.tests:
            column = columns.get(test.ref.column)
            if test.ref.table != self.entity.source or column is None:
                continue
            if test.operator in ("is null", "is not null"):
                yield RowCondition(column.name, test.operator)
            elif test.is_fixing and isinstance(test.values[0], Constant):
                value = literal_value(column, test.values[0].value, inventory.dialect)
                if value is not None:
                    fold = fold_of(column, inventory.dialect)
                    text = plain_text(folded(value, fold))
                    yield RowCondition(column.name, "=", text, fold)

    def _write_units(self) -> float:
        """Returns write units per second for all writes of this type of item."""
        return self.rows_written * math.ceil(self.item_bytes / WRITE_UNIT_BYTES)


BUCKET_NAMES = dict(zip(BUCKETS, ("year", "month", "day"), strict=True))


def _is_range(test: ColumnTest) -> bool:
    return test.operator in ("<", "<=", ">", ">=", "between")
