"""Writes: their proof changes rows, and rows that refer to one another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita_migrate.model.model_files import read_design
from partita_migrate.proving.proof_run.proof_results import PatternProof, ProofRun
from partita_migrate.proving.prove import test as prove
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import KEEPING, QUICK, designed, sqlite_database

from .test_prove import SINGLE, WIDE

LOANS = """
CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE titles (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE loans (
    id INTEGER PRIMARY KEY, member_id INTEGER NOT NULL REFERENCES members (id),
    due_on DATE NOT NULL, returned_on DATE, lost_on DATE
);
CREATE TABLE holds (
    id INTEGER PRIMARY KEY, title_id INTEGER NOT NULL REFERENCES titles (id),
    member_id INTEGER NOT NULL REFERENCES members (id), placed_on DATE NOT NULL,
    UNIQUE (title_id, member_id)
);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
INSERT INTO members SELECT i, 'member ' || i FROM n;
INSERT INTO titles SELECT id, 'title ' || id FROM members;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO loans SELECT i, i % 40 + 1, '2026-01-01', iif(i % 777, '2026-02-01', NULL), NULL FROM n;
INSERT INTO holds SELECT id, id, 41 - id, '2026-01-01' FROM members;
"""
PATTERNS = {
    "open loans": "SELECT id, due_on FROM loans WHERE member_id = ? AND returned_on IS NULL",
    "return all": "UPDATE loans SET returned_on = ? WHERE member_id = ? AND returned_on IS NULL",
    "find the lost": "UPDATE loans SET lost_on = NULL WHERE id = ? AND lost_on IS NOT NULL",
    "place a hold": "INSERT INTO holds (id, title_id, member_id, placed_on) VALUES (?, ?, ?, ?)",
    "as mined": "INSERT INTO members (id, name) VALUES (?)",
    "move a hold": "INSERT INTO holds (id, title_id, member_id, placed_on) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (title_id, member_id) DO UPDATE SET placed_on = excluded.placed_on",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, endpoint: str) -> ProofRun:
    """At the stated rates too: a write that reads first is rehearsed like any other."""
    path = tmp_path_factory.mktemp("loans")
    url = sqlite_database(path / "source.db", LOANS)
    more = QUICK.replace("load_calls = 0", "load_calls = 60")
    return prove(designed(path / "folder", url, PATTERNS, more), name=WIDE, endpoint=endpoint)


def proof(run: ProofRun, pattern: str) -> PatternProof:
    return next(one for one in run.functional if one.pattern == pattern)


def test_a_proof_of_a_write_changes_rows_that_its_own_conditions_take(run: ProofRun) -> None:
    assert proof(run, "return all").verdict == "proven"
    assert proof(run, "return all").rows > 0


def test_a_write_that_changed_no_row_is_unproven(run: ProofRun) -> None:
    found = proof(run, "find the lost")
    assert found.verdict == "unproven"
    assert found.why.startswith("none of ")


def test_a_new_row_has_a_pair_of_references_that_is_unique(run: ProofRun) -> None:
    assert proof(run, "place a hold").verdict == "proven"
    assert proof(run, "place a hold").rows == 3
    assert proof(run, "move a hold").verdict == "proven"


def test_one_sign_for_all_values_as_digests_have_it_is_proven(run: ProofRun) -> None:
    assert proof(run, "as mined").verdict == "proven"
    assert proof(run, "as mined").rows > 0


def test_the_model_says_what_a_write_reads_adds_and_tests(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("said")
    patterns = {
        "loans with names": "SELECT l.id, m.name FROM loans l JOIN members m ON m.id = l.member_id "
        "WHERE l.due_on = ? ORDER BY l.id",
        "lend": "INSERT INTO loans (id, member_id, due_on) VALUES (?, ?, ?)",
        "hand over": "UPDATE loans SET member_id = ? WHERE id = ? AND returned_on IS NULL",
        "prolong": "UPDATE loans SET due_on = ? WHERE id = ?",
    }
    folder = designed(path / "folder", sqlite_database(path / "source.db", LOANS), patterns)
    writes = {one.pattern: one for one in read_design(folder, SINGLE).access if "Item" in
              one.request and one.request != "GetItem"}  # fmt: skip
    said = "The item repeats name of members, by member_id: read that row first."
    assert said in writes["lend"].why and said in writes["hand over"].why
    assert said not in writes["prolong"].why
    (condition,) = writes["hand over"].filter
    assert (condition.attribute, condition.comparison) == ("returned_on", "not_exists")


def test_writes_that_read_first_are_rehearsed_at_their_rates(run: ProofRun) -> None:
    assert [one.outcome for one in run.non_functional if "stated rates" in one.name] == ["passed"]


STAFF = """
CREATE TABLE teams (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL);
CREATE TABLE people (
    id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, boss_id INTEGER, team_id INTEGER,
    FOREIGN KEY (boss_id) REFERENCES people (id) ON DELETE SET NULL,
    FOREIGN KEY (team_id) REFERENCES teams (id) ON DELETE CASCADE
);
CREATE TABLE subjects (
    id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, parent_id INTEGER,
    FOREIGN KEY (parent_id) REFERENCES subjects (id)
);
CREATE TABLE notes (
    id INTEGER PRIMARY KEY, subject_id INTEGER NOT NULL, body VARCHAR(20) NOT NULL,
    FOREIGN KEY (subject_id) REFERENCES subjects (id) ON DELETE CASCADE
);
CREATE TABLE files (id INTEGER PRIMARY KEY, note_id INTEGER NOT NULL,
    FOREIGN KEY (note_id) REFERENCES notes (id));
CREATE TABLE links (id INTEGER PRIMARY KEY, subject_id INTEGER NOT NULL, name VARCHAR(20),
    FOREIGN KEY (subject_id) REFERENCES subjects (id));
INSERT INTO teams VALUES (1, 'red'), (2, 'blue');
INSERT INTO people VALUES (1, 'Ann', NULL, 1), (2, 'Bob', 1, 1), (3, 'Cy', 1, 2), (4, 'Di', 3, 2);
INSERT INTO subjects VALUES (1, 'all', 1), (2, 'art', 1), (3, 'ink', 2), (4, 'own', 4);
INSERT INTO notes VALUES (1, 3, 'wet'), (2, 3, 'dry');
INSERT INTO files VALUES (1, 1);
INSERT INTO links VALUES (1, 2, 'x');
"""
STAFF_PATTERNS = {
    "person": "SELECT id, name, boss_id FROM people WHERE id = ?",
    "reports": "SELECT id, name FROM people WHERE boss_id = ? ORDER BY id",
    "subject": "SELECT id, name FROM subjects WHERE id = ?",
    "below": "SELECT id, name FROM subjects WHERE parent_id = ? ORDER BY id",
    "note": "SELECT id, body FROM notes WHERE id = ?",
    "links": "SELECT l.id, s.name FROM links l JOIN subjects s ON s.id = l.subject_id "
    "WHERE l.subject_id = ?",
    "dismiss": "DELETE FROM people WHERE id = ?",
    "drop a subject": "DELETE FROM subjects WHERE id = ?",
    "drop a note": "DELETE FROM notes WHERE id = ?",
}


@pytest.fixture(scope="module")
def staff(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Folder]:
    """Returns the folder with further settings."""

    def made(more: str) -> Folder:
        path = tmp_path_factory.mktemp("staff")
        url = sqlite_database(path / "source.db", STAFF)
        return designed(path / "folder", url, STAFF_PATTERNS, more)

    return made


@pytest.mark.parametrize("name", [WIDE, SINGLE])
def test_rows_that_lose_their_reference_to_one_of_their_own_table_change_with_it(
    staff: Callable[[str], Folder], endpoint: str, name: str
) -> None:
    run = prove(staff(KEEPING), name=name, endpoint=endpoint)
    assert proof(run, "dismiss").verdict == "proven"
    assert proof(run, "dismiss").rows > 0


def test_a_row_that_others_of_its_own_table_refer_to_is_not_deleted(
    staff: Callable[[str], Folder], endpoint: str
) -> None:
    folder = staff(KEEPING)
    unserved = {one.pattern: one.why for one in read_design(folder, SINGLE).unserved}
    assert "and other rows refer to them: write a pattern" in unserved["drop a subject"]
    chosen = {name: STAFF_PATTERNS[name] for name in ("below", "links", "drop a subject")}
    script = STAFF.replace("REFERENCES subjects (id) ON DELETE CASCADE", "REFERENCES subjects (id)")
    url = sqlite_database(folder.path / "restricting.db", script)
    folder = designed(folder.path / "restricting", url, chosen, KEEPING)
    forbidding = [one for one in read_design(folder, SINGLE).access if one.forbids]
    assert {one.entity for one in forbidding} == {"subjects", "links"}
    run = prove(folder, name=SINGLE, endpoint=endpoint)
    assert {one.verdict for one in run.functional} == {"proven"}


def test_sqlite_keeps_references_only_where_its_sessions_do(
    staff: Callable[[str], Folder], endpoint: str
) -> None:
    folder = staff(QUICK)
    design = read_design(folder, SINGLE)
    kept = {(one.table, one.to): one for one in design.references}
    assert kept["people", "people"].kept_by == kept["files", "notes"].kept_by == "lost"
    assert "foreign_keys = true" in kept["files", "notes"].why
    deleting = [one for one in design.access if one.pattern == "dismiss"]
    assert [one.request for one in deleting] == ["DeleteItem"]
    assert proof(prove(folder, name=SINGLE, endpoint=endpoint), "dismiss").verdict == "proven"
