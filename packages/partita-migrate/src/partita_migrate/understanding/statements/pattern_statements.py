"""The statement of a pattern: its own SQL if it has some, otherwise one made from its members."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.schema.join_paths import JoinPaths, paths_through
from partita_migrate.understanding.statements.resolved_statements import NotExact, Statement
from partita_migrate.understanding.statements.statement_parsing import parse_statement


class StatementUnknown(NotExact):
    """Raised when a pattern's members do not say exactly what it asks; its SQL would."""


class PatternStatements:
    """Finds the statement of each pattern over one source."""

    def __init__(self, schema: SchemaLookup) -> None:
        self.schema = schema

    def of(self, pattern: AccessPattern) -> Statement:
        """Returns the pattern's statement. Raises NotExact when it is not fully understood."""
        return parse_statement(pattern.statement or self.sql(pattern), self.schema)

    def sql(self, pattern: AccessPattern) -> str:
        """Writes a statement from the members of a pattern."""
        table = self.schema.table(*_name_and_schema(pattern.table))
        if table is None:
            raise NotExact(f"{pattern.table} is not among the tables of the source")
        if pattern.filters:
            columns = ", ".join(pattern.filters)
            raise StatementUnknown(f"how it tests {columns} is not said; write its sql")
        if pattern.hierarchy:
            raise StatementUnknown("it reads a whole subtree of a hierarchy; write its sql")
        if pattern.values > 1:
            raise StatementUnknown("it asks for several values in one call; write its sql")
        if pattern.operation == "insert":
            return self._insert(table)
        if pattern.operation == "update":
            return self._update(table, pattern)
        where = self._where(pattern)
        if pattern.operation == "delete":
            self._refuse_others(pattern)
            return f"DELETE FROM {self._table(table)}{where}"
        return self._select(table, pattern, where)

    def _select(self, table: SourceTable, pattern: AccessPattern, where: str) -> str:
        selected = [*map(self._column, pattern.columns)]
        columns = ", ".join(selected) or f"{self._quoted(table.name)}.*"
        if not selected:
            columns = ", ".join(
                f"{self._quoted(joined_table)}.*" for joined_table in (table.name, *pattern.joins)
            )
        if pattern.operation == "aggregate":
            columns = "COUNT(*)"
        direction = " DESC" if pattern.is_descending else ""
        order = ", ".join(f"{self._column(name)}{direction}" for name in pattern.order_by)
        return (
            f"SELECT {columns} FROM {self._table(table)} AS {self._quoted(table.name)}"
            f"{self._joins(table, pattern)}{where}"
            + (f" ORDER BY {order}" if order else "")
            + (f" LIMIT {pattern.limit}" if pattern.limit else "")
        )

    def _joins(self, table: SourceTable, pattern: AccessPattern) -> str:
        """Joins the rows that each row belongs to. One-to-many joins are refused: they need the
        SQL."""
        column_names = [*pattern.equality, *pattern.range, *pattern.order_by, *pattern.columns]
        others = dict.fromkeys(
            [*pattern.joins, *(ColumnRef.parse(name).table for name in column_names)]
        )
        joined = [table.name]
        text = ""
        for other in others:
            if other in joined:
                continue
            paths = paths_through(
                JoinPaths.between(self.schema.join_paths, table.name, other), pattern.through
            )
            if len(paths) != 1 or paths[0][0].child != table.name:
                raise StatementUnknown(
                    f"how it reads the rows of {other} is not said; write its sql"
                )
            for link in paths[0]:
                if link.parent in joined:
                    continue
                parent = self.schema.table(*_name_and_schema(link.parent))
                assert parent is not None
                if len(link.key.columns) != len(link.key.referenced_columns):
                    raise StatementUnknown(
                        f"a foreign key does not match the columns of {link.parent}"
                    )
                pairs = zip(link.key.columns, link.key.referenced_columns, strict=True)
                on = " AND ".join(
                    f"{self._column(str(ColumnRef(link.child, own)))}"
                    f" = {self._column(str(ColumnRef(link.parent, referred)))}"
                    for own, referred in pairs
                )
                text += f" LEFT JOIN {self._table(parent)} AS {self._quoted(link.parent)} ON {on}"
                joined.append(link.parent)
        return text

    def _where(self, pattern: AccessPattern) -> str:
        tests = [f"{self._column(name)} = ?" for name in pattern.equality]
        tests += [f"{self._column(name)} BETWEEN ? AND ?" for name in pattern.range]
        return f" WHERE {' AND '.join(tests)}" if tests else ""

    def _insert(self, table: SourceTable) -> str:
        names = [column.name for column in table.columns if not column.is_generated]
        columns = ", ".join(map(self._quoted, names))
        marks = ", ".join("?" for _ in names)
        return f"INSERT INTO {self._table(table)} ({columns}) VALUES ({marks})"

    def _update(self, table: SourceTable, pattern: AccessPattern) -> str:
        self._refuse_others(pattern)
        tested_columns = {ColumnRef.parse(name).column for name in pattern.equality}
        names = [ColumnRef.parse(name).column for name in pattern.columns] or [
            column.name
            for column in table.columns
            if not column.is_generated and column.name not in {*tested_columns, *table.primary_key}
        ]
        if not names:
            raise StatementUnknown("it does not say which columns it changes; write its sql")
        changes = ", ".join(f"{self._quoted(name)} = ?" for name in names)
        where = self._where(pattern)
        return f"UPDATE {self._table(table)} AS {self._quoted(table.name)} SET {changes}{where}"

    def _refuse_others(self, pattern: AccessPattern) -> None:
        column_names: Iterable[str] = (*pattern.equality, *pattern.range)
        others = {ColumnRef.parse(name).table for name in column_names} - {pattern.table}
        if others:
            raise StatementUnknown(
                f"it selects the rows to change by columns of {', '.join(sorted(others))}"
            )

    def _table(self, table: SourceTable) -> str:
        if table.schema is None:
            return self._quoted(table.name)
        name = table.name.removeprefix(f"{table.schema}.")
        return f"{self._quoted(table.schema)}.{self._quoted(name)}"

    def _column(self, name: str) -> str:
        ref = ColumnRef.parse(name)
        return f"{self._quoted(ref.table)}.{self._quoted(ref.column)}"

    def _quoted(self, name: str) -> str:
        return exp.to_identifier(name, quoted=True).sql(dialect=self.schema.dialect)


def _name_and_schema(name: str) -> tuple[str, str]:
    schema, _, last = name.rpartition(".")
    return last, schema
