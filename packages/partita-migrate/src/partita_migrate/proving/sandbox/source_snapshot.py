"""One read-only transaction of the source, in which all tables and statements see the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self, cast

from sqlalchemy import text
from sqlglot import exp

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.proving.sandbox.driver_values import column_value, driver_value
from partita_migrate.understanding.patterns.mining.schema_lookup import SQLGLOT_DIALECTS
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import (
    Inventory,
    SourceColumn,
    SourceTable,
    is_derived,
)
from partita_migrate.understanding.sources.column_reading import ColumnReading, readings
from partita_migrate.understanding.sources.source_connection import SourceDatabase
from partita_migrate.understanding.statements.resolved_statements import ResolvedQuery

CHUNK_ROWS = 1000
BEGIN = {
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "sqlite": "BEGIN",
}
_BIND = "\ue000{}\ue001"
"""Marks a parameter while colons are escaped."""


@contextmanager
def consistent_read(source: SourceDatabase) -> Iterator[None]:
    """Runs the block in a read-only transaction, in which all statements see the same rows."""
    family = "mysql" if source.dialect == "mariadb" else source.dialect
    source.connection.exec_driver_sql(BEGIN[family])
    try:
        yield
    finally:
        if not source.is_lost:
            source.connection.exec_driver_sql("ROLLBACK")


class _AliasedSource:
    """A source that qualifies columns with the alias of their table."""

    def __init__(self, source: SourceDatabase, alias: str) -> None:
        self._source = source
        self._alias = alias
        self.dialect = source.dialect

    def quote(self, name: str) -> str:
        return f"{self._source.quote(self._alias)}.{self._source.quote(name)}"


class SourceSnapshot:
    """A consistent snapshot of the source."""

    def __init__(
        self, source: SourceDatabase, inventory: Inventory, *, is_streamed: bool = True
    ) -> None:
        """`is_streamed` reads chunk by chunk inside a transaction; a small copy is read at once
        instead."""
        self.is_streamed = is_streamed
        self.source = source
        self.inventory = inventory
        self.family = "mysql" if source.dialect == "mariadb" else source.dialect
        self._dialect = SQLGLOT_DIALECTS[source.dialect]

    def __enter__(self) -> Self:
        self._transaction = ExitStack()
        with self.source.errors():
            self._transaction.enter_context(consistent_read(self.source))
        return self

    def __exit__(self, *_: object) -> None:
        self._transaction.close()

    def rows(self, table: SourceTable) -> Iterator[Item]:
        """Yields all rows of a table as attribute values by column, in key order."""
        column_readings = self._readings(table, None)
        names = ", ".join(reading.sql for reading in column_readings)
        statement = f"SELECT {names or '1'} FROM {self.source.relation(table)}"
        if table.primary_key:
            keys = ", ".join(map(self.source.quote, table.primary_key))
            statement += f" ORDER BY {keys}"
        with self._streamed(statement, {}) as parts:
            for part in parts:
                for row in part:
                    yield _row(column_readings, row)

    def answer(
        self, question: ResolvedQuery, values: Mapping[str, AttributeValue | None]
    ) -> list[tuple[AttributeValue | None, ...]]:
        """Returns the rows of a statement in its order: the values of the statement's columns."""
        assert question.tree is not None
        tree = question.tree.copy()
        column_readings = [self._reading(tree, ref) for ref in question.columns]
        tree.set("expressions", [exp.Var(this=reading.sql) for reading in column_readings])
        statement, bound = self.bound(tree, values)
        with self._streamed(statement, bound) as parts:
            return [
                tuple(
                    None if value is None or reading.convert is None else reading.convert(value)
                    for reading, value in zip(column_readings, row, strict=True)
                )
                for part in parts
                for row in part
            ]

    def bound(
        self,
        tree: exp.Expression,
        values: Mapping[str, AttributeValue | None],
        columns: Mapping[str, SourceColumn] | None = None,
    ) -> tuple[str, dict[str, Any]]:
        """Returns a statement with numbered parameters, and their values.

        `columns` are columns that parameters are written to, which may hold documents and lists.
        """
        bound: dict[str, Any] = {}
        for node in list(tree.find_all(exp.Placeholder)):
            name = f"b{len(bound)}"
            value = values.get(str(node.this))
            column = (columns or {}).get(str(node.this))
            if value is None or column is None:
                bound[name] = None if value is None else driver_value(value, self.family)
            else:
                bound[name] = column_value(column, value, self.family)
            node.replace(exp.Var(this=_BIND.format(name)))
        statement = tree.sql(dialect=self._dialect).replace(":", "\\:")
        for name in bound:
            statement = statement.replace(_BIND.format(name), f":{name}")
        return statement, bound

    def _reading(self, tree: exp.Expression, ref: ColumnRef) -> ColumnReading:
        table = self.inventory.table(ref.table)
        assert table is not None
        short = ref.table.removeprefix(f"{table.schema}.") if table.schema else ref.table
        alias = next(
            (node.alias for node in tree.find_all(exp.Table) if node.name == short), ref.table
        )
        column_readings = self._readings(table, alias)
        return next(node for node in column_readings if node.column.name == ref.column)

    def _readings(self, table: SourceTable, alias: str | None) -> list[ColumnReading]:
        names = {column.name for column in table.columns}
        shown = (
            self.source
            if alias is None
            else cast(SourceDatabase, _AliasedSource(self.source, alias))
        )
        return [
            reading
            for reading in readings(shown, table, names)
            if alias or not is_derived(reading.column)
        ]

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        """Keeps the transaction usable: PostgreSQL aborts it when it refuses a statement."""
        if self.family != "postgresql" or not self.is_streamed:
            yield
            return
        run = self.source.connection.exec_driver_sql
        run("SAVEPOINT asked")
        try:
            yield
        except BaseException:
            if not self.source.is_lost:
                run("ROLLBACK TO SAVEPOINT asked")
            raise
        run("RELEASE SAVEPOINT asked")

    @contextmanager
    def _streamed(
        self, statement: str, bound: Mapping[str, Any]
    ) -> Iterator[Iterator[Sequence[Any]]]:
        options = {"stream_results": self.is_streamed, "max_row_buffer": CHUNK_ROWS}
        with self.source.errors(), self._savepoint():
            result = self.source.connection.execute(
                text(statement), dict(bound), execution_options=options
            )
            try:
                yield result.partitions(CHUNK_ROWS)
            finally:
                result.close()


def _row(column_readings: Sequence[ColumnReading], row: Sequence[Any]) -> Item:
    item: Item = {}
    for reading, value in zip(column_readings, row, strict=True):
        if value is None or reading.convert is None:
            continue
        converted = reading.convert(value)
        if converted is not None:
            item[reading.column.name] = converted
    return item
