"""The source of a move: sessions on it, how its values are read, and what must stay as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from partita.database.item.values import Item
from partita.migrate.folder import Folder
from partita.migrate.moving.logs.changes import SchemaChanged
from partita.migrate.understanding.schema.inventory import Column, Inventory, Table, is_derived
from partita.migrate.understanding.sources import Source, connect
from partita.migrate.understanding.sources.address import Address
from partita.migrate.understanding.sources.reading import Reading, readings

STATEMENT_SECONDS_MAX = 86_400
"""Reading a whole table takes as long as it takes."""
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

    def row(self, table: str, values: dict[str, Any]) -> Item:
        """Attribute values of what the driver would have returned, without NULLs."""
        found: Item = {}
        for reading in self.readings[table]:
            value = values.get(reading.column.name)
            if value is not None and reading.convert is not None:
                converted = reading.convert(value)
                if converted is not None:
                    found[reading.column.name] = converted
        return found

    def check_schema(self, source: Source) -> None:
        """Raises when a table that is moved has other columns than the inventory says."""
        catalog = source.server.read_catalog(source.connection, source.settings)
        for table in self.tables:
            short = table.name.removeprefix(f"{table.schema}.") if table.schema else table.name
            facts = catalog.tables.get((table.schema, short))
            if facts is None:
                raise changed(table.name, "it is gone")
            now = {name: one.type for name, one in facts.columns.items()}
            then = {column.name: column.type for column in table.columns}
            if now.keys() != then.keys():
                raise changed(table.name, _columns_differ(set(then), set(now)))
            other = next((name for name in then if now[name].lower() != then[name].lower()), None)
            if other is not None:
                raise changed(table.name, f"{other} is {now[other]} and was {then[other]}")


def changed(table: str, what: str) -> SchemaChanged:
    return SchemaChanged(
        f"The schema has changed while it was followed: {table}: {what}. Nothing after that was"
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
