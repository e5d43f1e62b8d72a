"""The source of a move: sessions on it, how its values are read, and what must stay as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from partita.database.item.values import Item
from partita_migrate.folder import Folder
from partita_migrate.moving.logs.changes import SchemaChanged
from partita_migrate.proving.column_values import column_value
from partita_migrate.understanding.schema.inventory import Column, Inventory, Table, is_derived
from partita_migrate.understanding.sources.address import Address
from partita_migrate.understanding.sources.connection import Source, connect
from partita_migrate.understanding.sources.dialects.catalog import TableFacts
from partita_migrate.understanding.sources.reading import Convert, Reading, readings

STATEMENT_SECONDS_MAX = 86_400
"""Reading a whole table takes as long as it takes."""
OWN_TRIGGERS = "partita_"
BEGIN = {
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "sqlite": "BEGIN",
}


class Origin:
    def __init__(
        self, folder: Folder, inventory: Inventory, ask: Callable[[str], str] | None = None
    ) -> None:
        self.folder = folder
        self.inventory = inventory
        self.tables = [one for one in inventory.tables if one.is_readable and one.columns]
        """That the move reads."""
        self._ask = ask
        self._password: str | None = None
        with self.connect() as source:
            self.address: Address = source.address
            self.family = "mysql" if source.dialect == "mariadb" else source.dialect
            self.readings = {table.name: _whole_readings(source, table) for table in self.tables}
        self._converters: dict[str, list[tuple[str, Convert]]] = {
            name: [(one.column.name, one.convert or _unread) for one in asked]
            for name, asked in self.readings.items()
        }

    @contextmanager
    def connect(self) -> Iterator[Source]:
        """Who was asked for the password once is not asked again."""
        ask = self._ask if self._password is None else self._repeat
        with connect(self.folder, ask) as source:
            self._password = source.address.password
            with source.limit(STATEMENT_SECONDS_MAX):
                yield source

    def _repeat(self, _: str) -> str:
        return self._password or ""

    def arguments(self, source: Source) -> dict[str, Any]:
        """What the driver is called with."""
        url = self.address.url
        if self.address.password:
            url = url.set(password=self.address.password)
        _, arguments = source.connection.dialect.create_connect_args(url)
        return dict(arguments)

    def form_of(self, table: Table, column: Column) -> str:
        """In which form a value named v of this column's type is asked for."""
        with self.connect() as source:
            alone = replace(table, columns=[replace(column, name="v")])
            return readings(source, alone, {"v"})[0].sql

    def converters(self, table: str) -> dict[str, Convert]:
        """By column, what makes an attribute value of what the driver returns."""
        return dict(self._converters[table])

    def row(self, table: str, values: dict[str, Any]) -> Item:
        """Attribute values of what the driver would have returned, without NULLs."""
        get = values.get
        found: Item = {}
        for name, convert in self._converters[table]:
            value = get(name)
            if value is not None and (converted := convert(value)) is not None:
                found[name] = converted
        return found

    def read_row(self, table: str, values: Sequence[Any]) -> Item:
        """The same of an answer to what `readings` ask for, in their order."""
        found: Item = {}
        for (name, convert), value in zip(self._converters[table], values, strict=False):
            if value is not None and (converted := convert(value)) is not None:
                found[name] = converted
        return found

    def raw_rows(
        self, source: Source, table: Table, behind: Sequence[Any] | None, count: int
    ) -> Sequence[Sequence[Any]]:
        """So many rows by primary key, behind one; what `readings` ask for, and the key."""
        keys = [source.quote(name) for name in table.primary_key]
        readings = [one.sql for one in self.readings[table.name]]
        where, bound = behind_key(keys, behind)
        statement = f"SELECT {', '.join([*readings, *keys])} FROM {source.relation(table)}"
        statement += f" WHERE {where}" if where else ""
        # By place: what a reading computes may have the name of its column.
        places = range(len(readings) + 1, len(readings) + 1 + len(keys))
        order = ", ".join(map(str, places))
        return source.rows(f"{statement} ORDER BY {order} LIMIT {count}", **bound)

    def rows_like(self, source: Source, table: Table, rows: Sequence[Item]) -> list[Item]:
        """The rows of the source that have the primary keys of these."""
        columns = {column.name: column for column in table.columns}
        bound: dict[str, Any] = {}
        one_of = []
        for row in rows:
            same = []
            for name in table.primary_key:
                bound[f"k{len(bound)}"] = column_value(columns[name], row[name], self.family)
                same.append(f"{source.quote(name)} = :k{len(bound) - 1}")
            one_of.append(f"({' AND '.join(same)})")
        asked = ", ".join(one.sql for one in self.readings[table.name])
        found = source.rows(
            f"SELECT {asked} FROM {source.relation(table)} WHERE {' OR '.join(one_of)}", **bound
        )
        return [self.read_row(table.name, row) for row in found]

    def check_schema(self, source: Source) -> None:
        """Raises when a table that is moved has other columns than the inventory says."""
        for table, facts in self._facts(source):
            if facts is None:
                raise changed(table.name, "it is gone")
            now = {name: one.type for name, one in facts.columns.items()}
            then = {column.name: column.type for column in table.columns}
            if now.keys() != then.keys():
                raise changed(table.name, _columns_differ(set(then), set(now)))
            other = next((name for name in then if now[name].lower() != then[name].lower()), None)
            if other is not None:
                raise changed(table.name, f"{other} is {now[other]} and was {then[other]}")

    def triggers(self, source: Source) -> list[str]:
        """The user's own, which fire on the way back as on every write."""
        return [
            f"{trigger} of {table.name}"
            for table, facts in self._facts(source)
            for trigger in (facts.triggers if facts is not None else ())
            if not trigger.startswith(OWN_TRIGGERS)
        ]

    def _facts(self, source: Source) -> Iterator[tuple[Table, TableFacts | None]]:
        """Of the moved tables, what the source says about them now."""
        catalog = source.server.read_catalog(source.connection, source.settings)
        for table in self.tables:
            short = table.name.removeprefix(f"{table.schema}.") if table.schema else table.name
            yield table, catalog.tables.get((table.schema, short))


def behind_key(keys: Sequence[str], last: Sequence[Any] | None) -> tuple[str, dict[str, Any]]:
    """The condition on rows behind one, by the columns of their key in order."""
    if last is None:
        return "", {}
    one_of = []
    for place, key in enumerate(keys):
        same = [f"{keys[before]} = :k{before}" for before in range(place)]
        one_of.append(f"({' AND '.join([*same, f'{key} > :k{place}'])})")
    return f"({' OR '.join(one_of)})", {f"k{place}": value for place, value in enumerate(last)}


def _unread(value: Any) -> None:
    """Of a column that is measured only."""


def changed(table: str, what: str) -> SchemaChanged:
    return SchemaChanged(
        f"The schema has changed since it was planned: {table}: {what}. Nothing after that was"
        " carried over; put it back, or run plan and model again and load anew."
    )


def _columns_differ(then: set[str], now: set[str]) -> str:
    gone, new = sorted(then - now), sorted(now - then)
    parts = [f"column {', '.join(gone)} is gone"] if gone else []
    parts += [f"column {', '.join(new)} is new"] if new else []
    return " and ".join(parts)


def check_columns(table: Table, names: set[str]) -> None:
    """Of a row in the log."""
    then = {column.name for column in table.columns}
    if then != names:
        raise changed(table.name, _columns_differ(then, names))


def _whole_readings(source: Source, table: Table) -> list[Reading]:
    names = {column.name for column in table.columns}
    return [one for one in readings(source, table, names) if not is_derived(one.column)]
