"""The way back's part of the state store: rows that wait, items that cannot return, items to be
stamped again.

It shares the state store's file and transactions, because its tables have to change together with
the rows.
"""

from __future__ import annotations

import msgspec

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.target_access.item_positions import key_of
from partita_migrate.moving.way_back.items_to_rows import DesiredRow
from partita_migrate.row_store.state_store import StateStore

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(Item).decode


def key_bytes(table: TableDesign, item: Item) -> bytes:
    """Returns an item's key as JSON."""
    return _encode(key_of(table, item))


class WayBackStore:
    """The tables of the way back."""

    def __init__(self, state: StateStore) -> None:
        self._run = state.execute
        run = self._run
        run(
            "CREATE TABLE IF NOT EXISTS back_waiting (source TEXT, key TEXT, id BLOB, row BLOB,"
            " why TEXT, PRIMARY KEY (source, key))"
        )
        run(
            "CREATE TABLE IF NOT EXISTS back_refused (home TEXT, key BLOB, item BLOB, why TEXT,"
            " PRIMARY KEY (home, key))"
        )
        run(
            "CREATE TABLE IF NOT EXISTS back_items (home TEXT, key BLOB, item BLOB,"
            " PRIMARY KEY (home, key))"
        )

    # Rows that wait for others.

    def waiting(self) -> list[tuple[DesiredRow, str]]:
        stored = self._run("SELECT source, key, id, row, why FROM back_waiting").fetchall()
        return [
            (DesiredRow(source, _decode(key), _decode(row) if row else None, text), why)
            for source, text, key, row, why in stored
        ]

    def set_waiting(self, waiting: list[tuple[DesiredRow, str]]) -> None:
        self._run("DELETE FROM back_waiting")
        for desired, why in waiting:
            row = None if desired.row is None else _encode(desired.row)
            self._run(
                "INSERT OR REPLACE INTO back_waiting VALUES (?, ?, ?, ?, ?)",
                (desired.table, desired.key_text, _encode(desired.key), row, why),
            )

    # Items that no row can represent.

    def refuse(self, table: str, key: Item, item: Item, why: str) -> None:
        self._run(
            "INSERT OR REPLACE INTO back_refused VALUES (?, ?, ?, ?)",
            (table, _encode(key), _encode(item), why),
        )

    def accept(self, table: str, key: Item) -> None:
        self._run("DELETE FROM back_refused WHERE home = ? AND key = ?", (table, _encode(key)))

    def refused(self) -> list[tuple[str, Item, Item, str]]:
        stored = self._run("SELECT home, key, item, why FROM back_refused ORDER BY 1, 2").fetchall()
        return [(home, _decode(key), _decode(item), why) for home, key, item, why in stored]

    def obstacle_count(self) -> int:
        """Returns the number of rows that wait and of items that no row can represent."""
        counts = "SELECT (SELECT count(*) FROM back_waiting) + (SELECT count(*) FROM back_refused)"
        ((count,),) = self._run(counts).fetchall()
        return int(count)

    # Items that are stamped again, as rows make them, after a rollback.

    def touch(self, table: str, key: Item, item: Item | None) -> None:
        """Records an item that has to be stamped again after a rollback.

        `item` is what rows make of it now, a tombstone when they make nothing; None when that has
        not changed.
        """
        if item is None:
            self._run("INSERT OR IGNORE INTO back_items VALUES (?, ?, NULL)", (table, _encode(key)))
            return
        self._run(
            "INSERT OR REPLACE INTO back_items VALUES (?, ?, ?)",
            (table, _encode(key), _encode(item)),
        )

    def touched(self) -> list[tuple[str, Item, Item | None]]:
        stored = self._run("SELECT home, key, item FROM back_items ORDER BY 1, 2").fetchall()
        return [(home, _decode(key), _decode(item) if item else None) for home, key, item in stored]

    def forget(self) -> None:
        """Clears the tables: the source is authoritative again."""
        for name in ("back_waiting", "back_refused", "back_items"):
            self._run(f"DELETE FROM {name}")
