"""Rows of a source in SQLite files: what `test` stages and what a move keeps are found alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import Design
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.row_store.state_store import StateStore
from partita_migrate.understanding.schema.inventory import (
    ForeignKey,
    Inventory,
    SourceColumn,
    SourceTable,
)

INVENTORY = Inventory(
    dialect="sqlite",
    server_version="3",
    database="shop",
    tables=[
        SourceTable(
            name="customer",
            columns=[
                SourceColumn(name="id", type="INTEGER", kind="integer"),
                SourceColumn(name="mail", type="TEXT", kind="string", is_case_insensitive=True),
                SourceColumn(name="city", type="TEXT", kind="string", is_nullable=True),
            ],
            primary_key=["id"],
        ),
        SourceTable(
            name="line",
            columns=[
                SourceColumn(name="customer", type="INTEGER", kind="integer", is_nullable=True),
                SourceColumn(name="number", type="INTEGER", kind="integer"),
                SourceColumn(name="mail", type="TEXT", kind="string", is_case_insensitive=True),
            ],
            primary_key=["customer", "number"],
            foreign_keys=[
                ForeignKey(
                    columns=["customer"], referenced_table="customer", referenced_columns=["id"]
                ),
                ForeignKey(
                    columns=["mail"], referenced_table="customer", referenced_columns=["mail"]
                ),
            ],
        ),
        SourceTable(
            name="note",
            columns=[
                SourceColumn(name="customer", type="INTEGER", kind="integer", is_nullable=True),
                SourceColumn(name="text", type="TEXT", kind="string"),
            ],
            foreign_keys=[
                ForeignKey(
                    columns=["customer"], referenced_table="customer", referenced_columns=["id"]
                )
            ],
        ),
    ],
)
DESIGN = Design(name="model", kind="single-table")


def customer(number: int, mail: str, city: str | None = None) -> Item:
    row: Item = {"id": {"N": str(number)}, "mail": {"S": mail}}
    return row | {"city": {"S": city}} if city is not None else row


def line(customer: int, number: int, mail: str = "") -> Item:
    return {
        "customer": {"N": str(customer)},
        "number": {"N": str(number)},
        "mail": {"S": mail},
    }


class Rows(Protocol):
    """What both stores have."""

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Sequence[Item]: ...


Make = Callable[[dict[str, list[Item]]], Rows]


@pytest.fixture(params=["staged", "state"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a store of either kind, filled as its users fill it."""
    stores: list[StagedRows | StateStore] = []

    def staged(rows: dict[str, list[Item]]) -> StagedRows:
        store = StagedRows(tmp_path / "rows", INVENTORY, DESIGN)
        stores.append(store)
        for table in INVENTORY.tables:
            list(store.fill(table.name, rows.get(table.name, [])))
        return store

    def state(rows: dict[str, list[Item]]) -> StateStore:
        store = state_store(tmp_path)
        stores.append(store)
        load(store, rows)
        return store

    yield staged if request.param == "staged" else state
    for store in stores:
        store.close()


def state_store(path: Path, *, is_read_only: bool = False) -> StateStore:
    return StateStore(path / "state.db", INVENTORY, DESIGN, is_read_only=is_read_only)


def load(store: StateStore, rows: dict[str, list[Item]], position: int = 1) -> None:
    with store.transaction():
        for table, some in rows.items():
            store.add(table, [store.stored(table, row) for row in some], position)
        store.index()


class TestBothKinds:
    def test_a_row_is_found_by_its_primary_key(self, make: Make) -> None:
        rows = make({"customer": [customer(1, "a"), customer(2, "b")]})
        assert list(rows.matching("customer", ["id"], [{"N": "2"}])) == [customer(2, "b")]
        assert list(rows.matching("customer", ["id"], [{"N": "3"}])) == []

    def test_a_row_is_found_by_a_key_of_two_columns(self, make: Make) -> None:
        rows = make({"line": [line(1, 1), line(1, 2), line(2, 1)]})
        found = rows.matching("line", ["customer", "number"], [{"N": "1"}, {"N": "2"}])
        assert list(found) == [line(1, 2)]

    def test_children_are_found_by_a_foreign_key_in_the_order_of_their_keys(
        self, make: Make
    ) -> None:
        rows = make({"line": [line(1, 1), line(1, 2), line(1, 10), line(2, 1)]})
        found = rows.matching("line", ["customer"], [{"N": "1"}])
        assert list(found) == [line(1, 1), line(1, 2), line(1, 10)]

    def test_texts_are_found_as_their_collation_compares_them(self, make: Make) -> None:
        rows = make({"customer": [customer(1, "Ann@x"), customer(2, "bob@x")]})
        assert list(rows.matching("customer", ["mail"], [{"S": "ANN@X"}])) == [customer(1, "Ann@x")]

    def test_a_column_that_no_join_follows_is_searched(self, make: Make) -> None:
        rows = make({"customer": [customer(1, "a", "Ulm"), customer(2, "b"), customer(3, "c")]})
        assert list(rows.matching("customer", ["city"], [{"S": "Ulm"}])) == [
            customer(1, "a", "Ulm")
        ]

    def test_null_is_found_by_no_value(self, make: Make) -> None:
        loose: Item = {"text": {"S": "x"}}
        rows = make({"note": [loose, {"customer": {"N": "1"}, "text": {"S": "y"}}]})
        assert [row["text"] for row in rows.matching("note", ["customer"], [{"N": "1"}])] == [
            {"S": "y"}
        ]
        assert list(rows.matching("note", ["customer"], [{"S": ""}])) == []


class TestStagedRows:
    def store(self, path: Path) -> StagedRows:
        return StagedRows(path / "rows", INVENTORY, DESIGN)

    def test_rows_come_back_in_the_order_in_which_they_came(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        rows = [customer(number % 997 + 1000 * number, "m") for number in range(4500, 0, -1)]
        counts = list(store.fill("customer", rows))
        assert counts[-1] == 4500 and len(counts) > 1
        assert list(store.rows("customer")) == rows
        assert store.count("customer") == 4500
        store.close()

    def test_a_table_is_there_after_all_of_it_was_stored(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        list(store.fill("customer", [customer(1, "a")]))
        filling = store.fill("line", [line(1, n) for n in range(3000)])
        next(filling)
        # A process that is killed here has written part of it.
        store.close()
        again = self.store(tmp_path)
        assert again.has("customer") and not again.has("line")
        list(again.fill("line", [line(1, 1)]))
        assert list(again.rows("line")) == [line(1, 1)]
        assert list(again.rows("customer")) == [customer(1, "a")]
        again.close()

    def test_a_table_that_is_filled_again_has_only_the_new_rows(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        list(store.fill("line", [line(1, 1), line(1, 2)]))
        assert len(list(store.matching("line", ["customer"], [{"N": "1"}]))) == 2
        list(store.fill("line", [line(1, 3)]))
        assert list(store.matching("line", ["customer"], [{"N": "1"}])) == [line(1, 3)]
        assert store.count("line") == 1
        store.close()

    def test_rows_with_one_text_for_two_keys_are_kept_both(self, tmp_path: Path) -> None:
        """SQLite keeps any type in any column: 1 and '1' are two keys."""
        store = self.store(tmp_path)
        twins: list[Item] = [customer(1, "a"), {"id": {"S": "1"}, "mail": {"S": "b"}}]
        list(store.fill("customer", twins))
        assert list(store.matching("customer", ["id"], [{"N": "1"}])) == twins
        store.close()

    def test_some_rows_are_taken_from_all_over_a_table(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        list(store.fill("customer", [customer(n, "m") for n in range(1, 101)]))
        assert [row["id"]["N"] for row in store.spread("customer", 4)] == [
            "1", "26", "51", "76", "100",
        ]  # fmt: skip
        assert store.spread("note", 4) == []
        store.close()

    def test_the_values_that_most_rows_share_are_found(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        list(store.fill("line", [line(1, 1), line(2, 1), line(2, 2), line(3, 1)]))
        shared = store.most_frequent("line", ["customer"])
        assert shared is not None and shared["customer"] == {"N": "2"}
        unlisted = store.most_frequent("line", ["number"])
        assert unlisted is not None and unlisted["number"] == {"N": "1"}
        assert store.most_frequent("note", ["customer"]) is None
        store.close()

    def test_texts_that_end_in_blanks_are_found(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        list(
            store.fill("customer", [customer(1, "a "), customer(2, "b", "Ulm "), customer(3, "c")])
        )
        assert store.ending_in_blanks("customer", "mail") == [customer(1, "a ")]
        assert store.ending_in_blanks("customer", "city") == [customer(2, "b", "Ulm ")]
        store.close()


class TestStateStore:
    def test_the_file_is_laid_out_as_before(self, tmp_path: Path) -> None:
        """A move that an older version began goes on: its tables are not made anew."""
        store = state_store(tmp_path)
        load(store, {})
        store.close()
        with sqlite3.connect(tmp_path / "state.db") as db:
            made = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        assert made == {
            "facts": "CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB)",
            "rejects": (
                "CREATE TABLE rejects (source TEXT, key TEXT, entity TEXT, reason TEXT,"
                " row BLOB, PRIMARY KEY (source, key, entity))"
            ),
            "keys": "CREATE TABLE keys (hash BLOB PRIMARY KEY, owner INT) WITHOUT ROWID",
            "t0": (
                "CREATE TABLE t0 (id INTEGER PRIMARY KEY, position INT, row BLOB, pk TEXT, k0 TEXT)"
            ),
            "t1": (
                "CREATE TABLE t1 (id INTEGER PRIMARY KEY, position INT, row BLOB, pk TEXT,"
                " k0 TEXT, k1 TEXT)"
            ),
            "t2": (
                "CREATE TABLE t2 (id INTEGER PRIMARY KEY, position INT, row BLOB, pk TEXT, k0 TEXT)"
            ),
            "t0pk": "CREATE UNIQUE INDEX t0pk ON t0 (pk)",
            "t0k0": "CREATE INDEX t0k0 ON t0 (k0)",
            "t1pk": "CREATE UNIQUE INDEX t1pk ON t1 (pk)",
            "t1k0": "CREATE INDEX t1k0 ON t1 (k0)",
            "t1k1": "CREATE INDEX t1k1 ON t1 (k1)",
            "t2pk": "CREATE UNIQUE INDEX t2pk ON t2 (pk)",
            "t2k0": "CREATE INDEX t2k0 ON t2 (k0)",
        }

    def test_what_was_not_committed_is_gone(self, tmp_path: Path) -> None:
        store = state_store(tmp_path)
        load(store, {"customer": [customer(1, "a")]})
        store.begin()
        store.put("customer", customer(1, "changed"), 2)
        store.put("customer", customer(2, "new"), 2)
        store.remove("customer", "1")
        assert store.find("customer", "1") is None
        store.roll_back()
        kept = store.find("customer", "1")
        assert kept is not None and (kept.position, kept.row) == (1, customer(1, "a"))
        assert store.find("customer", "2") is None
        store.close()

    def test_a_row_that_is_put_again_replaces_the_one_before(self, tmp_path: Path) -> None:
        store = state_store(tmp_path)
        load(store, {"line": [line(1, 1, "a"), line(1, 2, "b")]})
        with store.transaction():
            store.put("line", line(1, 1, "C"), 5)
        assert [row["mail"]["S"] for row in store.matching("line", ["customer"], [{"N": "1"}])] == [
            "C", "b",
        ]  # fmt: skip
        assert store.matching("line", ["mail"], [{"S": "c"}]) == [line(1, 1, "C")]
        assert store.count("line") == 2 and store.last("line") == 2
        store.close()

    def test_of_two_rows_with_one_key_the_later_read_holds(self, tmp_path: Path) -> None:
        store = state_store(tmp_path)
        with store.transaction():
            store.add("customer", [store.stored("customer", customer(1, "later"))], 9)
            store.add("customer", [store.stored("customer", customer(1, "earlier"))], 3)
            store.index()
        kept = store.find("customer", "1")
        assert kept is not None and kept.row == customer(1, "later")
        assert store.count("customer") == 1
        store.close()

    def test_rows_are_read_by_their_numbers(self, tmp_path: Path) -> None:
        store = state_store(tmp_path)
        load(store, {"note": [{"text": {"S": str(n)}} for n in range(1, 2502)]})
        assert [number for number, _ in store.numbered_rows("note", 3, 6)] == [4, 5, 6]
        assert len(list(store.rows("note"))) == 2501
        assert [number for number, _ in store.some_rows("note", 2499, 10)] == [2500, 2501]
        store.close()

    def test_a_reader_beside_the_writer_sees_what_was_committed(self, tmp_path: Path) -> None:
        store = state_store(tmp_path)
        load(store, {"customer": [customer(1, "a")]})
        reader = state_store(tmp_path, is_read_only=True)
        store.begin()
        store.put("customer", customer(2, "b"), 2)
        assert reader.count("customer") == 1
        store.commit()
        assert reader.count("customer") == 2
        assert list(reader.matching("customer", ["id"], [{"N": "2"}])) == [customer(2, "b")]
        with pytest.raises(sqlite3.OperationalError):
            reader.set_fact("x", 1)
        reader.close()
        store.close()

    def test_rows_of_a_stopped_load_are_there_when_it_goes_on(self, tmp_path: Path) -> None:
        store = state_store(tmp_path)
        with store.transaction():
            store.add("customer", [store.stored("customer", customer(1, "a"))], 1)
            store.set_fact("lanes", [1])
        store.begin()
        store.add("customer", [store.stored("customer", customer(2, "b"))], 1)
        store.close()
        again = state_store(tmp_path)
        assert list(again.rows("customer")) == [customer(1, "a")]
        assert again.fact("lanes", list[int]) == [1]
        again.close()
