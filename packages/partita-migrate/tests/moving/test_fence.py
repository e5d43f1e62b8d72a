"""The source itself refuses writes, waits for open transactions, and reports what cannot be carried
back."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.finish import finish
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import verify

from .conftest import MakeSource
from .test_life import Application, connected, ready, rows_of
from .test_move import assert_same

SERVERS = (pytest.param("mysql", marks=pytest.mark.soak), "postgresql")
"""One of them in the default suite; the life of a move is there for all."""


@pytest.mark.parametrize("kind", (*SERVERS, "oracle"))
def test_cutover_names_who_it_waits_for_and_changes_nothing(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source, folder, application = ready(make_source, target, kind)
    cutover(folder, target)
    application.set(application.find("book", 2), "price", {"N": "7"})
    rollback(folder, target)
    assert rows_of(source, "SELECT price FROM book WHERE id = 2") == [(7,)]
    verify(folder, target)
    assert source.server is not None
    holder = source.server.connect(source.database)
    cursor = holder.cursor()
    cursor.execute("BEGIN")
    cursor.execute("UPDATE book SET price = 5 WHERE id = 1")
    try:
        with pytest.raises(PartitaError, match=r"session \d+ of .* in a transaction since"):
            cutover(folder, target, wait_seconds=0)
        # The source takes writes again, also from the session that was waited for.
        source.run("UPDATE book SET price = 6 WHERE id = 2")
        cursor.execute("COMMIT")
    finally:
        holder.close()
    assert_same(verify(folder, target))
    assert cutover(folder, target).is_switched
    finish(folder, target)


def test_what_skips_the_triggers_of_mariadb_is_refused_too(
    make_source: MakeSource, target: str
) -> None:
    source, folder, _ = ready(make_source, target, "mysql")
    source.run("CREATE TABLE outside (id INT PRIMARY KEY)")
    cutover(folder, target)
    for statement in (
        "TRUNCATE TABLE book",
        "DELETE FROM author WHERE id = 1",
        "REPLACE INTO book VALUES (1, 1, 'x', 1)",
        "INSERT INTO book VALUES (1, 1, 'x', 1) ON DUPLICATE KEY UPDATE title = 'y'",
    ):
        with pytest.raises(Exception, match=r"was moved|foreign key constraint"):
            source.run(statement)
    source.run("INSERT INTO outside VALUES (1)")
    assert rows_of(source, "SELECT count(*) FROM book") == [(40,)]
    finish(folder, target)
    source.run("TRUNCATE TABLE book")


def test_postgresql_refuses_truncate_and_old_snapshots(
    make_source: MakeSource, target: str
) -> None:
    source, folder, _ = ready(make_source, target, "postgresql")
    assert source.server is not None
    old = source.server.connect(source.database)
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    old.execute("SELECT count(*) FROM pg_class")
    cutover(folder, target)
    with pytest.raises(Exception, match=r"was moved|serialize"):
        old.execute("UPDATE book SET price = 1")
    old.close()
    with pytest.raises(Exception, match="was moved"):
        source.run("TRUNCATE TABLE book")
    finish(folder, target)


@pytest.mark.parametrize("kind", SERVERS)
def test_what_cannot_be_in_the_source_is_said_before_anything_changes(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source, folder, app = ready(make_source, target, kind)
    cutover(folder, target)
    author, book = app.find("author", 3), app.find("book", 3)
    app.delete(author)
    app.set(book, "rating", {"N": "5"})
    app.set(app.find("book", 7), "title", {"S": "x" * 300})
    planned = rollback(folder, target, is_dry_run=True)
    told = "\n".join(planned.obstacles)
    assert "author 3, deleted at the target: rows of book that refer to it" in told
    assert "the design has no attribute rating" in told
    assert "book 7" in told
    with pytest.raises(PartitaError, match="Nothing has changed: the target is authoritative"):
        rollback(folder, target)
    # The target takes writes, the source does not, and both have all that they had.
    app.set(app.find("book", 7), "title", {"S": "short"})
    app.put(author)
    app.put(book)
    with pytest.raises(Exception, match="was moved"):
        source.run("DELETE FROM book WHERE id = 1")
    assert rollback(folder, target).is_switched
    assert rows_of(source, "SELECT title FROM book WHERE id = 7") == [("short",)]
    assert rows_of(source, "SELECT count(*) FROM book WHERE author_id = 3") == [(4,)]
    assert_same(verify(folder, target))


@pytest.mark.parametrize("kind", SERVERS)
def test_rows_wait_for_their_parents_on_the_way_back(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source, folder, app = ready(make_source, target, kind)
    author, book = app.find("author", 3), app.find("book", 3)
    cutover(folder, target)
    child = app.copy(book, 3, 700)
    child = {
        name: {kind: str(value).replace("#3", "#77")} if name.lower().startswith(("pk", "gsi"))
        else {kind: value}
        for name, held in child.items() for kind, value in held.items()
    }  # fmt: skip
    child["author_id"] = {"N": "77"}
    app.put(child)
    follow(folder, target, is_once=True)
    assert rows_of(source, "SELECT id FROM book WHERE id = 700") == []
    app.put({**app.copy(author, 3, 77), "email": {"S": "a77@x"}})
    assert rollback(folder, target).is_switched
    assert rows_of(source, "SELECT author_id FROM book WHERE id = 700") == [(77,)]
    assert_same(verify(folder, target))


# Writers on both sides.


class Writer(threading.Thread):
    """Counts up one book after the other wherever writes are accepted, and remembers what was
    acknowledged."""

    def __init__(self, source: Any, app: Application) -> None:
        super().__init__()
        self.source, self.app = source, app
        self.is_over = threading.Event()
        self.is_paused = threading.Event()
        self.rests = threading.Event()
        self.said: dict[int, int] = {}
        self.refused = 0
        self.longest = 0.0
        self.items = {number: app.find("book", number) for number in range(10)}

    def run(self) -> None:
        connection = connected(self.source)
        cursor = connection.cursor()
        count, accepted = 0, time.monotonic()
        while not self.is_over.wait(0.002):
            if self.is_paused.is_set():
                self.rests.set()
                continue
            self.rests.clear()
            count += 1
            number = count % 10
            try:
                cursor.execute(f"UPDATE book SET price = {count} WHERE id = {number}")
            except Exception:
                self.refused += 1
                try:
                    self.app.set(self.items[number], "price", {"N": str(count)})
                except Exception:
                    continue
            self.said[number] = count
            self.longest = max(self.longest, time.monotonic() - accepted)
            accepted = time.monotonic()
        connection.close()


@pytest.mark.parametrize("kind", SERVERS)
def test_nothing_that_was_acknowledged_is_lost_on_either_side(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source, folder, app = ready(make_source, target, kind)
    writer = Writer(source, app)
    writer.start()
    try:
        time.sleep(0.3)
        forth = cutover(folder, target)
        time.sleep(0.3)
        back = rollback(folder, target)
        time.sleep(0.3)
    finally:
        writer.is_over.set()
        writer.join()
    assert writer.refused
    assert writer.longest < 30, (writer.longest, forth.refused_seconds, back.refused_seconds)
    prices = {int(n): int(price) for n, price in rows_of(source, "SELECT id, price FROM book"
                                                         " WHERE id < 10")}  # fmt: skip
    assert prices == writer.said
    assert_same(verify(folder, target))
