"""Makes every item of a design from the staged rows, and records what is wrong with its keys.

The items are stored beside the rows, so that what was checked is what is loaded. Memory stays flat:
keys are compared in SQLite, by their hashes.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from partita.database.item.attribute_values import Item
from partita.database.item.item_sizes import item_size
from partita.foundation.service_limits import (
    ITEM_BYTES_MAX,
    ITEM_COLLECTION_BYTES_MAX,
    PARTITION_KEY_BYTES_MAX,
    SORT_KEY_BYTES_MAX,
)
from partita_migrate.model.design import Design, Entity, SecondaryIndex, TableDesign
from partita_migrate.model.items.item_maker import ItemMaker, row_of
from partita_migrate.model.keys.key_formats import NotEncodable
from partita_migrate.proving.proof_run.proof_results import KeyProblem, RowAcceptance, WayBackCheck
from partita_migrate.row_store.row_store import CHUNK_ROWS, primary_keys
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable, is_derived
from partita_migrate.workspace.stage_progress import Progress

EXAMPLES_MAX = 3


class _KeyNotes(msgspec.Struct, kw_only=True):
    """Everything that was recorded while items were made; stored after each step for a resumed
    run."""

    problems: list[tuple[tuple[str, str], KeyProblem]]
    imported: dict[str, int]
    items: dict[str, int]
    failures: dict[str, list[str]]
    failed: dict[str, int]
    inexact: dict[str, str]


class StagedItems:
    """Makes the items of all entities and records what is wrong."""

    def __init__(
        self, path: Path, design: Design, inventory: Inventory, staging: StagedRows
    ) -> None:
        self.design = design
        self.inventory = inventory
        self.staging = staging
        self.maker = ItemMaker(staging, primary_keys(inventory))
        self.problems: dict[tuple[str, str], KeyProblem] = {}
        self.imported: dict[str, int] = {}
        self.items: dict[str, int] = {}
        self.failures: dict[str, list[str]] = {}
        self.failed: dict[str, int] = {}
        self.inexact: dict[str, str] = {}
        self._db = sqlite3.connect(path, isolation_level=None)
        # A kill of the process loses the step that it was at; nothing here has to survive a power
        # failure, because a run can be repeated.
        self._db.execute("PRAGMA journal_mode = TRUNCATE")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE IF NOT EXISTS made (step TEXT PRIMARY KEY, notes BLOB)")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, place INT, entity INT,"
            " key BLOB, part BLOB, size INT, item BLOB)"
        )

    def close(self) -> None:
        self._db.close()

    def make(self, progress: Progress) -> None:
        """Makes all items, except for what an earlier run finished before it was stopped."""
        tables = [table for table in self.inventory.tables if self._entities(table.name)]
        done = self._done()
        for number, table in enumerate(tables):
            progress("Items", number, len(tables))
            if f"items of {table.name}" not in done:
                self._step(f"items of {table.name}", partial(self._make, table))
        progress("Items", len(tables), len(tables))
        if "keys" not in done:
            self._step("keys", self._compare_keys)

    def _compare_keys(self) -> None:
        self._db.execute("CREATE INDEX by_key ON items (place, key)")
        self._find_repeats()
        self._find_large_collections()

    def _step(self, name: str, run: Callable[[], None]) -> None:
        """Runs a step and stores it together with everything recorded so far, in one
        transaction."""
        self._db.execute("BEGIN")
        run()
        notes = msgspec.json.encode(
            _KeyNotes(
                problems=list(self.problems.items()),
                imported=self.imported,
                items=self.items,
                failures=self.failures,
                failed=self.failed,
                inexact=self.inexact,
            )
        )
        self._db.execute("INSERT INTO made VALUES (?, ?)", (name, notes))
        self._db.execute("COMMIT")

    def _done(self) -> set[str]:
        steps = self._db.execute("SELECT step, notes FROM made ORDER BY rowid").fetchall()
        if steps:
            notes = msgspec.json.decode(steps[-1][1], type=_KeyNotes)
            self.problems = dict(notes.problems)
            self.imported, self.items = notes.imported, notes.items
            self.failures, self.failed = notes.failures, notes.failed
            self.inexact = notes.inexact
        return {name for name, _ in steps}

    def _entities(self, source: str) -> list[tuple[int, TableDesign, Entity]]:
        return [
            (place, table, entity)
            for place, table in enumerate(self.design.tables)
            for entity in table.entities
            if entity.source == source
        ]

    def _make(self, table: SourceTable) -> None:
        entities = self._entities(table.name)
        chunk: list[tuple[object, ...]] = []
        for row in self.staging.rows(table.name):
            is_imported = False
            reasons: list[str] = []
            again: Item = {}
            for place, home, entity in entities:
                try:
                    item = self.maker.item(entity, row)
                except NotEncodable as error:
                    reasons.append(str(error))
                    self._note("key of a wrong form", f"{home.name}, {entity.name}", str(error))
                    continue
                if item is None:
                    continue
                if not self._check(home, entity, item):
                    reasons.append(f"its {entity.name} item would be refused")
                    continue
                if not entity.is_guard and entity.rows == "each":
                    is_imported = True
                    again |= row_of(entity, item)
                chunk.append(self._stored_item(place, home, entity, item))
            if reasons:
                self.failed[table.name] = self.failed.get(table.name, 0) + 1
                self.failures.setdefault(table.name, []).extend(reasons[:EXAMPLES_MAX])
                del self.failures[table.name][EXAMPLES_MAX:]
            elif is_imported:
                self.imported[table.name] = self.imported.get(table.name, 0) + 1
            if table.name not in self.inexact and is_imported:
                self._compare_row(table, again, row)
            if len(chunk) >= CHUNK_ROWS:
                self._store(chunk)
        self._store(chunk)

    def _stored_item(
        self, place: int, home: TableDesign, entity: Entity, item: Item
    ) -> tuple[object, ...]:
        self.items[entity.source] = self.items.get(entity.source, 0) + 1
        number = home.entities.index(entity)
        part = _hash(item, [home.partition_key.name])
        key = _hash(item, [key.name for key in home.keys])
        return (place, number, key, part, item_size(item), msgspec.json.encode(item))

    def _store(self, chunk: list[tuple[object, ...]]) -> None:
        self._db.executemany(
            "INSERT INTO items (place, entity, key, part, size, item) VALUES (?, ?, ?, ?, ?, ?)",
            chunk,
        )
        chunk.clear()

    # Checks.

    def _check(self, table: TableDesign, entity: Entity, item: Item) -> bool:
        """True when DynamoDB would accept the item."""
        place = f"{table.name}, {entity.name}"
        is_right = True
        tables_and_indexes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
        for home in tables_and_indexes:
            limits = (PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX)
            for key, most in zip(home.keys, limits, strict=False):
                value = item.get(key.name)
                problem = ""
                if value is None:
                    problem = "row without a key" if home is table else ""
                elif key.type not in value:
                    problem = "key of a wrong type"
                elif value[key.type] == "":
                    problem = "empty key"
                elif len(str(value[key.type]).encode()) > most:
                    problem = "key too long"
                if problem:
                    is_right = False
                    shown = "" if value is None else str(next(iter(value.values())))[:80]
                    self._note(problem, f"{place}, {key.name} of {home.name}", repr(shown))
        size = item_size(item)
        if size > ITEM_BYTES_MAX:
            is_right = False
            self._note("item too large", place, f"{size:,} bytes")
        return is_right

    def _note(self, kind: str, place: str, detail: str) -> None:
        earlier = self.problems.get((kind, place))
        count = earlier.count + 1 if earlier is not None else 1
        first = earlier.detail if earlier is not None else detail
        self.problems[kind, place] = KeyProblem(kind=kind, place=place, detail=first, count=count)

    def _find_repeats(self) -> None:
        """Finds rows with the same key, of which the later one would overwrite the first."""
        repeated = self._db.execute(
            "SELECT place, key FROM items GROUP BY place, key HAVING count(*) > 1"
        )
        for place, key in repeated.fetchall():
            repeats = self._db.execute(
                "SELECT entity, item FROM items WHERE place = ? AND key = ? LIMIT 2", (place, key)
            ).fetchall()
            table = self.design.tables[place]
            names = [table.entities[entity].name for entity, _ in repeats]
            item = msgspec.json.decode(repeats[0][1], type=Item)
            shown = ", ".join(
                f"{key_attribute.name}={next(iter(item[key_attribute.name].values()))}"
                for key_attribute in table.keys
            )
            kind = "two rows in one item" if names[0] == names[1] else "two types in one item"
            self._note(kind, f"{table.name}, {' and '.join(dict.fromkeys(names))}", shown)
            # BatchWriteItem refuses a batch that has a key twice, so only the first row's item
            # stays.
            self._db.execute(
                "DELETE FROM items WHERE place = ? AND key = ? AND id NOT IN"
                " (SELECT min(id) FROM items WHERE place = ? AND key = ?)",
                (place, key, place, key),
            )

    def _find_large_collections(self) -> None:
        for place, table in enumerate(self.design.tables):
            if not any(index.kind == "local" for index in table.indexes):
                continue
            large_collections = self._db.execute(
                "SELECT sum(size) FROM items WHERE place = ? GROUP BY part"
                f" HAVING sum(size) > {ITEM_COLLECTION_BYTES_MAX}",
                (place,),
            )
            for (size,) in large_collections:
                self._note("collection too large", table.name, f"{size:,} bytes")

    def _compare_row(self, table: SourceTable, remade: Item, row: Item) -> None:
        """Checks that a row can be made again from its items."""
        expected = {
            column.name: row[column.name]
            for column in table.columns
            if column.name in row and not is_derived(column)
        }
        if {name: _loosely(remade.get(name)) for name in expected} != {
            name: _loosely(value) for name, value in expected.items()
        }:
            lost = [
                name for name in expected if _loosely(remade.get(name)) != _loosely(expected[name])
            ]
            self.inexact[table.name] = f"no item holds {', '.join(lost[:5])} as it was"

    # Results.

    def acceptance(self, counts: dict[str, int]) -> list[RowAcceptance]:
        """Returns what became of the rows; `counts` are the source's row counts by table."""
        rows = []
        for table in self.inventory.tables:
            processed = self.staging.count(table.name)
            failed = self.failed.get(table.name, 0)
            imported = self.imported.get(table.name, 0)
            skipped = processed - imported - failed
            rows.append(
                RowAcceptance(
                    table=table.name,
                    processed=processed,
                    expected=counts.get(table.name, processed),
                    imported=imported,
                    skipped=skipped,
                    skipped_why=self._why_skipped(table.name) if skipped else "",
                    failed=failed,
                    items=self.items.get(table.name, 0),
                    errors=self.failures.get(table.name, []),
                )
            )
        return rows

    def _why_skipped(self, table: str) -> str:
        if any(entity.unless for _, _, entity in self._entities(table)):
            return "its items are there only while no other row forbids them"
        holders = self._holders(table)
        if holders:
            return f"no items of its own: what is read of it is in the items of {holders}"
        why = next(
            (column.why for column in self.design.left_out if column.column == f"{table}.*"), None
        )
        return why or "the design has no items for it"

    def _holders(self, table: str) -> str:
        names = {
            entity.name
            for _, entity in self.design.entities()
            for attribute in entity.attributes
            for column in [attribute.column, *attribute.collect]
            if column and ColumnRef.parse(column).table == table
        }
        return ", ".join(sorted(names))

    def way_back(self) -> list[WayBackCheck]:
        checks = []
        for table in self.inventory.tables:
            own = [entity for _, _, entity in self._entities(table.name) if entity.holds_rows]
            why = self.inexact.get(table.name, "")
            if not own:
                why = self._why_skipped(table.name)
            checks.append(WayBackCheck(table=table.name, is_exact=not why, why=why))
        return checks

    def all_items(self, skipped: int = 0) -> Iterator[tuple[str, Item]]:
        """Yields (table, item), one for each key, without the first `skipped` ones."""
        last_skipped = self._db.execute(
            "SELECT id FROM items ORDER BY id LIMIT 1 OFFSET ?", (max(skipped - 1, 0),)
        ).fetchone()
        if skipped and last_skipped is None:
            return
        last = int(last_skipped[0]) if skipped else 0
        decode = msgspec.json.Decoder(Item).decode
        while True:
            chunk = self._db.execute(
                f"SELECT id, place, item FROM items WHERE id > ? ORDER BY id LIMIT {CHUNK_ROWS}",
                (last,),
            ).fetchall()
            if not chunk:
                return
            for number, place, item in chunk:
                last = number
                yield self.design.tables[place].name, decode(item)

    def count(self) -> int:
        (count,) = self._db.execute("SELECT count(*) FROM items").fetchone()
        return int(count)


def _hash(item: Item, names: list[str]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        digest.update(msgspec.json.encode(item.get(name)))
    return digest.digest()


def _loosely(value: object) -> object:
    """Treats a number that the model keeps as text as the same number."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        return str(content) if kind in ("S", "N") else content
    return value
