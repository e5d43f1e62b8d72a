"""The source's rows on this machine for one run of `test`.

One pass over the source gives a consistent picture that all later steps share, with memory that
does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design
from partita_migrate.row_store.row_store import CHUNK_ROWS, RowStore
from partita_migrate.understanding.schema.inventory import Inventory

COUNTED_ROWS_MAX = 50_000
BLANK_ENDED_ROWS = 100


class StagedRows(RowStore):
    """Staged rows: each table is filled once and then only read."""

    def __init__(self, path: Path, inventory: Inventory, design: Design) -> None:
        super().__init__(path, inventory, design)
        # A killed process loses the table that it was filling, and keeps the others. Nothing here
        # has to survive a power failure: a run can be repeated.
        self._run("PRAGMA journal_mode = TRUNCATE")
        self._run("PRAGMA synchronous = OFF")
        self._run("CREATE TABLE IF NOT EXISTS staged (name TEXT PRIMARY KEY, n INT)")
        for table in inventory.tables:
            # A table that the user may not read stays empty.
            self._create_table(table.name)
        self._blank_ended = lru_cache(len(inventory.tables))(self._blank_ended_rows)

    # Filling.

    def fill(self, table: str, rows: Iterable[Item]) -> Iterator[int]:
        """Replaces the rows of a table; yields after each chunk how many there are by now."""
        # In one transaction, which in SQLite includes the definition of tables: `has` is true of a
        # table with all its rows, or not at all.
        self._run("BEGIN")
        self._run(f"DROP TABLE IF EXISTS t{self._places[table]}")
        self._create_table(table)
        count = 0
        chunk = []
        for row in rows:
            chunk.append(self.stored(table, row))
            count += 1
            if len(chunk) == CHUNK_ROWS:
                self.add(table, chunk)
                chunk.clear()
                yield count
        self.add(table, chunk)
        # Not unique: SQLite keeps any type in any column, and the keys 1 and '1' have one text.
        self._create_indexes(table, is_unique=False)
        self._run("INSERT OR REPLACE INTO staged VALUES (?, ?)", (table, count))
        self._run("COMMIT")
        self._cached.cache_clear()
        self._blank_ended.cache_clear()
        yield count

    def has(self, table: str) -> bool:
        """True when all rows of a table are here, from this run or from one that was stopped."""
        staged = self._run("SELECT 1 FROM staged WHERE name = ?", (table,))
        return staged.fetchone() is not None

    # Reading.

    def count(self, table: str) -> int:
        staged = self._run("SELECT n FROM staged WHERE name = ?", (table,)).fetchone()
        return int(staged[0]) if staged else 0

    def ending_in_blanks(self, table: str, column: str) -> list[Item]:
        """Returns some rows whose text a PAD SPACE collation takes for a shorter one."""
        rows = self._blank_ended(table)
        return [row for row in rows if str(row.get(column, {}).get("S", "")).endswith(" ")]

    def _blank_ended_rows(self, table: str) -> list[Item]:
        rows = self._run(
            f"SELECT row FROM t{self._places[table]} WHERE instr(row, ?) LIMIT {BLANK_ENDED_ROWS}",
            (b' "}',),  # As JSON ends a text.
        )
        return [self.decode(row) for (row,) in rows]

    def spread(self, table: str, count: int) -> list[Item]:
        """Returns some rows from all over a table, the first and the last among them."""
        total = self.count(table)
        if not total:
            return []
        steps = sorted({1, total, *(1 + total * n // max(count, 1) for n in range(count))})
        marks = ", ".join(map(str, (step for step in steps if step <= total)))
        rows = self._run(f"SELECT row FROM t{self._places[table]} WHERE id IN ({marks})")
        return [self.decode(row) for (row,) in rows]

    def most_frequent(self, table: str, columns: Sequence[str]) -> Item | None:
        """Returns a row with the values that most rows share."""
        lookup = self._lookup(table, tuple(columns))
        if not lookup.stored_in:
            return self._most_counted(table, columns)
        most = self._run(
            f"SELECT min(row) FROM t{self._places[table]} WHERE {lookup.stored_in} IS NOT NULL"
            f" GROUP BY {lookup.stored_in} ORDER BY count(*) DESC LIMIT 1"
        ).fetchone()
        return self.decode(most[0]) if most else None

    def _most_counted(self, table: str, columns: Sequence[str]) -> Item | None:
        lookup = self._lookup(table, tuple(columns))
        counts: dict[str, int] = {}
        first: dict[str, Item] = {}
        for _, row in self.numbered_rows(table, until=COUNTED_ROWS_MAX):
            text = lookup.text_of(row)
            if text is not None:
                counts[text] = counts.get(text, 0) + 1
                first.setdefault(text, row)
        return first[max(counts, key=lambda text: counts[text])] if counts else None
