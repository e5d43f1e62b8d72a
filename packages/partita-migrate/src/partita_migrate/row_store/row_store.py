"""Rows of a source in an SQLite file, looked up by the columns that joins follow.

Each table has one SQLite table: the row as JSON, the position in the source's log at which it was
read, and a text column for the primary key and for each other set of columns that rows are looked
up by. A lookup column holds the text that the source's collation compares, so that `ANN@X` finds
the row of `Ann@x` where the source would find it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import Design
from partita_migrate.model.items.item_maker import order
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.statements.literal_values import fold_of, folded

CHUNK_ROWS = 2000
CACHED_LOOKUPS = 20_000


def lookup_columns(design: Design, inventory: Inventory) -> dict[str, list[tuple[str, ...]]]:
    """Returns by table the sets of columns by which making items looks rows up."""
    lookups: dict[str, set[tuple[str, ...]]] = {table.name: set() for table in inventory.tables}
    for table in inventory.tables:
        if table.primary_key:
            lookups[table.name].add(tuple(table.primary_key))
        for key in table.foreign_keys:
            lookups[table.name].add(tuple(key.columns))
            lookups.setdefault(key.referenced_table, set()).add(tuple(key.referenced_columns))
    for _, entity in design.entities():
        if entity.per:
            per = tuple(ColumnRef.parse(name).column for name in entity.per)
            lookups.setdefault(entity.source, set()).add(per)
        for text in chain.from_iterable(entity.ways):
            join = parse_join(text)
            if join is not None:
                for side in (join.before, join.after):
                    columns = tuple(ref.column for ref in side)
                    lookups.setdefault(side[0].table, set()).add(columns)
    return {table: sorted(columns) for table, columns in lookups.items()}


class ColumnLookup(NamedTuple):
    """A lookup of a table's rows by some of its columns."""

    columns: tuple[str, ...]
    folds: tuple[str, ...]
    """How the collation of each column compares; empty for byte by byte."""
    stored_in: str
    """The SQLite column with their text; empty when the table has to be searched."""

    def text(self, values: Sequence[AttributeValue]) -> str:
        if self.folds == ("",):
            for content in values[0].values():
                return str(content)
        pairs = zip(values, self.folds, strict=True)
        plain = [folded(value, fold) if fold else value for value, fold in pairs]
        return "\0".join(str(content) for value in plain for content in value.values())

    def text_of(self, row: Item) -> str | None:
        """Returns the text of a row; None when one of the columns is NULL, which equals nothing."""
        try:
            return self.text([row[name] for name in self.columns])
        except KeyError:
            return None


class RowStore:
    """The rows of a source by table, numbered from 1 in the order in which they were added."""

    def __init__(
        self, path: Path, inventory: Inventory, design: Design, *, is_read_only: bool = False
    ) -> None:
        self.inventory = inventory
        self.tables = {table.name: table for table in inventory.tables}
        self._places = {table.name: place for place, table in enumerate(inventory.tables)}
        self._folds = {
            ColumnRef(table.name, column.name): fold
            for table in inventory.tables
            for column in table.columns
            if (fold := fold_of(column, inventory.dialect))
        }
        self._primary_keys = {name: table.primary_key for name, table in self.tables.items()}
        self.lookup_columns = {
            name: [some for some in columns if not self._is_identity(name, some)]
            for name, columns in lookup_columns(design, inventory).items()
            if name in self.tables
        }
        """The columns by which rows are looked up, besides those of the primary key."""
        self._lookups: dict[tuple[str, tuple[str, ...]], ColumnLookup] = {}
        self._indexed = {
            name: [self._lookup(name, columns) for columns in lookups]
            for name, lookups in self.lookup_columns.items()
        }
        self.decode = msgspec.json.Decoder(Item).decode
        self.encode = msgspec.json.Encoder().encode
        """Rows as they are stored."""
        self._db = _open(path, is_read_only)
        self._run = self._db.execute
        self._cached = lru_cache(CACHED_LOOKUPS)(self._stored_matches)

    def close(self) -> None:
        self._db.close()

    # The layout of the file. Moves that an older version began go on with it.

    def _create_table(self, table: str) -> None:
        columns = "".join(f", {name} TEXT" for name in self._lookup_names(table))
        self._run(
            f"CREATE TABLE IF NOT EXISTS t{self._places[table]} (id INTEGER PRIMARY KEY,"
            f" position INT, row BLOB, pk TEXT{columns})"
        )

    def _create_indexes(self, table: str, *, is_unique: bool) -> None:
        """Creates the indexes; `is_unique` when no two rows have the same text for a primary
        key."""
        place, unique = self._places[table], "UNIQUE " if is_unique else ""
        self._run(f"CREATE {unique}INDEX IF NOT EXISTS t{place}pk ON t{place} (pk)")
        for name in self._lookup_names(table):
            self._run(f"CREATE INDEX IF NOT EXISTS t{place}{name} ON t{place} ({name})")

    def _lookup_names(self, table: str) -> list[str]:
        return [f"k{number}" for number in range(len(self.lookup_columns[table]))]

    def _columns(self, table: str) -> list[str]:
        return ["position", "row", "pk", *self._lookup_names(table)]

    # Writing.

    def add(self, table: str, rows: Iterable[tuple[Any, ...]], position: int = 0) -> None:
        """Adds rows in the form of `stored` that are not in the store yet."""
        names = self._columns(table)
        self._db.executemany(
            f"INSERT INTO t{self._places[table]} ({', '.join(names)})"
            f" VALUES ({position}, {', '.join('?' * (len(names) - 1))})",
            rows,
        )

    def stored(self, table: str, row: Item) -> tuple[Any, ...]:
        """Returns a row as `add` takes it: its JSON, its primary key and its lookup texts."""
        texts = [lookup.text_of(row) for lookup in self._indexed[table]]
        return (self.encode(row), self._identity(table, row), *texts)

    def _identity(self, table: str, row: Item) -> str | None:
        names = self._primary_keys[table]
        try:
            if len(names) == 1:
                (content,) = row[names[0]].values()
                return str(content)
            return "\0".join([str(text) for name in names for text in row[name].values()]) or None
        except KeyError:
            return None

    def _is_identity(self, table: str, columns: tuple[str, ...]) -> bool:
        """True when a lookup by these columns compares as the primary key's text does."""
        is_primary = tuple(self._primary_keys[table]) == columns
        return is_primary and not any(ColumnRef(table, name) in self._folds for name in columns)

    # Reading.

    def _lookup(self, table: str, columns: tuple[str, ...]) -> ColumnLookup:
        lookup = self._lookups.get((table, columns))
        if lookup is None:
            stored_in = ""
            if self._is_identity(table, columns):
                stored_in = "pk"
            elif columns in self.lookup_columns[table]:
                stored_in = f"k{self.lookup_columns[table].index(columns)}"
            folds = tuple(self._folds.get(ColumnRef(table, name), "") for name in columns)
            lookup = self._lookups[table, columns] = ColumnLookup(columns, folds, stored_in)
        return lookup

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Sequence[Item]:
        """Returns the rows with these values, in the order of their primary keys."""
        lookup = self._lookup(table, tuple(columns))
        text = lookup.text(values)
        if lookup.stored_in:
            return self._matches(table, lookup.stored_in, text)
        rows = [row for row in self.rows(table) if lookup.text_of(row) == text]
        return self._ordered(table, rows)

    def _matches(self, table: str, column: str, text: str) -> Sequence[Item]:
        """Returns the rows with a text in a lookup column; `StateStore` knows when it may cache."""
        return self._cached(table, column, text)

    def _stored_matches(self, table: str, column: str, text: str) -> Sequence[Item]:
        matches = self._run(
            f"SELECT row FROM t{self._places[table]} WHERE {column} = ?", (text,)
        ).fetchall()
        return self._ordered(table, [self.decode(row) for (row,) in matches])

    def _ordered(self, table: str, rows: list[Item]) -> list[Item]:
        if len(rows) > 1:
            names = self._primary_keys[table]
            rows.sort(key=lambda row: [order(row.get(name, {})) for name in names])
        return rows

    def rows(self, table: str) -> Iterator[Item]:
        """Yields all rows of a table in the order in which they were added."""
        return (row for _, row in self.numbered_rows(table))

    def numbered_rows(
        self, table: str, after: int = 0, until: int | None = None
    ) -> Iterator[tuple[int, Item]]:
        """Yields (number, row) for the numbers above `after`, up to `until`."""
        place = self._places[table]
        limit = "" if until is None else f" AND id <= {until}"
        while True:
            chunk = self._run(
                f"SELECT id, row FROM t{place} WHERE id > ?{limit} ORDER BY id LIMIT {CHUNK_ROWS}",
                (after,),
            ).fetchall()
            for number, row in chunk:
                yield number, self.decode(row)
            if len(chunk) < CHUNK_ROWS:
                return
            after = chunk[-1][0]


def _open(path: Path, is_read_only: bool) -> sqlite3.Connection:
    mode = "ro" if is_read_only else "rwc"
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None)


def primary_keys(inventory: Inventory) -> Mapping[str, Sequence[str]]:
    return {table.name: table.primary_key for table in inventory.tables}
