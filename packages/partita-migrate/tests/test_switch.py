"""The switch of an application: which side answers, for whom, and what comparing both sides
shows."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from partita.errors import PartitaError
from partita_migrate import switch
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.switching.fences import fence_of
from partita_migrate.switch import (
    ALL,
    IN_MIGRATION,
    MIGRATED,
    NOT_MIGRATED,
    SOURCE,
    TARGET,
    InMigration,
    Switch,
    SwitchRow,
)
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_connection import connect
from testkit.servers.database_servers import DatabaseServer

from .conftest import MakeFolder


class Rows:
    """The rows of the table without a database; they may change, and reading them may fail."""

    def __init__(self, *rows: SwitchRow) -> None:
        self.rows = list(rows)
        self.is_broken = False
        self.reads = 0

    def __call__(self) -> list[SwitchRow]:
        self.reads += 1
        if self.is_broken:
            raise OSError("no route to host")
        return self.rows


def at(share: int, shadow: int = 0) -> SwitchRow:
    return SwitchRow(ALL, SOURCE, IN_MIGRATION, share, shadow)


# The table.


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Returns a connection that begins a transaction at once, as drivers do."""
    if request.param == "sqlite":
        opened: Any = sqlite3.connect(tmp_path / "source.db")
    else:
        server: DatabaseServer = request.getfixturevalue(request.param)
        server.create("switched")
        opened = server.connect("switched")
        if request.param == "mariadb":
            opened.autocommit(False)
        else:
            opened.autocommit = False
    yield opened
    opened.close()


def test_a_row_is_added_changed_and_read_over_every_driver(connection: Any) -> None:
    assert switch.rows_of(connection) == []
    switch.create(connection)
    switch.turn(connection, ALL, state=IN_MIGRATION, shadow_percent=10)
    switch.turn(connection, "orders", side=TARGET, state=MIGRATED, read_percent=100)
    switch.turn(connection, ALL, read_percent=5)
    assert sorted(switch.rows_of(connection)) == [
        SwitchRow(ALL, SOURCE, IN_MIGRATION, 5, 10),
        SwitchRow("orders", TARGET, MIGRATED, 100, 0),
    ]


def test_a_program_sees_what_others_turn(connection: Any) -> None:
    switch.create(connection)
    switch.turn(connection, ALL, state=IN_MIGRATION)
    seen = Switch(lambda: switch.rows_of(connection), refresh_seconds=0)
    assert seen.write_side("orders") == SOURCE
    switch.turn(connection, ALL, side=TARGET, state=MIGRATED)
    assert (seen.write_side("orders"), seen.row("orders").state) == (TARGET, MIGRATED)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"side": "left"}, "side is one of source, target, not 'left'."),
        ({"state": "DONE"}, "state is one of NOT_MIGRATED, IN_MIGRATION, MIGRATED, not 'DONE'."),
        ({"read_percent": 101}, "read_percent is a number from 0 to 100, not 101."),
        ({"percent": 1}, "The switch has no column percent;"),
    ],
)
def test_what_means_nothing_is_refused(columns: dict[str, Any], said: str) -> None:
    connection = sqlite3.connect(":memory:")
    switch.create(connection)
    with pytest.raises(PartitaError, match=said):
        switch.turn(connection, ALL, **columns)
    assert switch.rows_of(connection) == []
    connection.close()


# Which side.


def test_without_a_row_the_source_counts_or_what_is_said_to() -> None:
    assert Switch(Rows()).write_side("orders", 1) == SOURCE
    assert Switch(Rows()).row("orders").state == NOT_MIGRATED
    finished = Switch(Rows(), default=TARGET)
    assert finished.write_side("orders", 1) == finished.read_side("orders", 1) == TARGET


def test_an_entity_counts_before_its_table_and_that_before_all() -> None:
    found = Switch(
        Rows(
            at(0),
            SwitchRow("orders", TARGET, MIGRATED, 100, 0),
            SwitchRow("orders/42", SOURCE, NOT_MIGRATED, 0, 0),
        )
    )
    sides = [found.write_side(*scope) for scope in (("books", 1), ("orders", 1), ("orders", 42))]
    assert sides == [SOURCE, TARGET, SOURCE]
    assert [found.read_side("orders", key) for key in (1, 42)] == [TARGET, SOURCE]


def test_an_entity_that_is_being_copied_takes_no_update_and_others_do() -> None:
    found = Switch(Rows(at(0), SwitchRow("orders/42", SOURCE, IN_MIGRATION, 0, 0)))
    with pytest.raises(InMigration, match="orders/42 is being migrated"):
        found.write_side("orders", 42)
    assert found.write_side("orders", 43) == SOURCE
    assert found.read_side("orders", 42) == SOURCE


def test_a_share_of_callers_reads_from_the_target_and_always_the_same_ones() -> None:
    few, more = Switch(Rows(at(20))), Switch(Rows(at(60)))
    first = {n for n in range(1000) if few.read_side("orders", n) == TARGET}
    then = {n for n in range(1000) if more.read_side("orders", n) == TARGET}
    assert first < then
    assert (150 < len(first) < 250) and (550 < len(then) < 650)
    assert few.read_side("orders", 1, caller="ada") == few.read_side("orders", 2, caller="ada")


def test_the_bucket_is_one_that_every_language_computes() -> None:
    # crc32("orders/42") as zlib, MariaDB and PHP give it.
    assert switch.bucket("orders/42") == 0x1612255E % 100


def test_a_flag_is_on_for_its_share_and_off_without_a_row() -> None:
    found = Switch(Rows(SwitchRow("flag:checkout", SOURCE, IN_MIGRATION, 30, 0)))
    on = sum(found.is_on("checkout", n) for n in range(1000))
    assert 250 < on < 350
    assert not found.is_on("search", 1)


# Shadow reads.


def both(source: Any, target: Any, share: int = 0) -> tuple[Switch, Any]:
    found = Switch(Rows(at(share, 100)), settle_seconds=0)
    return found, found.read("orders", 1, lambda: source, lambda: target)


def test_both_sides_are_read_and_the_right_one_answers(caplog: pytest.LogCaptureFixture) -> None:
    found, answer = both({"total": 1}, {"total": 1})
    assert (answer, found.compared, found.different) == ({"total": 1}, 1, 0)
    assert caplog.records == []


def test_what_differs_is_logged_and_the_answer_is_that_of_the_right_side(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        found, answer = both({"total": 1}, {"total": 2}, share=100)
    assert (answer, found.compared, found.different) == ({"total": 2}, 1, 1)
    (record,) = caplog.records
    assert record.getMessage() == (
        "orders/1 differs: target has {'total': 2}, source has {'total': 1}"
    )


def test_a_copy_that_was_on_its_way_is_no_difference() -> None:
    found = Switch(Rows(at(0, 100)), settle_seconds=0)
    late = iter([None, "new"])
    assert found.read("orders", 1, lambda: "new", lambda: next(late)) == "new"
    assert (found.compared, found.different) == (1, 0)


def test_the_other_side_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str:
        raise OSError("no route to host")

    found = Switch(Rows(at(0, 100)))
    with caplog.at_level(logging.WARNING):
        assert found.read("orders", 1, lambda: "here", broken) == "here"
    assert (found.compared, found.failed) == (1, 1)
    assert "A shadow read of orders/1 failed: no route to host" in caplog.text


def test_what_counts_as_the_same_is_for_the_application_to_say() -> None:
    found = Switch(Rows(at(0, 100)))
    found.read("orders", 1, lambda: "A", lambda: "a", is_same=lambda a, b: a.lower() == b.lower())
    assert (found.compared, found.different) == (1, 0)


def test_nobody_waits_for_a_comparison_that_runs_elsewhere() -> None:
    with ThreadPoolExecutor(1) as pool:
        found = Switch(Rows(at(0, 100)), settle_seconds=0, executor=pool)
        for number in range(20):
            found.read("orders", number, lambda: 1, lambda: 2)
    assert (found.compared, found.different) == (20, 20)


def test_only_the_share_is_compared() -> None:
    found = Switch(Rows(at(0, 10)))
    for number in range(1000):
        found.read("orders", number, lambda: 1, lambda: 1)
    assert 50 < found.compared < 150


# When the table cannot be read.


def test_rows_are_kept_for_a_while_and_then_nobody_knows() -> None:
    now = 0.0
    rows = Rows(SwitchRow(ALL, TARGET, MIGRATED, 100, 0))
    found = Switch(rows, now=lambda: now)
    assert found.write_side("orders") == TARGET
    rows.is_broken = True
    now = 5.0
    assert found.write_side("orders") == TARGET
    now = 11.0
    with pytest.raises(PartitaError, match="the authoritative side is unknown: no route to host"):
        found.write_side("orders")
    rows.is_broken, now = False, 13.0
    assert found.write_side("orders") == TARGET


def test_the_table_is_read_once_a_second() -> None:
    now = 0.0
    rows = Rows(at(0))
    found = Switch(rows, now=lambda: now)
    for _ in range(10):
        found.row("orders")
    assert rows.reads == 1
    now = 1.5
    found.row("orders")
    assert rows.reads == 2


def test_a_cutover_turns_every_row_but_flags(make_folder: MakeFolder, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)")
    folder = make_folder(f"sqlite:///{tmp_path / 'shop.db'}")
    with connect(folder) as source:
        fence = fence_of(MoveSource(folder, reflect(source)))
    fence.install(5)
    switch.turn(connection, "orders", state=IN_MIGRATION)
    switch.turn(connection, "flag:checkout", read_percent=20)
    fence.close(5)
    fence.turn(TARGET)
    assert sorted(switch.rows_of(connection)) == [
        SwitchRow(ALL, TARGET, MIGRATED, 100, 0),
        SwitchRow("flag:checkout", SOURCE, NOT_MIGRATED, 20, 0),
        SwitchRow("orders", TARGET, MIGRATED, 100, 0),
    ]
    found = Switch(lambda: switch.rows_of(connection))
    assert (found.write_side("orders", 1), found.write_side("books")) == (TARGET, TARGET)
    with pytest.raises(sqlite3.IntegrityError, match="this database was moved"):
        connection.execute("INSERT INTO orders VALUES (1, 1)")
    connection.close()
