"""The source of a move: its sessions, how its values are read, and the schema that must not
change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from partita.database.item.attribute_values import Item
from partita_migrate.moving.logs.source_changes import SchemaChanged
from partita_migrate.proving.sandbox.driver_values import column_value
from partita_migrate.understanding.schema.inventory import (
    Inventory,
    SourceColumn,
    SourceTable,
    is_derived,
)
from partita_migrate.understanding.sources.column_reading import ColumnReading, Convert, readings
from partita_migrate.understanding.sources.dialects.catalog_facts import TableFacts
from partita_migrate.understanding.sources.source_address import SourceAddress
from partita_migrate.understanding.sources.source_connection import SourceDatabase, connect
from partita_migrate.workspace.migration_folder import Folder

STATEMENT_SECONDS_MAX = 86_400
"""Reading a whole table may take a day."""
OWN_TRIGGERS = "partita_"


class MoveSource:
    """The source of a move, with the columns of its tables as they are read."""

    def __init__(
        self, folder: Folder, inventory: Inventory, ask: Callable[[str], str] | None = None
    ) -> None:
        self.folder = folder
        self.inventory = inventory
        self.tables = [table for table in inventory.tables if table.is_readable and table.columns]
        """The tables that the move reads."""
        self._ask = ask
        self._password: str | None = None
        with self.connect() as source:
            self.address: SourceAddress = source.address
            self.family = "mysql" if source.dialect == "mariadb" else source.dialect
            self.readings = {table.name: _whole_readings(source, table) for table in self.tables}
        self._converters: dict[str, list[tuple[str, Convert]]] = {
            name: [(each.column.name, each.convert or _unread) for each in column_readings]
            for name, column_readings in self.readings.items()
        }

    @contextmanager
    def connect(self) -> Iterator[SourceDatabase]:
        """Opens a connection; the password is asked for only once."""
        ask = self._ask if self._password is None else self._repeat
        with connect(self.folder, ask) as source:
            self._password = source.address.password
            with source.limit(STATEMENT_SECONDS_MAX):
                yield source

    def _repeat(self, _: str) -> str:
        return self._password or ""

    def arguments(self, source: SourceDatabase) -> dict[str, Any]:
        """Returns the driver's connection arguments."""
        url = self.address.url
        if self.address.password:
            url = url.set(password=self.address.password)
        _, arguments = source.connection.dialect.create_connect_args(url)
        return dict(arguments)

    def form_of(self, table: SourceTable, column: SourceColumn) -> str:
        """Returns the SQL expression by which a value named v of this column's type is read."""
        with self.connect() as source:
            alone = replace(table, columns=[replace(column, name="v")])
            return readings(source, alone, {"v"})[0].sql

    def converters(self, table: str) -> dict[str, Convert]:
        """Returns by column what turns the driver's value into an attribute value."""
        return dict(self._converters[table])

    def row(self, table: str, values: dict[str, Any]) -> Item:
        """Returns the attribute values of a row by column, without NULLs."""
        get = values.get
        row: Item = {}
        for name, convert in self._converters[table]:
            value = get(name)
            if value is not None and (converted := convert(value)) is not None:
                row[name] = converted
        return row

    def read_row(self, table: str, values: Sequence[Any]) -> Item:
        """The same for a result row of `readings`, in their order."""
        row: Item = {}
        for (name, convert), value in zip(self._converters[table], values, strict=False):
            if value is not None and (converted := convert(value)) is not None:
                row[name] = converted
        return row

    def raw_rows(
        self, source: SourceDatabase, table: SourceTable, behind: Sequence[Any] | None, count: int
    ) -> Sequence[Sequence[Any]]:
        """Reads up to `count` rows in key order behind a key; each has its `readings`, then its
        key."""
        keys = [source.quote(name) for name in table.primary_key]
        readings = [reading.sql for reading in self.readings[table.name]]
        where, bound = behind_key(keys, behind)
        statement = f"SELECT {', '.join([*readings, *keys])} FROM {source.relation(table)}"
        statement += f" WHERE {where}" if where else ""
        # Ordered by position in the SELECT: an expression may carry the name of its column.
        places = range(len(readings) + 1, len(readings) + 1 + len(keys))
        order = ", ".join(map(str, places))
        return source.rows(f"{statement} ORDER BY {order} LIMIT {count}", **bound)

    def rows_with_keys_of(
        self, source: SourceDatabase, table: SourceTable, rows: Sequence[Item]
    ) -> list[Item]:
        """Reads the source's rows that have the primary keys of these rows."""
        columns = {column.name: column for column in table.columns}
        bound: dict[str, Any] = {}
        key_conditions = []
        for row in rows:
            equalities = []
            for name in table.primary_key:
                bound[f"k{len(bound)}"] = column_value(columns[name], row[name], self.family)
                equalities.append(f"{source.quote(name)} = :k{len(bound) - 1}")
            key_conditions.append(f"({' AND '.join(equalities)})")
        columns_sql = ", ".join(reading.sql for reading in self.readings[table.name])
        source_rows = source.rows(
            f"SELECT {columns_sql} FROM {source.relation(table)}"
            f" WHERE {' OR '.join(key_conditions)}",
            **bound,
        )
        return [self.read_row(table.name, row) for row in source_rows]

    def check_schema(self, source: SourceDatabase) -> None:
        """Raises when a moved table has other columns than the inventory says."""
        for table, facts in self._facts(source):
            if facts is None:
                raise changed(table.name, "it is gone")
            now = {name: column.type for name, column in facts.columns.items()}
            then = {column.name: column.type for column in table.columns}
            if now.keys() != then.keys():
                raise changed(table.name, _columns_differ(set(then), set(now)))
            changed_column = next(
                (name for name in then if now[name].lower() != then[name].lower()), None
            )
            if changed_column is not None:
                raise changed(
                    table.name,
                    f"{changed_column} is {now[changed_column]} and was {then[changed_column]}",
                )

    def triggers(self, source: SourceDatabase) -> list[str]:
        """Returns the user's own triggers, which the way back fires as any other write does."""
        return [
            f"{trigger} of {table.name}"
            for table, facts in self._facts(source)
            for trigger in (facts.triggers if facts is not None else ())
            if not trigger.startswith(OWN_TRIGGERS)
        ]

    def _facts(self, source: SourceDatabase) -> Iterator[tuple[SourceTable, TableFacts | None]]:
        """Yields what the catalog says now about each moved table."""
        catalog = source.server.read_catalog(source.connection, source.settings)
        for table in self.tables:
            short = table.name.removeprefix(f"{table.schema}.") if table.schema else table.name
            yield table, catalog.tables.get((table.schema, short))


def behind_key(keys: Sequence[str], last: Sequence[Any] | None) -> tuple[str, dict[str, Any]]:
    """Returns the condition for rows behind a key, and its values: `(a > 1) OR (a = 1 AND b >
    2)`."""
    if last is None:
        return "", {}
    alternatives = []
    for place, key in enumerate(keys):
        equalities = [f"{keys[before]} = :k{before}" for before in range(place)]
        alternatives.append(f"({' AND '.join([*equalities, f'{key} > :k{place}'])})")
    return f"({' OR '.join(alternatives)})", {
        f"k{place}": value for place, value in enumerate(last)
    }


def _unread(value: Any) -> None:
    """Converts a column that is only measured to nothing."""


def changed(table: str, what: str) -> SchemaChanged:
    return SchemaChanged(
        f"The schema has changed since it was planned: {table}: {what}. Nothing after that was"
        " carried over; change it back, or start over with `plan`, `model` and a new load."
    )


def _columns_differ(then: set[str], now: set[str]) -> str:
    gone, new = sorted(then - now), sorted(now - then)
    parts = [f"column {', '.join(gone)} is gone"] if gone else []
    parts += [f"column {', '.join(new)} is new"] if new else []
    return " and ".join(parts)


def check_columns(table: SourceTable, names: set[str]) -> None:
    """Raises when a row in the log has other columns than the inventory."""
    then = {column.name for column in table.columns}
    if then != names:
        raise changed(table.name, _columns_differ(then, names))


def _whole_readings(source: SourceDatabase, table: SourceTable) -> list[ColumnReading]:
    names = {column.name for column in table.columns}
    return [reading for reading in readings(source, table, names) if not is_derived(reading.column)]
