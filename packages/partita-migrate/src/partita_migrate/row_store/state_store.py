"""The state store: the source's rows at the position that the move has reached.

Items are made of these rows alone, so what a change affects never depends on how the source or the
target look by then. A batch of changes and the position behind it are committed together, after the
target has the items; a killed process goes on from the last commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design
from partita_migrate.row_store.row_store import RowStore
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.workspace.migration_folder import Folder

MOVE = "move"
"""The folder of the move inside the migration folder."""
STATE = "state.db"
CACHED_ROWS = 10_000
CACHE_KB = 48 * 1024
READER_CACHE_KB = 8 * 1024
"""The cache of each reading process; several of them share the memory of a move."""
BUSY_SECONDS = 5.0

Value = TypeVar("Value")


class StoredRow(NamedTuple):
    """A row of the store and the position that it has."""

    position: int
    row: Item


class StoredFacts:
    """The facts and rejects of a move, read without disturbing the process that works on it.

    Empty where there is no state store yet, or while it is being created.
    """

    def __init__(self, path: Path, rejects_max: int = 0) -> None:
        self.reject_count = 0
        self.rejects: list[tuple[str, str, str]] = []
        """(table, key, reason) of the first rejects."""
        self._values: dict[str, bytes] = {}
        if not path.is_file():
            return
        # The tables may be missing: the store is created just now.
        with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as db:
            self._values = dict(db.execute("SELECT name, value FROM facts"))
            (self.reject_count,) = db.execute("SELECT count(*) FROM rejects").fetchone()
            self.rejects = db.execute(
                "SELECT source, key, reason FROM rejects LIMIT ?", (rejects_max,)
            ).fetchall()

    def get(self, name: str, kind: type[Value]) -> Value | None:
        """Returns a fact; None without one."""
        value = self._values.get(name)
        return None if value is None else msgspec.json.decode(value, type=kind)


class StateStore(RowStore):
    """The rows of a move with its facts, claimed keys and rejects, in one file.

    `is_read_only` opens it for a process that works beside the one that writes.
    """

    def __init__(
        self, path: Path, inventory: Inventory, design: Design, *, is_read_only: bool = False
    ) -> None:
        super().__init__(path, inventory, design, is_read_only=is_read_only)
        self._puts = {name: self._put_statement(name) for name in self.tables}
        self._run(f"PRAGMA cache_size = -{READER_CACHE_KB if is_read_only else CACHE_KB}")
        self._is_frozen = is_read_only
        self._rows: dict[tuple[str, str], StoredRow | None] = {}
        """Rows that were read or written last, as they are in this transaction."""
        if not is_read_only:
            # A position is confirmed to the source after the commit, which must be on disk by then.
            self._run("PRAGMA journal_mode = WAL")
            self._run("PRAGMA synchronous = FULL")
            with self.transaction():
                self._create()
            (has_rejects,) = self._run("SELECT EXISTS (SELECT 1 FROM rejects)").fetchone()
            self.has_rejects = bool(has_rejects)

    def _create(self) -> None:
        run = self._run
        run("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB)")
        run(
            "CREATE TABLE IF NOT EXISTS rejects (source TEXT, key TEXT, entity TEXT, reason TEXT,"
            " row BLOB, PRIMARY KEY (source, key, entity))"
        )
        run("CREATE TABLE IF NOT EXISTS keys (hash BLOB PRIMARY KEY, owner INT) WITHOUT ROWID")
        for name in self.tables:
            self._create_table(name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits the block's changes together, or none of them."""
        self.begin()
        try:
            yield
        except BaseException:
            self.roll_back()
            raise
        self.commit()

    def begin(self) -> None:
        # Takes the write lock now, not at the first write, where waiting for it could fail.
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._run("COMMIT")

    def roll_back(self) -> None:
        """Undoes what was not committed, if anything was begun."""
        if self._db.in_transaction:
            self._run("ROLLBACK")
        self._cached.cache_clear()
        self._rows.clear()

    def freeze(self, *, is_frozen: bool) -> None:
        """Caches lookups while rows do not change."""
        self._is_frozen = is_frozen
        self._cached.cache_clear()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Runs a statement for tables of other modules in the same file and transactions."""
        return self._run(statement, values)

    # Facts: single values by name.

    def fact(self, name: str, kind: type[Value]) -> Value | None:
        stored = self._run("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return msgspec.json.decode(stored[0], type=kind) if stored else None

    def set_fact(self, name: str, value: Any) -> None:
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, self.encode(value)))

    def remove_fact(self, name: str) -> None:
        self._run("DELETE FROM facts WHERE name = ?", (name,))

    # Rows.

    def index(self) -> None:
        """Creates the indexes once all rows are there.

        Lanes are read at different positions, so a row may have been read twice; the later reading
        wins.
        """
        for name, place in self._places.items():
            (low, high) = self._run(f"SELECT min(position), max(position) FROM t{place}").fetchone()
            if low != high:
                self._run(
                    f"DELETE FROM t{place} WHERE id IN (SELECT id FROM (SELECT id, row_number()"
                    " OVER (PARTITION BY pk ORDER BY position DESC, id DESC) AS nth"
                    f" FROM t{place} WHERE pk IS NOT NULL) WHERE nth > 1)"
                )
            self._create_indexes(name, is_unique=True)

    def find(self, table: str, key: str) -> StoredRow | None:
        """Returns the row with a primary key in the form of `key_text`; None without one."""
        try:
            return self._rows[table, key]
        except KeyError:
            pass
        place = self._places[table]
        stored = self._run(f"SELECT position, row FROM t{place} WHERE pk = ?", (key,)).fetchone()
        row = StoredRow(stored[0], self.decode(stored[1])) if stored else None
        self._remember(table, key, row)
        return row

    def _remember(self, table: str, key: str, row: StoredRow | None) -> None:
        if len(self._rows) >= CACHED_ROWS:
            self._rows.clear()
        self._rows[table, key] = row

    def put(self, table: str, row: Item, position: int) -> None:
        stored = self.stored(table, row)
        self._run(self._puts[table], (position, *stored))
        self._remember(table, stored[1], StoredRow(position, row))

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
        """Returns a row's primary key as text, byte by byte whatever its collation."""
        text = self._identity(table, row)
        assert text is not None, f"{table} has a row without its primary key"
        return text

    # Reading.

    def _matches(self, table: str, column: str, text: str) -> Sequence[Item]:
        if self._is_frozen:
            return self._cached(table, column, text)
        if column == "pk":
            stored = self.find(table, text)
            return [stored.row] if stored is not None else []
        return self._stored_matches(table, column, text)

    def some_rows(self, table: str, after: int, count: int) -> list[tuple[int, Item]]:
        """Returns (number, row) for up to `count` rows behind a number."""
        stored = self._run(
            f"SELECT id, row FROM t{self._places[table]} WHERE id > ? ORDER BY id LIMIT {count}",
            (after,),
        )
        return [(number, self.decode(row)) for number, row in stored]

    def last(self, table: str) -> int:
        """Returns the number of the table's last row."""
        (last,) = self._run(f"SELECT max(id) FROM t{self._places[table]}").fetchone()
        return int(last or 0)

    def count(self, table: str) -> int:
        (count,) = self._run(f"SELECT count(*) FROM t{self._places[table]}").fetchone()
        return int(count)

    def stored_rows(self, table: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Returns the JSON of rows by their primary keys."""
        marks = ", ".join("?" * len(keys))
        stored = self._run(
            f"SELECT pk, row FROM t{self._places[table]} WHERE pk IN ({marks})", tuple(keys)
        )
        return dict(stored.fetchall())

    # Claims: keys of items, so that two rows never make the same key unnoticed.

    def claim(self, owners: Mapping[bytes, int]) -> dict[bytes, int]:
        """Records which entity and row own these item keys; returns the keys that another row owns
        already."""
        # Nearly always all keys are new, which one statement for all of them shows.
        before = self._db.total_changes
        self._db.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", list(owners.items()))
        if self._db.total_changes - before == len(owners):
            return {}
        owners_before = {}
        for key, owner in owners.items():
            (holder,) = self._run("SELECT owner FROM keys WHERE hash = ?", (key,)).fetchone()
            if holder != owner:
                owners_before[key] = holder
        return owners_before

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
        """Returns (table, key, entity, reason, row) of all rejects."""
        stored = self._run("SELECT source, key, entity, reason, row FROM rejects ORDER BY 1, 2, 3")
        return [(*fields, self.decode(row)) for *fields, row in stored]


def state_path(folder: Folder) -> Path:
    return folder.path / MOVE / STATE
