"""What only PostgreSQL has: partitions, replica identities, sequences, prepared transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.finish import finish
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import verify
from testkit.data.moves import LoggedPostgreSQL
from testkit.servers.database_servers import DatabaseServer

from .conftest import MakeSource
from .test_life import Application, rows_of
from .test_move import assert_same

PATTERNS = {"shelf": "SELECT * FROM shelf WHERE id = ?"}
PLAIN = """
CREATE TABLE shelf (id INT PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO shelf VALUES (1, 'one'), (2, 'two'), (3, 'three');
"""
PARTITIONED = """
CREATE TABLE shelf (id INT PRIMARY KEY, name TEXT) PARTITION BY RANGE (id);
CREATE TABLE shelf_a PARTITION OF shelf FOR VALUES FROM (0) TO (3);
CREATE TABLE shelf_b PARTITION OF shelf FOR VALUES FROM (3) TO (100);
INSERT INTO shelf VALUES (1, 'one'), (2, 'two'), (3, 'three');
"""


class PreparingPostgreSQL(LoggedPostgreSQL):
    def command(self) -> list[str]:
        return [*super().command(), "--max_prepared_transactions=5"]


@pytest.fixture(scope="module")
def logged_postgresql() -> Iterator[DatabaseServer]:
    PreparingPostgreSQL.require()
    with PreparingPostgreSQL() as server:
        yield server


def test_partitions_refuse_writes_as_their_table_does(make_source: MakeSource, target: str) -> None:
    source = make_source("postgresql", PARTITIONED)
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    source.run("INSERT INTO shelf_b VALUES (4, 'four'); UPDATE shelf SET id = 5 WHERE id = 1")
    assert_same(verify(folder, target))
    cutover(folder, target)
    for statement in (
        "INSERT INTO shelf_b VALUES (50, 'x')",
        "UPDATE shelf_b SET name = 'x'",
        "DELETE FROM shelf_a",
        "TRUNCATE shelf_a",
    ):
        with pytest.raises(Exception, match="this database was moved"):
            source.run(statement)
    assert rollback(folder, target).is_switched
    source.run("INSERT INTO shelf_b VALUES (50, 'x')")
    assert_same(verify(folder, target))
    source.run("ALTER TABLE shelf DETACH PARTITION shelf_a")
    finish(folder, target, is_given_up=True)
    source.run("INSERT INTO shelf_a VALUES (1, 'free')")


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE shelf_a",
        "DROP TABLE shelf_a",
        "ALTER TABLE shelf DETACH PARTITION shelf_a",
        "CREATE TABLE shelf_c (id INT PRIMARY KEY, name TEXT);"
        "INSERT INTO shelf_c VALUES (200, 'x');"
        "ALTER TABLE shelf ATTACH PARTITION shelf_c FOR VALUES FROM (100) TO (1000)",
        "ALTER TABLE shelf ALTER COLUMN name TYPE TEXT USING name || '!'",
    ],
    ids=["truncated", "dropped", "detached", "attached", "rewritten"],
)
def test_rows_that_go_or_come_without_a_word_in_the_log_are_verified_before_a_cutover(
    make_source: MakeSource, target: str, statement: str
) -> None:
    source = make_source("postgresql", PARTITIONED)
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    assert_same(verify(folder, target))
    source.run(statement)
    with pytest.raises(
        PartitaError, match=r"since the last verification.*`partita migrate verify`"
    ):
        cutover(folder, target)
    assert not verify(folder, target).is_right
    assert verify(folder, target, is_repairing=True).is_right
    assert_same(verify(folder, target))


def test_a_table_that_was_made_anew_is_no_longer_followed_and_that_is_said(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("postgresql", PLAIN)
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    source.run("DROP TABLE shelf;" + PLAIN)
    with pytest.raises(PartitaError, match="no longer publishes"):
        verify(folder, target)


@pytest.mark.parametrize("identity", ["NOTHING", "USING INDEX shelf_name_key"])
def test_a_table_that_could_not_be_updated_any_more_is_not_published(
    make_source: MakeSource, target: str, identity: str
) -> None:
    source = make_source("postgresql", PLAIN + f"ALTER TABLE shelf REPLICA IDENTITY {identity};")
    folder = source.folder(PATTERNS, target)
    with pytest.raises(PartitaError, match="shelf has a replica identity other than"):
        load(folder, target, is_followed=True)
    source.run("UPDATE shelf SET name = 'free' WHERE id = 1")
    source.run("ALTER TABLE shelf REPLICA IDENTITY FULL")
    load(folder, target, is_followed=True)
    source.run("UPDATE shelf SET id = 9 WHERE id = 1; DELETE FROM shelf WHERE id = 2")
    assert_same(verify(folder, target))


def test_a_table_that_cannot_be_published_is_said(make_source: MakeSource, target: str) -> None:
    source = make_source("postgresql", PLAIN.replace("CREATE TABLE", "CREATE UNLOGGED TABLE"))
    folder = source.folder(PATTERNS, target)
    with pytest.raises(PartitaError, match=r"cannot publish its tables: .*unlogged"):
        load(folder, target, is_followed=True)


def test_the_next_number_of_a_sequence_of_its_own_is_free(
    make_source: MakeSource, target: str
) -> None:
    numbered = PLAIN.replace("id INT PRIMARY", "id INT DEFAULT nextval('numbers') PRIMARY")
    source = make_source("postgresql", f"CREATE SEQUENCE numbers START 4; {numbered}")
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    assert_same(verify(folder, target))
    cutover(folder, target)
    app = Application(folder, target)
    for number in (4, 17):
        app.put({**app.copy(app.find("shelf", 3), 3, number), "name": {"S": f"n{number}"}})
    assert rollback(folder, target).is_switched
    source.run("INSERT INTO shelf (name) VALUES ('next')")
    assert rows_of(source, "SELECT id FROM shelf WHERE name = 'next'") == [(18,)]


def test_a_prepared_transaction_is_named(make_source: MakeSource, target: str) -> None:
    source = make_source("postgresql", PLAIN)
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    assert_same(verify(folder, target))
    cutover(folder, target)
    rollback(folder, target)
    assert_same(verify(folder, target))
    source.run("UPDATE shelf SET name = 'x' WHERE id = 1; PREPARE TRANSACTION 'held'")
    with pytest.raises(PartitaError, match="the prepared transaction 'held' of postgres since"):
        cutover(folder, target, wait_seconds=0.5)
    assert source.server
    source.server.execute("COMMIT PREPARED 'held'", source.database)
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))
