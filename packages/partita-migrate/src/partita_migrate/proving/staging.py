"""The source's rows on this machine, in a file of SQLite's: looked up by what joins follow.

One pass over the source gives a consistent picture that all later steps share, with memory that
does not grow with the rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path

import msgspec

from partita.database.item.values import AttributeValue, Item
from partita_migrate.model.design import Design
from partita_migrate.statements.values import fold_of, folded
from partita_migrate.understanding.schema.column_refs import Ref, parse_join
from partita_migrate.understanding.schema.inventory import Inventory

CHUNK_ROWS = 2000
CACHED_LOOKUPS = 50_000
BLANK_ENDED_ROWS = 100


def lookups(design: Design, inventory: Inventory) -> dict[str, list[tuple[str, ...]]]:
    """By table, the columns by which rows of it are looked up."""
    found: dict[str, set[tuple[str, ...]]] = {table.name: set() for table in inventory.tables}
    for table in inventory.tables:
        if table.primary_key:
            found[table.name].add(tuple(table.primary_key))
        for key in table.foreign_keys:
            found[table.name].add(tuple(key.columns))
            found.setdefault(key.referenced_table, set()).add(tuple(key.referenced_columns))
    for _, entity in design.entities():
        if entity.per:
            per = tuple(Ref.parse(name).column for name in entity.per)
            found.setdefault(entity.source, set()).add(per)
        for text in chain.from_iterable(entity.ways):
            join = parse_join(text)
            if join is not None:
                for side in (join.before, join.after):
                    columns = tuple(ref.column for ref in side)
                    found.setdefault(side[0].table, set()).add(columns)
    return {table: sorted(columns) for table, columns in found.items()}


class Staging:
    def __init__(
        self, path: Path, inventory: Inventory, keys: Mapping[str, Sequence[tuple[str, ...]]]
    ) -> None:
        self.inventory = inventory
        self.keys = keys
        self._connection = sqlite3.connect(path, isolation_level=None)
        # A process that is killed loses the table it was at, and no other.
        self._connection.execute("PRAGMA journal_mode = TRUNCATE")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("CREATE TABLE IF NOT EXISTS staged (name TEXT PRIMARY KEY, n INT)")
        self._places = {table.name: place for place, table in enumerate(inventory.tables)}
        for table in inventory.tables:
            # A table that nobody may read has no rows here.
            self._connection.execute(self._definition(table.name))
        self._folds = {
            Ref(table.name, column.name): fold
            for table in inventory.tables
            for column in table.columns
            if (fold := fold_of(column, inventory.dialect))
        }
        self._decode = msgspec.json.Decoder(Item).decode
        self._cached = lru_cache(CACHED_LOOKUPS)(self._found)
        self._blank_ended = lru_cache(len(inventory.tables))(self._blank_ended_rows)

    def close(self) -> None:
        self._connection.close()

    # Filling.

    def _definition(self, table: str) -> str:
        names = "".join(f", k{number} TEXT" for number in range(len(self.keys.get(table, []))))
        place = self._places[table]
        return f"CREATE TABLE IF NOT EXISTS t{place} (id INTEGER PRIMARY KEY, row BLOB{names})"

    def fill(self, table: str, rows: Iterable[Item]) -> Iterator[int]:
        """Stores the rows of a table anew, and tells after each chunk how many there are."""
        place = self._places[table]
        keys = self.keys.get(table, [])
        run = self._connection.execute
        run(f"DROP TABLE IF EXISTS t{place}")
        run(self._definition(table))
        marks = ", ".join("?" * (len(keys) + 1))
        columns = ", ".join(["row", *(f"k{number}" for number in range(len(keys)))])
        insert = f"INSERT INTO t{place} ({columns}) VALUES ({marks})"
        count = 0
        chunk: list[tuple[object, ...]] = []
        run("BEGIN")
        for row in rows:
            texts = (self._key(table, one, row) for one in keys)
            chunk.append((msgspec.json.encode(row), *texts))
            count += 1
            if len(chunk) == CHUNK_ROWS:
                self._connection.executemany(insert, chunk)
                chunk.clear()
                yield count
        self._connection.executemany(insert, chunk)
        for number in range(len(keys)):
            run(f"CREATE INDEX t{place}k{number} ON t{place} (k{number})")
        run("INSERT OR REPLACE INTO staged VALUES (?, ?)", (table, count))
        run("COMMIT")
        self._cached.cache_clear()
        self._blank_ended.cache_clear()
        yield count

    def has(self, table: str) -> bool:
        """Whether all rows of a table are here, of this run or of one that was stopped."""
        found = self._connection.execute("SELECT 1 FROM staged WHERE name = ?", (table,))
        return found.fetchone() is not None

    def _key(self, table: str, columns: Sequence[str], row: Item) -> str | None:
        values = [row.get(column) for column in columns]
        known = [value for value in values if value is not None]
        return self._text(table, columns, known) if len(known) == len(values) else None

    def _text(self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]) -> str:
        folds = self._folds
        pairs = zip(columns, values, strict=True)
        plain = [folded(value, folds.get(Ref(table, name), "")) for name, value in pairs]
        return "\0".join(str(next(iter(value.values()))) for value in plain)

    # Reading.

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Iterable[Item]:
        wanted = tuple(columns)
        keys = list(self.keys.get(table, []))
        if wanted not in keys:
            return self._sought(table, wanted, values)
        return self._cached(table, keys.index(wanted), self._text(table, wanted, values))

    def _found(self, table: str, number: int, text: str) -> list[Item]:
        place = self._places[table]
        found = self._connection.execute(
            f"SELECT row FROM t{place} WHERE k{number} = ? ORDER BY id", (text,)
        )
        return [self._decode(row) for (row,) in found]

    def ending_in_blanks(self, table: str, column: str) -> list[Item]:
        """Some rows whose text a PAD SPACE collation takes for a shorter one."""
        found = self._blank_ended(table)
        return [row for row in found if str(row.get(column, {}).get("S", "")).endswith(" ")]

    def _blank_ended_rows(self, table: str) -> list[Item]:
        place = self._places[table]
        found = self._connection.execute(
            f"SELECT row FROM t{place} WHERE instr(row, ?) LIMIT {BLANK_ENDED_ROWS}",
            (b' "}',),  # As JSON ends a text.
        )
        return [self._decode(row) for (row,) in found]

    def _sought(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> list[Item]:
        wanted = self._text(table, columns, values)
        return [row for row in self.rows(table) if self._key(table, columns, row) == wanted]

    def rows(self, table: str) -> Iterator[Item]:
        """In the order in which they came."""
        place = self._places[table]
        last = 0
        while True:
            chunk = self._connection.execute(
                f"SELECT id, row FROM t{place} WHERE id > ? ORDER BY id LIMIT {CHUNK_ROWS}", (last,)
            ).fetchall()
            if not chunk:
                return
            for number, row in chunk:
                last = number
                yield self._decode(row)

    def count(self, table: str) -> int:
        found = self._connection.execute("SELECT n FROM staged WHERE name = ?", (table,)).fetchone()
        return int(found[0]) if found else 0

    def spread(self, table: str, count: int) -> list[Item]:
        """Some rows from all over a table, the first and the last among them."""
        place, total = self._places[table], self.count(table)
        if not total:
            return []
        steps = sorted({1, total, *(1 + total * n // max(count, 1) for n in range(count))})
        marks = ", ".join(map(str, (step for step in steps if step <= total)))
        found = self._connection.execute(f"SELECT row FROM t{place} WHERE id IN ({marks})")
        return [self._decode(row) for (row,) in found]

    def most_frequent(self, table: str, columns: Sequence[str]) -> Item | None:
        """A row with the values that most rows share."""
        place = self._places[table]
        wanted = tuple(columns)
        keys = list(self.keys.get(table, []))
        if wanted not in keys:
            return self._counted(table, wanted)
        number = keys.index(wanted)
        found = self._connection.execute(
            f"SELECT min(row) FROM t{place} WHERE k{number} IS NOT NULL"
            f" GROUP BY k{number} ORDER BY count(*) DESC LIMIT 1"
        ).fetchone()
        return self._decode(found[0]) if found else None

    def _counted(self, table: str, columns: Sequence[str]) -> Item | None:
        counts: dict[str, int] = {}
        first: dict[str, Item] = {}
        for number, row in enumerate(self.rows(table)):
            text = self._key(table, columns, row)
            if text is None or number > CACHED_LOOKUPS:
                continue
            counts[text] = counts.get(text, 0) + 1
            first.setdefault(text, row)
        return first[max(counts, key=lambda text: counts[text])] if counts else None
