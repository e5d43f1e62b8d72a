"""Statements in MariaDB's binlog, where rows are expected, are carried over or reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import verify

from .conftest import MakeSource
from .test_life import Application, rows_of
from .test_move import assert_same, items_of

SCHEMA = """
CREATE TABLE shelf (id INT AUTO_INCREMENT, name VARCHAR(40), PRIMARY KEY (id))
PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (3), PARTITION b VALUES LESS THAN (100));
INSERT INTO shelf VALUES (1, 'one'), (2, 'two'), (3, 'three');
"""
SAME = "(id INT AUTO_INCREMENT, name VARCHAR(40), PRIMARY KEY (id))"
PATTERNS = {"shelf": "SELECT * FROM shelf WHERE id = ?"}


def test_a_table_is_emptied_however_that_is_written(make_source: MakeSource, target: str) -> None:
    source = make_source("mysql", SCHEMA)
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    for way in ("TABLE shelf WAIT 5", "shelf -- x\n", "/* x */ `shelf` NOWAIT", "shelf # x\n"):
        source.run("INSERT INTO shelf VALUES (7, 'seven')")
        source.run(f"TRUNCATE {way}")
        follow(folder, target, is_once=True)
        assert_same(verify(folder, target, is_dry_run=True))


@pytest.mark.parametrize(
    "statement",
    [
        f"DROP TABLE shelf; CREATE TABLE shelf {SAME}",
        f"CREATE TABLE other {SAME}; RENAME TABLE shelf TO old, other TO shelf",
        "ALTER TABLE shelf RENAME TO old; ALTER TABLE old RENAME shelf",
        f"CREATE OR REPLACE TABLE shelf {SAME}",
        "ALTER TABLE shelf DROP PARTITION a",
        "ALTER TABLE shelf TRUNCATE PARTITION a",
        f"CREATE TABLE other {SAME}; ALTER TABLE shelf EXCHANGE PARTITION a WITH TABLE other",
    ],
)
def test_rows_that_go_without_a_word_in_the_log_end_following(
    make_source: MakeSource, target: str, statement: str
) -> None:
    source = make_source("mysql", SCHEMA)
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    assert_same(verify(folder, target))
    source.run(statement)
    with pytest.raises(PartitaError, match=r"has replaced rows of shelf.*Start over"):
        cutover(folder, target)


def test_other_changes_of_a_schema_do_not_end_it(make_source: MakeSource, target: str) -> None:
    source = make_source("mysql", SCHEMA)
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    source.run(
        "ALTER TABLE shelf COMMENT = 'rename # drop partition a'; CREATE INDEX by_name ON"
        " shelf (name); ALTER TABLE shelf RENAME INDEX by_name TO named;"
        " ALTER TABLE shelf ADD PARTITION (PARTITION c VALUES LESS THAN (1000));"
        " CREATE DATABASE IF NOT EXISTS elsewhere; CREATE TABLE elsewhere.shelf (id INT);"
        " DROP TABLE elsewhere.shelf; DROP DATABASE elsewhere; INSERT INTO shelf VALUES (500, 'x')"
    )
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))


def test_a_statement_in_place_of_rows_ends_following(
    make_source: MakeSource, target: str, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("9,nine\n")
    for statement in (
        "USE mysql; UPDATE {}.shelf SET name = 'x'",
        f"LOAD DATA INFILE '{rows}' INTO TABLE shelf FIELDS TERMINATED BY ','",
    ):
        source = make_source("mysql", SCHEMA)
        folder = source.folder(PATTERNS, target)
        load(folder, target, is_followed=True)
        source.run("COMMIT; SET binlog_format = 'STATEMENT';" + statement.format(source.database))
        with pytest.raises(PartitaError, match="has a statement instead of rows in its binlog"):
            follow(folder, target, is_once=True)


def test_a_row_with_the_number_0_comes_back(make_source: MakeSource, target: str) -> None:
    source = make_source("mysql", SCHEMA)
    source.run("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'; INSERT INTO shelf VALUES (0, 'zero')")
    folder = source.folder(PATTERNS, target)
    load(folder, target, is_followed=True)
    assert_same(verify(folder, target))
    cutover(folder, target)
    app = Application(folder, target)
    (item,) = [one for one in items_of(folder, target) if one.get("name") == {"S": "zero"}]
    app.delete(item)
    follow(folder, target, is_once=True)
    app.put({**item, "name": {"S": "again"}})
    assert rollback(folder, target).is_switched
    assert rows_of(source, "SELECT name FROM shelf WHERE id = 0") == [("again",)]
