"""Columns that items repeat from other rows are found by every reference and change with these
rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita_migrate.model.model_files import read_design
from partita_migrate.proving.proof_run.proof_results import ProofRun
from partita_migrate.proving.prove import test as prove
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import designed, sqlite_database
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .test_prove import WIDE, verdicts

FORUM = """
CREATE TABLE users (id INTEGER PRIMARY KEY, handle VARCHAR(40) NOT NULL, closed_on DATE);
CREATE TABLE boards (id INTEGER PRIMARY KEY, title VARCHAR(40) NOT NULL);
CREATE TABLE threads (id INTEGER PRIMARY KEY, board_id INTEGER NOT NULL, title VARCHAR(40) NOT NULL,
    FOREIGN KEY (board_id) REFERENCES boards (id));
CREATE TABLE posts (id INTEGER PRIMARY KEY, thread_id INTEGER NOT NULL, author_id INTEGER,
    parent_id INTEGER, ip VARBINARY(16), FOREIGN KEY (thread_id) REFERENCES threads (id),
    FOREIGN KEY (author_id) REFERENCES users (id) ON DELETE SET NULL,
    FOREIGN KEY (parent_id) REFERENCES posts (id) ON DELETE CASCADE);
CREATE TABLE follows (follower_id INTEGER NOT NULL, followee_id INTEGER NOT NULL,
    since DATE NOT NULL, PRIMARY KEY (follower_id, followee_id),
    FOREIGN KEY (follower_id) REFERENCES users (id),
    FOREIGN KEY (followee_id) REFERENCES users (id));
CREATE TABLE labels (name VARCHAR(20) PRIMARY KEY, color VARCHAR(10));
CREATE TABLE labelled (thread_id INTEGER NOT NULL, label VARCHAR(20) NOT NULL,
    PRIMARY KEY (thread_id, label), FOREIGN KEY (thread_id) REFERENCES threads (id),
    FOREIGN KEY (label) REFERENCES labels (name) ON UPDATE CASCADE);
INSERT INTO users VALUES (1, 'ann', NULL), (2, 'bob', '2026-01-01'), (3, 'cy', NULL);
INSERT INTO boards VALUES (1, 'News'), (2, 'Help');
INSERT INTO threads VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 1, 'three');
INSERT INTO posts VALUES (1, 1, 1, NULL, x'7f01'), (2, 1, 2, 1, x''), (3, 2, 1, 2, NULL),
    (4, 3, NULL, NULL, x'');
INSERT INTO follows VALUES (1, 2, '2026-01-01'), (2, 1, '2026-01-02'), (3, 1, '2026-01-02');
INSERT INTO labels VALUES ('red', '#f00'), ('new', NULL);
INSERT INTO labelled VALUES (1, 'red'), (2, 'red'), (2, 'new');
"""
PATTERNS = {
    "followed": "SELECT u.id, u.handle FROM follows f JOIN users u ON u.id = f.followee_id "
    "WHERE f.follower_id = ? ORDER BY f.since",
    "followers": "SELECT u.id, u.handle FROM follows f JOIN users u ON u.id = f.follower_id "
    "WHERE f.followee_id = ? ORDER BY f.since",
    "open followers": "SELECT f.followee_id, u.handle FROM follows f "
    "JOIN users u ON u.id = f.follower_id WHERE f.followee_id = ? AND u.closed_on IS NULL",
    "posts of an author on a board": "SELECT p.id, t.title FROM posts p "
    "JOIN threads t ON t.id = p.thread_id WHERE p.author_id = ? AND t.board_id = ?",
    "posts of a thread by author": "SELECT p.id, u.handle FROM posts p "
    "JOIN users u ON u.id = p.author_id WHERE p.thread_id = ? ORDER BY u.handle",
    "posts from an address": "SELECT id FROM posts WHERE ip = ?",
    "labels of a thread": "SELECT l.name, l.color FROM labelled x "
    "JOIN labels l ON l.name = x.label WHERE x.thread_id = ?",
    "rename": "UPDATE users SET handle = ? WHERE id = ?",
    "rewrite": "UPDATE posts SET author_id = ? WHERE id = ?",
    "take over": "UPDATE labels SET name = ? WHERE name = ?",
    "remove": "DELETE FROM posts WHERE id = ?",
}


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("forum")
    return designed(path / "folder", sqlite_database(path / "source.db", FORUM), PATTERNS)


@pytest.fixture(scope="module")
def run(forum: Folder, endpoint: str) -> ProofRun:
    return prove(forum, name=WIDE, endpoint=endpoint)


def test_a_row_that_is_repeated_by_two_references_changes_everywhere(run: ProofRun) -> None:
    found = verdicts(run)
    assert {found[one] for one in ("followed", "followers", "rename")} == {"proven"}


def test_a_tested_column_of_a_joined_row_is_repeated_with_those_that_are_read(
    run: ProofRun,
) -> None:
    assert verdicts(run)["open followers"] == "proven"


def test_a_reference_of_a_joined_row_is_a_key_without_the_row_that_it_refers_to(
    run: ProofRun,
) -> None:
    assert verdicts(run)["posts of an author on a board"] == "proven"


def test_rows_that_an_inner_join_leaves_out_may_be_missing_in_an_index(run: ProofRun) -> None:
    assert verdicts(run)["posts of a thread by author"] == "proven"


def test_a_changed_reference_changes_what_is_repeated_through_it(run: ProofRun) -> None:
    assert verdicts(run)["rewrite"] == "proven"
    assert verdicts(run)["take over"] == "proven"


def test_empty_bytes_are_found_by_a_key(run: ProofRun) -> None:
    assert run.keys == []
    assert verdicts(run)["posts from an address"] == "proven"


def test_what_a_source_changes_by_itself_is_not_called_served(
    mariadb: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that refer to their own table, and rows to which a changed key cascades."""
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = designed(tmp_path / "folder", mariadb.create("forum", FORUM), PATTERNS)
    unserved = {one.pattern: one.why for one in read_design(folder, WIDE).unserved}
    assert "ON DELETE CASCADE" in unserved["remove"]
    assert "ON UPDATE CASCADE" in unserved["take over"]
