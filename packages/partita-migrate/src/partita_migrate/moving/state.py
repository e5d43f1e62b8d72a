"""The state store: the source's rows at the position that the move has reached, in SQLite.

Items are made of these rows alone, so that what a change reaches never depends on what the source
or the target have become meanwhile. A batch of changes and the position behind it are committed
together, after the target has the items: whoever is killed goes on from the last commit.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from partita.database.item.values import AttributeValue, Item
from partita.errors import PartitaError
from partita_migrate.folder import Folder
from partita_migrate.model.design import Design
from partita_migrate.model.making import order
from partita_migrate.proving.staging import lookups
from partita_migrate.statements.values import fold_of, folded
from partita_migrate.understanding.schema.column_refs import Ref
from partita_migrate.understanding.schema.inventory import Inventory

MOVE = "move"
"""Of the migration folder: what the move keeps."""
STATE = "state.db"
LOCK = "lock"
CHUNK_ROWS = 2000
CACHED_LOOKUPS = 20_000
CACHED_ROWS = 10_000
CACHE_KB = 48 * 1024
READER_CACHE_KB = 8 * 1024
"""Of each process beside the one that writes: several share the memory of a move."""
LOCK_SECONDS = 3.0
"""Processes that worked for one that was killed end a moment after it."""

Value = TypeVar("Value")


class Kept(NamedTuple):
    """A row of the store."""

    position: int
    row: Item


class Lookup(NamedTuple):
    """How rows of a table are looked up by some of its columns."""

    columns: tuple[str, ...]
    folds: tuple[str, ...]
    """How each is compared; empty for letter by letter."""
    home: str
    """The column of the store that has their text; empty when there is none."""

    def text(self, values: Sequence[AttributeValue]) -> str:
        if self.folds == ("",):
            for held in values[0].values():
                return str(held)
        pairs = zip(values, self.folds, strict=True)
        plain = [folded(value, fold) if fold else value for value, fold in pairs]
        return "\0".join(str(held) for value in plain for held in value.values())

    def text_of(self, row: Item) -> str | None:
        """None of a row of which one column is NULL."""
        try:
            return self.text([row[name] for name in self.columns])
        except KeyError:
            return None


class StateStore:
    """`is_read_only`: for a process that works beside the one that writes."""

    def __init__(
        self, path: Path, inventory: Inventory, design: Design, *, is_read_only: bool = False
    ) -> None:
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
        self._identities = {name: table.primary_key for name, table in self.tables.items()}
        self._lookups: dict[tuple[str, tuple[str, ...]], Lookup] = {}
        self._indexed = {
            name: [self._lookup(name, columns) for columns in keys]
            for name, keys in self.keys.items()
        }
        self._puts = {name: self._put_statement(name) for name in self.tables}
        self.decode = msgspec.json.Decoder(Item).decode
        self.encode = msgspec.json.Encoder().encode
        """Rows, as they are stored."""
        self._db = _opened(path, is_read_only)
        self._run = self._db.execute
        self._run(f"PRAGMA cache_size = -{READER_CACHE_KB if is_read_only else CACHE_KB}")
        self._cached = lru_cache(CACHED_LOOKUPS)(self._found)
        self._is_frozen = is_read_only
        self._rows: dict[tuple[str, str], Kept | None] = {}
        """Rows that were looked at or written last, as they are in this transaction."""
        if not is_read_only:
            # A position is confirmed to the source after the commit: it is on the disk by then.
            self._run("PRAGMA journal_mode = WAL")
            self._run("PRAGMA synchronous = FULL")
            with self.transaction():
                self._create()
            (found,) = self._run("SELECT EXISTS (SELECT 1 FROM rejects)").fetchone()
            self.has_rejects = bool(found)

    def _lookup(self, table: str, columns: tuple[str, ...]) -> Lookup:
        known = self._lookups.get((table, columns))
        if known is None:
            home = ""
            if self._is_identity(table, columns):
                home = "pk"
            elif columns in self.keys[table]:
                home = f"k{self.keys[table].index(columns)}"
            folds = tuple(self._folds.get(Ref(table, name), "") for name in columns)
            known = self._lookups[table, columns] = Lookup(columns, folds, home)
        return known

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
        self._rows.clear()

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
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, self.encode(value)))

    def remove_fact(self, name: str) -> None:
        self._run("DELETE FROM facts WHERE name = ?", (name,))

    # Rows.

    def add(self, table: str, rows: Iterable[tuple[Any, ...]], position: int) -> None:
        """Rows that are not there yet, in the form of `stored`, as they were read."""
        names = self._columns(table)
        self._db.executemany(
            f"INSERT INTO t{self._places[table]} ({', '.join(names)})"
            f" VALUES ({position}, {', '.join('?' * (len(names) - 1))})",
            rows,
        )

    def _columns(self, table: str) -> list[str]:
        return ["position", "row", "pk", *(f"k{number}" for number in range(len(self.keys[table])))]

    def stored(self, table: str, row: Item) -> tuple[Any, ...]:
        """A row, its primary key, and the texts that it is looked up by."""
        keys = [lookup.text_of(row) for lookup in self._indexed[table]]
        return (self.encode(row), self._identity(table, row), *keys)

    def index(self) -> None:
        """Makes lookups fast, once all rows are there. Of two rows with one key, which readings at
        different positions may find, the later one holds."""
        for name, place in self._places.items():
            (low, high) = self._run(f"SELECT min(position), max(position) FROM t{place}").fetchone()
            if low != high:
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
        try:
            return self._rows[table, key]
        except KeyError:
            pass
        place = self._places[table]
        found = self._run(f"SELECT position, row FROM t{place} WHERE pk = ?", (key,)).fetchone()
        kept = Kept(found[0], self.decode(found[1])) if found else None
        self._remember(table, key, kept)
        return kept

    def _remember(self, table: str, key: str, kept: Kept | None) -> None:
        if len(self._rows) >= CACHED_ROWS:
            self._rows.clear()
        self._rows[table, key] = kept

    def put(self, table: str, row: Item, position: int) -> None:
        stored = self.stored(table, row)
        self._run(self._puts[table], (position, *stored))
        self._remember(table, stored[1], Kept(position, row))

    def _put_statement(self, table: str) -> str:
        names = self._columns(table)
        changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "pk")
        return (
            f"INSERT INTO t{self._places[table]} ({', '.join(names)})"
            f" VALUES ({', '.join('?' * len(names))}) ON CONFLICT (pk) DO UPDATE SET {changed}"
        )

    def remove(self, table: str, key: str) -> None:
        self._run(f"DELETE FROM t{self._places[table]} WHERE pk = ?", (key,))
        self._remember(table, key, None)

    def key_text(self, table: str, row: Item) -> str:
        """A primary key as the store knows it: letter by letter, whatever its collation."""
        text = self._identity(table, row)
        assert text is not None, f"{table} has a row without its primary key"
        return text

    def _identity(self, table: str, row: Item) -> str | None:
        names = self._identities[table]
        try:
            if len(names) == 1:
                (held,) = row[names[0]].values()
                return str(held)
            return "\0".join([str(held) for name in names for held in row[name].values()]) or None
        except KeyError:
            return None

    def _is_identity(self, table: str, columns: tuple[str, ...]) -> bool:
        """Whether rows are looked up by columns as they are told apart by their primary key."""
        is_primary = tuple(self.tables[table].primary_key) == columns
        return is_primary and not any(Ref(table, name) in self._folds for name in columns)

    # Reading.

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Sequence[Item]:
        """In the order of their primary keys."""
        lookup = self._lookup(table, tuple(columns))
        text = lookup.text(values)
        if lookup.home == "pk" and not self._is_frozen:
            kept = self.find(table, text)
            return [kept.row] if kept is not None else []
        if lookup.home:
            find = self._cached if self._is_frozen else self._found
            return find(table, lookup.home, text)
        rows = (row for _, row in self.rows(table) if lookup.text_of(row) == text)
        return self._ordered(table, list(rows))

    def _found(self, table: str, column: str, text: str) -> Sequence[Item]:
        place = self._places[table]
        found = self._run(f"SELECT row FROM t{place} WHERE {column} = ?", (text,)).fetchall()
        return self._ordered(table, [self.decode(row) for (row,) in found])

    def _ordered(self, table: str, rows: list[Item]) -> list[Item]:
        if len(rows) > 1:
            names = self.tables[table].primary_key
            rows.sort(key=lambda row: [order(row.get(name, {})) for name in names])
        return rows

    def rows(
        self, table: str, after: int = 0, until: int | None = None
    ) -> Iterator[tuple[int, Item]]:
        """(number, row) of those behind a number, up to another."""
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

    def some_rows(self, table: str, after: int, count: int) -> list[tuple[int, Item]]:
        """(number, row) of so many behind a number."""
        found = self._run(
            f"SELECT id, row FROM t{self._places[table]} WHERE id > ? ORDER BY id LIMIT {count}",
            (after,),
        )
        return [(number, self.decode(row)) for number, row in found]

    def last(self, table: str) -> int:
        """The number of its last row."""
        (last,) = self._run(f"SELECT max(id) FROM t{self._places[table]}").fetchone()
        return int(last or 0)

    def count(self, table: str) -> int:
        (count,) = self._run(f"SELECT count(*) FROM t{self._places[table]}").fetchone()
        return int(count)

    def stored_rows(self, table: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Rows by their primary keys, as they are stored."""
        marks = ", ".join("?" * len(keys))
        found = self._run(
            f"SELECT pk, row FROM t{self._places[table]} WHERE pk IN ({marks})", tuple(keys)
        )
        return dict(found.fetchall())

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
        self.has_rejects = True
        self._run(
            "INSERT OR REPLACE INTO rejects VALUES (?, ?, ?, ?, ?)",
            (table, key, entity, reason, self.encode(row)),
        )

    def accept(self, table: str, key: str, entity: str) -> None:
        if not self.has_rejects:
            return
        self._run(
            "DELETE FROM rejects WHERE source = ? AND key = ? AND entity = ?", (table, key, entity)
        )

    def reject_count(self) -> int:
        (count,) = self._run("SELECT count(*) FROM rejects").fetchone()
        return int(count)

    def rejects(self) -> list[tuple[str, str, str, str, Item]]:
        """(table, key, entity, reason, row)."""
        found = self._run("SELECT source, key, entity, reason, row FROM rejects ORDER BY 1, 2, 3")
        return [(*some, self.decode(row)) for *some, row in found]


def _opened(path: Path, is_read_only: bool) -> sqlite3.Connection:
    mode = "ro" if is_read_only else "rwc"
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None)


def primary_keys(inventory: Inventory) -> dict[str, Sequence[str]]:
    return {table.name: table.primary_key for table in inventory.tables}


def state_path(folder: Folder) -> Path:
    return folder.path / MOVE / STATE


@contextmanager
def locked(folder: Folder) -> Iterator[int]:
    """The folder of the move, for this process alone and for those that it gives the lock to."""
    home = folder.path / MOVE
    try:
        home.mkdir(exist_ok=True)
        handle = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise PartitaError(f"Cannot write in {home}: {error.strerror}.") from error
    try:
        if not _lock(handle):
            holder = os.pread(handle, 100, 0).decode(errors="replace").strip()
            raise PartitaError(
                f"Another command moves {folder.path}: {holder}; wait for it or stop it."
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}\n".encode(), 0)
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
