"""Reads one pattern as a person wrote it: members have many aliases, and mistakes are reported with
their line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from msgspec.structs import replace

from partita.errors import PartitaError
from partita_migrate.understanding.patterns.access_patterns import AccessPattern, Operation
from partita_migrate.understanding.patterns.call_rates import rate_per_second
from partita_migrate.understanding.patterns.mining.mined_statements import (
    known_table,
    read_statement,
)
from partita_migrate.understanding.patterns.mining.name_scopes import NotAnAccess, NotUnderstood
from partita_migrate.understanding.patterns.mining.normalized_statements import shapes_of
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.mining.table_access import TableAccess
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.schema.join_paths import (
    distinguishing_names,
    paths_through,
    self_reference,
)

_FIELDS = {
    "name": ("title",),
    "description": ("comment", "note", "notes"),
    "operation": ("op", "action", "type", "verb"),
    "category": ("kind",),
    "table": ("entity", "from", "into"),
    "joins": ("join", "with", "include", "includes"),
    "through": ("via",),
    "equality": ("by", "where", "key", "keys", "equals", "equal", "eq"),
    "range": ("between", "ranges"),
    "order_by": ("order", "sort", "sort_by", "ordered_by"),
    "is_descending": ("descending", "desc", "newest_first", "reverse"),
    "hierarchy": ("below", "descendants", "tree"),
    "limit": ("first", "top"),
    "filters": ("filter", "filtered_by"),
    "columns": ("fields", "attributes", "select"),
    "values": ("values_per_call",),
    "items": ("rows", "items_per_call", "rows_per_call"),
    "calls_per_second": ("rate", "rps", "qps", "tps", "per_second", "frequency", "calls"),
    "peak_per_second": ("peak", "peak_rate", "burst"),
    "transaction": ("together", "transaction_name", "written_with"),
    "is_consistent": ("consistent", "strongly_consistent", "consistent_read"),
    "sql": ("query",),
    "statement": (),
    "source": (),
}
"""The members of a pattern, with their aliases."""
_FIELD_BY_NAME = {alias: field for field, aliases in _FIELDS.items() for alias in (field, *aliases)}
_OPERATIONS: dict[Operation, str] = {
    "read": "read get query select fetch find list load lookup show search view",
    "insert": "insert put add create write save append upsert register store log record",
    "update": "update change modify set increment edit patch",
    "delete": "delete remove drop expire",
    "aggregate": "aggregate count sum figures total average report",
}
_OPERATION_BY_WORD = {
    word: operation for operation, words in _OPERATIONS.items() for word in words.split()
}
_CATEGORIES = ("write only", "by distinct value", "range of items")


class PatternBlock:
    """One block of the file, with its number and its members."""

    def __init__(self, number: int, members: dict[str, Any], line: int | None) -> None:
        self.number = number
        self.members = members
        self.line = line


class WrittenPattern:
    """A pattern of a file on its way to an AccessPattern."""

    def __init__(self, found: PatternBlock, text: str, where: str, schema: SchemaLookup) -> None:
        self._found = found
        self._text = text
        self._where = where
        self._schema = schema
        self._members: dict[str, Any] = {}
        for written, value in found.members.items():
            self._members[self._field(written)] = value
        name = self._members.get("name")
        if name is not None and (not isinstance(name, str) or not name.strip()):
            self._refuse("its name must be a text", "name")

    def pattern(self) -> AccessPattern:
        start = self._from_sql() if "sql" in self._members else self._from_members()
        access = self._settled(start)
        name = str(
            self._members.get("name") or access.description or f"pattern {self._found.number}"
        )
        return replace(
            access,
            name=name.strip(),
            description=str(self._members.get("description", access.description)),
            source="mined" if self._members.get("source") == "mined" else "written",
            statement=self._members.get("statement") or self._members.get("sql"),
        )

    def _field(self, written: str) -> str:
        plain = written.strip().lower().replace("-", "_").replace(" ", "_")
        if plain in ("per_minute", "per_hour", "per_day"):
            return plain
        if plain not in _FIELD_BY_NAME:
            near = get_close_matches(plain, _FIELD_BY_NAME, 1)
            advice = f"; did you mean {near[0]!r}?" if near else ""
            self._refuse(f"{written!r} is not a member of a pattern{advice}", written)
        return _FIELD_BY_NAME[plain]

    def _from_sql(self) -> AccessPattern:
        shapes = shapes_of(str(self._members["sql"]), self._schema.dialect)
        if len(shapes) != 1:
            self._refuse("its sql must be one statement", "sql")
        try:
            access = read_statement(shapes[0], self._schema)[0]
        except (NotAnAccess, NotUnderstood) as reason:
            named = known_table(shapes[0], self._schema)
            if named is None:
                self._refuse(f"its sql is not understood: {reason}", "sql")
            access = named
        is_counted = access.is_by_distinct_value and not access.joins
        values = float(max(shapes[0].members, 1))
        pattern = access.pattern(values if is_counted else 0.0)
        return replace(pattern, values=values) if access.is_among else pattern

    def _from_members(self) -> AccessPattern:
        if "table" not in self._members:
            self._refuse("it needs a table, or its sql")
        return TableAccess(self._operation(), self._table(self._members["table"])).pattern(0.0)

    def _operation(self) -> Operation:
        if "operation" in self._members:
            word = str(self._members["operation"]).lower().strip()
            if word not in _OPERATION_BY_WORD:
                self._refuse(
                    f"{word!r} is not an operation; write read, insert, update, delete or"
                    " aggregate",
                    "operation",
                )
            return _OPERATION_BY_WORD[word]
        first = re.match(r"\w*", str(self._members.get("name", "")).lower())
        return _OPERATION_BY_WORD.get(first.group() if first else "", "read")

    def _find(self, name: str) -> SourceTable | None:
        qualifier, _, last = name.strip().rpartition(".")
        return self._schema.table(last, qualifier)

    def _table(self, name: Any) -> SourceTable:
        table = self._find(str(name))
        if table is None:
            near = get_close_matches(str(name), self._schema.table_names, 1)
            advice = f"; did you mean {near[0]}?" if near else ""
            self._refuse(f"there is no table {name}{advice}", "table")
        return table

    def _settled(self, start: AccessPattern) -> AccessPattern:
        """Completes the access with the other members of the pattern."""
        table = self._table(start.table)
        joins = [self._table(name) for name in self._texts("joins")] or [
            self._table(name) for name in start.joins
        ]
        columns = self._column_reader(table, joins)
        order_by, is_descending = self._order(columns, start)
        access = TableAccess(
            operation=self._operation() if "operation" in self._members else start.operation,
            table=table,
            joins=[join.name for join in joins],
            through=[self._join_path(name) for name in self._texts("through")] or start.through,
            equality=columns("equality") or start.equality,
            range=columns("range") or start.range,
            filters=columns("filters") or start.filters,
            columns=columns("columns") or start.columns,
            order_by=order_by,
            is_descending=is_descending,
            hierarchy=self._hierarchy(table) or start.hierarchy,
            limit=self._limit(start),
            is_consistent=self._flag("is_consistent", start.is_consistent),
        )
        items = self._number("items") if "items" in self._members else start.items
        # A unique value has one row, so that nobody has to write items = 1.
        if not items and access.is_by_distinct_value and not access.joins:
            items = 1.0
        # A statement shows which way its joins go; members name only the tables.
        if "sql" not in self._members and self._members.get("source") != "mined":
            self._refuse_several_paths(access)
        category = self._members.get("category")
        values = max(self._number("values"), 1.0) if "values" in self._members else start.values
        pattern = replace(access.settle().pattern(items), values=values)
        if category is not None:
            plain = str(category).lower().replace("-", " ").replace("_", " ")
            if plain not in _CATEGORIES:
                self._refuse(
                    f"{category!r} is not a category; the categories are {_listed(_CATEGORIES)}"
                )
            pattern = replace(pattern, category=plain)
        rate = self._rate()
        return replace(
            pattern,
            calls_per_second=rate,
            peak_per_second=self._peak(rate),
            transaction=self._transaction(access.operation),
            description=start.description,
        )

    def _peak(self, rate: float) -> float:
        """Returns the peak: a rate of its own, or "3x" the usual rate."""
        written = self._members.get("peak_per_second")
        if written is None:
            return 0.0
        times = re.fullmatch(r"(\d+(?:\.\d+)?)\s*x", str(written).strip())
        peak = float(times[1]) * rate if times else rate_per_second(written)
        if peak is None or peak < rate:
            self._refuse(
                f'{written!r} is not a peak of {rate:g}/s; write "3x", or a rate that is not lower',
                "peak_per_second",
            )
        return peak

    def _transaction(self, operation: Operation) -> str:
        name = self._members.get("transaction", "")
        if not isinstance(name, str):
            self._refuse("transaction must be a name", "transaction")
        if name and operation not in ("insert", "update", "delete"):
            self._refuse("it reads, and a transaction only has patterns that write", "transaction")
        return name.strip()

    def _column_reader(
        self, table: SourceTable, joins: list[SourceTable]
    ) -> Callable[[str], list[str]]:
        return lambda field: [
            self._column(name, table, joins, field) for name in self._texts(field)
        ]

    def _column(
        self, written: str, table: SourceTable, joins: list[SourceTable], field: str
    ) -> str:
        """Returns a column: "column" of the table or of a joined one, or "table.column" of any
        table."""
        ref = ColumnRef.parse(written.strip())
        qualifier, name = ref
        tables = [self._table(qualifier)] if qualifier else [table, *joins]
        candidates = ((candidate, self._schema.column(candidate, name)) for candidate in tables)
        table, column = next(
            ((candidate, column) for candidate, column in candidates if column), (table, None)
        )
        if column is None:
            names = [column.name for candidate in tables for column in candidate.columns]
            near = get_close_matches(name, names, 1)
            advice = f"; did you mean {near[0]}?" if near else ""
            self._refuse(f"{tables[0].name} has no column {name}{advice}", field)
        return str(ColumnRef(table.name, column.name))

    def _join_path(self, written: str) -> str:
        """Returns a table that lies in between, or the column of a foreign key."""
        ref = ColumnRef.parse(written.strip())
        table = self._find(ref.table) if ref.table else None
        column = self._schema.column(table, ref.column) if table else None
        return (
            str(ColumnRef(table.name, column.name))
            if table and column
            else self._table(written).name
        )

    def _refuse_several_paths(self, access: TableAccess) -> None:
        named_columns = (*access.equality, *access.range, *access.order_by)
        others = [*access.joins, *(ColumnRef.parse(name).table for name in named_columns)]
        for other in dict.fromkeys(others):
            if other == access.table.name:
                continue
            paths = paths_through(
                self._schema.join_paths.between(access.table.name, other), access.through
            )
            if len(paths) > 1:
                self._refuse(
                    f"several ways lead from {access.table.name} to {other}"
                    f" ({_listed(distinguishing_names(paths))}); name one in through"
                )

    def _order(
        self, columns: Callable[[str], list[str]], start: AccessPattern
    ) -> tuple[list[str], bool]:
        """Parses the order: "created_at", "-created_at" or "created_at desc"."""
        is_descending = self._flag("is_descending", start.is_descending)
        texts = self._texts("order_by")
        if not texts:
            return start.order_by, is_descending
        first = texts[0].strip()
        if first.startswith("-") or re.search(r"\s+desc(ending)?$", first, re.IGNORECASE):
            is_descending = True
        plain = [
            re.sub(r"\s+(asc|desc)(ending)?$", "", text.strip().lstrip("-+"), flags=re.IGNORECASE)
            for text in texts
        ]
        self._members["order_by"] = plain
        return columns("order_by"), is_descending

    def _hierarchy(self, table: SourceTable) -> str:
        """Returns the column by which the table refers to itself."""
        columns = [self._column(name, table, [], "hierarchy") for name in self._texts("hierarchy")]
        if columns and self_reference(table, ColumnRef.parse(columns[0]).column) is None:
            self._refuse(f"{columns[0]} does not refer to {table.name} itself", "hierarchy")
        return columns[0] if columns else ""

    def _limit(self, start: AccessPattern) -> int | None:
        if "limit" not in self._members:
            return start.limit
        limit = self._number("limit")
        if limit < 1 or limit != int(limit):
            self._refuse("its limit must be a whole number from 1", "limit")
        return int(limit)

    def _rate(self) -> float:
        for field, seconds in (("per_minute", 60), ("per_hour", 3600), ("per_day", 86_400)):
            if field in self._members:
                return self._number(field) / seconds
        if "calls_per_second" not in self._members:
            self._refuse('it needs a rate, such as rate = "20/s"')
        rate = rate_per_second(self._members["calls_per_second"])
        if rate is None:
            self._refuse(
                f"{self._members['calls_per_second']!r} is not a rate; write a number per second,"
                " or"
                ' "120/min", "8 million per day"',
                "calls_per_second",
            )
        return rate

    def _number(self, field: str) -> float:
        value = self._members[field]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
            self._refuse(f"{value!r} is not a number of {field.replace('_', ' ')}", field)
        return float(value)

    def _flag(self, field: str, default: bool) -> bool:
        value = self._members.get(field, default)
        if not isinstance(value, bool):
            self._refuse(f"{field} must be true or false", field)
        return value

    def _texts(self, field: str) -> list[str]:
        value = self._members.get(field, [])
        texts = re.split(r"\s*,\s*", value.strip()) if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            self._refuse(f"{field} must be a text or a list of texts", field)
        return [text for text in texts if text]

    def _refuse(self, what: str, field: str | None = None) -> NoReturn:
        name = self._found.members.get("name")
        called = f"pattern {name!r}" if name else f"pattern {self._found.number}"
        line = self._line_of(field)
        place = f"{self._where}, line {line}" if line else self._where
        raise PartitaError(f"{place}, {called}: {what}{'' if what.endswith('?') else '.'}")

    def _line_of(self, field: str | None) -> int | None:
        """Returns the line of a member, or the line where its pattern begins."""
        start = self._found.line
        if start is None or field is None:
            return start
        names = {field, *_FIELDS.get(field, ())}
        for number, line in enumerate(self._text.splitlines()[start:], start + 1):
            if line.lstrip().startswith("["):
                break
            match = re.match(r"\s*([\w-]+)\s*=", line)
            if match and match.group(1).lower().replace("-", "_") in names:
                return number
        return start


def _listed(names: Iterable[str]) -> str:
    *first, last = (f'"{name}"' for name in names)
    return f"{', '.join(first)} and {last}"
