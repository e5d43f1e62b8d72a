"""The state store: the source's rows at the position that the move has reached, in SQLite.

Items are made of these rows alone, so that what a change reaches never depends on what the source
or the target have become meanwhile. A batch of changes and the position behind it are committed
together, after the target has the items: whoever is killed goes on from the last commit.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from partita.database.item.values import AttributeValue, Item
from partita.errors import PartitaError
from partita.migrate.folder import Folder
from partita.migrate.model.design import Design
from partita.migrate.model.making import order
from partita.migrate.proving.staging import lookups
from partita.migrate.statements.values import fold_of, folded
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.inventory import Inventory

MOVE = "move"
"""Of the migration folder: what the move keeps."""
STATE = "state.db"
LOCK = "lock"
CHUNK_ROWS = 2000
CACHED_LOOKUPS = 20_000
CACHE_KB = 48 * 1024

Value = TypeVar("Value")


class Kept(NamedTuple):
    """A row of the store."""

    number: int
    position: int
    row: Item


class StateStore:
    def __init__(self, path: Path, inventory: Inventory, design: Design) -> None:
        self.inventory = inventory
        self.tables = {table.name: table for table in inventory.tables}
        self._places = {table.name: place for place, table in enumerate(inventory.tables)}
        self._folds = {
            Ref(table.name, column.name): fold
            for table in inventory.tables
            for column in table.columns
            if (fold := fold_of(column, inventory.dialect))
        }
        self.keys = {
            name: [one for one in columns if not self._is_identity(name, one)]
            for name, columns in lookups(design, inventory).items()
            if name in self.tables
        }
        """Columns that rows are looked up by, besides the primary key."""
        self._decode = msgspec.json.Decoder(Item).decode
        self._encode = msgspec.json.Encoder().encode
        self._db = sqlite3.connect(path, isolation_level=None)
        self._run = self._db.execute
        # A position is confirmed to the source after the commit: it has to be on the disk by then.
        self._run("PRAGMA journal_mode = WAL")
        self._run("PRAGMA synchronous = FULL")
        self._run(f"PRAGMA cache_size = -{CACHE_KB}")
        self._cached = lru_cache(CACHED_LOOKUPS)(self._found)
        self._is_frozen = False
        with self.transaction():
            self._create()

    def _create(self) -> None:
        run = self._run
        run("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB)")
        run(
            "CREATE TABLE IF NOT EXISTS rejects (source TEXT, key TEXT, entity TEXT, reason TEXT,"
            " row BLOB, PRIMARY KEY (source, key, entity))"
        )
        run("CREATE TABLE IF NOT EXISTS keys (hash BLOB PRIMARY KEY, owner INT) WITHOUT ROWID")
        for name, place in self._places.items():
            columns = "".join(f", k{number} TEXT" for number in range(len(self.keys[name])))
            run(
                f"CREATE TABLE IF NOT EXISTS t{place} (id INTEGER PRIMARY KEY,"
                f" position INT, row BLOB, pk TEXT{columns})"
            )

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        except BaseException:
            self.roll_back()
            raise
        self.commit()

    def begin(self) -> None:
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._run("COMMIT")

    def roll_back(self) -> None:
        """What was not committed, if anything was begun."""
        if self._db.in_transaction:
            self._run("ROLLBACK")
        self._cached.cache_clear()

    def freeze(self, *, is_frozen: bool) -> None:
        """While rows do not change, lookups are remembered."""
        self._is_frozen = is_frozen
        self._cached.cache_clear()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """For tables of others in the same file and the same transactions."""
        return self._run(statement, values)

    # Facts: single values by name.

    def fact(self, name: str, kind: type[Value]) -> Value | None:
        found = self._run("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return msgspec.json.decode(found[0], type=kind) if found else None

    def set_fact(self, name: str, value: Any) -> None:
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, self._encode(value)))

    # Rows.

    def add(self, table: str, rows: Iterable[Item], position: int) -> None:
        """Rows that are not there yet, as they are read for the first time."""
        names = self._columns(table)
        self._db.executemany(
            f"INSERT INTO t{self._places[table]} ({', '.join(names)})"
            f" VALUES ({', '.join('?' * len(names))})",
            (self._values(table, row, position) for row in rows),
        )

    def _columns(self, table: str) -> list[str]:
        return ["position", "row", "pk", *(f"k{number}" for number in range(len(self.keys[table])))]

    def _values(self, table: str, row: Item, position: int) -> tuple[object, ...]:
        keys = (self._key(table, columns, row) for columns in self.keys[table])
        return (position, self._encode(row), self._identity(table, row), *keys)

    def index(self) -> None:
        """Makes lookups fast, once all rows are there. Of two rows with one key, which readings at
        different positions may find, the later one holds."""
        for name, place in self._places.items():
            self._run(
                f"DELETE FROM t{place} WHERE id IN (SELECT id FROM (SELECT id, row_number()"
                " OVER (PARTITION BY pk ORDER BY position DESC, id DESC) AS nth"
                f" FROM t{place} WHERE pk IS NOT NULL) WHERE nth > 1)"
            )
            self._run(f"CREATE UNIQUE INDEX IF NOT EXISTS t{place}pk ON t{place} (pk)")
            for number in range(len(self.keys[name])):
                self._run(f"CREATE INDEX IF NOT EXISTS t{place}k{number} ON t{place} (k{number})")

    def find(self, table: str, key: str) -> Kept | None:
        """The row with a primary key, in the form of `key_text`."""
        place = self._places[table]
        found = self._run(f"SELECT id, position, row FROM t{place} WHERE pk = ?", (key,)).fetchone()
        return Kept(found[0], found[1], self._decode(found[2])) if found else None

    def put(self, table: str, row: Item, position: int) -> None:
        names = self._columns(table)
        changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "pk")
        self._run(
            f"INSERT INTO t{self._places[table]} ({', '.join(names)})"
            f" VALUES ({', '.join('?' * len(names))}) ON CONFLICT (pk) DO UPDATE SET {changed}",
            self._values(table, row, position),
        )

    def remove(self, table: str, key: str) -> None:
        self._run(f"DELETE FROM t{self._places[table]} WHERE pk = ?", (key,))

    def key_text(self, table: str, row: Item) -> str:
        """A primary key as the store knows it: letter by letter, whatever its collation."""
        text = self._identity(table, row)
        assert text is not None, f"{table} has a row without its primary key"
        return text

    def _identity(self, table: str, row: Item) -> str | None:
        names = self.tables[table].primary_key
        if not names or any(name not in row for name in names):
            return None
        return "\0".join(str(next(iter(row[name].values()))) for name in names)

    def _is_identity(self, table: str, columns: tuple[str, ...]) -> bool:
        """Whether rows are looked up by columns as they are told apart by their primary key."""
        is_primary = tuple(self.tables[table].primary_key) == columns
        return is_primary and not any(Ref(table, name) in self._folds for name in columns)

    def _key(self, table: str, columns: Sequence[str], row: Item) -> str | None:
        values = [row.get(column) for column in columns]
        known = [value for value in values if value is not None]
        return self._text(table, columns, known) if len(known) == len(values) else None

    def _text(self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]) -> str:
        pairs = zip(columns, values, strict=True)
        plain = [folded(value, self._folds.get(Ref(table, name), "")) for name, value in pairs]
        return "\0".join(str(next(iter(value.values()))) for value in plain)

    # Reading.

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Sequence[Item]:
        """In the order of their primary keys."""
        wanted = tuple(columns)
        text = self._text(table, wanted, values)
        find = self._cached if self._is_frozen else self._found
        if self._is_identity(table, wanted):
            return find(table, "pk", text)
        if wanted in self.keys[table]:
            return find(table, f"k{self.keys[table].index(wanted)}", text)
        rows = (row for _, row in self.rows(table) if self._key(table, wanted, row) == text)
        return self._ordered(table, list(rows))

    def _found(self, table: str, column: str, text: str) -> Sequence[Item]:
        place = self._places[table]
        found = self._run(f"SELECT row FROM t{place} WHERE {column} = ?", (text,)).fetchall()
        return self._ordered(table, [self._decode(row) for (row,) in found])

    def _ordered(self, table: str, rows: list[Item]) -> list[Item]:
        if len(rows) > 1:
            names = self.tables[table].primary_key
            rows.sort(key=lambda row: [order(row.get(name, {})) for name in names])
        return rows

    def rows(
        self, table: str, after: int = 0, count: int | None = None
    ) -> Iterator[tuple[int, Item]]:
        """(number, row) of those behind a number, at most so many."""
        place = self._places[table]
        left = count
        while left is None or left > 0:
            most = CHUNK_ROWS if left is None else min(left, CHUNK_ROWS)
            chunk = self._run(
                f"SELECT id, row FROM t{place} WHERE id > ? ORDER BY id LIMIT {most}", (after,)
            ).fetchall()
            if not chunk:
                return
            for number, row in chunk:
                after = number
                yield number, self._decode(row)
            left = left - len(chunk) if left is not None else None

    def count(self, table: str) -> int:
        (count,) = self._run(f"SELECT count(*) FROM t{self._places[table]}").fetchone()
        return int(count)

    def found_rows(self, table: str, keys: Sequence[str]) -> dict[str, Item]:
        """Rows by their primary keys."""
        marks = ", ".join("?" * len(keys))
        found = self._run(
            f"SELECT pk, row FROM t{self._places[table]} WHERE pk IN ({marks})", tuple(keys)
        )
        return {key: self._decode(row) for key, row in found}

    # Keys of items, so that two rows never share one unnoticed.

    def claim(self, owners: Mapping[bytes, int]) -> dict[bytes, int]:
        """Notes whose item has which key; the answer is those that another one has already."""
        before = self._db.total_changes
        self._db.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", list(owners.items()))
        if self._db.total_changes - before == len(owners):
            return {}
        found = {}
        for key, owner in owners.items():
            (holder,) = self._run("SELECT owner FROM keys WHERE hash = ?", (key,)).fetchone()
            if holder != owner:
                found[key] = holder
        return found

    def forget_claims(self) -> None:
        self._run("DELETE FROM keys")

    # Rejects.

    def reject(self, table: str, key: str, entity: str, reason: str, row: Item) -> None:
        self._run(
            "INSERT OR REPLACE INTO rejects VALUES (?, ?, ?, ?, ?)",
            (table, key, entity, reason, self._encode(row)),
        )

    def accept(self, table: str, key: str, entity: str) -> None:
        self._run(
            "DELETE FROM rejects WHERE source = ? AND key = ? AND entity = ?", (table, key, entity)
        )

    def rejects(self) -> list[tuple[str, str, str, str, Item]]:
        """(table, key, entity, reason, row)."""
        found = self._run("SELECT source, key, entity, reason, row FROM rejects ORDER BY 1, 2, 3")
        return [(*some, self._decode(row)) for *some, row in found]


def primary_keys(inventory: Inventory) -> dict[str, Sequence[str]]:
    return {table.name: table.primary_key for table in inventory.tables}


def state_path(folder: Folder) -> Path:
    return folder.path / MOVE / STATE


@contextmanager
def locked(folder: Folder) -> Iterator[Path]:
    """The folder of the move, for this process alone."""
    home = folder.path / MOVE
    try:
        home.mkdir(exist_ok=True)
        handle = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise PartitaError(f"Cannot write in {home}: {error.strerror}.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(handle, 100, 0).decode(errors="replace").strip()
            raise PartitaError(
                f"Another command moves {folder.path}: {holder}; wait for it or stop it."
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}\n".encode(), 0)
        yield home
    finally:
        os.close(handle)
