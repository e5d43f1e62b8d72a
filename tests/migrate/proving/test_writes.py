"""Writes: their proof writes rows, and what they do to rows that refer to one another."""

from __future__ import annotations

import pytest

from partita.migrate.proving.prove import test as prove
from partita.migrate.proving.results import PatternProof, ProofRun

from .conftest import QUICK, designed, sqlite_database
from .test_prove import WIDE

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


def test_writes_that_read_first_are_rehearsed_at_their_rates(run: ProofRun) -> None:
    assert [one.outcome for one in run.non_functional if "stated rates" in one.name] == ["passed"]
