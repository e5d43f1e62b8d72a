"""Merges statements of the same kind into one pattern, with a name that says what it does.

Two statements are one pattern if they find rows of the same table in the same way; the columns that
they read can differ. The name contains everything that distinguishes patterns, so that it is the
same in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from partita_migrate.understanding.analysis import significant
from partita_migrate.understanding.patterns.access_patterns import (
    AccessPattern,
    IgnoredStatements,
    Patterns,
    UnexplainedStatement,
)
from partita_migrate.understanding.patterns.mining.mined_statements import read_statement
from partita_migrate.understanding.patterns.mining.name_scopes import NotAnAccess, NotUnderstood
from partita_migrate.understanding.patterns.mining.normalized_statements import (
    TEXT_CHARS_MAX,
    NormalizedStatement,
    shapes_of,
)
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.mining.table_access import TableAccess
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.workspace.readable_lists import enumerated

SHAPES_MAX = 20_000
"""The maximum of parsed forms. A log that writes table names into its statements has no end of
forms."""


LOAD_ROWS = 500
"""An INSERT of this many rows loads data. Its rate must not be paid for every month."""
FILLED_SHARES = (0.9, 1.1)
"""Inserts within a day as a share of all rows. If they are that close, a dump was loaded row by
row: a table whose rows come and go would have had many more."""
HOUR = 3600
DAY = 24 * HOUR
WINDOW_SECONDS_MIN = 60
"""A rate over a shorter time means nothing."""


class RanStatement(NamedTuple):
    """A statement that the database has run, with the number of its calls."""

    statement: str
    calls: float = 1
    rows: float | None = None
    """Rows that all calls together sent or changed, if the server counts them."""
    examined: float | None = None


@dataclass
class StatementTally:
    """All that was run of one shape."""

    shape: NormalizedStatement
    is_load: bool = False
    calls: float = 0
    members: float = 0
    rows: float = 0
    counted_calls: float = 0
    """Calls whose rows were counted."""
    examined: float = 0

    def add(self, shape: NormalizedStatement, ran: RanStatement) -> None:
        self.calls += ran.calls
        self.members += shape.members * ran.calls
        # The rows of a cursor are counted where they are fetched.
        if ran.rows is not None and not shape.text.upper().startswith("DECLARE"):
            self.rows += ran.rows
            self.counted_calls += ran.calls
        self.examined += ran.examined or 0


Groups = dict[str, list[tuple[TableAccess, StatementTally]]]
"""Accesses and tallies that become one pattern, by its name."""


@dataclass
class PatternMiner:
    """Collects statements and turns them into patterns."""

    schema: SchemaLookup
    tallies: dict[tuple[str, bool], StatementTally] = field(default_factory=dict)
    """By normalized text. Loads of data are kept apart from the same statement with few rows."""
    calls_beyond: float = 0
    """Calls of forms beyond the maximum."""

    def add(self, ran: RanStatement) -> None:
        for shape in shapes_of(ran.statement, self.schema.dialect):
            self._add_shape(shape, ran)

    def _add_shape(self, shape: NormalizedStatement, ran: RanStatement) -> None:
        is_load = _is_load(shape, ran)
        tally = self.tallies.get((shape.text, is_load))
        if tally is None:
            if len(self.tallies) >= SHAPES_MAX:
                self.calls_beyond += ran.calls
                return
            tally = self.tallies[shape.text, is_load] = StatementTally(shape, is_load)
        tally.add(shape, ran)

    def patterns(self, window_seconds: float, origin: str) -> Patterns:
        groups: Groups = {}
        unexplained: list[UnexplainedStatement] = []
        noise: dict[str, float] = {}
        for tally in self.tallies.values():
            try:
                accesses = read_statement(tally.shape, self.schema)
                if tally.is_load:
                    raise NotUnderstood(_load_reason(tally))
                for access in accesses:
                    groups.setdefault(name_of(access), []).append((access, tally))
                # The rows of a UNION are divided among its parts.
                tally.rows /= len(accesses)
            except NotAnAccess as kind:
                noise[str(kind)] = noise.get(str(kind), 0) + tally.calls
            except NotUnderstood as reason:
                unexplained.append(_unexplained(tally, str(reason)))
        if self.calls_beyond:
            unexplained.append(
                UnexplainedStatement(
                    statement="(many)",
                    calls=self.calls_beyond,
                    reason=f"there are more than {SHAPES_MAX} different statements",
                )
            )
        seconds = max(window_seconds, WINDOW_SECONDS_MIN)
        filled = self._filled(groups) if seconds < DAY else {}
        merged = [_merge(name, group, seconds, filled) for name, group in groups.items()]
        return Patterns(
            origin=f"{origin}{_window(seconds)}",
            window_seconds=round(seconds, 3),
            patterns=sorted(merged, key=lambda pattern: (-pattern.calls_per_second, pattern.name)),
            unexplained=sorted(
                unexplained, key=lambda statement: (-statement.calls, statement.statement)
            ),
            ignored=[
                IgnoredStatements(kind=kind, calls=calls) for kind, calls in sorted(noise.items())
            ],
            references=_references(groups),
        )

    def _filled(self, groups: Groups) -> dict[str, str]:
        """Returns tables that have hardly any rows but the inserted ones, each with a sentence for
        people."""
        inserted: dict[str, float] = {}
        rows: dict[str, int] = {}
        for access, tally in (pair for group in groups.values() for pair in group):
            if access.operation == "insert":
                name = access.table.name
                inserted[name] = inserted.get(name, 0) + max(tally.rows, tally.members, tally.calls)
                rows[name] = access.table.row_count
        return {
            name: f"{_rows(count)} inserted, as many as {name} has: that filled the table and does"
            " not count as a rate; write the rate that you expect"
            for name, count in inserted.items()
            if rows[name] and FILLED_SHARES[0] <= count / rows[name] <= FILLED_SHARES[1]
        }


def _references(groups: Groups) -> list[str]:
    accesses = (access for group in groups.values() for access, _ in group)
    return sorted({reference for access in accesses for reference in access.references})


def _rows(count: float) -> str:
    return "1 row was" if count == 1 else f"{count:,.0f} rows were"


def _window(seconds: float) -> str:
    """Says over how long the statements were counted. Less than an hour says little about a
    month."""
    if seconds >= HOUR:
        return f" ({seconds / HOUR:,.0f} hours)"
    minutes = round(seconds / 60)
    last = "minute" if minutes <= 1 else f"{minutes} minutes"
    return f" (only statements of the last {last}: check the rates before you rely on them)"


def _is_load(shape: NormalizedStatement, ran: RanStatement) -> bool:
    if not shape.text.upper().startswith(("INSERT", "REPLACE")):
        return False
    rows = ran.rows / ran.calls if ran.rows is not None and ran.calls else 0
    return max(rows, shape.members) >= LOAD_ROWS


def _load_reason(tally: StatementTally) -> str:
    rows = max(tally.rows, tally.members) / tally.calls
    return f"it loads {rows:,.0f} rows at once; if that happens regularly, write the pattern"


def _unexplained(tally: StatementTally, reason: str) -> UnexplainedStatement:
    return UnexplainedStatement(
        statement=tally.shape.text[:TEXT_CHARS_MAX], calls=tally.calls, reason=reason
    )


def _merge(
    name: str,
    group: Sequence[tuple[TableAccess, StatementTally]],
    seconds: float,
    filled: dict[str, str],
) -> AccessPattern:
    access = group[0][0]
    calls = sum(tally.calls for _, tally in group)
    load = filled.get(access.table.name, "") if access.operation == "insert" else ""
    busiest = max(group, key=lambda member: (member[1].calls, member[1].shape.text))[1]
    # A remark that holds for some of the statements only would be wrong for the pattern.
    remarks = set.intersection(*(set(member.remarks) for member, _ in group))
    return replace(
        access.pattern(_items(access, group)),
        name=name,
        description="; ".join([*sorted(remarks), *([load] if load else [])]),
        joins=sorted({join for member, _ in group for join in member.joins}),
        columns=_columns(member for member, _ in group),
        values=_values(group),
        calls_per_second=0.0 if load else significant(calls / seconds, 6),
        is_consistent=all(member.is_consistent for member, _ in group),
        source="mined",
        statement=busiest.shape.text[:TEXT_CHARS_MAX],
    )


def _columns(accesses: Iterable[TableAccess]) -> list[str]:
    """Returns all columns that one of the accesses reads; an empty list stands for all columns."""
    columns: set[str] = set()
    for access in accesses:
        if not access.columns:
            return []
        columns.update(access.columns)
    return sorted(columns)


def _items(access: TableAccess, group: Sequence[tuple[TableAccess, StatementTally]]) -> float:
    """Returns the items per call: as counted by the server, or as the statement implies, or 0."""
    tallies = [tally for _, tally in group]
    calls = sum(tally.calls for tally in tallies)
    counted = sum(tally.counted_calls for tally in tallies)
    examined = sum(tally.examined for tally in tallies)
    members = sum(tally.members for tally in tallies) / calls if calls else 1
    if access.operation == "aggregate" and examined:
        return significant(examined / calls)
    if access.operation != "aggregate" and counted:
        rows = sum(tally.rows for tally in tallies) / counted
        if access.category == "range of items":
            return significant(rows)
        # A write or lookup that found nothing still costs the units of one item.
        return significant(max(rows, 1))
    if access.is_by_distinct_value or access.operation == "insert":
        return significant(max(members, 1))
    # An aggregate applies its limit after it has counted all rows.
    return 0.0 if access.operation == "aggregate" else float(access.limit or 0)


def _values(group: Sequence[tuple[TableAccess, StatementTally]]) -> float:
    """Returns the values per call, as far as statements tell: MySQL's digests hide the length of
    lists."""
    calls = sum(tally.calls for _, tally in group)
    values = (tally.members if access.is_among else tally.calls for access, tally in group)
    return max(significant(sum(values) / calls), 1.0) if calls else 1.0


def name_of(access: TableAccess) -> str:
    """Returns a short name with everything that distinguishes this access from others."""
    table = access.table
    if access.operation == "insert":
        name = f"insert into {table.name}"
        return f"{name} ({access.remarks[0]})" if access.remarks else name
    conditions = _found_by(access, table)
    if access.operation == "update":
        columns = ", ".join(_short(column, table) for column in access.columns)
        return f"update {columns} of {table.name}{conditions}"
    if access.operation == "delete":
        return f"delete {table.name}{conditions}"
    start = {"aggregate": f"figures of {table.name}"}.get(access.operation, table.name)
    with_joins = f" with {enumerated(access.joins)}" if access.joins else ""
    through = f" through {enumerated(access.through)}" if access.through else ""
    locked = ", locked" if access.is_consistent else ""
    return f"{start}{with_joins}{conditions}{through}{_ordered(access, table)}{locked}"


def _found_by(access: TableAccess, table: SourceTable) -> str:
    parts = []
    if access.hierarchy:
        parts.append(f" below one along {_short(access.hierarchy, table)}")
    if access.equality:
        parts.append(f" by {enumerated(_by(column, access) for column in access.equality)}")
    if access.range:
        word = "and range" if access.equality else "by range"
        parts.append(f" {word} of {enumerated(_short(column, table) for column in access.range)}")
    if access.filters:
        parts.append(
            f", filtered by {enumerated(_short(column, table) for column in access.filters)}"
        )
    if not parts and access.operation != "insert":
        parts.append(", all")
    return "".join(parts)


def _by(column: str, access: TableAccess) -> str:
    form = access.forms.get(column)
    name = _short(column, access.table)
    return f"{form} of {name}" if form else name


def _ordered(access: TableAccess, table: SourceTable) -> str:
    order = ""
    if access.order_by:
        order = f", {_direction(access, table)}"
    if access.limit is not None:
        order += f", first {access.limit}"
    return order


def _direction(access: TableAccess, table: SourceTable) -> str:
    kinds = {column.name: column.kind for column in table.columns}
    names = [_short(column, table) for column in access.order_by]
    if len(names) == 1 and kinds.get(names[0]) in ("date", "datetime"):
        direction = "newest first" if access.is_descending else "oldest first"
        # With a single time column it is clear which one is meant.
        times = [name for name, kind in kinds.items() if kind in ("date", "datetime")]
        return direction if len(times) == 1 else f"{direction} by {names[0]}"
    return f"in order of {enumerated(names)}" + (", greatest first" if access.is_descending else "")


def _short(column: str, table: SourceTable) -> str:
    """Returns a column; one of the pattern's own table without the table's name."""
    ref = ColumnRef.parse(column)
    return ref.column if ref.table == table.name else column
