"""Views, EXISTS, IN (SELECT ...) and their negations: proven, priced, and refuted if wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from partita_migrate.costing.capacity_estimate import units
from partita_migrate.model.model_files import read_design
from partita_migrate.model.volumes import read_volumes
from partita_migrate.proving.prove import test as prove
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import designed, sqlite_database
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .test_prove import SINGLE, WIDE, verdicts
from .test_statements import mutated, without

SCHEMA = """
CREATE TABLE city (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL);
CREATE TABLE member (
    id INT PRIMARY KEY, city_id INT NOT NULL, name VARCHAR(20) NOT NULL, is_active INT NOT NULL,
    FOREIGN KEY (city_id) REFERENCES city (id)
);
CREATE TABLE loan (
    id INT PRIMARY KEY, member_id INT NOT NULL, title VARCHAR(20) NOT NULL, lent INT NOT NULL,
    back INT, FOREIGN KEY (member_id) REFERENCES member (id)
);
CREATE VIEW member_list AS SELECT m.id AS member_no, m.name, c.name AS town
    FROM member m JOIN city c ON c.id = m.city_id WHERE m.is_active = 1;
CREATE VIEW lent_out AS SELECT id AS loan_no, member_id AS member_no, title, lent FROM loan
    WHERE back IS NULL;
CREATE VIEW lent_lately AS SELECT loan_no, member_no, title FROM lent_out WHERE lent > 15;
CREATE VIEW loans_of_members AS SELECT member_id, COUNT(*) AS n, MAX(lent) AS latest FROM loan
    GROUP BY member_id;
INSERT INTO city VALUES (1, 'Bonn'), (2, 'Oslo'), (3, 'Nice');
INSERT INTO member VALUES (1, 1, 'Ann', 1), (2, 1, 'Bo', 1), (3, 1, 'Cy', 0), (4, 2, 'Di', 1),
    (5, 2, 'Ed', 0), (6, 2, 'Flo', 1);
INSERT INTO loan VALUES (1, 1, 'Emma', 10, NULL), (2, 1, 'Emma', 20, 25),
    (3, 1, 'Dune', 30, NULL), (4, 2, 'Emma', 11, 12), (5, 4, 'Dune', 40, NULL),
    (6, 5, 'Dune', 41, NULL), (7, 5, 'Hugo', 9, 9);
"""
PATTERNS = {
    "member": "SELECT * FROM member WHERE id = ?",
    "members of a city": "SELECT id, name FROM member WHERE city_id = ?",
    "loans of a member": "SELECT id, title FROM loan WHERE member_id = ? ORDER BY lent DESC",
    "through a view": "SELECT name, town FROM member_list WHERE member_no = ?",
    "through two views": "SELECT loan_no, title FROM lent_lately WHERE member_no = ?",
    "groups of a view": "SELECT n, latest FROM loans_of_members WHERE member_id = ?",
    "a subquery in FROM": (
        "SELECT x.name FROM (SELECT id, name FROM member WHERE is_active = 1) x WHERE x.id = ?"
    ),
    "a common table expression": (
        "WITH late AS (SELECT member_id, title FROM loan WHERE back IS NULL)"
        " SELECT title FROM late WHERE member_id = ?"
    ),
    "members with open loans": (
        "SELECT m.id, m.name FROM member m WHERE m.city_id = ? AND EXISTS"
        " (SELECT 1 FROM loan l WHERE l.member_id = m.id AND l.back IS NULL) ORDER BY m.name"
    ),
    "members without loans": (
        "SELECT m.id FROM member m WHERE m.city_id = ? AND NOT EXISTS"
        " (SELECT * FROM loan l WHERE l.member_id = m.id) ORDER BY m.id DESC LIMIT 1"
    ),
    "members who never had it": (
        "SELECT id FROM member WHERE city_id = ? AND id NOT IN"
        " (SELECT member_id FROM loan WHERE title = ?)"
    ),
    "members who had it": (
        "SELECT id, name FROM member WHERE id IN (SELECT member_id FROM loan WHERE title = ?)"
        " ORDER BY name LIMIT 2"
    ),
    "loans of active members": (
        "SELECT l.id FROM loan l WHERE l.title = ? AND l.member_id IN"
        " (SELECT id FROM member WHERE is_active = 1)"
    ),
    "nobody there": (
        "SELECT c.id, c.name FROM city c LEFT JOIN member m ON m.city_id = c.id WHERE m.id IS NULL"
    ),
    "a later loan of the same": (
        "SELECT l.id FROM loan l WHERE l.member_id = ? AND EXISTS (SELECT 1 FROM loan o"
        " WHERE o.member_id = l.member_id AND o.lent > l.lent)"
    ),
    "town of a member": (
        "SELECT name FROM city WHERE id = (SELECT city_id FROM member WHERE id = ?)"
    ),
    "asked in two steps": "SELECT id FROM loan WHERE lent = (SELECT MAX(lent) FROM loan)",
    "not in, with NULL": "SELECT id FROM member WHERE city_id = ? AND id NOT IN"
    " (SELECT back FROM loan)",
    "return all": "DELETE FROM loan WHERE member_id IN (SELECT id FROM member WHERE city_id = ?)",
    "lend": "INSERT INTO loan (id, member_id, title, lent) VALUES (?, ?, ?, ?)",
}
UNSERVED = {
    "asked in two steps": "make it a pattern of its own",
    "not in, with NULL": "write NOT EXISTS",
    "return all": "what a SELECT inside it finds",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("library")
    return designed(path / "folder", sqlite_database(path / "source.db", SCHEMA), PATTERNS)


def assert_served(folder: Folder, endpoint: str, name: str) -> None:
    run = prove(folder, name=name, endpoint=endpoint)
    assert [(one.pattern, one.differences) for one in run.functional if one.differences] == []
    unserved = {one.pattern: one.why for one in run.functional if one.verdict != "proven"}
    assert unserved.keys() == UNSERVED.keys()
    for pattern, word in UNSERVED.items():
        assert word in unserved[pattern]


@pytest.mark.parametrize("name", [WIDE, SINGLE])
def test_they_are_proven_on_sqlite(library: Folder, endpoint: str, name: str) -> None:
    assert_served(library, endpoint, name)


def test_they_are_proven_on_a_server(
    server: DatabaseServer, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = designed(tmp_path / "folder", server.create("library", SCHEMA), PATTERNS)
    assert_served(folder, endpoint, SINGLE)


def test_a_row_that_must_not_be_there_is_asked_for(library: Folder, endpoint: str) -> None:
    design = read_design(library, SINGLE)
    (check,) = [
        one for one in design.access if one.pattern == "members without loans" and one.keeps
    ]
    assert (check.keeps, check.for_each) == ("none", True)
    turned = replace(
        design,
        access=[replace(one, keeps="some") if one == check else one for one in design.access],
    )
    assert verdicts(mutated(library, endpoint, turned))["members without loans"] == "differs"
    missing = without(design, lambda one: one == check)
    assert verdicts(mutated(library, endpoint, missing))["members without loans"] != "proven"


def test_requests_for_each_row_are_priced_as_often_as_they_are_sent(library: Folder) -> None:
    volumes = read_volumes(library)
    design = read_design(library, SINGLE)
    counted = units(design, read_patterns(library, volumes.inventory).patterns, volumes)
    of = [one for one in counted.patterns if one.pattern == "members without loans"]
    rows, checks = of
    assert rows.items > 1
    assert checks.requests == rows.items
    assert checks.read_units == pytest.approx(0.5 * checks.calls_per_second * rows.items)
