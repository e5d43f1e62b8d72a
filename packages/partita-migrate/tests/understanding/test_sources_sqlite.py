"""Tests the inventory of everything that a SQLite schema can contain."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_connection import SourceError, connect
from partita_migrate.workspace.migration_folder import Folder

from ..inventories import inventory_of, table_of

SCRIPT = """
CREATE TABLE [Artist] ([ArtistId] INTEGER PRIMARY KEY, [Name] NVARCHAR(120), born DATE);
CREATE TABLE album (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    artistid INTEGER NOT NULL REFERENCES ARTIST ON DELETE CASCADE,
    isbn TEXT COLLATE NOCASE UNIQUE, price NUMERIC(10,2), cover BLOB, anything, paid BOOLEAN,
    at TIMESTAMP, ratio REAL, twice AS (price * 2), CHECK (price > 0)
);
CREATE INDEX lowered ON album (lower(isbn), price);
CREATE UNIQUE INDEX once ON album (artistid) WHERE paid;
CREATE TABLE pairs (a TEXT, b INT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE heap (x INT REFERENCES nowhere (y));
CREATE VIRTUAL TABLE search USING fts5(body);
CREATE VIEW busy AS SELECT artistid, count(*) FROM album GROUP BY 1;
CREATE TRIGGER watch AFTER INSERT ON album BEGIN SELECT 1; END;
INSERT INTO Artist VALUES (1, 'x', '2000-01-01'), (7, 'y', NULL);
"""

MakeFile = Callable[[str], Folder]


@pytest.fixture
def make_file(tmp_path: Path) -> MakeFile:
    def make(script: str) -> Folder:
        connection = sqlite3.connect(tmp_path / "music.db")
        connection.executescript(script)
        connection.close()
        (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///music.db"\n')
        return Folder.open(tmp_path)

    return make


def test_tables_and_what_is_not_one(make_file: MakeFile) -> None:
    inventory = inventory_of(make_file(SCRIPT))
    assert [table.name for table in inventory.tables] == ["Artist", "album", "heap", "pairs"]
    assert inventory.skipped[0].name == "search"
    assert inventory.skipped[0].reason == "a virtual table of fts5"
    assert {one.reason for one in inventory.skipped[1:]} == {"kept by a virtual table"}
    assert inventory.views == inventory.analytical_views == ["busy"]
    assert inventory.database == "music.db"


def test_columns(make_file: MakeFile) -> None:
    inventory = inventory_of(make_file(SCRIPT))
    kinds = {column.name: column.kind for column in table_of(inventory, "album").columns}
    assert kinds == {
        "id": "integer",
        "artistid": "integer",
        "isbn": "string",
        "price": "decimal",
        "cover": "binary",
        "anything": "other",
        "paid": "boolean",
        "at": "datetime",
        "ratio": "float",
        "twice": "other",
    }
    album = {column.name: column for column in table_of(inventory, "album").columns}
    assert album["twice"].is_generated and album["id"].is_auto_increment
    assert album["isbn"].is_case_insensitive
    artist = table_of(inventory, "Artist").columns
    assert artist[0].is_auto_increment, "a rowid by another name"
    assert artist[1].length_max == 120
    assert not any(column.is_auto_increment for column in table_of(inventory, "pairs").columns)


def test_keys_and_indexes(make_file: MakeFile) -> None:
    inventory = inventory_of(make_file(SCRIPT))
    (key,) = table_of(inventory, "album").foreign_keys
    assert (key.referenced_table, key.referenced_columns) == ("Artist", ["ArtistId"])
    assert key.on_delete == "CASCADE"
    indexes = {index.name: index for index in table_of(inventory, "album").indexes}
    inline = indexes["sqlite_autoindex_album_1"]
    assert inline.is_unique and inline.columns == ["isbn"]
    assert indexes["lowered"].columns == ["price"] and indexes["lowered"].expressions
    assert indexes["once"].where == "paid"
    assert table_of(inventory, "pairs").primary_key == ["a", "b"]
    assert table_of(inventory, "pairs").indexes == []
    assert table_of(inventory, "heap").primary_key == []
    assert table_of(inventory, "album").triggers == ["watch"]


def test_rows_are_counted_or_estimated(
    make_file: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_file(SCRIPT)
    artist = table_of(inventory_of(folder), "Artist")
    assert (artist.row_count, artist.is_row_count_exact) == (2, True)
    monkeypatch.setattr("partita_migrate.understanding.sources.row_counts.COUNTED_BYTES_MAX", 0)
    artist = table_of(inventory_of(folder), "Artist")
    assert (artist.row_count, artist.is_row_count_exact) == (7, False), "the largest rowid"


def test_names_of_any_kind(make_file: MakeFile) -> None:
    names = ["a b", "half:past", "100%", 'say "x"', "it's", "[x]"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    script = ";".join(
        f"CREATE TABLE {name} ({name} INT UNIQUE); INSERT INTO {name} VALUES (7)" for name in quoted
    )
    inventory = inventory_of(make_file(script))
    assert sorted(table.name for table in inventory.tables) == sorted(names)
    for table in inventory.tables:
        assert table.row_count == 1 and table.indexes[0].columns == [table.name]


def test_the_file_is_not_changed(make_file: MakeFile, tmp_path: Path) -> None:
    folder = make_file(SCRIPT)
    before = (tmp_path / "music.db").read_bytes()
    with connect(folder) as source:
        reflect(source)
        with pytest.raises(SourceError, match="readonly"):
            source.rows("DROP TABLE album")
    assert (tmp_path / "music.db").read_bytes() == before


def test_a_statement_that_takes_too_long_is_ended(make_file: MakeFile) -> None:
    endless = (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"
    )
    with connect(make_file(SCRIPT)) as source:
        with source.limit(0.2), pytest.raises(SourceError, match="statement_seconds_max"):
            source.rows(endless)
        assert source.rows("SELECT 1") == [(1,)]


def test_text_that_is_none_does_not_end_a_stage(make_file: MakeFile) -> None:
    folder = make_file("CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'ff61' AS TEXT));")
    with connect(folder) as source:
        assert source.rows("SELECT a FROM t") == [("�a",)]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "music.db").write_bytes(b"not a database, but long enough to look at" * 100)
    (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///music.db"\n')
    with pytest.raises(PartitaError, match="file is not a database"):
        inventory_of(Folder.open(tmp_path))


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///music.db"\n')
    with pytest.raises(PartitaError, match=r"the file music\.db does not exist"):
        inventory_of(Folder.open(tmp_path))
    assert not (tmp_path / "music.db").exists()
